/* Shared by the kernels of all types: their declarations, and reading numbers.
 *
 * A kernel is a plain loop that the compiler vectorises; the build compiles this room with -O3 and
 * without contraction, since a fused multiply and add would round once instead of twice. On x86-64
 * each kernel is compiled a second time for AVX2, with the same results. */
#ifndef ZT_WIDEN_KERNEL_H
#define ZT_WIDEN_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef void zt_widen_function(const uint8_t *blocks, size_t count, float *out);

struct zt_widen_kernel {
    zt_widen_function *portable;
    zt_widen_function *avx2; /* NULL except on x86-64 */
};

#define ZT_WIDEN_INLINE static inline __attribute__((always_inline))

/* Begins a kernel, whose body follows: it sees blocks, count and out. Makes zt_widen_NAME. */
#if defined(__x86_64__)
#define ZT_WIDEN_KERNEL(name_)                                                                     \
    ZT_WIDEN_INLINE void name_(const uint8_t *restrict blocks, size_t count, float *restrict out); \
    static void name_##_portable(const uint8_t *blocks, size_t count, float *out)                  \
    {                                                                                              \
        name_(blocks, count, out);                                                                 \
    }                                                                                              \
    __attribute__((target("avx2"))) static void name_##_avx2(const uint8_t *blocks, size_t count,  \
                                                             float *out)                           \
    {                                                                                              \
        name_(blocks, count, out);                                                                 \
    }                                                                                              \
    const struct zt_widen_kernel zt_widen_##name_ = {name_##_portable, name_##_avx2};              \
    ZT_WIDEN_INLINE void name_(const uint8_t *restrict blocks, size_t count, float *restrict out)
#else
#define ZT_WIDEN_KERNEL(name_)                                                                     \
    ZT_WIDEN_INLINE void name_(const uint8_t *restrict blocks, size_t count, float *restrict out); \
    static void name_##_portable(const uint8_t *blocks, size_t count, float *out)                  \
    {                                                                                              \
        name_(blocks, count, out);                                                                 \
    }                                                                                              \
    const struct zt_widen_kernel zt_widen_##name_ = {name_##_portable, NULL};                      \
    ZT_WIDEN_INLINE void name_(const uint8_t *restrict blocks, size_t count, float *restrict out)
#endif

/* Unlike zt_load_le16, these are one load to the vectoriser too. */
ZT_WIDEN_INLINE uint32_t zt_widen_load16(const uint8_t *bytes)
{
    uint16_t word;

    memcpy(&word, bytes, sizeof(word));
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word : __builtin_bswap16(word);
}

ZT_WIDEN_INLINE uint32_t zt_widen_load32(const uint8_t *bytes)
{
    uint32_t word;

    memcpy(&word, bytes, sizeof(word));
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word : __builtin_bswap32(word);
}

ZT_WIDEN_INLINE float zt_widen_from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

ZT_WIDEN_INLINE uint32_t zt_widen_to_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* The bits of a finite number without its sign, whose fraction has the given number of bits: f32
 * has another bias, and subnormal numbers become normal. */
ZT_WIDEN_INLINE uint32_t zt_widen_finite(uint32_t magnitude, uint32_t fraction_bits, uint32_t bias)
{
    const uint32_t normal = (magnitude << (23 - fraction_bits)) + ((127 - bias) << 23);
    const float least = zt_widen_from_bits((128 - bias - fraction_bits) << 23);
    const uint32_t subnormal = zt_widen_to_bits((float)(int32_t)magnitude * least);

    return magnitude < 1u << fraction_bits ? subnormal : normal;
}

/* The value, negated if sign is 1, without a branch on unpredictable bits. */
ZT_WIDEN_INLINE int zt_widen_signed(int value, uint32_t sign)
{
    return (value ^ -(int)sign) + (int)sign;
}

/* f16 by its 16 bits. Infinities stay, NaNs keep sign and payload. */
ZT_WIDEN_INLINE float zt_widen_half(uint32_t half)
{
    const uint32_t magnitude = half & 0x7fff;
    const uint32_t beyond = magnitude >= 0x7c00 ? 112u << 23 : 0;
    const uint32_t sign = (half & 0x8000) << 16;

    return zt_widen_from_bits((zt_widen_finite(magnitude, 10, 15) + beyond) | sign);
}

/* The f16 at an address: the scale of a block. */
ZT_WIDEN_INLINE float zt_widen_scale(const uint8_t *bytes)
{
    return zt_widen_half(zt_widen_load16(bytes));
}

#endif
