/* Dequantizing GGUF's iq types: blocks whose codes choose points of a lattice (iq_grids.c), four or
 * eight elements at once, with separate signs; or values of a table that is not linear.
 *
 * As ggml computes them: the scale of a group is rounded to f32 first, then its product with the
 * point's value. */
#include "widen/iq_grids.h"
#include "widen/kernels.h"

#define ELEMENTS 256

/* Eight signs as seven bits: the number of negative ones is even. */
ZT_WIDEN_INLINE uint32_t even_signs(uint32_t seven)
{
    return seven | (uint32_t)__builtin_parity(seven) << 7;
}

ZT_WIDEN_INLINE float with_sign(int value, uint32_t signs, unsigned i)
{
    return (float)zt_widen_signed(value, signs >> i & 1);
}

/* --- iq2: eight elements of 8, 25 and 43 --- */

ZT_WIDEN_INLINE void put_eight(float scale, uint32_t point, uint32_t signs, float *restrict out)
{
    for (unsigned i = 0; i < 8; i++) {
        const int code = (int)(point >> (2 * i) & 3);

        out[i] = scale * with_sign(8 + 17 * code + (code >> 1), signs, i);
    }
}

/* A 4-bit scale stands for a half more than itself, and quarters of it count. */
ZT_WIDEN_INLINE float iq2_scale(float factor, uint32_t scale)
{
    return factor * (0.5F + (float)(int)scale) * 0.25F;
}

ZT_WIDEN_KERNEL(iq2_xxs)
{
    for (size_t block = 0; block < count; block++, blocks += 66, out += ELEMENTS) {
        const float factor = zt_widen_scale(blocks);

        for (unsigned group = 0; group < 8; group++) {
            const uint8_t *codes = blocks + 2 + 8 * group;
            const uint32_t word = zt_widen_load32(codes + 4);
            const float scale = iq2_scale(factor, word >> 28);

            for (unsigned i = 0; i < 4; i++)
                put_eight(scale, zt_iq2_xxs_grid[codes[i]], even_signs(word >> (7 * i) & 0x7f),
                          out + 32 * group + 8 * i);
        }
    }
}

ZT_WIDEN_KERNEL(iq2_xs)
{
    for (size_t block = 0; block < count; block++, blocks += 74, out += ELEMENTS) {
        const float factor = zt_widen_scale(blocks);

        for (unsigned i = 0; i < 32; i++) {
            const uint32_t code = zt_widen_load16(blocks + 2 + 2 * i);
            const uint32_t nibble = blocks[66 + i / 4] >> (i / 2 % 2 * 4) & 0xf;

            put_eight(iq2_scale(factor, nibble), zt_iq2_xs_grid[code & 0x1ff],
                      even_signs(code >> 9), out + 8 * i);
        }
    }
}

ZT_WIDEN_KERNEL(iq2_s)
{
    for (size_t block = 0; block < count; block++, blocks += 82, out += ELEMENTS) {
        const float factor = zt_widen_scale(blocks);
        const uint8_t *codes = blocks + 2;
        const uint8_t *signs = blocks + 34;
        const uint8_t *high = blocks + 66;

        for (unsigned i = 0; i < 32; i++) {
            const uint32_t code = codes[i] | (high[i / 4] >> (i % 4 * 2) & 3u) << 8;
            const uint32_t nibble = blocks[74 + i / 4] >> (i / 2 % 2 * 4) & 0xf;

            put_eight(iq2_scale(factor, nibble), zt_iq2_s_grid[code], signs[i], out + 8 * i);
        }
    }
}

/* --- iq3: four elements --- */

/* 4, 12, 20 and so on to 52, and 62. */
ZT_WIDEN_INLINE int iq3_xxs_value(int code)
{
    return 4 + 8 * code + (code == 7 ? 2 : 0);
}

ZT_WIDEN_INLINE void put_twice_four(float scale, uint32_t first, uint32_t second, uint32_t signs,
                                    float *restrict out)
{
    const uint32_t points = first | second << 16;

    for (unsigned i = 0; i < 8; i++)
        out[i] = scale * with_sign(iq3_xxs_value((int)(points >> (4 * i) & 7)), signs, i);
}

ZT_WIDEN_KERNEL(iq3_xxs)
{
    for (size_t block = 0; block < count; block++, blocks += 98, out += ELEMENTS) {
        const float factor = zt_widen_scale(blocks);

        for (unsigned group = 0; group < 8; group++) {
            const uint8_t *codes = blocks + 2 + 8 * group;
            const uint32_t word = zt_widen_load32(blocks + 66 + 4 * group);
            const float scale = factor * (0.5F + (float)(int)(word >> 28)) * 0.5F;

            for (unsigned i = 0; i < 4; i++)
                put_twice_four(scale, zt_iq3_xxs_grid[codes[2 * i]],
                               zt_iq3_xxs_grid[codes[2 * i + 1]],
                               even_signs(word >> (7 * i) & 0x7f), out + 32 * group + 8 * i);
        }
    }
}

ZT_WIDEN_KERNEL(iq3_s)
{
    for (size_t block = 0; block < count; block++, blocks += 110, out += ELEMENTS) {
        const float factor = zt_widen_scale(blocks);
        const uint8_t *codes = blocks + 2;
        const uint8_t *high = blocks + 66;
        const uint8_t *signs = blocks + 74;

        for (unsigned i = 0; i < 32; i++) {
            const uint32_t ninths = high[i / 4] >> (i % 4 * 2);
            const uint32_t first = zt_iq3_s_grid[codes[2 * i] | (ninths & 1) << 8];
            const uint32_t second = zt_iq3_s_grid[codes[2 * i + 1] | (ninths >> 1 & 1) << 8];
            const uint32_t points = first | second << 16;
            const int nibble = blocks[106 + i / 8] >> (i / 4 % 2 * 4) & 0xf;
            const float scale = factor * (float)(1 + 2 * nibble);
            const uint32_t sign = signs[i];

            for (unsigned j = 0; j < 8; j++)
                out[8 * i + j] = scale * with_sign(1 + 2 * (int)(points >> (4 * j) & 7), sign, j);
        }
    }
}

/* --- iq1: eight elements of -1, 0 and 1, all of them an eighth more or less --- */

ZT_WIDEN_INLINE void put_shifted(float scale, uint32_t point, int eighth, float *restrict out)
{
    for (unsigned i = 0; i < 8; i++) {
        const int code = (int)(point >> (2 * i) & 3);

        out[i] = scale * ((float)(8 * code - 8 + eighth) * 0.125F);
    }
}

ZT_WIDEN_KERNEL(iq1_s)
{
    for (size_t block = 0; block < count; block++, blocks += 50, out += ELEMENTS) {
        const float factor = zt_widen_scale(blocks);

        for (unsigned group = 0; group < 8; group++) {
            const uint8_t *codes = blocks + 2 + 4 * group;
            const uint32_t word = zt_widen_load16(blocks + 34 + 2 * group);
            const float scale = factor * (float)(int)(2 * (word >> 12 & 7) + 1);
            const int eighth = (word & 0x8000) != 0 ? -1 : 1;

            for (unsigned i = 0; i < 4; i++)
                put_shifted(scale, zt_iq1_grid[codes[i] | (word >> (3 * i) & 7) << 8], eighth,
                            out + 32 * group + 8 * i);
        }
    }
}

/* The factor's sixteen bits are the upper four of four words, whose lower bits are scales. */
ZT_WIDEN_INLINE float iq1_m_factor(const uint8_t *words)
{
    uint32_t half = 0;

    for (unsigned i = 0; i < 4; i++)
        half |= zt_widen_load16(words + 2 * i) >> 12 << (4 * i);
    return zt_widen_half(half);
}

ZT_WIDEN_KERNEL(iq1_m)
{
    for (size_t block = 0; block < count; block++, blocks += 56, out += ELEMENTS) {
        const uint8_t *words = blocks + 48;
        const float factor = iq1_m_factor(words);

        for (unsigned i = 0; i < 32; i++) {
            const uint32_t high = blocks[32 + i / 2] >> (i % 2 * 4) & 0xf;
            const uint32_t small = zt_widen_load16(words + i / 8 * 2) >> (i / 2 % 4 * 3) & 7;
            const float scale = factor * (float)(int)(2 * small + 1);

            put_shifted(scale, zt_iq1_grid[blocks[i] | (high & 7) << 8], (high & 8) != 0 ? -1 : 1,
                        out + 8 * i);
        }
    }
}

/* --- iq4: sixteen values, closer together near 0 --- */

static const float iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};

ZT_WIDEN_INLINE void put_sixteen_pairs(float scale, const uint8_t *codes, float *restrict out)
{
    for (unsigned i = 0; i < 16; i++) {
        out[i] = scale * iq4_values[codes[i] & 0xf];
        out[i + 16] = scale * iq4_values[codes[i] >> 4];
    }
}

/* 32 elements a block. */
ZT_WIDEN_KERNEL(iq4_nl)
{
    for (size_t block = 0; block < count; block++, blocks += 18, out += 32)
        put_sixteen_pairs(zt_widen_scale(blocks), blocks + 2, out);
}

ZT_WIDEN_KERNEL(iq4_xs)
{
    for (size_t block = 0; block < count; block++, blocks += 136, out += ELEMENTS) {
        const float factor = zt_widen_scale(blocks);
        const uint32_t high = zt_widen_load16(blocks + 2);

        for (unsigned i = 0; i < 8; i++) {
            const uint32_t low = blocks[4 + i / 2] >> (i % 2 * 4) & 0xf;
            const int scale = (int)(low | (high >> (2 * i) & 3) << 4) - 32;

            put_sixteen_pairs(factor * (float)scale, blocks + 8 + 16 * i, out + 32 * i);
        }
    }
}
