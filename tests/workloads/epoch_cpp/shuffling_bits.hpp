// The inner parts of shuffling.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sha256.hpp"

namespace shuffling {

// seed (32 bytes) | round (1 byte) | position / 256 (4 bytes, little-endian)
struct Message {
    static constexpr std::size_t kPivotBytes = 33;
    static constexpr std::size_t kSourceBytes = 37;

    Message(const sha256::Digest& seed, unsigned round);

    std::uint8_t bytes[kSourceBytes];
};

void compute_set_position(Message& message, std::uint32_t block);

// Bit `position` of consecutive hashes, least significant bit of a byte first.
bool compute_bit(const sha256::Digest* hashes, std::size_t position);

// Goes over the pairs (low, high), (low + 1, high - 1), ... and swaps those whose bit at the greater position is set.
void compute_swaps(std::uint32_t* list, std::size_t low, std::size_t high, const sha256::Digest* hashes);

}  // namespace shuffling
