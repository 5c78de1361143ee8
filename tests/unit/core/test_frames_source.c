/* Seekable frames as a source: every start and end, how often each frame is decoded, and several
 * threads. */
#include "support.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "handmade.h"
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

/* A file that counts the bytes read from it, from one thread. */
struct counting_source {
    struct zt_source base;
    struct zt_source *inner;
    uint64_t bytes;
};

static uint64_t counting_size(const struct zt_source *source)
{
    return zt_source_size(((const struct counting_source *)source)->inner);
}

static enum zt_status counting_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                       size_t length, struct zt_error *error)
{
    struct counting_source *counting = (struct counting_source *)source;

    counting->bytes += length;
    return zt_source_read_at(counting->inner, offset, buffer, length, error);
}

static const uint8_t *counting_map(struct zt_source *source)
{
    (void)source;
    return NULL;
}

static void counting_close(struct zt_source *source)
{
    (void)source;
}

struct stream {
    struct bytes stored;
    struct zt_component component;
    struct counting_source file;
};

/* The stream begins at 64, as components never begin at 0. */
static void make(struct stream *stream, size_t length)
{
    static const struct zt_source_ops ops = {.size = counting_size,
                                             .read_at = counting_read_at,
                                             .map = counting_map,
                                             .close = counting_close};
    static const uint8_t head[64] = {0};

    memset(stream, 0, sizeof(*stream));
    bytes_append(&stream->stored, head, 64);
    bytes_append_seekable(&stream->stored, plain, length, CHUNK);
    stream->component = (struct zt_component){.encoding = ZT_ENCODING_ZSTD_SEEKABLE,
                                              .dtype = ZT_U8,
                                              .offset = 64,
                                              .length = stream->stored.length - 64,
                                              .decoded_length = length};
    stream->file.base.ops = &ops;
    assert_int_equal(
        zt_source_from_memory(stream->stored.at, stream->stored.length, &stream->file.inner, NULL),
        ZT_OK);
}

static void drop(struct stream *stream)
{
    zt_source_close(stream->file.inner);
    bytes_free(&stream->stored);
}

static struct zt_source *open_frames(struct stream *stream)
{
    struct zt_source *source = NULL;

    assert_int_equal(zt_frames_source(&stream->component, &stream->file.base, &source, NULL),
                     ZT_OK);
    return source;
}

static void assert_reads(struct zt_source *source, uint64_t offset, size_t length)
{
    uint8_t *got = malloc(length + 1);

    assert_non_null(got);
    got[length] = 0x5A;
    assert_int_equal(zt_source_read_at(source, offset, got, length, NULL), ZT_OK);
    assert_memory_equal(got, plain + offset, length);
    assert_int_equal(got[length], 0x5A);
    free(got);
}

static void every_border_of_frames_reads_right(void **state)
{
    static const size_t lengths[] = {0, 1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, PLAIN_SIZE};
    struct stream stream;
    struct zt_source *source;

    (void)state;
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

static void only_frames_touched_are_decoded(void **state)
{
    struct stream stream;
    struct zt_source *source;
    struct zt_frames frames;
    uint64_t before;

    (void)state;
    make(&stream, PLAIN_SIZE);
    assert_int_equal(zt_frames_read(&stream.component, &stream.file.base, &frames, NULL), ZT_OK);
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

static void reader_going_forward_decodes_each_frame_once(void **state)
{
    static const size_t steps[] = {1,     100,       CHUNK / 2, CHUNK - 1,
                                   CHUNK, CHUNK + 1, 3 * CHUNK, PLAIN_SIZE};
    struct stream stream;

    (void)state;
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

static void reading_past_the_end_fails(void **state)
{
    struct stream stream;
    struct zt_source *source;
    uint8_t got[4];

    (void)state;
    make(&stream, 10);
    source = open_frames(&stream);
    assert_int_equal(zt_source_read_at(source, 8, got, 3, NULL), ZT_IO);
    assert_int_equal(zt_source_read_at(source, UINT64_MAX, got, 3, NULL), ZT_IO);
    assert_int_equal(zt_source_read_at(source, 10, got, 0, NULL), ZT_OK);
    zt_source_close(source);
    drop(&stream);
    make(&stream, 0);
    source = open_frames(&stream);
    assert_true(zt_source_size(source) == 0);
    assert_int_equal(zt_source_read_at(source, 0, got, 0, NULL), ZT_OK);
    assert_int_equal(zt_source_read_at(source, 0, got, 1, NULL), ZT_IO);
    zt_source_close(source);
    drop(&stream);
}

static void broken_table_makes_no_source(void **state)
{
    struct stream stream;
    struct zt_source *source = NULL;
    struct zt_error error;

    (void)state;
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
static void broken_frame_fails_every_time_and_alone(void **state)
{
    struct stream stream;
    struct zt_source *source;
    struct zt_frames frames;
    struct zt_error error;
    uint8_t got[CHUNK];

    (void)state;
    make(&stream, PLAIN_SIZE);
    assert_int_equal(zt_frames_read(&stream.component, &stream.file.base, &frames, NULL), ZT_OK);
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

static void several_threads_read_at_once(void **state)
{
    struct stream stream;
    struct zt_source *source = NULL;
    struct reader readers[THREADS];
    pthread_t threads[THREADS];

    (void)state;
    make(&stream, PLAIN_SIZE);
    /* Not the one that counts, which is for one thread. */
    assert_int_equal(zt_frames_source(&stream.component, stream.file.inner, &source, NULL), ZT_OK);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_border_of_frames_reads_right),
        cmocka_unit_test(only_frames_touched_are_decoded),
        cmocka_unit_test(reader_going_forward_decodes_each_frame_once),
        cmocka_unit_test(reading_past_the_end_fails),
        cmocka_unit_test(broken_table_makes_no_source),
        cmocka_unit_test(broken_frame_fails_every_time_and_alone),
        cmocka_unit_test(several_threads_read_at_once),
    };

    return cmocka_run_group_tests(tests, fill_plain, NULL);
}
