/* Deflated streams that end where they must, and streams that do not. */
#include "tests.h"

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
    source = memory_source(bytes, length);
    assert_ok(zt_inflate_stream_new(source, &stream, NULL));
    if (zt_inflate_stream_start(stream, 0, length, expected, false, error) == ZT_OK)
        while (got > 0 && zt_inflate_stream_read(stream, out, sizeof(out), &got, error) == ZT_OK)
            total += got;
    zt_inflate_stream_free(stream);
    zt_source_close(source);
    return total;
}

TEST(read_gives_what_was_deflated)
{
    struct zt_error error;

    assert_int_equal(inflate_all(hello, sizeof(hello), 5, &error), 5);
    assert_ok(error.status);
    assert_int_equal(inflate_all((const uint8_t *)"\3", 2, 0, &error), 0);
    assert_ok(error.status);
}

TEST(read_refuses_more_bytes_than_declared)
{
    struct zt_error error;

    /* The last byte declared is not given either. */
    assert_int_equal(inflate_all(hello, sizeof(hello), 4, &error), 2);
    assert_failure(&error, ZT_CORRUPT, "zip §Deflate Length", 0);
    assert_int_equal(inflate_all(hello, sizeof(hello), 0, &error), 0);
    assert_failure(&error, ZT_CORRUPT, "zip §Deflate Length", 0);
}

TEST(read_refuses_fewer_bytes_than_declared)
{
    struct zt_error error;

    assert_int_equal(inflate_all(hello, sizeof(hello), 6, &error), 4);
    assert_failure(&error, ZT_CORRUPT, "zip §Deflate Length", 0);
}

TEST(read_refuses_bytes_after_the_end)
{
    uint8_t bytes[sizeof(hello) + 1] = {0};
    struct zt_error error;

    memcpy(bytes, hello, sizeof(hello));
    assert_int_equal(inflate_all(bytes, sizeof(bytes), 5, &error), 4);
    assert_failure(&error, ZT_CORRUPT, "zip §Deflate Stream", 0);
}

TEST(read_refuses_every_prefix)
{
    struct zt_error error;

    for (size_t length = 1; length < sizeof(hello); length++) {
        inflate_all(hello, length, 5, &error);
        assert_failure(&error, ZT_CORRUPT, "zip §Deflate Stream", 0);
    }
}

TEST(start_refuses_what_deflate_cannot_give)
{
    struct zt_error error;

    assert_true(zt_inflate_ratio_possible(10, 10320));
    assert_false(zt_inflate_ratio_possible(10, 10321));
    assert_true(zt_inflate_ratio_possible(0, 0));
    assert_false(zt_inflate_ratio_possible(0, 1));
    assert_false(zt_inflate_ratio_possible(10, UINT64_MAX));
    inflate_all(hello, sizeof(hello), 10321, &error);
    assert_failure(&error, ZT_CORRUPT, "zip §Deflate Ratio", 0);
}
