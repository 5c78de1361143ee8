/* Seekable frames as a source: every start and end, how often each frame is decoded, and several
 * threads. */
#include "tests.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "handmade.h"
#include "sources.h"
#include "zt/decode.h"

#define PLAIN_SIZE 5000
#define CHUNK      512
#define FRAMES     ((PLAIN_SIZE + CHUNK - 1) / CHUNK)
#define THREADS    4

static uint8_t plain[PLAIN_SIZE];

static int fill_plain(void **state)
{
    (void)state;
    for (size_t i = 0; i < PLAIN_SIZE; i++)
        plain[i] = (uint8_t)(i * i >> 9 ^ i);
    return 0;
}

struct stream {
    struct bytes stored;
    struct zt_component component;
    struct counting_source file;
};

/* The stream begins at 64, as components never begin at 0. */
static void make(struct stream *stream, size_t length)
{
    static const uint8_t head[64] = {0};

    memset(stream, 0, sizeof(*stream));
    bytes_append(&stream->stored, head, 64);
    bytes_append_seekable(&stream->stored, plain, length, CHUNK);
    stream->component = (struct zt_component){.encoding = ZT_ENCODING_ZSTD_SEEKABLE,
                                              .dtype = ZT_U8,
                                              .offset = 64,
                                              .length = stream->stored.length - 64,
                                              .decoded_length = length};
    stream->file.base.ops = &counting_source_ops;
    stream->file.inner = memory_source(stream->stored.at, stream->stored.length);
}

static void drop(struct stream *stream)
{
    zt_source_close(stream->file.inner);
    bytes_free(&stream->stored);
}

static struct zt_source *open_frames(struct stream *stream)
{
    struct zt_source *source = NULL;

    assert_ok(zt_frames_source(&stream->component, &stream->file.base, &source, NULL));
    return source;
}

static void assert_reads(struct zt_source *source, uint64_t offset, size_t length)
{
    uint8_t *got = malloc(length + 1);

    assert_non_null(got);
    got[length] = 0x5A;
    assert_ok(zt_source_read_at(source, offset, got, length, NULL));
    assert_memory_equal(got, plain + offset, length);
    assert_int_equal(got[length], 0x5A);
    free(got);
}

TEST(every_border_of_frames_reads_right)
{
    static const size_t lengths[] = {0, 1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, PLAIN_SIZE};
    struct stream stream;
    struct zt_source *source;

    make(&stream, PLAIN_SIZE);
    source = open_frames(&stream);
    assert_true(zt_source_size(source) == PLAIN_SIZE);
    assert_null(zt_source_map(source));
    for (uint64_t frame = 0; frame < FRAMES; frame++) {
        for (int beside = -2; beside <= 2; beside++) {
            uint64_t offset = frame * CHUNK + (uint64_t)(int64_t)beside;

            for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
                if (offset < PLAIN_SIZE && lengths[i] <= PLAIN_SIZE - offset)
                    assert_reads(source, offset, lengths[i]);
        }
    }
    zt_source_close(source);
    drop(&stream);
}

TEST(only_frames_touched_are_decoded)
{
    struct stream stream;
    struct zt_source *source;
    struct zt_frames frames;
    uint64_t before;

    make(&stream, PLAIN_SIZE);
    assert_ok(zt_frames_read(&stream.component, &stream.file.base, &frames, NULL));
    source = open_frames(&stream);
    before = stream.file.bytes;
    assert_reads(source, 3 * CHUNK + 5, CHUNK);
    assert_true(stream.file.bytes - before ==
                frames.frames[3].stored_length + frames.frames[4].stored_length);
    /* The last one stays, whole or not. */
    before = stream.file.bytes;
    assert_reads(source, 4 * CHUNK + 5, CHUNK - 5);
    assert_reads(source, 4 * CHUNK, CHUNK);
    assert_true(stream.file.bytes == before);
    zt_source_close(source);
    zt_frames_free(&frames);
    drop(&stream);
}

TEST(reader_going_forward_decodes_each_frame_once)
{
    static const size_t steps[] = {1,     100,       CHUNK / 2, CHUNK - 1,
                                   CHUNK, CHUNK + 1, 3 * CHUNK, PLAIN_SIZE};
    struct stream stream;

    make(&stream, PLAIN_SIZE);
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        struct zt_source *source = open_frames(&stream);
        uint64_t before = stream.file.bytes;

        for (uint64_t at = 0; at < PLAIN_SIZE; at += steps[i])
            assert_reads(source, at,
                         PLAIN_SIZE - at < steps[i] ? (size_t)(PLAIN_SIZE - at) : steps[i]);
        /* All but the seek table. */
        assert_true(stream.file.bytes - before == stream.component.length - 17 - 8 * FRAMES);
        zt_source_close(source);
    }
    drop(&stream);
}

TEST(reading_past_the_end_fails)
{
    struct stream stream;
    struct zt_source *source;
    uint8_t got[4];

    make(&stream, 10);
    source = open_frames(&stream);
    assert_int_equal(zt_source_read_at(source, 8, got, 3, NULL), ZT_IO);
    assert_int_equal(zt_source_read_at(source, UINT64_MAX, got, 3, NULL), ZT_IO);
    assert_ok(zt_source_read_at(source, 10, got, 0, NULL));
    zt_source_close(source);
    drop(&stream);
    make(&stream, 0);
    source = open_frames(&stream);
    assert_true(zt_source_size(source) == 0);
    assert_ok(zt_source_read_at(source, 0, got, 0, NULL));
    assert_int_equal(zt_source_read_at(source, 0, got, 1, NULL), ZT_IO);
    zt_source_close(source);
    drop(&stream);
}

TEST(broken_table_makes_no_source)
{
    struct stream stream;
    struct zt_source *source = NULL;
    struct zt_error error;

    make(&stream, PLAIN_SIZE);
    stream.stored.at[stream.stored.length - 1] ^= 1;
    assert_int_equal(zt_frames_source(&stream.component, &stream.file.base, &source, &error),
                     ZT_CORRUPT);
    assert_failure(&error, ZT_CORRUPT, "zt2 §6 SeekTable", stream.stored.length - 4);
    stream.component.encoding = ZT_ENCODING_ZSTD;
    assert_int_equal(zt_frames_source(&stream.component, &stream.file.base, &source, &error),
                     ZT_UNSUPPORTED);
    assert_null(source);
    drop(&stream);
}

/* A frame that does not decode is not kept, and the other frames remain readable. */
TEST(broken_frame_fails_every_time_and_alone)
{
    struct stream stream;
    struct zt_source *source;
    struct zt_frames frames;
    struct zt_error error;
    uint8_t got[CHUNK];

    make(&stream, PLAIN_SIZE);
    assert_ok(zt_frames_read(&stream.component, &stream.file.base, &frames, NULL));
    stream.stored.at[frames.frames[3].stored_offset - 1] ^= 0x80;
    source = open_frames(&stream);
    assert_reads(source, 3 * CHUNK + 1, 5);
    for (unsigned i = 0; i < 2; i++) {
        zt_error_clear(&error);
        assert_int_equal(zt_source_read_at(source, 2 * CHUNK + 1, got, 5, &error), ZT_CORRUPT);
        assert_failure(&error, ZT_CORRUPT, "zt2 §6 Encoding", frames.frames[2].stored_offset);
        assert_int_equal(zt_source_read_at(source, 2 * CHUNK, got, CHUNK, &error), ZT_CORRUPT);
    }
    assert_reads(source, 3 * CHUNK + 1, 5);
    assert_reads(source, CHUNK, CHUNK);
    zt_source_close(source);
    zt_frames_free(&frames);
    drop(&stream);
}

struct reader {
    struct zt_source *source;
    unsigned seed;
    bool is_right;
};

static void *read_here_and_there(void *argument)
{
    struct reader *reader = argument;
    uint8_t got[3 * CHUNK];

    reader->is_right = true;
    for (unsigned i = 0; i < 300; i++) {
        uint64_t offset = (reader->seed * 977 + i * 131) % PLAIN_SIZE;
        size_t length = (i * 37 + reader->seed) % sizeof(got);

        if (length > PLAIN_SIZE - offset)
            length = (size_t)(PLAIN_SIZE - offset);
        if (zt_source_read_at(reader->source, offset, got, length, NULL) != ZT_OK ||
            memcmp(got, plain + offset, length) != 0)
            reader->is_right = false;
    }
    return NULL;
}

TEST(several_threads_read_at_once)
{
    struct stream stream;
    struct zt_source *source = NULL;
    struct reader readers[THREADS];
    pthread_t threads[THREADS];

    make(&stream, PLAIN_SIZE);
    /* Not the one that counts, which is for one thread. */
    assert_ok(zt_frames_source(&stream.component, stream.file.inner, &source, NULL));
    for (unsigned i = 0; i < THREADS; i++) {
        readers[i] = (struct reader){.source = source, .seed = i};
        assert_int_equal(pthread_create(&threads[i], NULL, read_here_and_there, &readers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(readers[i].is_right);
    }
    zt_source_close(source);
    drop(&stream);
}

AROUND_ALL_TESTS(fill_plain, NULL)
