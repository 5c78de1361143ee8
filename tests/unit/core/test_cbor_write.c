/* Writing CBOR: shortest heads and floats, and failures that stay. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cbor/cbor_write.h"
#include "tests.h"

static void assert_hex(struct zt_buffer *buffer, const char *wanted)
{
    char hex[128];

    assert_false(buffer->failed);
    assert_in_range(buffer->length, 0, sizeof(hex) / 2 - 1);
    hex[0] = '\0';
    for (size_t i = 0; i < buffer->length; i++)
        snprintf(hex + 2 * i, 3, "%02x", buffer->bytes[i]);
    assert_string_equal(hex, wanted);
    buffer->length = 0;
}

TEST(heads_are_the_shortest)
{
    struct zt_buffer buffer = {0};
    static const struct {
        uint64_t value;
        const char *hex;
    } cases[] = {
        {0, "00"},
        {23, "17"},
        {24, "1818"},
        {255, "18ff"},
        {256, "190100"},
        {65535, "19ffff"},
        {65536, "1a00010000"},
        {UINT32_MAX, "1affffffff"},
        {1ull << 32, "1b0000000100000000"},
        {UINT64_MAX, "1bffffffffffffffff"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        zt_cbor_put_uint(&buffer, cases[i].value);
        assert_hex(&buffer, cases[i].hex);
    }
    zt_buffer_free(&buffer);
}

TEST(every_kind_is_written)
{
    struct zt_buffer buffer = {0};

    zt_cbor_put_map(&buffer, 1);
    zt_cbor_put_string(&buffer, "a");
    zt_cbor_put_array(&buffer, 2);
    zt_cbor_put_bytes(&buffer, "\1\2", 2);
    zt_cbor_put_text(&buffer, (struct zt_text){"xyz", 2});
    assert_hex(&buffer, "a161618242010262"
                        "7879");
    zt_cbor_put_bool(&buffer, true);
    zt_cbor_put_bool(&buffer, false);
    zt_cbor_put_null(&buffer);
    assert_hex(&buffer, "f5f4f6");
    zt_cbor_put_int(&buffer, -1);
    zt_cbor_put_int(&buffer, 7);
    zt_cbor_put_int(&buffer, INT64_MIN);
    zt_cbor_put_nint(&buffer, UINT64_MAX);
    assert_hex(&buffer, "20073b7fffffffffffffff3bffffffffffffffff");
    zt_buffer_free(&buffer);
}

TEST(floats_are_as_short_as_their_value_allows)
{
    struct zt_buffer buffer = {0};
    static const struct {
        double value;
        const char *hex;
    } cases[] = {
        {0.0, "f90000"},
        {-0.0, "f98000"},
        {1.0, "f93c00"},
        {1.5, "f93e00"},
        {65504.0, "f97bff"},
        {65536.0, "fa47800000"},
        {5.960464477539063e-8, "f90001"},
        {0.00006103515625, "f90400"},
        {6.097555160522461e-5, "f903ff"},
        {-4.0, "f9c400"},
        {100000.0, "fa47c35000"},
        {3.4028234663852886e38, "fa7f7fffff"},
        {1.1, "fb3ff199999999999a"},
        {1e300, "fb7e37e43c8800759c"},
        {2.98023223876953125e-8, "fa33000000"},
        {1e-310, "fb000012688b70e62b"},
        {INFINITY, "f97c00"},
        {-INFINITY, "f9fc00"},
        {NAN, "f97e00"},
        {-NAN, "f97e00"},
        {2049.0, "fa45001000"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        zt_cbor_put_float(&buffer, cases[i].value);
        assert_hex(&buffer, cases[i].hex);
    }
    zt_buffer_free(&buffer);
}

TEST(a_buffer_that_failed_stays_failed)
{
    struct zt_buffer buffer = {0};

    zt_buffer_append(&buffer, "x", SIZE_MAX);
    assert_true(buffer.failed);
    zt_buffer_append(&buffer, "x", 1);
    assert_true(buffer.failed);
    assert_int_equal(buffer.length, 0);
    zt_buffer_free(&buffer);
    assert_false(buffer.failed);
}
