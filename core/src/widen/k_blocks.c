/* Dequantizing GGUF's super-blocks of 256 elements: the k types, whose scales for 16 or 32 elements
 * are small integers with one f16 factor for all, and the ternary types.
 *
 * As ggml computes them: the factor times the small scale is rounded to f32 first, then its product
 * with the code, then the difference with the minimum. */
#include "widen/kernels.h"

#define ELEMENTS 256

ZT_WIDEN_KERNEL(q2_k)
{
    for (size_t block = 0; block < count; block++, blocks += 84, out += ELEMENTS) {
        const float factor = zt_widen_scale(blocks + 80);
        const float least_factor = zt_widen_scale(blocks + 82);

        for (unsigned part = 0; part < 16; part++) {
            const uint8_t *codes = blocks + 16 + part / 8 * 32 + part % 2 * 16;
            const unsigned shift = part % 8 / 2 * 2;
            const float scale = factor * (float)(blocks[part] & 0xf);
            const float least = least_factor * (float)(blocks[part] >> 4);

            for (unsigned i = 0; i < 16; i++)
                out[16 * part + i] = scale * (float)(codes[i] >> shift & 3) - least;
        }
    }
}

/* The 6-bit scale of sixteen elements: four bits of one byte and two of another. */
ZT_WIDEN_INLINE int q3_k_scale(const uint8_t *scales, unsigned part)
{
    const unsigned low = scales[part % 8] >> (part / 8 * 4) & 0xf;
    const unsigned high = scales[8 + part % 4] >> (part / 4 * 2) & 3;

    return (int)(low | high << 4) - 32;
}

/* The third bit of a code, in a separate mask, is 0 if four must be subtracted. */
ZT_WIDEN_KERNEL(q3_k)
{
    for (size_t block = 0; block < count; block++, blocks += 110, out += ELEMENTS) {
        const float factor = zt_widen_scale(blocks + 108);

        for (unsigned part = 0; part < 16; part++) {
            const uint8_t *thirds = blocks + part % 2 * 16;
            const uint8_t *codes = blocks + 32 + part / 8 * 32 + part % 2 * 16;
            const unsigned shift = part % 8 / 2 * 2;
            const unsigned third = part / 2;
            const float scale = factor * (float)q3_k_scale(blocks + 96, part);

            for (unsigned i = 0; i < 16; i++) {
                const int code = codes[i] >> shift & 3;

                out[16 * part + i] = scale * (float)(code + (thirds[i] >> third & 1) * 4 - 4);
            }
        }
    }
}

/* The 6-bit scale and minimum of 32 elements: the first four of each are stored whole in twelve
 * bytes, the others as four bits and two. */
ZT_WIDEN_INLINE void scale_and_least(const uint8_t *packed, unsigned part, float factor,
                                     float least_factor, float *out_scale, float *out_least)
{
    unsigned scale = packed[part % 4];
    unsigned least = packed[4 + part % 4];

    if (part < 4) {
        scale &= 0x3f;
        least &= 0x3f;
    } else {
        scale = (packed[4 + part] & 0xf) | (scale >> 2 & 0x30);
        least = (packed[4 + part] >> 4 & 0xf) | (least >> 2 & 0x30);
    }
    *out_scale = factor * (float)(int)scale;
    *out_least = least_factor * (float)(int)least;
}

ZT_WIDEN_KERNEL(q4_k)
{
    for (size_t block = 0; block < count; block++, blocks += 144, out += ELEMENTS) {
        const float factor = zt_widen_scale(blocks);
        const float least_factor = zt_widen_scale(blocks + 2);

        for (unsigned part = 0; part < 8; part++) {
            const uint8_t *codes = blocks + 16 + part / 2 * 32;
            const unsigned shift = part % 2 * 4;
            float scale, least;

            scale_and_least(blocks + 4, part, factor, least_factor, &scale, &least);
            for (unsigned i = 0; i < 32; i++)
                out[32 * part + i] = scale * (float)(codes[i] >> shift & 0xf) - least;
        }
    }
}

ZT_WIDEN_KERNEL(q5_k)
{
    for (size_t block = 0; block < count; block++, blocks += 176, out += ELEMENTS) {
        const float factor = zt_widen_scale(blocks);
        const float least_factor = zt_widen_scale(blocks + 2);
        const uint8_t *fifths = blocks + 16;

        for (unsigned part = 0; part < 8; part++) {
            const uint8_t *codes = blocks + 48 + part / 2 * 32;
            const unsigned shift = part % 2 * 4;
            float scale, least;

            scale_and_least(blocks + 4, part, factor, least_factor, &scale, &least);
            for (unsigned i = 0; i < 32; i++) {
                const int code = (codes[i] >> shift & 0xf) + (fifths[i] >> part & 1) * 16;

                out[32 * part + i] = scale * (float)code - least;
            }
        }
    }
}

ZT_WIDEN_KERNEL(q6_k)
{
    for (size_t block = 0; block < count; block++, blocks += 210, out += ELEMENTS) {
        const float factor = zt_widen_scale(blocks + 208);
        const uint8_t *scales = blocks + 192;

        for (unsigned part = 0; part < 16; part++) {
            /* Four times 32 elements share 64 bytes of low bits and 32 of high ones. */
            const unsigned row = part % 8 / 2;
            const uint8_t *low = blocks + part / 8 * 64 + row % 2 * 32 + part % 2 * 16;
            const uint8_t *high = blocks + 128 + part / 8 * 32 + part % 2 * 16;
            const unsigned low_shift = row / 2 * 4;
            const unsigned high_shift = row * 2;
            const float scale = factor * (float)(int8_t)scales[part];

            for (unsigned i = 0; i < 16; i++) {
                const int code =
                    (low[i] >> low_shift & 0xf) + (high[i] >> high_shift & 3) * 16 - 32;

                out[16 * part + i] = scale * (float)code;
            }
        }
    }
}

/* --- ternary: -1, 0, 1 --- */

/* Five digits of base three in a byte, as a fraction of 256: times a power of three, the next digit
 * is what three times the fraction has before the point. */
ZT_WIDEN_INLINE void ternary_digits(float scale, const uint8_t *bytes, unsigned width,
                                    unsigned power, float *restrict out)
{
    for (unsigned i = 0; i < width; i++) {
        const int fraction = (uint8_t)(bytes[i] * power);

        out[i] = scale * (float)((fraction * 3 >> 8) - 1);
    }
}

ZT_WIDEN_KERNEL(tq1_0)
{
    static const unsigned powers[] = {1, 3, 9, 27, 81};

    for (size_t block = 0; block < count; block++, blocks += 54, out += ELEMENTS) {
        const float scale = zt_widen_scale(blocks + 52);

        for (unsigned digit = 0; digit < 5; digit++) {
            ternary_digits(scale, blocks, 32, powers[digit], out + 32 * digit);
            ternary_digits(scale, blocks + 32, 16, powers[digit], out + 160 + 16 * digit);
        }
        for (unsigned digit = 0; digit < 4; digit++)
            ternary_digits(scale, blocks + 48, 4, powers[digit], out + 240 + 4 * digit);
    }
}

ZT_WIDEN_KERNEL(tq2_0)
{
    for (size_t block = 0; block < count; block++, blocks += 66, out += ELEMENTS) {
        const float scale = zt_widen_scale(blocks + 64);

        for (unsigned part = 0; part < 8; part++) {
            const uint8_t *codes = blocks + part / 4 * 32;
            const unsigned shift = part % 4 * 2;

            for (unsigned i = 0; i < 32; i++)
                out[32 * part + i] = scale * (float)((codes[i] >> shift & 3) - 1);
        }
    }
}
