/* Deflated streams that end where they must, and streams that do not. */
#include "support.h"

#include <string.h>

#include "coding/inflate_stream.h"

/* RFC 1951: one stored block of five bytes, the last one. */
static const uint8_t hello[] = {1, 5, 0, 0xFA, 0xFF, 'h', 'e', 'l', 'l', 'o'};

/* Inflates in steps of two bytes; gives back what came out before the end or the failure. */
static size_t inflate_all(const uint8_t *bytes, size_t length, uint64_t expected,
                          struct zt_error *error)
{
    struct zt_inflate_stream *stream = NULL;
    struct zt_source *source;
    uint8_t out[2];
    size_t total = 0;
    size_t got = 1;

    zt_error_clear(error);
    assert_int_equal(zt_source_from_memory(bytes, length, &source, NULL), ZT_OK);
    assert_int_equal(zt_inflate_stream_new(source, &stream, NULL), ZT_OK);
    if (zt_inflate_stream_start(stream, 0, length, expected, error) == ZT_OK)
        while (got > 0 && zt_inflate_stream_read(stream, out, sizeof(out), &got, error) == ZT_OK)
            total += got;
    zt_inflate_stream_free(stream);
    zt_source_close(source);
    return total;
}

static void read_gives_what_was_deflated(void **state)
{
    struct zt_error error;

    (void)state;
    assert_int_equal(inflate_all(hello, sizeof(hello), 5, &error), 5);
    assert_int_equal(error.status, ZT_OK);
    assert_int_equal(inflate_all((const uint8_t *)"\3", 2, 0, &error), 0);
    assert_int_equal(error.status, ZT_OK);
}

static void read_refuses_more_bytes_than_declared(void **state)
{
    struct zt_error error;

    (void)state;
    /* The last byte declared is not given either. */
    assert_int_equal(inflate_all(hello, sizeof(hello), 4, &error), 2);
    assert_failure(&error, ZT_CORRUPT, "zip §Deflate Length", 0);
    assert_int_equal(inflate_all(hello, sizeof(hello), 0, &error), 0);
    assert_failure(&error, ZT_CORRUPT, "zip §Deflate Length", 0);
}

static void read_refuses_fewer_bytes_than_declared(void **state)
{
    struct zt_error error;

    (void)state;
    assert_int_equal(inflate_all(hello, sizeof(hello), 6, &error), 4);
    assert_failure(&error, ZT_CORRUPT, "zip §Deflate Length", 0);
}

static void read_refuses_bytes_after_the_end(void **state)
{
    uint8_t bytes[sizeof(hello) + 1] = {0};
    struct zt_error error;

    (void)state;
    memcpy(bytes, hello, sizeof(hello));
    assert_int_equal(inflate_all(bytes, sizeof(bytes), 5, &error), 4);
    assert_failure(&error, ZT_CORRUPT, "zip §Deflate Stream", 0);
}

static void read_refuses_every_prefix(void **state)
{
    struct zt_error error;

    (void)state;
    for (size_t length = 1; length < sizeof(hello); length++) {
        inflate_all(hello, length, 5, &error);
        assert_failure(&error, ZT_CORRUPT, "zip §Deflate Stream", 0);
    }
}

static void start_refuses_what_deflate_cannot_give(void **state)
{
    struct zt_error error;

    (void)state;
    assert_true(zt_inflate_ratio_possible(10, 10320));
    assert_false(zt_inflate_ratio_possible(10, 10321));
    assert_true(zt_inflate_ratio_possible(0, 0));
    assert_false(zt_inflate_ratio_possible(0, 1));
    assert_false(zt_inflate_ratio_possible(10, UINT64_MAX));
    inflate_all(hello, sizeof(hello), 10321, &error);
    assert_failure(&error, ZT_CORRUPT, "zip §Deflate Ratio", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_gives_what_was_deflated),
        cmocka_unit_test(read_refuses_more_bytes_than_declared),
        cmocka_unit_test(read_refuses_fewer_bytes_than_declared),
        cmocka_unit_test(read_refuses_bytes_after_the_end),
        cmocka_unit_test(read_refuses_every_prefix),
        cmocka_unit_test(start_refuses_what_deflate_cannot_give),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
