/* The seekable encoding: its table's rules one by one, its frames one by one and all together. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>

#include "handmade.h"
#include "zt/decode.h"

#define PLAIN_SIZE 100000
#define CHUNK      8192
#define TABLE_RULE "zt2 §6 SeekTable"
#define FRAME_RULE "zt2 §6 Encoding"

static uint8_t plain[PLAIN_SIZE];

static int fill_plain(void **state)
{
    (void)state;
    for (size_t i = 0; i < PLAIN_SIZE; i++)
        plain[i] = (uint8_t)(i * i >> 9 ^ i);
    return 0;
}

/* The stream begins at 64, as components never begin at 0. */
struct stream {
    struct bytes stored;
    struct zt_component component;
    struct zt_source *source;
};

static void finish(struct stream *stream, uint64_t decoded_length)
{
    stream->component = (struct zt_component){.encoding = ZT_ENCODING_ZSTD_SEEKABLE,
                                              .dtype = ZT_U8,
                                              .offset = 64,
                                              .length = stream->stored.length - 64,
                                              .decoded_length = decoded_length};
    zt_source_close(stream->source);
    stream->source = memory_source(stream->stored.at, stream->stored.length);
}

static void make(struct stream *stream, size_t length)
{
    static const uint8_t head[64] = {0};

    memset(stream, 0, sizeof(*stream));
    bytes_append(&stream->stored, head, 64);
    bytes_append_seekable(&stream->stored, plain, length, CHUNK);
    finish(stream, length);
}

static void drop(struct stream *stream)
{
    zt_source_close(stream->source);
    bytes_free(&stream->stored);
}

static enum zt_status decode(struct stream *stream, uint8_t *out, size_t step, size_t *out_length,
                             struct zt_error *error)
{
    struct zt_decoder *decoder = NULL;
    size_t got = 1;
    enum zt_status status = zt_decoder_open(&stream->component, stream->source, &decoder, error);

    *out_length = 0;
    while (status == ZT_OK && got > 0) {
        status = zt_decoder_read(decoder, out + *out_length, step, &got, error);
        if (status == ZT_OK)
            *out_length += got;
    }
    zt_decoder_close(decoder);
    return status;
}

static void assert_table_fails(struct stream *stream, uint64_t offset)
{
    struct zt_frames frames = {NULL, 77};
    struct zt_decoder *decoder = NULL;
    struct zt_error error;

    finish(stream, stream->component.decoded_length);
    zt_error_clear(&error);
    assert_int_equal(zt_frames_read(&stream->component, stream->source, &frames, &error),
                     ZT_CORRUPT);
    assert_failure(&error, ZT_CORRUPT, TABLE_RULE, offset);
    assert_true(frames.count == 77 && frames.frames == NULL);
    assert_int_equal(zt_decoder_open(&stream->component, stream->source, &decoder, &error),
                     ZT_CORRUPT);
    assert_failure(&error, ZT_CORRUPT, TABLE_RULE, offset);
    assert_null(decoder);
}

static void put_u32(struct stream *stream, size_t at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        stream->stored.at[at + (size_t)i] = (uint8_t)(value >> (8 * i));
}

static uint32_t get_u32(const struct stream *stream, size_t at)
{
    const uint8_t *b = stream->stored.at + at;

    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Absolute position of the table of a stream of PLAIN_SIZE bytes, and of an entry. */
static size_t table_at(const struct stream *stream)
{
    return stream->stored.length - 17 - 8 * ((PLAIN_SIZE + CHUNK - 1) / CHUNK);
}

static size_t entry_at(const struct stream *stream, size_t index)
{
    return table_at(stream) + 8 + 8 * index;
}

TEST(streams_decode_in_steps_of_any_size)
{
    static const size_t lengths[] = {0, 1, CHUNK, CHUNK + 1, 3 * CHUNK, PLAIN_SIZE};
    static uint8_t out[2 * PLAIN_SIZE];
    struct stream stream;
    struct zt_error error;
    size_t got;

    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        make(&stream, lengths[i]);
        for (size_t step = 1; step <= PLAIN_SIZE; step = step * 7 + 1) {
            assert_ok(decode(&stream, out, step, &got, &error));
            assert_int_equal(got, lengths[i]);
            assert_memory_equal(out, plain, got);
        }
        drop(&stream);
    }
}

TEST(each_frame_decodes_on_its_own)
{
    struct stream stream;
    struct zt_frames frames;
    uint8_t out[CHUNK];
    uint64_t total = 0;

    make(&stream, PLAIN_SIZE);
    assert_ok(zt_frames_read(&stream.component, stream.source, &frames, NULL));
    assert_int_equal(frames.count, (PLAIN_SIZE + CHUNK - 1) / CHUNK);
    for (uint32_t i = frames.count; i-- > 0;) {
        assert_ok(zt_frame_decode(&frames.frames[i], stream.source, out, NULL));
        assert_memory_equal(out, plain + frames.frames[i].decoded_offset,
                            frames.frames[i].decoded_length);
        total += frames.frames[i].decoded_length;
    }
    assert_true(total == PLAIN_SIZE);
    zt_frames_free(&frames);
    assert_null(frames.frames);
    drop(&stream);
}

TEST(empty_stream_is_a_table_alone)
{
    struct stream stream;
    struct zt_frames frames;

    make(&stream, 0);
    assert_int_equal(stream.component.length, 17);
    assert_ok(zt_frames_read(&stream.component, stream.source, &frames, NULL));
    assert_int_equal(frames.count, 0);
    zt_frames_free(&frames);
    drop(&stream);
}

/* Appends a seek table of one entry; checksum may be NULL. */
static void append_table(struct stream *stream, uint32_t stored, uint32_t decoded,
                         const uint32_t *checksum)
{
    bytes_append_u32(&stream->stored, 0x184D2A5E);
    bytes_append_u32(&stream->stored, (checksum != NULL ? 12 : 8) + 9);
    bytes_append_u32(&stream->stored, stored);
    bytes_append_u32(&stream->stored, decoded);
    if (checksum != NULL)
        bytes_append_u32(&stream->stored, *checksum);
    bytes_append_u32(&stream->stored, 1);
    bytes_append(&stream->stored, checksum != NULL ? "\x80" : "", 1);
    bytes_append_u32(&stream->stored, 0x8F92EAB1);
}

/* The column of checksums is allowed and skipped. */
TEST(table_may_have_checksums)
{
    struct stream stream;
    size_t before = 64;
    uint8_t out[200];
    size_t got;
    struct zt_error error;

    memset(&stream, 0, sizeof(stream));
    bytes_append(&stream.stored, plain, 64);
    bytes_append_zstd(&stream.stored, plain, 100, true);
    before = stream.stored.length - before;
    append_table(&stream, (uint32_t)before, 100, &(uint32_t){0x12345678});
    finish(&stream, 100);
    assert_ok(decode(&stream, out, 100, &got, &error));
    assert_int_equal(got, 100);
    assert_memory_equal(out, plain, 100);
    drop(&stream);
}

TEST(table_refuses_wrong_bounds)
{
    struct stream stream;
    size_t end;

    make(&stream, PLAIN_SIZE);
    end = stream.stored.length;
    stream.stored.at[end - 1] ^= 1;
    assert_table_fails(&stream, end - 4);
    stream.stored.at[end - 1] ^= 1;
    stream.stored.at[end - 5] = 0x01;
    assert_table_fails(&stream, end - 5);
    stream.stored.at[end - 5] = 0x7C;
    assert_table_fails(&stream, end - 5);
    stream.stored.at[end - 5] = 0;
    put_u32(&stream, end - 9, UINT32_MAX);
    assert_table_fails(&stream, end - 9);
    put_u32(&stream, end - 9, 12);
    assert_table_fails(&stream, end - 17 - 12 * 8);
    put_u32(&stream, end - 9, 13);
    stream.stored.at[table_at(&stream)] ^= 1;
    assert_table_fails(&stream, table_at(&stream));
    stream.stored.at[table_at(&stream)] ^= 1;
    put_u32(&stream, table_at(&stream) + 4, 13 * 8 + 8);
    assert_table_fails(&stream, table_at(&stream));
    drop(&stream);
}

TEST(table_refuses_streams_that_are_too_short)
{
    struct stream stream;

    make(&stream, 0);
    for (size_t length = 0; length < 17; length++) {
        stream.stored.length = 64 + length;
        assert_table_fails(&stream, 64);
    }
    drop(&stream);
}

TEST(table_refuses_wrong_entries)
{
    struct stream stream;
    uint32_t first, last;

    make(&stream, PLAIN_SIZE);
    /* Frames that are not equal. */
    put_u32(&stream, entry_at(&stream, 5) + 4, CHUNK - 1);
    assert_table_fails(&stream, entry_at(&stream, 5));
    put_u32(&stream, entry_at(&stream, 5) + 4, CHUNK);
    /* The last one longer than the others. */
    last = get_u32(&stream, entry_at(&stream, 12) + 4);
    put_u32(&stream, entry_at(&stream, 12) + 4, CHUNK + 1);
    assert_table_fails(&stream, entry_at(&stream, 12));
    /* A sum that is not the declared length. */
    put_u32(&stream, entry_at(&stream, 12) + 4, last - 1);
    assert_table_fails(&stream, table_at(&stream));
    put_u32(&stream, entry_at(&stream, 12) + 4, last);
    /* More than 16 MiB. */
    put_u32(&stream, entry_at(&stream, 0) + 4, (16 << 20) + 1);
    assert_table_fails(&stream, entry_at(&stream, 0));
    put_u32(&stream, entry_at(&stream, 0) + 4, CHUNK);
    /* Stored bytes: too few for a frame, short of the table, into the table. */
    first = get_u32(&stream, entry_at(&stream, 0));
    put_u32(&stream, entry_at(&stream, 0), 12);
    assert_table_fails(&stream, entry_at(&stream, 0));
    put_u32(&stream, entry_at(&stream, 0), first - 1);
    assert_table_fails(&stream, table_at(&stream));
    put_u32(&stream, entry_at(&stream, 0), first + 1);
    assert_table_fails(&stream, entry_at(&stream, 12));
    put_u32(&stream, entry_at(&stream, 0), UINT32_MAX);
    assert_table_fails(&stream, entry_at(&stream, 0));
    drop(&stream);
}

/* A frame that so few bytes cannot fill is rejected by the table's rules, before decoding. */
TEST(table_refuses_impossible_ratios)
{
    struct stream stream;

    make(&stream, 1);
    assert_int_equal(get_u32(&stream, stream.stored.length - 17), stream.component.length - 25);
    put_u32(&stream, stream.stored.length - 13, 16 << 20);
    stream.component.decoded_length = 16 << 20;
    assert_table_fails(&stream, stream.stored.length - 17);
    drop(&stream);
}

static void assert_decoding_fails(struct stream *stream, uint64_t offset)
{
    static uint8_t out[2 * PLAIN_SIZE];
    struct zt_error error;
    size_t got;

    zt_error_clear(&error);
    finish(stream, stream->component.decoded_length);
    assert_int_equal(decode(stream, out, CHUNK, &got, &error), ZT_CORRUPT);
    assert_failure(&error, ZT_CORRUPT, FRAME_RULE, offset);
}

/* Two frames with the border between them misplaced in the table: one entry is too long by what the
 * other is too short. */
TEST(frames_must_give_what_the_table_says)
{
    struct stream stream;

    make(&stream, 2 * CHUNK - 100);
    /* Both lengths made equal: the sum stays. */
    put_u32(&stream, stream.stored.length - 21, CHUNK - 50);
    put_u32(&stream, stream.stored.length - 13, CHUNK - 50);
    assert_decoding_fails(&stream, 64);
    drop(&stream);
}

TEST(frames_must_have_a_checksum_and_keep_it)
{
    struct stream stream;

    make(&stream, PLAIN_SIZE);
    stream.stored.at[64 + 4] &= (uint8_t)~0x04;
    assert_decoding_fails(&stream, 64);
    stream.stored.at[64 + 4] |= 0x04;
    stream.stored.at[table_at(&stream) - 1] ^= 0x80;
    assert_decoding_fails(&stream, table_at(&stream) - get_u32(&stream, entry_at(&stream, 12)));
    drop(&stream);
}

TEST(entry_must_be_one_frame)
{
    struct stream stream;
    size_t first, both;

    memset(&stream, 0, sizeof(stream));
    bytes_append(&stream.stored, plain, 64);
    bytes_append_zstd(&stream.stored, plain, 60, true);
    first = stream.stored.length;
    bytes_append_zstd(&stream.stored, plain + 60, 40, true);
    both = stream.stored.length - 64;
    append_table(&stream, (uint32_t)both, 100, NULL);
    stream.component.decoded_length = 100;
    assert_decoding_fails(&stream, first);
    drop(&stream);
}

TEST(entry_must_not_be_a_skippable_frame)
{
    struct stream stream;

    make(&stream, 0);
    stream.stored.length = 64;
    bytes_append(&stream.stored, "\x50\x2A\x4D\x18\x05\0\0\0hello", 13);
    append_table(&stream, 13, 0, NULL);
    assert_decoding_fails(&stream, 64);
    drop(&stream);
}

TEST(frames_are_for_the_seekable_encoding_only)
{
    struct stream stream;
    struct zt_frames frames;

    make(&stream, 100);
    stream.component.encoding = ZT_ENCODING_ZSTD;
    assert_int_equal(zt_frames_read(&stream.component, stream.source, &frames, NULL),
                     ZT_UNSUPPORTED);
    drop(&stream);
}

/* More entries than one batch of the table. */
TEST(long_tables_are_walked_whole)
{
    struct stream stream;
    struct zt_frames frames;
    static uint8_t out[PLAIN_SIZE + 16];
    struct zt_error error;
    size_t got;

    make(&stream, 0);
    stream.stored.length = 64;
    bytes_append_seekable(&stream.stored, plain, 5000, 7);
    finish(&stream, 5000);
    assert_ok(zt_frames_read(&stream.component, stream.source, &frames, NULL));
    assert_int_equal(frames.count, 715);
    assert_true(frames.frames[714].decoded_offset == 714 * 7);
    zt_frames_free(&frames);
    assert_ok(decode(&stream, out, 4096, &got, &error));
    assert_int_equal(got, 5000);
    assert_memory_equal(out, plain, 5000);
    drop(&stream);
}

AROUND_ALL_TESTS(fill_plain, NULL)
