/* Widening of small floats: every value of them is a value of f32, and NaNs stay NaNs.
 *
 * f16 and bf16 are IEEE 754's and its upper half, f8_e4m3fn and f8_e5m2 OCP's 8-bit floats (OFP8),
 * the fnuz types those with one zero and one NaN, f8_e8m0 and f4_e2m1 OCP's scales and elements of
 * microscaling (MX). */
#include "widen/kernels.h"

#define NAN_BITS 0x7fc00000u

/* f32 itself. */
ZT_WIDEN_KERNEL(f32)
{
    for (size_t i = 0; i < count; i++)
        out[i] = zt_widen_from_bits(zt_widen_load32(blocks + 4 * i));
}

ZT_WIDEN_KERNEL(f16)
{
    for (size_t i = 0; i < count; i++)
        out[i] = zt_widen_half(zt_widen_load16(blocks + 2 * i));
}

ZT_WIDEN_KERNEL(bf16)
{
    for (size_t i = 0; i < count; i++)
        out[i] = zt_widen_from_bits(zt_widen_load16(blocks + 2 * i) << 16);
}

/* The upper half of f16. */
ZT_WIDEN_KERNEL(f8_e5m2)
{
    for (size_t i = 0; i < count; i++)
        out[i] = zt_widen_half((uint32_t)blocks[i] << 8);
}

/* No infinities; NaN is all ones behind the sign. */
ZT_WIDEN_KERNEL(f8_e4m3fn)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t magnitude = blocks[i] & 0x7f;
        const uint32_t bits = magnitude == 0x7f ? NAN_BITS : zt_widen_finite(magnitude, 3, 7);

        out[i] = zt_widen_from_bits(bits | (uint32_t)(blocks[i] & 0x80) << 24);
    }
}

/* The only NaN of a fnuz type is what would be negative zero. */
ZT_WIDEN_INLINE float fnuz(uint8_t byte, uint32_t fraction_bits, uint32_t bias)
{
    const uint32_t bits =
        zt_widen_finite(byte & 0x7f, fraction_bits, bias) | (uint32_t)(byte & 0x80) << 24;

    return zt_widen_from_bits(byte == 0x80 ? NAN_BITS : bits);
}

ZT_WIDEN_KERNEL(f8_e4m3fnuz)
{
    for (size_t i = 0; i < count; i++)
        out[i] = fnuz(blocks[i], 3, 8);
}

ZT_WIDEN_KERNEL(f8_e5m2fnuz)
{
    for (size_t i = 0; i < count; i++)
        out[i] = fnuz(blocks[i], 2, 16);
}

/* An exponent: powers of two from 2^-127, which f32 has as a subnormal number, and one NaN. */
ZT_WIDEN_KERNEL(f8_e8m0)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t exponent = blocks[i];
        const uint32_t bits = exponent == 0 ? 1u << 22 : exponent << 23;

        out[i] = zt_widen_from_bits(exponent == 0xff ? NAN_BITS : bits);
    }
}

ZT_WIDEN_INLINE float f4(uint32_t code)
{
    return zt_widen_from_bits(zt_widen_finite(code & 7, 1, 1) | (code & 8) << 28);
}

/* Two elements in a byte, the first in its lower half. */
ZT_WIDEN_KERNEL(f4_e2m1)
{
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = f4(blocks[i] & 0xf);
        out[2 * i + 1] = f4(blocks[i] >> 4);
    }
}
