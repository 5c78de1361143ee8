/* Made-up weights, the same on every machine, and their bytes. */
#include "numbers.h"

#include <assert.h>
#include <string.h>

/* Marsaglia's xorshift, shifts 13, 7, 17. It stays 0 once it is 0. */
uint64_t xorshift_bits(struct xorshift *numbers)
{
    assert(numbers->state != 0);
    numbers->state ^= numbers->state << 13;
    numbers->state ^= numbers->state >> 7;
    numbers->state ^= numbers->state << 17;
    return numbers->state;
}

float xorshift_weight(struct xorshift *numbers)
{
    return (float)((int)(xorshift_bits(numbers) >> 40 & 0x7ff) - 1024) / 16384.0f;
}

uint32_t float_bits(float value)
{
    uint32_t bits;

    static_assert(sizeof(bits) == sizeof(value), "binary32");
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

void put_little(uint8_t *to, uint64_t value, unsigned width)
{
    assert(width <= sizeof(value));
    for (unsigned i = 0; i < width; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}
