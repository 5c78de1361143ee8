/* SHA-256 blocks with the cryptographic extension of 64-bit ARM. */
#include "hash/sha256_blocks.h"

#ifdef __aarch64__

#include <arm_neon.h>
#include <assert.h>
#include <sys/auxv.h>

#define TARGET __attribute__((target("+crypto")))
#define INLINE TARGET __attribute__((always_inline)) static inline

struct halves {
    uint32x4_t abcd;
    uint32x4_t efgh;
};

#define LANES_MAX 2

struct lane {
    uint32_t *state;
    const uint8_t *bytes;
};

bool zt_sha256_has_instructions(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_SHA2) != 0;
}

INLINE void load_block(const uint8_t *bytes, uint32x4_t words[4])
{
    for (int i = 0; i < 4; i++)
        words[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(bytes + (size_t)16 * (size_t)i)));
}

/* The four words that follow words, which replace the oldest four. at is the place of these. */
INLINE void extend(uint32x4_t words[4], int at)
{
    words[at] = vsha256su1q_u32(vsha256su0q_u32(words[at], words[(at + 1) % 4]),
                                words[(at + 2) % 4], words[(at + 3) % 4]);
}

/* Adds blocks to the states of 1 or 2 lanes; lanes is a constant, so every loop over it is unrolled
 * and the instructions of the lanes are interleaved. */
INLINE void add_blocks(struct lane lane[], int lanes, size_t blocks)
{
    struct halves state[LANES_MAX];

    for (int i = 0; i < lanes; i++)
        state[i] =
            (struct halves){.abcd = vld1q_u32(lane[i].state), .efgh = vld1q_u32(lane[i].state + 4)};
    for (; blocks > 0; blocks--) {
        struct halves before[LANES_MAX];
        uint32x4_t words[LANES_MAX][4];

        for (int i = 0; i < lanes; i++) {
            __builtin_prefetch(lane[i].bytes + ZT_SHA256_AHEAD);
            before[i] = state[i];
            load_block(lane[i].bytes, words[i]);
            lane[i].bytes += 64;
        }
#pragma GCC unroll 16
        for (int group = 0; group < 16; group++) {
            const uint32x4_t constants = vld1q_u32(zt_sha256_constants + (size_t)4 * (size_t)group);

            for (int i = 0; i < lanes; i++) {
                const uint32x4_t sums = vaddq_u32(words[i][group % 4], constants);
                const uint32x4_t abcd = state[i].abcd;

                if (group < 12)
                    extend(words[i], group % 4);
                state[i].abcd = vsha256hq_u32(abcd, state[i].efgh, sums);
                state[i].efgh = vsha256h2q_u32(state[i].efgh, abcd, sums);
            }
        }
        for (int i = 0; i < lanes; i++) {
            state[i].abcd = vaddq_u32(state[i].abcd, before[i].abcd);
            state[i].efgh = vaddq_u32(state[i].efgh, before[i].efgh);
        }
    }
    for (int i = 0; i < lanes; i++) {
        vst1q_u32(lane[i].state, state[i].abcd);
        vst1q_u32(lane[i].state + 4, state[i].efgh);
    }
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
