#include "s3/write/s3api_whole_checksum.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* A CRC whose bits are reflected, and whose register begins and ends inverted. The inversions of
 * two CRCs cancel out when they are combined. */
struct crc {
    unsigned bits;
    uint64_t polynomial; /* reflected */
};

static const struct crc crcs[CHECKSUMS] = {
    [CHECKSUM_CRC32] = {32, 0xEDB88320},
    [CHECKSUM_CRC32C] = {32, 0x82F63B78},
    [CHECKSUM_CRC64NVME] = {64, 0x9A6C9329AC4BC9B5},
};

/* Multiplies two polynomials modulo the CRC's. The highest bit is the constant term. */
static uint64_t multiply(const struct crc *crc, uint64_t a, uint64_t b)
{
    uint64_t product = 0;

    for (uint64_t bit = (uint64_t)1 << (crc->bits - 1); bit != 0; bit >>= 1) {
        if ((a & bit) != 0)
            product ^= b;
        b = (b & 1) != 0 ? b >> 1 ^ crc->polynomial : b >> 1;
    }
    return product;
}

/* Returns x to the power of 8 * length, which appends that many zero bytes. */
static uint64_t power(const struct crc *crc, uint64_t length)
{
    uint64_t result = (uint64_t)1 << (crc->bits - 1);
    uint64_t square = (uint64_t)1 << (crc->bits - 9);

    for (; length > 0; length >>= 1) {
        if ((length & 1) != 0)
            result = multiply(crc, result, square);
        square = multiply(crc, square, square);
    }
    return result;
}

static uint64_t number_of(const struct zt_digest *value)
{
    uint64_t number = 0;

    assert(value->length_bytes <= sizeof(number));
    for (size_t i = 0; i < value->length_bytes; i++)
        number = number << 8 | value->bytes[i];
    return number;
}

static void set_number(struct zt_digest *value, uint64_t number)
{
    for (size_t i = value->length_bytes; i > 0; i--, number >>= 8)
        value->bytes[i - 1] = (uint8_t)number;
    assert(number == 0 || value->length_bytes == sizeof(number));
}

static bool read_value(enum checksum checksum, const struct s3api_part *part,
                       struct zt_digest *out_value)
{
    return strcmp(part->checksum.algorithm, checksum_name(checksum)) == 0 &&
           checksum_read(checksum, zt_text_from(part->checksum.value), out_value);
}

bool s3api_checksum_combine(enum checksum checksum, const struct s3api_part *list, size_t count,
                            struct zt_digest *out_value)
{
    const struct crc *crc = &crcs[checksum];
    struct zt_digest value;
    uint64_t number = 0;

    assert(checksum < CHECKSUMS && count > 0);
    if (crc->bits == 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!read_value(checksum, &list[i], &value))
            return false;
        number = multiply(crc, power(crc, list[i].length), number) ^ number_of(&value);
    }
    set_number(&value, number);
    *out_value = value;
    return true;
}

bool s3api_checksum_compose(enum checksum checksum, const struct s3api_part *list, size_t count,
                            char out_text[S3API_WHOLE_CHECKSUM_SIZE])
{
    struct checksums checksums = {.hashers = {NULL}};
    bool is_known = checksums_add(&checksums, checksum);
    struct zt_digest value;
    char text[CHECKSUM_TEXT_SIZE];

    assert(count > 0 && count <= S3API_PARTS_MAX);
    for (size_t i = 0; i < count && is_known; i++) {
        is_known = read_value(checksum, &list[i], &value);
        if (is_known)
            checksums_update(&checksums, value.bytes, value.length_bytes);
    }
    if (is_known) {
        value = checksums_finish(&checksums, checksum);
        checksum_write(&value, text);
        snprintf(out_text, S3API_WHOLE_CHECKSUM_SIZE, "%s-%zu", text, count);
    }
    checksums_free(&checksums);
    return is_known;
}
