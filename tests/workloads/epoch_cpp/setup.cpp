#include "setup.hpp"

#include <malloc.h>

namespace setup {
namespace {

constexpr std::size_t kActiveRun = 256;
constexpr unsigned kParticipationPercent[3] = {97, 95, 90};

}  // namespace

RegistryData::RegistryData(std::size_t count)
    : balances_(count),
      effective_balances_(count),
      inactivity_scores_(count),
      flags_(count),
      view_{count, balances_.data(), effective_balances_.data(), inactivity_scores_.data(), flags_.data()} {}

void fill_registry(const epoch_processing::Registry& registry, random_numbers::Generator& generator) {
    for (std::size_t i = 0; i < registry.count; ++i) {
        registry.balances[i] = epoch_processing::kMaximumEffectiveBalance + generator.below(epoch_processing::kIncrement / 2);
        registry.effective_balances[i] = epoch_processing::kMaximumEffectiveBalance;
        registry.inactivity_scores[i] = generator.below(10) == 0 ? generator.below(100) : 0;
    }
    draw_flags(registry, 100, generator);
}

void draw_flags(const epoch_processing::Registry& registry, unsigned percent, random_numbers::Generator& generator) {
    std::uint8_t active = 0;
    for (std::size_t i = 0; i < registry.count; ++i) {
        if (i % kActiveRun == 0) active = generator.below(100) < percent ? epoch_processing::kActive : 0;
        std::uint8_t flags = active;
        std::uint64_t number = generator.next();
        for (unsigned flag = 0; flag < 3; ++flag) {
            if (number % 100 < kParticipationPercent[flag]) flags = static_cast<std::uint8_t>(flags | (1u << flag));
            number /= 100;
        }
        registry.flags[i] = flags;
    }
}

std::vector<std::uint32_t> active_indices(const epoch_processing::Registry& registry) {
    std::vector<std::uint32_t> indices;
    for (std::size_t i = 0; i < registry.count; ++i) {
        if ((registry.flags[i] & epoch_processing::kActive) != 0) indices.push_back(static_cast<std::uint32_t>(i));
    }
    return indices;
}

void keep_freed_memory() {
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 2'000'000'000);
    mallopt(M_TOP_PAD, 64 << 20);
}

}  // namespace setup
