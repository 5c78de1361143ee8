/* Made-up weights, the same on every machine, and their bytes. */
#ifndef EXAMPLE_NUMBERS_H
#define EXAMPLE_NUMBERS_H

#include <stdint.h>

struct xorshift {
    uint64_t state; /* never 0 */
};

#define XORSHIFT_START 0x9E3779B97F4A7C15

/* The next 64 bits. */
uint64_t xorshift_bits(struct xorshift *numbers);

/* The next weight: between -1/16 and 1/16, a multiple of 2^-14 so that every step is exact. */
float xorshift_weight(struct xorshift *numbers);

/* The bits of an IEEE binary32. */
uint32_t float_bits(float value);

/* Writes the low width bytes of value, at most 8, lowest first. */
void put_little(uint8_t *to, uint64_t value, unsigned width);

#endif
