#include "sha256.hpp"

#include <cstring>

#include "sha256_constants.hpp"

#ifndef SLOWER_HASH
#define SLOWER_HASH 0
#endif

namespace sha256 {

using Compress = void (*)(std::uint32_t*, const std::uint8_t*, std::size_t);

static Compress compress = shani_available() ? compress_shani : compress_portable;

// volatile: read at run time in every build, see planted_passes.
static const volatile unsigned slower_percent = SLOWER_HASH;
static unsigned blocks_seen = 0;

// The second block of a 64-byte message: a one bit, zeros, and the length of 512 bits, big-endian.
struct alignas(64) PairPadding {
    std::uint8_t one_bit = 0x80;
    std::uint8_t zeros[61] = {};
    std::uint8_t length[2] = {2, 0};
};
static constexpr PairPadding kPairPadding;

static inline Digest to_digest(const std::uint32_t* state) {
    Digest result;
    for (unsigned i = 0; i < 4; ++i) {
        const std::uint64_t first = __builtin_bswap32(state[2 * i]);
        const std::uint64_t second = __builtin_bswap32(state[2 * i + 1]);
        result.words[i] = first | (second << 32);
    }
    return result;
}

struct State {
    std::uint32_t words[8];
};

static inline State initial_state() {
    State state;
    for (unsigned i = 0; i < 8; ++i) state.words[i] = kInitialState[i];
    return state;
}

unsigned planted_passes() {
    const unsigned percent = slower_percent;
    if (percent == 0) return 0;
    blocks_seen = blocks_seen == 99 ? 0 : blocks_seen + 1;
    return blocks_seen < percent ? 1 : 0;
}

const char* backend_name() { return compress == compress_portable ? "portable" : "sha-ni"; }

void force_portable(bool portable) { compress = portable || !shani_available() ? compress_portable : compress_shani; }

Digest digest(const std::uint8_t* message, std::size_t length) {
    State state = initial_state();
    const std::size_t whole = length / 64;
    compress(state.words, message, whole);
    std::uint8_t tail[128] = {};
    const std::size_t rest = length - 64 * whole;
    if (rest != 0) std::memcpy(tail, message + 64 * whole, rest);
    tail[rest] = 0x80;
    const std::size_t blocks = rest < 56 ? 1 : 2;
    const std::uint64_t bits = std::uint64_t{length} * 8;
    for (unsigned i = 0; i < 8; ++i) tail[64 * blocks - 1 - i] = static_cast<std::uint8_t>(bits >> (8 * i));
    compress(state.words, tail, blocks);
    return to_digest(state.words);
}

Digest hash_pair(const Digest& left, const Digest& right) {
    alignas(64) Digest pair[2] = {left, right};
    State state = initial_state();
    compress(state.words, reinterpret_cast<const std::uint8_t*>(pair), 1);
    compress(state.words, &kPairPadding.one_bit, 1);
    return to_digest(state.words);
}

void hash_pairs(Digest* out, const Digest* in, std::size_t pairs) {
    for (std::size_t i = 0; i < pairs; ++i) out[i] = hash_pair(in[2 * i], in[2 * i + 1]);
}

}  // namespace sha256
