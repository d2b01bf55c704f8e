// Swap-or-not shuffling with 90 rounds, as in the Ethereum consensus specification.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sha256.hpp"

namespace shuffling {

inline constexpr unsigned kRounds = 90;
inline constexpr std::size_t kPositionsPerHash = 256;

// What one round takes from SHA-256: its pivot, and one hash for every 256 positions.
struct RoundHashes {
    std::uint64_t pivot;
    const sha256::Digest* sources;
};

std::size_t hashes_per_round(std::size_t count);

// Fills `rounds`, kRounds long, and `sources`, kRounds * hashes_per_round(count) long, which `rounds` points into.
void compute_round_hashes(const sha256::Digest& seed, std::size_t count, RoundHashes* rounds, sha256::Digest* sources);

// list_after[i] = list_before[compute_shuffled_index(i)]; `sources` is scratch memory as in compute_round_hashes.
void shuffle_list(std::uint32_t* list, std::size_t count, const sha256::Digest& seed, sha256::Digest* sources);

// The same with the hashes of all rounds at hand, round 0 first.
void shuffle_list_with_hashes(std::uint32_t* list, std::size_t count, const RoundHashes* rounds);

// The specification's definition, index by index; slow.
std::uint64_t compute_shuffled_index(std::uint64_t index, std::uint64_t count, const sha256::Digest& seed);

}  // namespace shuffling
