/* Parts of answers whose bytes are elsewhere: the right bytes, kept as long as they are sent, and
 * no more brought than is asked for. */
#include "far_source.h"

#include "base/workers.h"
#include "http/body/bring_in.h"
#include "http/body/stamp.h"

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
            assert_int_equal(zt_source_read_at(segment->source, segment->offset, read + at,
                                               (size_t)segment->length, NULL),
                             ZT_OK);
        at += segment->length;
    }
    assert_int_equal(at, part->content_length);
    assert_memory_equal(read, bytes + first, (size_t)at);
    free(read);
}

static void what_is_here_is_pinned_at_once(void **state)
{
    struct segment segments[] = {
        {.kind = SEGMENT_MEMORY, .length = 100, .bytes = bytes},
        far_segment(100, 3 * FAR_BLOCK),
    };
    const struct answer answer = answer_of(segments, 2);
    struct pinned part;

    (void)state;
    far_set(far, true);
    assert_true(answer_is_elsewhere(&answer) && pinned_is_possible(&answer));
    assert_int_equal(pinned_take(&part, &answer, (struct place){0}, UINT64_MAX, false, NULL),
                     ZT_OK);
    assert_int_equal(part.answer.content_length, answer.content_length);
    assert_false(answer_is_elsewhere(&part.answer));
    assert_true(zt_source_descriptor(part.answer.segments[1].source) >= 0);
    assert_reads(&part.answer, 0);
    assert_int_equal(far->held, 1);
    pinned_release(&part);
    assert_int_equal(far->held, 0);
    assert_int_equal(atomic_load(&far->reads) + atomic_load(&far->waits), 0);
}

static void what_is_not_here_is_not_waited_for(void **state)
{
    struct segment segments[] = {far_segment(0, FAR_BLOCK), far_segment(FAR_BLOCK, FAR_BLOCK)};
    const struct answer answer = answer_of(segments, 2);
    struct pinned part;

    (void)state;
    far_set(far, false);
    far_bring(far, 0, FAR_BLOCK);
    assert_int_equal(pinned_take(&part, &answer, (struct place){0}, UINT64_MAX, false, NULL),
                     ZT_UNAVAILABLE);
    assert_int_equal(far->held, 0);
    assert_int_equal(atomic_load(&far->waits) + far->advised, 0);
}

static void waiting_brings_what_is_asked_for(void **state)
{
    struct segment segments[] = {far_segment(FAR_BLOCK / 2, 4 * FAR_BLOCK)};
    const struct answer answer = answer_of(segments, 1);
    struct place from = {0};
    struct pinned part;

    (void)state;
    far_set(far, false);
    place_advance(&from, &answer, 1000);
    assert_int_equal(pinned_take(&part, &answer, from, FAR_BLOCK, true, NULL), ZT_OK);
    assert_int_equal(part.answer.content_length, FAR_BLOCK);
    assert_reads(&part.answer, FAR_BLOCK / 2 + 1000);
    assert_true(far->is_here[0] && far->is_here[1] && !far->is_here[2]);
    pinned_release(&part);
}

static void failures_release_what_was_pinned(void **state)
{
    struct segment segments[] = {far_segment(0, FAR_BLOCK), far_segment(FAR_BLOCK, FAR_BLOCK)};
    const struct answer answer = answer_of(segments, 2);
    static const enum zt_status failures[] = {ZT_STALE, ZT_UNAVAILABLE};
    struct zt_error error;
    struct pinned part;

    (void)state;
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

static void without_room_it_is_read(void **state)
{
    struct segment segments[] = {{.kind = SEGMENT_MEMORY, .length = 100, .bytes = bytes},
                                 far_segment(100, 4 * FAR_BLOCK)};
    const struct answer answer = answer_of(segments, 2);
    struct place from = {0};
    struct pinned part;

    (void)state;
    far_set(far, false);
    far->has_no_room = true;
    assert_int_equal(pinned_take(&part, &answer, from, FAR_BLOCK, true, NULL), ZT_LIMIT);
    place_advance(&from, &answer, 50);
    assert_int_equal(pinned_read(&part, &answer, from, 70000, NULL), ZT_OK);
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
    assert_int_equal(zt_slice_source(&slice, &far->base, 4096, &source, NULL), ZT_OK);
    return source;
}

static void slices_are_gathered_from_what_is_pinned(void **state)
{
    struct zt_source *slice = slice_of_rows(":,100:1124", 1000);
    struct segment segment = {
        .kind = SEGMENT_SOURCE, .length = zt_source_size(slice), .source = slice};
    const struct answer answer = answer_of(&segment, 1);
    uint8_t run[1024];
    struct place from = {0};
    struct pinned part;

    (void)state;
    far_set(far, false);
    assert_true(answer_is_elsewhere(&answer) && pinned_is_possible(&answer));
    place_advance(&from, &answer, 512 * 1024);
    assert_int_equal(pinned_take(&part, &answer, from, 1024, true, NULL), ZT_OK);
    assert_true(part.answer.segments[0].source != slice);
    assert_int_equal(zt_source_read_at(part.answer.segments[0].source,
                                       part.answer.segments[0].offset, run, sizeof(run), NULL),
                     ZT_OK);
    assert_memory_equal(run, bytes + 4096 + 512 * 8192 + 100, sizeof(run));
    assert_int_equal(atomic_load(&far->reads), 0);
    /* Only what the runs touch. */
    assert_true(far->is_here[4] && !far->is_here[3] && !far->is_here[5]);
    pinned_release(&part);
    zt_source_close(slice);
}

/* What lies between would be brought too. */
static void slices_of_scattered_runs_are_not_pinned(void **state)
{
    const uint64_t shape[] = {4, 5 << 20};
    const struct zt_slice_tensor tensor = {shape, 2, ZT_U8, ZT_LOGICAL_NONE};
    struct segment segment = {.kind = SEGMENT_SOURCE};
    struct answer answer;
    struct zt_slice slice;

    (void)state;
    assert_int_equal(zt_slice_parse(&tensor, (struct zt_text){":,:4096", 7}, &slice, NULL),
                     ZT_SLICE_FITS);
    assert_int_equal(zt_slice_source(&slice, &far->base, 0, &segment.source, NULL), ZT_OK);
    segment.length = slice.length;
    answer = answer_of(&segment, 1);
    assert_true(answer_is_elsewhere(&answer));
    assert_false(pinned_is_possible(&answer));
    zt_source_close(segment.source);
}

static void filling_the_file_does_not_change_the_stamp(void **state)
{
    struct segment segments[] = {far_segment(0, FAR_BLOCK)};
    const struct answer answer = answer_of(segments, 1);
    struct pinned part;
    uint64_t before;

    (void)state;
    far_set(far, false);
    assert_int_equal(pinned_take(&part, &answer, (struct place){0}, FAR_BLOCK, true, NULL), ZT_OK);
    before = answer_stamp(&part.answer);
    /* The clock of files ticks every few milliseconds. */
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    far_bring(far, FAR_BLOCK, FAR_BLOCK);
    assert_true(answer_stamp(&part.answer) == before);
    assert_int_equal(ftruncate(zt_source_descriptor(far->view), 100), 0);
    assert_true(answer_stamp(&part.answer) != before);
    pinned_release(&part);
    far_set(far, false);
}

/* --- part after part --- */

static struct server server;
static struct bring_in bring;
static pthread_mutex_t done_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done_changed = PTHREAD_COND_INITIALIZER;
static bool is_done;
static unsigned jobs; /* that were done since begin */

static void on_done(struct job *job)
{
    (void)job;
    pthread_mutex_lock(&done_lock);
    is_done = true;
    jobs++;
    pthread_cond_signal(&done_changed);
    pthread_mutex_unlock(&done_lock);
}

static void wait_for_job(void)
{
    pthread_mutex_lock(&done_lock);
    while (!is_done)
        pthread_cond_wait(&done_changed, &done_lock);
    is_done = false;
    pthread_mutex_unlock(&done_lock);
    bring_in_done(&bring);
}

static void begin(const struct answer *answer)
{
    bring = (struct bring_in){.job = {.done = on_done}};
    bring_in_begin(&bring, answer);
    jobs = 0;
    server.workers = workers_start(4);
    assert_non_null(server.workers);
}

static void end(void)
{
    bring_in_end(&bring);
    workers_stop(server.workers);
    assert_int_equal(far->held, 0);
}

/* Takes all parts, in order. Returns their number. */
static unsigned take_all(uint64_t first)
{
    uint64_t at = 0;
    unsigned parts = 0;

    while (at < bring.answer->content_length) {
        const struct answer *part;

        bring_in_continue(&bring, &server);
        part = bring_in_part(&bring);
        if (part == NULL) {
            assert_true(bring.runs);
            wait_for_job();
            continue;
        }
        assert_reads(part, first + at);
        at += part->content_length;
        assert_int_equal(bring_in_is_last(&bring), at == bring.answer->content_length);
        parts++;
        if (at < bring.answer->content_length)
            bring_in_drop(&bring);
    }
    if (bring.runs)
        wait_for_job();
    return parts;
}

static void cold_answers_come_in_growing_parts(void **state)
{
    struct segment segments[] = {far_segment(777, LENGTH - 5 * FAR_BLOCK)};
    const struct answer answer = answer_of(segments, 1);

    (void)state;
    far_set(far, false);
    far->punches = true;
    begin(&answer);
    assert_in_range(take_all(777), 5, 12);
    /* Nothing behind the range. */
    assert_int_equal(far->asked_end, 777 + LENGTH - 5 * FAR_BLOCK);
    end();
}

static void warm_answers_take_no_job(void **state)
{
    struct segment segments[] = {far_segment(0, LENGTH)};
    const struct answer answer = answer_of(segments, 1);

    (void)state;
    far_set(far, true);
    begin(&answer);
    assert_int_equal(take_all(0), 2);
    assert_int_equal(atomic_load(&far->waits) + far->advised, 0);
    end();
}

static void what_came_meanwhile_keeps_more_on_its_way(void **state)
{
    struct segment segments[] = {far_segment(0, LENGTH)};
    const struct answer answer = answer_of(segments, 1);

    (void)state;
    far_set(far, false);
    far->advice_brings = true;
    begin(&answer);
    take_all(0);
    assert_in_range(atomic_load(&far->waits), 0, 1);
    assert_int_equal(jobs, 1);
    end();
}

static void small_answers_come_whole(void **state)
{
    struct segment segments[] = {far_segment(5, BRING_IN_WHOLE)};
    const struct answer answer = answer_of(segments, 1);

    (void)state;
    far_set(far, false);
    begin(&answer);
    bring_in_first(&bring, &server);
    wait_for_job();
    assert_int_equal(bring_in_part(&bring)->content_length, BRING_IN_WHOLE);
    bring_in_first(&bring, &server);
    assert_false(bring.runs);
    end();
}

static void failing_in_the_middle_ends_the_parts(void **state)
{
    struct segment segments[] = {far_segment(0, LENGTH)};
    const struct answer answer = answer_of(segments, 1);
    uint64_t got = 0;

    (void)state;
    far_set(far, false);
    far->fails = ZT_STALE;
    far->fails_at = 9 * FAR_BLOCK;
    begin(&answer);
    while (bring_in_error(&bring) == NULL || bring_in_part(&bring) != NULL) {
        bring_in_continue(&bring, &server);
        if (bring.runs)
            wait_for_job();
        if (bring_in_part(&bring) != NULL) {
            got += bring_in_part(&bring)->content_length;
            bring_in_drop(&bring);
        }
    }
    assert_int_equal(bring_in_error(&bring)->status, ZT_STALE);
    assert_in_range(got, FAR_BLOCK, 9 * FAR_BLOCK);
    end();
}

static void without_room_the_rest_is_read(void **state)
{
    struct segment segments[] = {far_segment(0, LENGTH)};
    const struct answer answer = answer_of(segments, 1);

    (void)state;
    far_set(far, false);
    far->has_no_room = true;
    begin(&answer);
    bring_in_first(&bring, &server);
    wait_for_job();
    /* Nothing has been sent: there are better ways. */
    assert_int_equal(bring_in_error(&bring)->status, ZT_LIMIT);
    end();
    far->full_at = 10 * FAR_BLOCK;
    begin(&answer);
    assert_true(take_all(0) > 100);
    assert_true(atomic_load(&far->reads) > 100);
    end();
}

static int open_far(void **state)
{
    (void)state;
    bytes = malloc(LENGTH);
    for (size_t i = 0; bytes != NULL && i < LENGTH; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13) | 1;
    far = bytes != NULL ? far_open(bytes, LENGTH) : NULL;
    return far != NULL ? 0 : -1;
}

static int close_far(void **state)
{
    (void)state;
    zt_source_close(&far->base);
    free(bytes);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_here_is_pinned_at_once),
        cmocka_unit_test(what_is_not_here_is_not_waited_for),
        cmocka_unit_test(waiting_brings_what_is_asked_for),
        cmocka_unit_test(failures_release_what_was_pinned),
        cmocka_unit_test(without_room_it_is_read),
        cmocka_unit_test(slices_are_gathered_from_what_is_pinned),
        cmocka_unit_test(slices_of_scattered_runs_are_not_pinned),
        cmocka_unit_test(filling_the_file_does_not_change_the_stamp),
        cmocka_unit_test(cold_answers_come_in_growing_parts),
        cmocka_unit_test(warm_answers_take_no_job),
        cmocka_unit_test(what_came_meanwhile_keeps_more_on_its_way),
        cmocka_unit_test(small_answers_come_whole),
        cmocka_unit_test(failing_in_the_middle_ends_the_parts),
        cmocka_unit_test(without_room_the_rest_is_read),
    };

    return cmocka_run_group_tests(tests, open_far, close_far);
}
