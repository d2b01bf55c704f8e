#include "sha256.hpp"
#include "sha256_constants.hpp"

#if defined(__x86_64__) && !defined(PORTABLE_SHA256)

#include <immintrin.h>

namespace sha256 {

bool shani_available() {
    unsigned eax = 7, ebx = 0, ecx = 0, edx = 0;
    asm volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    return __builtin_cpu_supports("sse4.1") && ((ebx >> 29) & 1) != 0;
}

// The instructions want the state as (ABEF, CDGH); four rounds per step, the schedule in four registers used in turn.
__attribute__((target("sha,sse4.1,ssse3"))) void compress_shani(std::uint32_t* state, const std::uint8_t* blocks,
                                                                std::size_t count) {
    const __m128i byte_swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state));
    __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state + 4));
    low = _mm_shuffle_epi32(low, 0xb1);
    high = _mm_shuffle_epi32(high, 0x1b);
    __m128i abef = _mm_alignr_epi8(low, high, 8);
    __m128i cdgh = _mm_blend_epi16(high, low, 0xf0);

    for (; count != 0; --count, blocks += 64) {
        const __m128i* input = reinterpret_cast<const __m128i*>(blocks);
        const __m128i* constants = reinterpret_cast<const __m128i*>(kRoundConstants);
        __m128i first, second;
        unsigned passes = 1 + planted_passes();
        do {
            first = abef;
            second = cdgh;
            __m128i m0 = _mm_shuffle_epi8(_mm_loadu_si128(input + 0), byte_swap);
            __m128i m1 = _mm_shuffle_epi8(_mm_loadu_si128(input + 1), byte_swap);
            __m128i m2 = _mm_shuffle_epi8(_mm_loadu_si128(input + 2), byte_swap);
            __m128i m3 = _mm_shuffle_epi8(_mm_loadu_si128(input + 3), byte_swap);
            for (unsigned step = 0; step < 16; ++step) {
                const __m128i sum = _mm_add_epi32(m0, _mm_load_si128(constants + step));
                second = _mm_sha256rnds2_epu32(second, first, sum);
                first = _mm_sha256rnds2_epu32(first, second, _mm_shuffle_epi32(sum, 0x0e));
                const __m128i next = _mm_sha256msg2_epu32(
                    _mm_add_epi32(_mm_sha256msg1_epu32(m0, m1), _mm_alignr_epi8(m3, m2, 4)), m3);
                m0 = m1, m1 = m2, m2 = m3, m3 = next;
            }
            // Keeps the compiler from dropping all passes but the last.
            asm volatile("" : "+x"(first), "+x"(second) : : "memory");
        } while (--passes != 0);
        abef = _mm_add_epi32(abef, first);
        cdgh = _mm_add_epi32(cdgh, second);
    }

    low = _mm_shuffle_epi32(abef, 0x1b);
    high = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state), _mm_blend_epi16(low, high, 0xf0));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state + 4), _mm_alignr_epi8(high, low, 8));
}

}  // namespace sha256

#else

namespace sha256 {

bool shani_available() { return false; }

void compress_shani(std::uint32_t* state, const std::uint8_t* blocks, std::size_t count) {
    compress_portable(state, blocks, count);
}

}  // namespace sha256

#endif
