/* Parts of answers whose bytes are in a remote store: the right bytes, kept while they are sent,
 * and no more fetched than the answer needs. */
#include "far_source.h"

#include "http/body/pinned.h"
#include "http/wire/file_changes.h"

#define LENGTH ((size_t)40 << 20)

static uint8_t *bytes;
static struct far_source *far;

static struct segment far_segment(uint64_t offset, uint64_t length)
{
    return (struct segment){
        .kind = SEGMENT_SOURCE, .length = length, .source = &far->base, .offset = offset};
}

static struct answer answer_of(struct segment *segments, size_t count)
{
    struct answer answer = {.segments = segments, .segment_count = count};

    for (size_t i = 0; i < count; i++) {
        segments[i].start = answer.content_length;
        answer.content_length += segments[i].length;
    }
    return answer;
}

/* A part reads as the bytes from `first` on. */
static void assert_reads(const struct answer *part, uint64_t first)
{
    uint8_t *read = malloc((size_t)part->content_length);
    uint64_t at = 0;

    assert_non_null(read);
    for (size_t i = 0; i < part->segment_count; i++) {
        const struct segment *segment = &part->segments[i];

        assert_int_equal(segment->start, at);
        if (segment->kind == SEGMENT_MEMORY)
            memcpy(read + at, segment->bytes, (size_t)segment->length);
        else
            assert_ok(zt_source_read_at(segment->source, segment->offset, read + at,
                                        (size_t)segment->length, NULL));
        at += segment->length;
    }
    assert_int_equal(at, part->content_length);
    assert_memory_equal(read, bytes + first, (size_t)at);
    free(read);
}

TEST(what_is_here_is_pinned_at_once)
{
    struct segment segments[] = {
        {.kind = SEGMENT_MEMORY, .length = 100, .bytes = bytes},
        far_segment(100, 3 * FAR_BLOCK),
    };
    const struct answer answer = answer_of(segments, 2);
    struct pinned part;

    far_set(far, true);
    assert_true(answer_is_remote(&answer) && pinned_is_possible(&answer));
    assert_ok(pinned_take(&part, &answer, (struct place){0}, UINT64_MAX, false, NULL));
    assert_int_equal(part.answer.content_length, answer.content_length);
    assert_false(answer_is_remote(&part.answer));
    assert_true(zt_source_descriptor(part.answer.segments[1].source) >= 0);
    assert_reads(&part.answer, 0);
    assert_int_equal(far->held, 1);
    pinned_release(&part);
    assert_int_equal(far->held, 0);
    assert_int_equal(atomic_load(&far->reads) + atomic_load(&far->waits), 0);
}

TEST(what_is_not_here_is_not_waited_for)
{
    struct segment segments[] = {far_segment(0, FAR_BLOCK), far_segment(FAR_BLOCK, FAR_BLOCK)};
    const struct answer answer = answer_of(segments, 2);
    struct pinned part;

    far_set(far, false);
    far_bring(far, 0, FAR_BLOCK);
    assert_int_equal(pinned_take(&part, &answer, (struct place){0}, UINT64_MAX, false, NULL),
                     ZT_UNAVAILABLE);
    assert_int_equal(far->held, 0);
    assert_int_equal(atomic_load(&far->waits) + far->advised, 0);
}

TEST(waiting_brings_what_is_asked_for)
{
    struct segment segments[] = {far_segment(FAR_BLOCK / 2, 4 * FAR_BLOCK)};
    const struct answer answer = answer_of(segments, 1);
    struct place from = {0};
    struct pinned part;

    far_set(far, false);
    place_advance(&from, &answer, 1000);
    assert_ok(pinned_take(&part, &answer, from, FAR_BLOCK, true, NULL));
    assert_int_equal(part.answer.content_length, FAR_BLOCK);
    assert_reads(&part.answer, FAR_BLOCK / 2 + 1000);
    assert_true(far->is_here[0] && far->is_here[1] && !far->is_here[2]);
    pinned_release(&part);
}

TEST(failures_release_what_was_pinned)
{
    struct segment segments[] = {far_segment(0, FAR_BLOCK), far_segment(FAR_BLOCK, FAR_BLOCK)};
    const struct answer answer = answer_of(segments, 2);
    static const enum zt_status failures[] = {ZT_STALE, ZT_UNAVAILABLE};
    struct zt_error error;
    struct pinned part;

    for (unsigned i = 0; i < 2; i++) {
        far_set(far, false);
        far->fails = failures[i];
        far->fails_at = FAR_BLOCK;
        assert_int_equal(pinned_take(&part, &answer, (struct place){0}, UINT64_MAX, true, &error),
                         failures[i]);
        assert_int_equal(error.status, failures[i]);
        assert_int_equal(far->held, 0);
    }
}

TEST(without_room_it_is_read)
{
    struct segment segments[] = {{.kind = SEGMENT_MEMORY, .length = 100, .bytes = bytes},
                                 far_segment(100, 4 * FAR_BLOCK)};
    const struct answer answer = answer_of(segments, 2);
    struct place from = {0};
    struct pinned part;

    far_set(far, false);
    far->has_no_room = true;
    assert_int_equal(pinned_take(&part, &answer, from, FAR_BLOCK, true, NULL), ZT_LIMIT);
    place_advance(&from, &answer, 50);
    assert_ok(pinned_read(&part, &answer, from, 70000, NULL));
    assert_int_equal(part.answer.content_length, 70000);
    assert_reads(&part.answer, 50);
    assert_int_equal(far->held, 0);
    pinned_release(&part);
}

/* The bytes of a component, as rows of 8 KiB. */
static struct zt_source *slice_of_rows(const char *text, uint64_t rows)
{
    const uint64_t shape[] = {rows, 8192};
    const struct zt_slice_tensor tensor = {shape, 2, ZT_U8, ZT_LOGICAL_NONE};
    struct zt_source *source;
    struct zt_slice slice;
    struct zt_error error;

    assert_int_equal(zt_slice_parse(&tensor, (struct zt_text){text, strlen(text)}, &slice, &error),
                     ZT_SLICE_FITS);
    assert_ok(zt_slice_source(&slice, &far->base, 4096, &source, NULL));
    return source;
}

TEST(slices_are_gathered_from_what_is_pinned)
{
    struct zt_source *slice = slice_of_rows(":,100:1124", 1000);
    struct segment segment = {
        .kind = SEGMENT_SOURCE, .length = zt_source_size(slice), .source = slice};
    const struct answer answer = answer_of(&segment, 1);
    uint8_t run[1024];
    struct place from = {0};
    struct pinned part;

    far_set(far, false);
    assert_true(answer_is_remote(&answer) && pinned_is_possible(&answer));
    place_advance(&from, &answer, 512 * 1024);
    assert_ok(pinned_take(&part, &answer, from, 1024, true, NULL));
    assert_true(part.answer.segments[0].source != slice);
    assert_ok(zt_source_read_at(part.answer.segments[0].source, part.answer.segments[0].offset, run,
                                sizeof(run), NULL));
    assert_memory_equal(run, bytes + 4096 + 512 * 8192 + 100, sizeof(run));
    assert_int_equal(atomic_load(&far->reads), 0);
    /* Only what the runs touch. */
    assert_true(far->is_here[4] && !far->is_here[3] && !far->is_here[5]);
    pinned_release(&part);
    zt_source_close(slice);
}

/* What lies between would be brought too. */
TEST(slices_of_scattered_runs_are_not_pinned)
{
    const uint64_t shape[] = {4, 5 << 20};
    const struct zt_slice_tensor tensor = {shape, 2, ZT_U8, ZT_LOGICAL_NONE};
    struct segment segment = {.kind = SEGMENT_SOURCE};
    struct answer answer;
    struct zt_slice slice;

    assert_int_equal(zt_slice_parse(&tensor, (struct zt_text){":,:4096", 7}, &slice, NULL),
                     ZT_SLICE_FITS);
    assert_ok(zt_slice_source(&slice, &far->base, 0, &segment.source, NULL));
    segment.length = slice.length;
    answer = answer_of(&segment, 1);
    assert_true(answer_is_remote(&answer));
    assert_false(pinned_is_possible(&answer));
    zt_source_close(segment.source);
}

TEST(filling_the_file_does_not_change_the_stamp)
{
    struct segment segments[] = {far_segment(0, FAR_BLOCK)};
    const struct answer answer = answer_of(segments, 1);
    struct pinned part;
    uint64_t before;

    far_set(far, false);
    assert_ok(pinned_take(&part, &answer, (struct place){0}, FAR_BLOCK, true, NULL));
    before = answer_stamp(&part.answer);
    /* The clock of files ticks every few milliseconds. */
    pause_ms(20);
    far_bring(far, FAR_BLOCK, FAR_BLOCK);
    assert_true(answer_stamp(&part.answer) == before);
    assert_int_equal(ftruncate(zt_source_descriptor(far->view), 100), 0);
    assert_true(answer_stamp(&part.answer) != before);
    pinned_release(&part);
    far_set(far, false);
}

static int open_far(void **state)
{
    (void)state;
    bytes = malloc(LENGTH);
    for (size_t i = 0; bytes != NULL && i < LENGTH; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13) | 1;
    far = bytes != NULL ? far_open(bytes, LENGTH, &far_ops) : NULL;
    return far != NULL ? 0 : -1;
}

static int close_far(void **state)
{
    (void)state;
    zt_source_close(&far->base);
    free(bytes);
    return 0;
}

AROUND_ALL_TESTS(open_far, close_far)
