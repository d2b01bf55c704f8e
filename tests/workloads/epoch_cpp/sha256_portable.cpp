#include "sha256.hpp"
#include "sha256_constants.hpp"

namespace sha256 {

static inline std::uint32_t rotate_right(std::uint32_t value, unsigned count) {
    return (value >> count) | (value << (32 - count));
}

static inline std::uint32_t load_big_endian(const std::uint8_t* bytes) {
    return (std::uint32_t{bytes[0]} << 24) | (std::uint32_t{bytes[1]} << 16) | (std::uint32_t{bytes[2]} << 8) | bytes[3];
}

static inline void expand_schedule(std::uint32_t* schedule, const std::uint8_t* block) {
    for (unsigned i = 0; i < 16; ++i) schedule[i] = load_big_endian(block + 4 * i);
    for (unsigned i = 16; i < 64; ++i) {
        const std::uint32_t early = schedule[i - 15];
        const std::uint32_t late = schedule[i - 2];
        const std::uint32_t s0 = rotate_right(early, 7) ^ rotate_right(early, 18) ^ (early >> 3);
        const std::uint32_t s1 = rotate_right(late, 17) ^ rotate_right(late, 19) ^ (late >> 10);
        schedule[i] = schedule[i - 16] + s0 + schedule[i - 7] + s1;
    }
}

void compress_portable(std::uint32_t* state, const std::uint8_t* blocks, std::size_t count) {
    for (; count != 0; --count, blocks += 64) {
        std::uint32_t a, b, c, d, e, f, g, h;
        unsigned passes = 1 + planted_passes();
        do {
            std::uint32_t schedule[64];
            expand_schedule(schedule, blocks);
            a = state[0], b = state[1], c = state[2], d = state[3];
            e = state[4], f = state[5], g = state[6], h = state[7];
            for (unsigned i = 0; i < 64; ++i) {
                const std::uint32_t s1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
                const std::uint32_t choice = (e & f) ^ (~e & g);
                const std::uint32_t t1 = h + s1 + choice + kRoundConstants[i] + schedule[i];
                const std::uint32_t s0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
                const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
                h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + s0 + majority;
            }
            // Keeps the compiler from dropping all passes but the last.
            asm volatile("" : "+r"(a), "+r"(e) : : "memory");
        } while (--passes != 0);
        state[0] += a, state[1] += b, state[2] += c, state[3] += d;
        state[4] += e, state[5] += f, state[6] += g, state[7] += h;
    }
}

}  // namespace sha256
