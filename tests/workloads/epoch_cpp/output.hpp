// One JSON object per line, and one plain line per epoch.
#pragma once

#include <cstdint>

#include "options.hpp"
#include "sha256.hpp"

namespace output {

void header(const options::Options& options);
void phase(options::Phase phase, std::uint64_t cpu_ns);
void epoch(std::uint64_t wall_ns);
// `cpu_ns` of all phases; adds the CPU time of the whole process so far.
void total(std::uint64_t cpu_ns, const sha256::Digest& checksum);

}  // namespace output
