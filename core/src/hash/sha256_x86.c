/* SHA-256 blocks with the SHA extensions of x86-64. */
#include "hash/sha256_blocks.h"

#ifdef __x86_64__

#include <assert.h>
#include <cpuid.h>
#include <immintrin.h>

#define TARGET __attribute__((target("sha,sse4.1,ssse3")))
#define INLINE TARGET __attribute__((always_inline)) static inline
/* The instructions hold the eight words as the pairs (a, b, e, f) and (c, d, g, h). */
struct halves {
    __m128i abef;
    __m128i cdgh;
};

#define LANES_MAX 2

struct lane {
    uint32_t *state;
    const uint8_t *bytes;
};

bool zt_sha256_has_instructions(void)
{
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;

    /* __builtin_cpu_supports("sha") is unknown to the compilers of Debian 12. */
    return __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d) == 1 &&
           (b & bit_SHA) != 0;
}

INLINE struct halves load_state(const uint32_t *state)
{
    const __m128i *words = (const __m128i *)state;
    __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xB1);
    __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1B);

    return (struct halves){.abef = _mm_alignr_epi8(badc, efgh, 8),
                           .cdgh = _mm_blend_epi16(efgh, badc, 0xF0)};
}

INLINE void store_state(struct halves halves, uint32_t *state)
{
    __m128i *words = (__m128i *)state;
    __m128i feba = _mm_shuffle_epi32(halves.abef, 0x1B);
    __m128i dchg = _mm_shuffle_epi32(halves.cdgh, 0xB1);

    _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}

INLINE void load_block(const uint8_t *bytes, __m128i words[4])
{
    const __m128i big_endian = _mm_set_epi64x(0x0C0D0E0F08090A0B, 0x0405060700010203);

    for (int i = 0; i < 4; i++)
        words[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)bytes + i), big_endian);
}

/* The four words that follow words, which replace the oldest four. at is the place of these. */
INLINE void extend(__m128i words[4], int at)
{
    __m128i newest = words[(at + 3) % 4];
    __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(words[at], words[(at + 1) % 4]),
                                _mm_alignr_epi8(newest, words[(at + 2) % 4], 4));

    words[at] = _mm_sha256msg2_epu32(sum, newest);
}

/* Adds blocks to the states of 1 or 2 lanes; lanes is a constant, so every loop over it is unrolled
 * and the instructions of the lanes are interleaved. */
INLINE void add_blocks(struct lane lane[], int lanes, size_t blocks)
{
    struct halves state[LANES_MAX];

    for (int i = 0; i < lanes; i++)
        state[i] = load_state(lane[i].state);
    for (; blocks > 0; blocks--) {
        struct halves before[LANES_MAX];
        __m128i words[LANES_MAX][4];

        for (int i = 0; i < lanes; i++) {
            __builtin_prefetch(lane[i].bytes + ZT_SHA256_AHEAD);
            before[i] = state[i];
            load_block(lane[i].bytes, words[i]);
            lane[i].bytes += 64;
        }
#pragma GCC unroll 16
        for (int group = 0; group < 16; group++) {
            const __m128i constants =
                _mm_loadu_si128((const __m128i *)(zt_sha256_constants + (size_t)4 * group));
            __m128i sums[LANES_MAX];

            for (int i = 0; i < lanes; i++) {
                sums[i] = _mm_add_epi32(words[i][group % 4], constants);
                state[i].cdgh = _mm_sha256rnds2_epu32(state[i].cdgh, state[i].abef, sums[i]);
            }
            for (int i = 0; i < lanes; i++) {
                state[i].abef = _mm_sha256rnds2_epu32(state[i].abef, state[i].cdgh,
                                                      _mm_shuffle_epi32(sums[i], 0x0E));
                if (group < 12)
                    extend(words[i], group % 4);
            }
        }
        for (int i = 0; i < lanes; i++) {
            state[i].abef = _mm_add_epi32(state[i].abef, before[i].abef);
            state[i].cdgh = _mm_add_epi32(state[i].cdgh, before[i].cdgh);
        }
    }
    for (int i = 0; i < lanes; i++)
        store_state(state[i], lane[i].state);
}

TARGET void zt_sha256_add_blocks(uint32_t *state, const uint8_t *bytes, size_t blocks)
{
    struct lane lane = {state, bytes};

    add_blocks(&lane, 1, blocks);
}

TARGET void zt_sha256_add_blocks_pair(uint32_t *first_state, const uint8_t *first_bytes,
                                      uint32_t *second_state, const uint8_t *second_bytes,
                                      size_t blocks)
{
    struct lane lanes[2] = {{first_state, first_bytes}, {second_state, second_bytes}};

    assert(first_state != second_state);
    add_blocks(lanes, 2, blocks);
}

#endif
