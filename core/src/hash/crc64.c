/* With carry-less multiplication, 64 bytes are folded at once: the state is a polynomial of 128
 * bits for each of four lanes, and moving it forward by n bits multiplies it by x^n modulo the
 * polynomial. At the end the CRC of the 16 bytes that remain is the CRC of the whole. */
#include "hash/crc64.h"

#include <assert.h>

#include "base/little_endian.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* The polynomial, its lowest power in the highest bit. */
#define POLYNOMIAL UINT64_C(0x9A6C9329AC4BC9B5)
/* Making the tables costs as much as this many bytes bit by bit. */
#define TABLES_BYTES ((size_t)2 << 10)

static uint64_t shift_byte(uint64_t crc)
{
    for (int bit = 0; bit < 8; bit++)
        crc = crc >> 1 ^ (POLYNOMIAL & -(crc & 1));
    return crc;
}

/* These take and return the CRC without the inversions. */
static uint64_t take_bits(uint64_t crc, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        crc = shift_byte(crc ^ bytes[i]);
    return crc;
}

/* tables[n][b] is the CRC of the byte b and n bytes of zero. */
static void make_tables(uint64_t tables[8][256])
{
    for (unsigned byte = 0; byte < 256; byte++)
        tables[0][byte] = shift_byte(byte);
    for (unsigned n = 1; n < 8; n++)
        for (unsigned byte = 0; byte < 256; byte++)
            tables[n][byte] = tables[n - 1][byte] >> 8 ^ tables[0][tables[n - 1][byte] & 0xFF];
}

static uint64_t take_tables(uint64_t crc, const uint8_t *bytes, size_t length)
{
    uint64_t tables[8][256];

    assert(length % 8 == 0);
    make_tables(tables);
    for (size_t at = 0; at < length; at += 8) {
        const uint64_t word = crc ^ zt_load_le64(bytes + at);

        crc = 0;
        for (unsigned n = 0; n < 8; n++)
            crc ^= tables[7 - n][word >> (8 * n) & 0xFF];
    }
    return crc;
}

uint64_t zt_crc64_nvme_portable(uint64_t crc, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    const size_t words = length >= TABLES_BYTES ? length / 8 * 8 : 0;

    crc = ~crc;
    if (words > 0)
        crc = take_tables(crc, at, words);
    return ~take_bits(crc, at + words, length - words);
}

#ifdef __x86_64__

#define LANES       4u
#define LANE_BYTES  sizeof(__m128i)
#define ROUND_BYTES (LANES * LANE_BYTES)

/* x^(n+63) for the half that comes first, and x^(n-1) for the other: the product of two reflected
 * polynomials is one bit further than their powers say. */
#define FOLD_512_FIRST  INT64_C(0x0C32CDB31E18A84A)
#define FOLD_512_SECOND INT64_C(0x62242240ACE5045A)
#define FOLD_128_FIRST  ((int64_t)UINT64_C(0xEADC41FD2BA3D420))
#define FOLD_128_SECOND INT64_C(0x21E9761E252621AC)

#define TARGET __attribute__((target("pclmul,sse4.1")))
#define INLINE TARGET __attribute__((always_inline)) static inline

INLINE __m128i load(const uint8_t *bytes)
{
    return _mm_loadu_si128((const __m128i *)(const void *)bytes);
}

INLINE __m128i fold(__m128i lane, __m128i powers, __m128i next)
{
    const __m128i first = _mm_clmulepi64_si128(lane, powers, 0x00);
    const __m128i second = _mm_clmulepi64_si128(lane, powers, 0x11);

    return _mm_xor_si128(_mm_xor_si128(first, second), next);
}

/* Takes whole rounds, of which there must be one. */
TARGET static uint64_t take_rounds(uint64_t crc, const uint8_t *bytes, size_t length)
{
    const __m128i far = _mm_set_epi64x(FOLD_512_SECOND, FOLD_512_FIRST);
    const __m128i near = _mm_set_epi64x(FOLD_128_SECOND, FOLD_128_FIRST);
    __m128i lanes[LANES];
    uint8_t rest[LANE_BYTES];

    assert(length >= ROUND_BYTES && length % ROUND_BYTES == 0);
    for (unsigned i = 0; i < LANES; i++)
        lanes[i] = load(bytes + i * LANE_BYTES);
    lanes[0] = _mm_xor_si128(lanes[0], _mm_set_epi64x(0, (int64_t)crc));
    for (size_t at = ROUND_BYTES; at < length; at += ROUND_BYTES)
        for (unsigned i = 0; i < LANES; i++)
            lanes[i] = fold(lanes[i], far, load(bytes + at + i * LANE_BYTES));
    for (unsigned i = 1; i < LANES; i++)
        lanes[i] = fold(lanes[i - 1], near, lanes[i]);
    _mm_storeu_si128((__m128i *)(void *)rest, lanes[LANES - 1]);
    return take_bits(0, rest, sizeof(rest));
}

uint64_t zt_crc64_nvme(uint64_t crc, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    const size_t rounds = length / ROUND_BYTES * ROUND_BYTES;

    if (rounds == 0 || !__builtin_cpu_supports("pclmul"))
        return zt_crc64_nvme_portable(crc, bytes, length);
    crc = take_rounds(~crc, at, rounds);
    return ~take_bits(crc, at + rounds, length - rounds);
}

#else

uint64_t zt_crc64_nvme(uint64_t crc, const void *bytes, size_t length)
{
    return zt_crc64_nvme_portable(crc, bytes, length);
}

#endif
