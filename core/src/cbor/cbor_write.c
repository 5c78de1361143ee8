/* Writing CBOR. */
#include "cbor/cbor_write.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Major types (RFC 8949 section 3.1), as in the first byte. */
enum major {
    UNSIGNED = 0x00,
    NEGATIVE = 0x20,
    BYTES = 0x40,
    TEXT = 0x60,
    ARRAY = 0x80,
    MAP = 0xA0
};

/* Appends the first byte and the width_bytes low bytes of value, most significant first. */
static void put_number(struct zt_buffer *buffer, unsigned first, uint64_t value,
                       unsigned width_bytes)
{
    uint8_t bytes[9] = {(uint8_t)first};

    assert(width_bytes < sizeof(bytes));
    for (unsigned i = 0; i < width_bytes; i++)
        bytes[1 + i] = (uint8_t)(value >> (8 * (width_bytes - 1 - i)));
    zt_buffer_append(buffer, bytes, 1 + width_bytes);
}

static void put_head(struct zt_buffer *buffer, enum major major, uint64_t value)
{
    if (value < 24)
        put_number(buffer, major | (unsigned)value, 0, 0);
    else if (value <= UINT8_MAX)
        put_number(buffer, major | 24, value, 1);
    else if (value <= UINT16_MAX)
        put_number(buffer, major | 25, value, 2);
    else if (value <= UINT32_MAX)
        put_number(buffer, major | 26, value, 4);
    else
        put_number(buffer, major | 27, value, 8);
}

void zt_cbor_put_uint(struct zt_buffer *buffer, uint64_t value)
{
    put_head(buffer, UNSIGNED, value);
}

void zt_cbor_put_nint(struct zt_buffer *buffer, uint64_t value)
{
    put_head(buffer, NEGATIVE, value);
}

void zt_cbor_put_int(struct zt_buffer *buffer, int64_t value)
{
    if (value >= 0)
        zt_cbor_put_uint(buffer, (uint64_t)value);
    else
        zt_cbor_put_nint(buffer, (uint64_t)(-(value + 1)));
}

void zt_cbor_put_text(struct zt_buffer *buffer, struct zt_text text)
{
    put_head(buffer, TEXT, text.length);
    zt_buffer_append(buffer, text.bytes, text.length);
}

void zt_cbor_put_string(struct zt_buffer *buffer, const char *text)
{
    zt_cbor_put_text(buffer, (struct zt_text){text, strlen(text)});
}

void zt_cbor_put_bytes(struct zt_buffer *buffer, const void *bytes, size_t length)
{
    put_head(buffer, BYTES, length);
    zt_buffer_append(buffer, bytes, length);
}

void zt_cbor_put_array(struct zt_buffer *buffer, uint64_t count)
{
    put_head(buffer, ARRAY, count);
}

void zt_cbor_put_map(struct zt_buffer *buffer, uint64_t count)
{
    put_head(buffer, MAP, count);
}

void zt_cbor_put_bool(struct zt_buffer *buffer, bool value)
{
    put_number(buffer, value ? 0xF5 : 0xF4, 0, 0);
}

void zt_cbor_put_null(struct zt_buffer *buffer)
{
    put_number(buffer, 0xF6, 0, 0);
}

/* Whether a half-precision float can hold the value exactly: it has 11 significant bits, exponents
 * up to 2^15, and a smallest step of 2^-24. */
static bool fits_half(double value)
{
    int exponent;
    double steps;

    assert(!isnan(value));
    if (value == 0 || isinf(value))
        return true;
    frexp(value, &exponent);
    if (exponent > 16)
        return false;
    steps = ldexp(value, exponent > -14 ? 11 - exponent : 24);
    return steps == trunc(steps);
}

unsigned zt_cbor_float_width(double value)
{
    if (isnan(value) || fits_half(value))
        return 2;
    if (fabs(value) > 3.4028234663852886e38) /* FLT_MAX: converting a larger value is undefined */
        return 8;
    return (double)(float)value == value ? 4 : 8;
}

/* The bits of the half-precision float that equals the value. */
static uint16_t half_bits(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    int exponent;
    unsigned significand;

    assert(isnan(value) || fits_half(value));
    if (isnan(value))
        return 0x7E00;
    if (isinf(value))
        return sign | 0x7C00;
    frexp(value, &exponent);
    if (value == 0 || exponent <= -14)
        return (uint16_t)(sign | (unsigned)ldexp(fabs(value), 24));
    significand = (unsigned)ldexp(fabs(value), 11 - exponent);
    return (uint16_t)(sign | (unsigned)(exponent + 14) << 10 | (significand & 0x3FF));
}

void zt_cbor_put_float(struct zt_buffer *buffer, double value)
{
    switch (zt_cbor_float_width(value)) {
    case 2:
        put_number(buffer, 0xF9, half_bits(value), 2);
        break;
    case 4: {
        float narrow = (float)value;
        uint32_t bits;

        memcpy(&bits, &narrow, sizeof(bits));
        put_number(buffer, 0xFA, bits, 4);
        break;
    }
    default: {
        uint64_t bits;

        memcpy(&bits, &value, sizeof(bits));
        put_number(buffer, 0xFB, bits, 8);
        break;
    }
    }
}
