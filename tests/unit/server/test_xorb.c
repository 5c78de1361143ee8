/* Xorbs: where their chunks lie, what they decode to, and what is none. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>

#include "hub/xet/xorb.h"

/* Frames of LZ4: 100 times "x" in a compressed block, and five bytes in one that is not. */
static const uint8_t many[] = {0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82, 12,   0,
                               0,    0,    0x1f, 'x',  1,    0,    0x4a, 0x60, 'x',
                               'x',  'x',  'x',  'x',  'x',  0,    0,    0,    0};
static const uint8_t few[] = {0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82, 5, 0, 0,
                              0x80, 'a',  'e',  'b',  'c',  'd',  0,    0, 0, 0};

struct text {
    uint8_t bytes[1024];
    size_t length;
};

static void put_header(struct text *text, unsigned scheme, uint32_t stored, uint32_t length)
{
    const uint8_t header[XORB_HEADER_BYTES] = {
        0,
        (uint8_t)stored,
        (uint8_t)(stored >> 8),
        (uint8_t)(stored >> 16),
        (uint8_t)scheme,
        (uint8_t)length,
        (uint8_t)(length >> 8),
        (uint8_t)(length >> 16),
    };

    memcpy(text->bytes + text->length, header, sizeof(header));
    text->length += sizeof(header);
}

static void put(struct text *text, unsigned scheme, const void *stored, uint32_t stored_length,
                uint32_t length)
{
    put_header(text, scheme, stored_length, length);
    memcpy(text->bytes + text->length, stored, stored_length);
    text->length += stored_length;
}

static struct text three_chunks(void)
{
    struct text text = {.length = 0};

    put(&text, XORB_PLAIN, "abc", 3, 3);
    put(&text, XORB_LZ4, many, sizeof(many), 100);
    put(&text, XORB_LZ4_PLANES, few, sizeof(few), 5);
    return text;
}

/* In pieces of this length. The caller frees it. */
static struct xorb_layout *layout_of(const struct text *text, size_t piece)
{
    struct xorb_layout *layout = calloc(1, sizeof(*layout));

    assert_non_null(layout);
    for (size_t at = 0; at < text->length; at += piece) {
        const size_t left = text->length - at;

        if (!xorb_layout_take(layout, text->bytes + at, left < piece ? left : piece))
            break;
    }
    return layout;
}

TEST(chunks_are_found_whatever_the_pieces)
{
    const struct text text = three_chunks();

    for (size_t piece = 1; piece <= text.length; piece++) {
        struct xorb_layout *layout = layout_of(&text, piece);

        assert_true(xorb_layout_finish(layout));
        assert_int_equal(layout->count, 3);
        assert_int_equal(layout->ends[0], 11);
        assert_int_equal(layout->ends[1], 11 + 8 + sizeof(many));
        assert_int_equal(layout->ends[2], text.length);
        free(layout);
    }
}

TEST(prefix_is_none_unless_it_ends_with_a_chunk)
{
    const struct text whole = three_chunks();

    for (size_t length = 0; length < whole.length; length++) {
        struct text text = whole;
        struct xorb_layout *layout;

        text.length = length;
        layout = layout_of(&text, 7);
        assert_int_equal(xorb_layout_finish(layout), length == 11 || length == 19 + sizeof(many));
        assert_true((layout->mistake == NULL) == (length == 11 || length == 19 + sizeof(many)));
        free(layout);
    }
}

TEST(footer_of_older_clients_is_left_out)
{
    struct text text = three_chunks();
    struct xorb_layout *layout;

    memcpy(text.bytes + text.length, "XETBLOB\1whatever", 16);
    text.length += 16;
    layout = layout_of(&text, 5);
    assert_true(xorb_layout_finish(layout));
    assert_int_equal(layout->count, 3);
    free(layout);
}

TEST(headers_that_break_a_rule_are_refused)
{
    static const struct {
        uint8_t header[XORB_HEADER_BYTES];
        const char *why;
    } cases[] = {
        {{1, 1, 0, 0, 0, 1, 0, 0}, "a chunk is of an unknown version"},
        {{0, 1, 0, 0, 3, 1, 0, 0}, "a chunk is compressed in an unknown way"},
        {{0, 1, 0, 0, 99, 1, 0, 0}, "a chunk is compressed in an unknown way"},
        {{0, 0, 0, 0, 0, 0, 0, 0}, "a chunk is empty"},
        {{0, 0, 0, 0, 1, 1, 0, 0}, "a chunk is empty"},
        {{0, 1, 0, 0, 1, 0, 0, 0}, "a chunk is empty"},
        {{0, 1, 0, 0, 1, 1, 0, 2}, "a chunk is too long"},
        {{0, 1, 0, 4, 1, 1, 0, 0}, "a chunk is too long"},
        {{0, 2, 0, 0, 0, 1, 0, 0}, "a chunk that is not compressed has two lengths"},
    };
    struct xorb_chunk chunk;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_string_equal(xorb_chunk_read(cases[i].header, &chunk), cases[i].why);
    assert_null(xorb_chunk_read((const uint8_t[]){0, 0, 0, 4, 1, 0, 0, 2}, &chunk));
    assert_int_equal(chunk.stored, XORB_STORED_MAX);
    assert_int_equal(chunk.length, XORB_CHUNK_MAX);
}

TEST(more_than_a_xorb_holds_is_refused)
{
    struct xorb_layout *layout = calloc(1, sizeof(*layout));
    const uint8_t one[] = {0, 1, 0, 0, 0, 1, 0, 0, 'x'};
    const uint8_t longest[] = {0, 1, 0, 0, 1, 0, 0, 2, 'x'};

    assert_non_null(layout);
    for (uint32_t i = 0; i < XORB_CHUNKS_MAX; i++)
        assert_true(xorb_layout_take(layout, one, sizeof(one)));
    assert_false(xorb_layout_take(layout, one, sizeof(one)));
    assert_string_equal(layout->mistake, "there are too many chunks");
    memset(layout, 0, sizeof(*layout));
    for (uint32_t i = 0; i < XORB_DECODED_MAX / XORB_CHUNK_MAX; i++)
        assert_true(xorb_layout_take(layout, longest, sizeof(longest)));
    assert_false(xorb_layout_take(layout, longest, sizeof(longest)));
    assert_false(xorb_layout_finish(layout));
    free(layout);
}

static bool decodes(enum xorb_scheme scheme, const uint8_t *stored, size_t stored_length,
                    uint32_t length, uint8_t *out_bytes)
{
    const struct xorb_chunk chunk = {scheme, (uint32_t)stored_length, length};
    struct xorb_decoder *decoder = xorb_decoder_new();
    /* Exactly as long as is stated, so that a sanitizer sees what is beyond. */
    uint8_t *in = malloc(stored_length);
    uint8_t *out = malloc(length);
    bool is_decoded;

    assert_non_null(decoder);
    assert_non_null(in);
    assert_non_null(out);
    memcpy(in, stored, stored_length);
    is_decoded = xorb_decode(decoder, &chunk, in, out);
    if (is_decoded && out_bytes != NULL)
        memcpy(out_bytes, out, length);
    free(in);
    free(out);
    xorb_decoder_free(decoder);
    return is_decoded;
}

TEST(each_scheme_decodes)
{
    uint8_t bytes[100];

    assert_true(decodes(XORB_PLAIN, (const uint8_t *)"abc", 3, 3, bytes));
    assert_memory_equal(bytes, "abc", 3);
    assert_true(decodes(XORB_LZ4, many, sizeof(many), 100, bytes));
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(bytes[i], 'x');
    assert_true(decodes(XORB_LZ4_PLANES, few, sizeof(few), 5, bytes));
    assert_memory_equal(bytes, "abcde", 5);
}

TEST(frame_of_any_other_length_does_not_decode)
{
    assert_false(decodes(XORB_LZ4, many, sizeof(many), 99, NULL));
    assert_false(decodes(XORB_LZ4, many, sizeof(many), 101, NULL));
    assert_false(decodes(XORB_LZ4, many, sizeof(many), 1, NULL));
    assert_false(decodes(XORB_LZ4_PLANES, few, sizeof(few), 4, NULL));
    for (size_t length = 1; length < sizeof(many); length++)
        assert_false(decodes(XORB_LZ4, many, length, 100, NULL));
}

TEST(bytes_behind_a_frame_do_not_decode)
{
    uint8_t twice[2 * sizeof(few)];

    memcpy(twice, few, sizeof(few));
    memcpy(twice + sizeof(few), few, sizeof(few));
    assert_false(decodes(XORB_LZ4, twice, sizeof(twice), 5, NULL));
    assert_false(decodes(XORB_LZ4, twice, sizeof(twice), 10, NULL));
    assert_false(decodes(XORB_LZ4, twice, sizeof(few) + 1, 5, NULL));
}

TEST(decoder_works_again_after_a_failure)
{
    struct xorb_decoder *decoder = xorb_decoder_new();
    const struct xorb_chunk right = {XORB_LZ4, sizeof(many), 100};
    const struct xorb_chunk wrong = {XORB_LZ4, sizeof(many) - 4, 100};
    uint8_t bytes[100];

    assert_non_null(decoder);
    for (unsigned i = 0; i < 3; i++) {
        assert_false(xorb_decode(decoder, &wrong, many, bytes));
        assert_true(xorb_decode(decoder, &right, many, bytes));
    }
    xorb_decoder_free(decoder);
}
