// Inputs, made from the seed before any timer runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "epoch_processing.hpp"
#include "random_numbers.hpp"

namespace setup {

// Owns a registry's arrays.
class RegistryData {
public:
    explicit RegistryData(std::size_t count);

    const epoch_processing::Registry& view() const { return view_; }

private:
    std::vector<std::uint64_t> balances_;
    std::vector<std::uint64_t> effective_balances_;
    std::vector<std::uint64_t> inactivity_scores_;
    std::vector<std::uint8_t> flags_;
    epoch_processing::Registry view_;
};

void fill_registry(const epoch_processing::Registry& registry, random_numbers::Generator& generator);

// Draws who is active, in runs of 256 validators of which about `percent` are, and who takes part.
void draw_flags(const epoch_processing::Registry& registry, unsigned percent, random_numbers::Generator& generator);

std::vector<std::uint32_t> active_indices(const epoch_processing::Registry& registry);

// Keeps freed memory in the process, so that later phases take no page faults.
void keep_freed_memory();

}  // namespace setup
