/* Widening of integers of less than a byte, which are packed as ONNX packs them: the first element
 * in the low bits of its byte, signed ones in two's complement. */
#include "widen/kernels.h"

ZT_WIDEN_INLINE float element(uint8_t byte, unsigned bits, unsigned place)
{
    return (float)(int)((unsigned)byte >> (bits * place) & ((1u << bits) - 1));
}

/* With the sign bit flipped, the codes ascend from the least integer on. */
ZT_WIDEN_INLINE float signed_element(uint8_t byte, unsigned bits, unsigned place)
{
    const unsigned sign = 1u << (bits - 1);
    const unsigned code = (unsigned)byte >> (bits * place) & ((1u << bits) - 1);

    return (float)((int)(code ^ sign) - (int)sign);
}

ZT_WIDEN_KERNEL(u4)
{
    for (size_t i = 0; i < count; i++)
        for (unsigned place = 0; place < 2; place++)
            out[2 * i + place] = element(blocks[i], 4, place);
}

ZT_WIDEN_KERNEL(i4)
{
    for (size_t i = 0; i < count; i++)
        for (unsigned place = 0; place < 2; place++)
            out[2 * i + place] = signed_element(blocks[i], 4, place);
}

ZT_WIDEN_KERNEL(u2)
{
    for (size_t i = 0; i < count; i++)
        for (unsigned place = 0; place < 4; place++)
            out[4 * i + place] = element(blocks[i], 2, place);
}

ZT_WIDEN_KERNEL(i2)
{
    for (size_t i = 0; i < count; i++)
        for (unsigned place = 0; place < 4; place++)
            out[4 * i + place] = signed_element(blocks[i], 2, place);
}
