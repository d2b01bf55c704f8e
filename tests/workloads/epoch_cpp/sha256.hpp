// SHA-256 (FIPS 180-4): a portable and an SHA-NI compression function, and the two uses that Merkle trees have for it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sha256 {

// 32 bytes as they stand in memory; words so that copies never become library calls.
struct Digest {
    std::uint64_t words[4];

    bool operator==(const Digest&) const = default;
};

// Both update `state` by `count` consecutive blocks of 64 bytes.
void compress_portable(std::uint32_t* state, const std::uint8_t* blocks, std::size_t count);
void compress_shani(std::uint32_t* state, const std::uint8_t* blocks, std::size_t count);

// False where the build or the processor lacks SHA-NI.
bool shani_available();

// "portable" or "sha-ni"; `force_portable` overrides the choice made at start.
const char* backend_name();
void force_portable(bool portable);

Digest digest(const std::uint8_t* message, std::size_t length);
Digest hash_pair(const Digest& left, const Digest& right);

// out[i] = hash_pair(in[2 i], in[2 i + 1]); `out` and `in` do not overlap.
void hash_pairs(Digest* out, const Digest* in, std::size_t pairs);

// Extra passes over a block, 0 or 1: the planted change. The check is in every build, so that a build with a planted change
// differs from one without it by one constant and not by code layout.
unsigned planted_passes();

}  // namespace sha256
