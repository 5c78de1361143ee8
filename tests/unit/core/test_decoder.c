/* Decoding from first byte to last: exact lengths, hostile streams, and bounded memory. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <zstd.h>

#include "handmade.h"
#include "sanitized.h"
#include "zt/decode.h"

#define PLAIN_SIZE 300000

static uint8_t plain[PLAIN_SIZE];

static int fill_plain(void **state)
{
    (void)state;
    for (size_t i = 0; i < PLAIN_SIZE; i++)
        plain[i] = (uint8_t)(i * i >> 7 ^ i / 1000);
    return 0;
}

/* A component over all of stored, at offset 0. */
static struct zt_component component_of(const struct bytes *stored, enum zt_encoding encoding,
                                        uint64_t decoded_length)
{
    return (struct zt_component){.name = "data",
                                 .name_length = 4,
                                 .dtype = ZT_U8,
                                 .encoding = (uint8_t)encoding,
                                 .length = stored->length,
                                 .decoded_length = decoded_length};
}

/* Reads to the end in pieces of step bytes, after one of a single byte; *out_length counts what
 * came before the end or the failure. */
static enum zt_status decode_all(const struct zt_component *component, const struct bytes *stored,
                                 size_t step, uint8_t *out, size_t *out_length,
                                 struct zt_error *error)
{
    struct zt_source *source = NULL;
    struct zt_decoder *decoder = NULL;
    size_t got = 1;
    enum zt_status status;

    zt_error_clear(error);
    *out_length = 0;
    source = memory_source(stored->at, stored->length);
    status = zt_decoder_open(component, source, &decoder, error);
    while (status == ZT_OK && got > 0) {
        status =
            zt_decoder_read(decoder, out + *out_length, *out_length == 0 ? 1 : step, &got, error);
        if (status == ZT_OK)
            *out_length += got;
    }
    if (status != ZT_OK && decoder != NULL)
        assert_int_not_equal(zt_decoder_read(decoder, out + *out_length, step, &got, NULL), ZT_OK);
    zt_decoder_close(decoder);
    zt_source_close(source);
    return status;
}

static void assert_decodes(const struct bytes *stored, enum zt_encoding encoding, uint64_t declared,
                           size_t length)
{
    static const size_t steps[] = {1, 7, 4096, 65536, PLAIN_SIZE};
    struct zt_component component = component_of(stored, encoding, declared);
    uint8_t *out = malloc(length + PLAIN_SIZE);
    struct zt_error error;
    size_t got;

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        assert_ok(decode_all(&component, stored, steps[i], out, &got, &error));
        assert_int_equal(got, length);
        assert_memory_equal(out, plain, length);
    }
    free(out);
}

static void assert_fails(const struct bytes *stored, enum zt_encoding encoding, uint64_t declared,
                         const char *rule, uint64_t offset)
{
    struct zt_component component = component_of(stored, encoding, declared);
    size_t limit = declared == ZT_LENGTH_UNKNOWN || declared > 4 * PLAIN_SIZE ? 4 * PLAIN_SIZE
                                                                              : (size_t)declared;
    uint8_t *out = malloc(limit + 65536);
    struct zt_error error;
    size_t got;

    assert_int_equal(decode_all(&component, stored, 4096, out, &got, &error), ZT_CORRUPT);
    assert_failure(&error, ZT_CORRUPT, rule, offset);
    /* A failure is reported before the last declared bytes are returned. */
    assert_true(got < limit || limit == 0);
    free(out);
}

TEST(raw_is_passed_on)
{
    struct bytes stored = {NULL, 0};

    bytes_append(&stored, plain, 5000);
    assert_decodes(&stored, ZT_ENCODING_RAW, 5000, 5000);
    bytes_free(&stored);
    bytes_append(&stored, plain, 0);
    assert_decodes(&stored, ZT_ENCODING_RAW, 0, 0);
    bytes_free(&stored);
}

TEST(big_endian_words_are_swapped_in_steps_of_any_size)
{
    static const struct {
        enum zt_dtype dtype;
        size_t width;
    } kinds[] = {{ZT_F16, 2}, {ZT_F32, 4}, {ZT_I64, 8}, {ZT_U8, 1}};
    /* 1003 leaves bytes after the last word: they stay as they are. */
    static const size_t lengths[] = {0, 8, 1000, 1003};
    struct bytes stored = {NULL, 0};
    uint8_t expected[1003], out[2100];
    struct zt_error error;
    size_t got;

    for (size_t k = 0; k < 4; k++) {
        for (size_t l = 0; l < 4; l++) {
            size_t width = kinds[k].width, words = lengths[l] / width * width;
            struct zt_component component;

            bytes_free(&stored);
            bytes_append(&stored, plain, lengths[l]);
            for (size_t i = 0; i < lengths[l]; i++)
                expected[i] =
                    i < words ? plain[i / width * width + (width - 1 - i % width)] : plain[i];
            component = component_of(&stored, ZT_ENCODING_RAW, lengths[l]);
            component.dtype = (uint8_t)kinds[k].dtype;
            component.big_endian = 1;
            assert_int_equal(zt_component_is_plain(&component), width == 1);
            for (size_t step = 1; step < 1030; step = step * 2 + 1) {
                assert_ok(decode_all(&component, &stored, step, out, &got, &error));
                assert_int_equal(got, lengths[l]);
                assert_memory_equal(out, expected, got);
            }
        }
    }
    bytes_free(&stored);
}

TEST(zstd_frames_decode_whatever_their_number)
{
    struct bytes stored = {NULL, 0};

    bytes_append_zstd(&stored, plain, 100000, false);
    assert_decodes(&stored, ZT_ENCODING_ZSTD, 100000, 100000);
    bytes_append_zstd(&stored, plain + 100000, 0, true);
    bytes_append(&stored, "\x50\x2A\x4D\x18\x03\x00\x00\x00xyz", 11);
    bytes_append(&stored, "\x5F\x2A\x4D\x18\x00\x00\x00\x00", 8);
    bytes_append_zstd(&stored, plain + 100000, PLAIN_SIZE - 100000, true);
    bytes_append(&stored, "\x51\x2A\x4D\x18\x01\x00\x00\x00x", 9);
    assert_decodes(&stored, ZT_ENCODING_ZSTD, PLAIN_SIZE, PLAIN_SIZE);
    assert_decodes(&stored, ZT_ENCODING_ZSTD, ZT_LENGTH_UNKNOWN, PLAIN_SIZE);
    bytes_free(&stored);
}

TEST(empty_zstd_streams_decode_to_nothing)
{
    struct bytes stored = {NULL, 0};

    assert_decodes(&stored, ZT_ENCODING_ZSTD, 0, 0);
    bytes_append(&stored, "\x28\xB5\x2F\xFD\x20\x00\x01\x00\x00", 9);
    assert_decodes(&stored, ZT_ENCODING_ZSTD, 0, 0);
    bytes_free(&stored);
}

TEST(wrong_lengths_are_corrupt)
{
    struct bytes stored = {NULL, 0};

    bytes_append_zstd(&stored, plain, 100000, false);
    assert_fails(&stored, ZT_ENCODING_ZSTD, 99999, "zt1 §5 ZstdLength", 0);
    assert_fails(&stored, ZT_ENCODING_ZSTD, 100001, "zt1 §5 ZstdLength", 0);
    assert_fails(&stored, ZT_ENCODING_ZSTD, 0, "zt1 §5 ZstdLength", 0);
    assert_fails(&stored, ZT_ENCODING_ZSTD, 1, "zt1 §5 ZstdLength", 0);
    bytes_free(&stored);
    /* One byte too many. The failure must be reported again by a second read. */
    bytes_append_zstd(&stored, plain, 1, false);
    assert_fails(&stored, ZT_ENCODING_ZSTD, 0, "zt1 §5 ZstdLength", 0);
    bytes_free(&stored);
}

TEST(every_prefix_of_a_stream_fails)
{
    struct bytes stored = {NULL, 0};
    struct zt_error error;
    uint8_t out[8192];
    size_t got;

    bytes_append_zstd(&stored, plain, 1500, true);
    bytes_append_zstd(&stored, plain + 1500, 1500, false);
    for (size_t length = stored.length; length-- > 0;) {
        struct bytes prefix = {stored.at, length};
        struct zt_component component = component_of(&prefix, ZT_ENCODING_ZSTD, 3000);

        assert_int_equal(decode_all(&component, &prefix, 4096, out, &got, &error), ZT_CORRUPT);
        assert_non_null(error.rule);
    }
    bytes_free(&stored);
}

TEST(bytes_after_the_last_frame_are_corrupt)
{
    struct bytes stored = {NULL, 0};
    size_t end;

    bytes_append_zstd(&stored, plain, 5000, false);
    end = stored.length;
    bytes_append(&stored, "\0", 1);
    assert_fails(&stored, ZT_ENCODING_ZSTD, 5000, "zt1 §5 ZstdFrame", end);
    bytes_append(&stored, "\0\0\0\0\0\0\0\0", 8);
    assert_fails(&stored, ZT_ENCODING_ZSTD, 5000, "zt1 §5 ZstdFrame", end);
    bytes_free(&stored);
}

TEST(broken_frames_are_corrupt)
{
    struct bytes stored = {NULL, 0};

    bytes_append_zstd(&stored, plain, 5000, true);
    stored.at[stored.length - 1] ^= 1;
    assert_fails(&stored, ZT_ENCODING_ZSTD, 5000, "zt1 §5 ZstdFrame", 0);
    stored.at[0] ^= 1;
    assert_fails(&stored, ZT_ENCODING_ZSTD, 5000, "zt1 §5 ZstdFrame", 0);
    bytes_free(&stored);
    /* A whole frame of zstd 0.7, from before RFC 8878: the library would read it. */
    bytes_append(&stored, "\x27\xB5\x2F\xFD\x00\x58\x40\x00\x05hello\xC0\x00\x00", 17);
    assert_fails(&stored, ZT_ENCODING_ZSTD, 5, "zt1 §5 ZstdFrame", 0);
    /* Dictionary 7. */
    bytes_free(&stored);
    bytes_append(&stored, "\x28\xB5\x2F\xFD\x21\x07\x01\x09\x00\x00x", 11);
    assert_fails(&stored, ZT_ENCODING_ZSTD, 1, "zt1 §5 ZstdFrame", 0);
    bytes_free(&stored);
}

static long resident_peak_kib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Small hostile inputs take at most 1 MiB of memory, apart from what sanitizers add. */
static void assert_cheap_failure(const struct bytes *stored, uint64_t declared, const char *rule)
{
    long before = resident_peak_kib();

    assert_fails(stored, ZT_ENCODING_ZSTD, declared, rule, 0);
#ifndef ZT_SANITIZED
    assert_true(resident_peak_kib() - before <= 1024);
#else
    (void)before;
#endif
}

TEST(headers_that_declare_much_cost_nothing)
{
    struct bytes stored = {NULL, 0};

    /* A window of 128 MiB, which is allowed, and a block that is cut short. */
    bytes_append(&stored, "\x28\xB5\x2F\xFD\x00\x88\x02\x00\x00", 9);
    assert_cheap_failure(&stored, 100000, "zt1 §5 ZstdFrame");
    /* A window just above, and one of the largest. */
    stored.at[5] = 0x89;
    assert_cheap_failure(&stored, 100000, "zt1 §5 ZstdWindow");
    stored.at[5] = 0xFF;
    assert_cheap_failure(&stored, 100000, "zt1 §5 ZstdWindow");
    bytes_free(&stored);
    /* One segment of 2^63 bytes. */
    bytes_append(&stored, "\x28\xB5\x2F\xFD\xE0\0\0\0\0\0\0\0\x80", 13);
    assert_cheap_failure(&stored, 100000, "zt1 §5 ZstdWindow");
    bytes_free(&stored);
}

TEST(impossible_declared_lengths_are_rejected_before_decoding)
{
    struct bytes stored = {NULL, 0};

    bytes_append(&stored, "\x28\xB5\x2F\xFD\x20\x00\x01\x00\x00", 9);
    assert_cheap_failure(&stored, 9 * 32768 + 1, "zt1 §5 ZstdRatio");
    assert_cheap_failure(&stored, (uint64_t)1 << 40, "zt1 §5 ZstdRatio");
    assert_cheap_failure(&stored, UINT64_MAX - 1, "zt1 §5 ZstdRatio");
    assert_cheap_failure(&stored, 9 * 32768, "zt1 §5 ZstdLength");
    bytes_free(&stored);
    assert_cheap_failure(&stored, 1, "zt1 §5 ZstdRatio");
}

/* The densest frame there is: blocks of 128 KiB from four bytes each. */
static void append_run_blocks(struct bytes *stored, unsigned blocks)
{
    bytes_append(stored, "\x28\xB5\x2F\xFD\x00\x38", 6);
    for (unsigned i = 0; i < blocks; i++) {
        uint8_t block[4] = {(uint8_t)(0x02 | (i + 1 == blocks)), 0x00, 0x10, 0x00};

        bytes_append(stored, block, 4);
    }
}

TEST(densest_frame_still_decodes)
{
    struct bytes stored = {NULL, 0};
    struct zt_component component;
    struct zt_error error;
    uint8_t *out = malloc((4 << 17) + 4096);
    size_t got;

    append_run_blocks(&stored, 4);
    component = component_of(&stored, ZT_ENCODING_ZSTD, 4 << 17);
    assert_ok(decode_all(&component, &stored, 4096, out, &got, &error));
    assert_int_equal(got, 4 << 17);
    assert_true(out[0] == 0 && out[got - 1] == 0);
    free(out);
    bytes_free(&stored);
}

TEST(bombs_stop_at_the_declared_length)
{
    struct bytes stored = {NULL, 0};

    append_run_blocks(&stored, 240);
    assert_true(stored.length < 1024);
    assert_cheap_failure(&stored, 16, "zt1 §5 ZstdLength");
    bytes_free(&stored);
    /* 1 GiB from 32 KiB. */
    append_run_blocks(&stored, 8192);
    assert_cheap_failure(&stored, 16, "zt1 §5 ZstdLength");
    assert_cheap_failure(&stored, 0, "zt1 §5 ZstdLength");
    bytes_free(&stored);
}

TEST(unknown_encodings_are_not_decoded)
{
    struct bytes stored = {NULL, 0};
    struct zt_component component;
    struct zt_error error;
    uint8_t out[64];
    size_t got;

    bytes_append(&stored, plain, 10);
    component = component_of(&stored, ZT_ENCODING_UNKNOWN, 20);
    assert_false(zt_component_is_plain(&component));
    assert_int_equal(decode_all(&component, &stored, 10, out, &got, &error), ZT_UNSUPPORTED);
    bytes_free(&stored);
}

TEST(source_failures_are_passed_on)
{
    struct bytes stored = {NULL, 0};
    struct zt_component component;
    struct zt_error error;
    uint8_t out[4096];
    size_t got;

    bytes_append(&stored, plain, 10);
    for (int encoding = ZT_ENCODING_RAW; encoding <= ZT_ENCODING_ZSTD_SEEKABLE; encoding++) {
        component = component_of(&stored, (enum zt_encoding)encoding, 100);
        component.length = 100;
        assert_int_equal(decode_all(&component, &stored, 200, out, &got, &error), ZT_IO);
    }
    bytes_free(&stored);
}

AROUND_ALL_TESTS(fill_plain, NULL)
