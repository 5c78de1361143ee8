/* CRC-64/NVME: the published vectors, and both implementations at every length and offset. */
#include "tests.h"

#include "hash/crc64.h"

#define LONGEST 5000

static uint8_t bytes[LONGEST + 16];

/* Bit by bit, as the polynomial is defined. */
static uint64_t defined_crc(const uint8_t *at, size_t length)
{
    uint64_t crc = UINT64_MAX;

    for (size_t i = 0; i < length; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 1) != 0 ? crc >> 1 ^ UINT64_C(0x9A6C9329AC4BC9B5) : crc >> 1;
    }
    return ~crc;
}

static void fill(void)
{
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 31 + i / 251);
}

TEST(crc64_gives_the_published_value)
{
    assert_int_equal(zt_crc64_nvme(0, "123456789", 9), UINT64_C(0xae8b14860a799888));
    assert_int_equal(zt_crc64_nvme(0, "", 0), 0);
}

TEST(both_implementations_agree_with_the_definition)
{
    static const size_t lengths[] = {0,   1,   7,   8,    63,   64,   65,   127,  128,
                                     129, 500, 576, 2047, 2048, 2055, 2056, 4097, LONGEST};

    fill();
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
        for (size_t offset = 0; offset < 16; offset += 5) {
            const uint64_t expected = defined_crc(bytes + offset, lengths[i]);

            assert_int_equal(zt_crc64_nvme(0, bytes + offset, lengths[i]), expected);
            assert_int_equal(zt_crc64_nvme_portable(0, bytes + offset, lengths[i]), expected);
        }
}

TEST(a_crc64_continues_at_any_byte)
{
    uint64_t whole;

    fill();
    whole = zt_crc64_nvme(0, bytes, 300);
    for (size_t cut = 0; cut <= 300; cut++)
        assert_int_equal(zt_crc64_nvme(zt_crc64_nvme(0, bytes, cut), bytes + cut, 300 - cut),
                         whole);
}
