/* Compressed texts, and which zstd frames every decoder accepts. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "coding/inflate_stream.h"
#include "zt/coding.h"

#define TEXT_BYTES ((size_t)700001)

static char *make_text(void)
{
    char *text = malloc(TEXT_BYTES);

    assert_non_null(text);
    for (size_t i = 0; i < TEXT_BYTES; i++)
        text[i] = "{\"shape\":[768,768]}"[i * i % 19];
    return text;
}

TEST(zstd_gives_the_text_back)
{
    char *text = make_text();
    char *back = malloc(TEXT_BYTES);
    uint8_t *coded;
    size_t length;

    for (size_t size = 0; size <= TEXT_BYTES; size = size * 700 + 1) {
        assert_ok(zt_coding_encode(ZT_CODING_ZSTD, text, size, &coded, &length, NULL));
        assert_int_equal(ZSTD_decompress(back, TEXT_BYTES, coded, length), size);
        assert_memory_equal(back, text, size);
        free(coded);
    }
    free(back);
    free(text);
}

TEST(gzip_gives_the_text_back)
{
    /* RFC 1952: ten bytes in front, a CRC and a length behind. */
    const size_t frame = 18;
    char *text = make_text();
    char *back = malloc(TEXT_BYTES);
    uint8_t *coded;
    size_t length, got;

    for (size_t size = 1; size <= TEXT_BYTES; size = size * 700 + 1) {
        struct zt_source *source = NULL;
        struct zt_inflate_stream *stream = NULL;

        assert_ok(zt_coding_encode(ZT_CODING_GZIP, text, size, &coded, &length, NULL));
        assert_memory_equal(coded, "\x1f\x8b\x08\0", 4);
        assert_int_equal(coded[length - 4] | coded[length - 3] << 8 | coded[length - 2] << 16,
                         size);
        source = memory_source(coded, length);
        assert_ok(zt_inflate_stream_new(source, &stream, NULL));
        assert_ok(zt_inflate_stream_start(stream, 10, length - frame, size, false, NULL));
        assert_ok(zt_inflate_stream_read(stream, back, TEXT_BYTES, &got, NULL));
        assert_int_equal(got, size);
        assert_memory_equal(back, text, size);
        zt_inflate_stream_free(stream);
        zt_source_close(source);
        free(coded);
    }
    free(back);
    free(text);
}

TEST(encoding_shrinks)
{
    char *text = make_text();

    for (int coding = ZT_CODING_ZSTD; coding <= ZT_CODING_GZIP; coding++) {
        uint8_t *coded;
        size_t length;

        assert_ok(
            zt_coding_encode((enum zt_coding)coding, text, TEXT_BYTES, &coded, &length, NULL));
        assert_true(length < TEXT_BYTES / 10);
        free(coded);
    }
    free(text);
}

/* --- frames --- */

static bool fits_in(const void *bytes, size_t all, const struct zt_component *stored)
{
    bool fit = false;
    struct zt_source *source = memory_source(bytes, all);

    assert_ok(zt_zstd_fits_all(source, stored, &fit, NULL));
    zt_source_close(source);
    return fit;
}

static bool fits_at(const void *bytes, size_t all, size_t offset, size_t length)
{
    const struct zt_component stored = {
        .offset = offset, .length = length, .decoded_length = ZT_LENGTH_UNKNOWN};

    return fits_in(bytes, all, &stored);
}

static bool fits(const void *bytes, size_t length)
{
    return fits_at(bytes, length, 0, length);
}

struct made {
    uint8_t bytes[TEXT_BYTES * 2];
    size_t length;
};

/* Adds a frame; 0 leaves a parameter as it is. */
static void add_frame(struct made *made, size_t decoded, int window_log, bool checksum,
                      bool content_size)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    uint8_t *data = malloc(decoded + 1);
    ZSTD_inBuffer input = {data, decoded, 0};
    ZSTD_outBuffer output = {made->bytes, sizeof(made->bytes), made->length};

    assert_non_null(data);
    for (size_t i = 0; i < decoded; i++)
        data[i] = (uint8_t)((i * 2654435761u) >> 13);
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, content_size);
    if (content_size)
        ZSTD_CCtx_setPledgedSrcSize(context, decoded);
    else
        ZSTD_compressStream2(context, &output, &input, ZSTD_e_flush);
    assert_int_equal(ZSTD_compressStream2(context, &output, &input, ZSTD_e_end), 0);
    made->length = output.pos;
    ZSTD_freeCCtx(context);
    free(data);
}

static struct made *new_made(void)
{
    struct made *made = calloc(1, sizeof(*made));

    assert_non_null(made);
    return made;
}

TEST(ordinary_frames_fit)
{
    struct made *made = new_made();

    for (unsigned i = 0; i < 8; i++) {
        made->length = 0;
        add_frame(made, i < 4 ? 500000 : 5, 0, i & 1, i & 2);
        assert_true(fits(made->bytes, made->length));
        assert_true(fits_at(made->bytes, made->length + 7, 0, made->length));
    }
    free(made);
}

TEST(all_frames_count)
{
    struct made *made = new_made();
    size_t first;

    add_frame(made, 3000, 0, true, false);
    memcpy(made->bytes + made->length, "\x5A\x2A\x4D\x18\x03\0\0\0abc", 11);
    made->length += 11;
    add_frame(made, 9000, 23, false, false);
    assert_true(fits(made->bytes, made->length));
    first = made->length;
    add_frame(made, 9000, 24, false, false);
    assert_false(fits(made->bytes, made->length));
    assert_true(fits(made->bytes, first));
    assert_false(fits_at(made->bytes, made->length, first, made->length - first));
    free(made);
}

TEST(large_windows_do_not_fit)
{
    /* Magic, descriptor, window or content size, and an empty last block. */
    static const uint8_t eight[] = {0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x68, 1, 0, 0};
    static const uint8_t more[] = {0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x69, 1, 0, 0};
    static const uint8_t single[] = {0x28, 0xB5, 0x2F, 0xFD, 0xA0, 0, 0, 0x80, 0, 1, 0, 0};
    static const uint8_t single_more[] = {0x28, 0xB5, 0x2F, 0xFD, 0xA0, 1, 0, 0x80, 0, 1, 0, 0};

    assert_true(fits(eight, sizeof(eight)));
    assert_false(fits(more, sizeof(more)));
    assert_true(fits(single, sizeof(single)));
    assert_false(fits(single_more, sizeof(single_more)));
}

static bool windows_fit(const void *bytes, size_t length)
{
    const struct zt_component stored = {.length = length, .decoded_length = 1};
    bool fit = false;
    struct zt_source *source = memory_source(bytes, length);

    assert_ok(zt_zstd_windows_fit(source, &stored, &fit, NULL));
    zt_source_close(source);
    return fit;
}

TEST(windows_are_judged_whatever_else_is_wrong)
{
    /* A frame of 8 MiB, then one of 9, cut behind its header. */
    static const uint8_t frames[] = {0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x68, 1,   0,
                                     0,    0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x69};

    assert_true(windows_fit(frames, 9));
    assert_true(windows_fit(frames, 8));
    assert_true(windows_fit(frames, 14));
    assert_false(windows_fit(frames, sizeof(frames)));
    assert_false(windows_fit(frames + 9, 6));
    assert_true(windows_fit("no frame at all", 15));
    assert_true(windows_fit("", 0));
}

TEST(dictionaries_do_not_fit)
{
    static const uint8_t none[] = {0x28, 0xB5, 0x2F, 0xFD, 0x01, 0x00, 0, 1, 0, 0};
    static const uint8_t named[] = {0x28, 0xB5, 0x2F, 0xFD, 0x01, 0x00, 9, 1, 0, 0};
    static const uint8_t wide[] = {0x28, 0xB5, 0x2F, 0xFD, 0x23, 0, 0, 0, 9, 1, 1, 0, 0};

    assert_true(fits(none, sizeof(none)));
    assert_false(fits(named, sizeof(named)));
    assert_false(fits(wide, sizeof(wide)));
}

TEST(what_is_no_run_of_whole_frames_does_not_fit)
{
    static const uint8_t reserved_bit[] = {0x28, 0xB5, 0x2F, 0xFD, 0x08, 0x00, 1, 0, 0};
    static const uint8_t reserved_block[] = {0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x00, 7, 0, 0};
    struct made *made = new_made();

    add_frame(made, 60, 0, true, true);
    for (size_t length = 0; length < made->length; length++)
        assert_false(fits(made->bytes, length));
    assert_true(fits(made->bytes, made->length));
    assert_false(fits(made->bytes, made->length + 1));
    assert_false(fits("not a frame", 11));
    assert_false(fits("\x5A\x2A\x4D\x18\x03\0\0\0ab", 10));
    assert_false(fits(reserved_bit, sizeof(reserved_bit)));
    assert_false(fits(reserved_block, sizeof(reserved_block)));
    free(made);
}

static bool fits_as(const struct made *made, uint64_t decoded_length)
{
    const struct zt_component stored = {.length = made->length, .decoded_length = decoded_length};

    return fits_in(made->bytes, made->length, &stored);
}

TEST(frames_that_state_another_length_do_not_fit)
{
    static const size_t lengths[] = {5, 255, 256, 300, 70000, 500000};
    struct made *made = new_made();
    uint64_t sum = 0;

    for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        add_frame(made, lengths[i], 0, false, true);
        sum += lengths[i];
        assert_true(fits_as(made, sum));
        assert_false(fits_as(made, sum - 1));
        assert_false(fits_as(made, sum + 1));
    }
    /* A frame that states no size may decode to any size, including 0. */
    add_frame(made, 3000, 0, false, false);
    assert_true(fits_as(made, sum + 3000));
    assert_true(fits_as(made, sum + 9000));
    assert_false(fits_as(made, sum - 1));
    free(made);
}

TEST(stated_lengths_do_not_overflow)
{
    /* Magic, descriptor, window, content size of all ones, and an empty last block; twice. */
    static const uint8_t twice[] = {
        0x28, 0xB5, 0x2F, 0xFD, 0xC0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0,
        0x28, 0xB5, 0x2F, 0xFD, 0xC0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0};
    const struct zt_component stored = {.length = sizeof(twice), .decoded_length = UINT64_MAX - 1};

    assert_false(fits_in(twice, sizeof(twice), &stored));
}
