/* Dequantizing GGUF's blocks of 32 elements and their kin: one scale a block, or one for every
 * sixteen elements (nvfp4).
 *
 * As ggml computes them: each value is the product of scale and code, rounded to f32, and then plus
 * the block's minimum, rounded again. A scale that is infinite or a NaN gives infinities and NaNs
 * as the machine's multiplication does; the bits of such a NaN are not defined. */
#include "widen/kernels.h"

#define ELEMENTS 32
#define HALF     16

/* 4-bit codes: the lower halves of sixteen bytes are the first sixteen elements. */

ZT_WIDEN_KERNEL(q4_0)
{
    for (size_t block = 0; block < count; block++, blocks += 18, out += ELEMENTS) {
        const float scale = zt_widen_scale(blocks);
        const uint8_t *codes = blocks + 2;

        for (unsigned i = 0; i < HALF; i++) {
            out[i] = scale * (float)((codes[i] & 0xf) - 8);
            out[i + HALF] = scale * (float)((codes[i] >> 4) - 8);
        }
    }
}

ZT_WIDEN_KERNEL(q4_1)
{
    for (size_t block = 0; block < count; block++, blocks += 20, out += ELEMENTS) {
        const float scale = zt_widen_scale(blocks);
        const float least = zt_widen_scale(blocks + 2);
        const uint8_t *codes = blocks + 4;

        for (unsigned i = 0; i < HALF; i++) {
            out[i] = scale * (float)(codes[i] & 0xf) + least;
            out[i + HALF] = scale * (float)(codes[i] >> 4) + least;
        }
    }
}

/* 5-bit codes: the fifth bits of all elements are one word. */

ZT_WIDEN_KERNEL(q5_0)
{
    for (size_t block = 0; block < count; block++, blocks += 22, out += ELEMENTS) {
        const float scale = zt_widen_scale(blocks);
        const uint32_t fifths = zt_widen_load32(blocks + 2);
        const uint8_t *codes = blocks + 6;

        for (unsigned i = 0; i < HALF; i++) {
            const uint32_t low = (codes[i] & 0xfu) | (fifths >> i & 1) << 4;
            const uint32_t high = (codes[i] >> 4 & 0xfu) | (fifths >> (i + HALF) & 1) << 4;

            out[i] = scale * (float)((int)low - 16);
            out[i + HALF] = scale * (float)((int)high - 16);
        }
    }
}

ZT_WIDEN_KERNEL(q5_1)
{
    for (size_t block = 0; block < count; block++, blocks += 24, out += ELEMENTS) {
        const float scale = zt_widen_scale(blocks);
        const float least = zt_widen_scale(blocks + 2);
        const uint32_t fifths = zt_widen_load32(blocks + 4);
        const uint8_t *codes = blocks + 8;

        for (unsigned i = 0; i < HALF; i++) {
            const uint32_t low = (codes[i] & 0xfu) | (fifths >> i & 1) << 4;
            const uint32_t high = (codes[i] >> 4 & 0xfu) | (fifths >> (i + HALF) & 1) << 4;

            out[i] = scale * (float)(int)low + least;
            out[i + HALF] = scale * (float)(int)high + least;
        }
    }
}

ZT_WIDEN_KERNEL(q8_0)
{
    for (size_t block = 0; block < count; block++, blocks += 34, out += ELEMENTS) {
        const float scale = zt_widen_scale(blocks);
        const uint8_t *codes = blocks + 2;

        for (unsigned i = 0; i < ELEMENTS; i++)
            out[i] = scale * (float)(int8_t)codes[i];
    }
}

/* --- one and two bits --- */

/* 128 elements a block: a bit is the sign, negative if it is 0. */
ZT_WIDEN_KERNEL(q1_0)
{
    for (size_t block = 0; block < count; block++, blocks += 18, out += 128) {
        const uint32_t scale = zt_widen_to_bits(zt_widen_scale(blocks));

        for (unsigned word = 0; word < 4; word++) {
            const uint32_t bits = ~zt_widen_load32(blocks + 2 + 4 * word);

            for (unsigned i = 0; i < 32; i++)
                out[32 * word + i] = zt_widen_from_bits(scale ^ (bits >> i & 1) << 31);
        }
    }
}

/* 64 elements a block: 2-bit codes for -1, 0, 1 and 2, four in a byte. */
ZT_WIDEN_KERNEL(q2_0)
{
    for (size_t block = 0; block < count; block++, blocks += 18, out += 64) {
        const float scale = zt_widen_scale(blocks);

        for (unsigned i = 0; i < 64; i++)
            out[i] = scale * (float)((blocks[2 + i / 4] >> (i % 4 * 2) & 3) - 1);
    }
}

/* --- 4-bit floats --- */

/* The doubled value of an f4_e2m1: 0 1 2 3 4 6 8 12. Zero has no sign. */
ZT_WIDEN_INLINE float doubled_f4(uint32_t code)
{
    const int step = (int)(code & 7);
    const int value = step + (step > 4 ? step - 4 : 0) + (step == 7 ? 2 : 0);

    return (float)zt_widen_signed(value, code >> 3);
}

/* Half of the power of two that an f8_e8m0 is. 255 is no NaN here. */
ZT_WIDEN_INLINE float half_e8m0(uint32_t exponent)
{
    return zt_widen_from_bits(exponent < 2 ? 1u << (21 + exponent) : (exponent - 1) << 23);
}

ZT_WIDEN_KERNEL(mxfp4)
{
    for (size_t block = 0; block < count; block++, blocks += 17, out += ELEMENTS) {
        const float scale = half_e8m0(blocks[0]);
        const uint8_t *codes = blocks + 1;

        for (unsigned i = 0; i < HALF; i++) {
            out[i] = scale * doubled_f4(codes[i] & 0xf);
            out[i + HALF] = scale * doubled_f4(codes[i] >> 4);
        }
    }
}

/* Half of an f8_e4m3 whose sign is ignored, except that 0x7f is 0. */
ZT_WIDEN_INLINE float half_ue4m3(uint32_t code)
{
    const float value = zt_widen_from_bits(zt_widen_finite(code & 0x7f, 3, 7));

    return code == 0x7f ? 0 : 0.5F * value;
}

/* 64 elements a block, with a scale for every sixteen of them. */
ZT_WIDEN_KERNEL(nvfp4)
{
    for (size_t part = 0; part < 4 * count; part++, out += HALF) {
        const uint8_t *block = blocks + part / 4 * 36;
        const float scale = half_ue4m3(block[part % 4]);
        const uint8_t *codes = block + 4 + 8 * (part % 4);

        for (unsigned i = 0; i < 8; i++) {
            out[i] = scale * doubled_f4(codes[i] & 0xf);
            out[i + 8] = scale * doubled_f4(codes[i] >> 4);
        }
    }
}
