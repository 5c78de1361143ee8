/* A slice is pinned from its first to its last byte and gathered from the resulting local file. If
 * the gaps between runs are smaller than a block, this fetches only blocks that contain runs. */
#include "http/body/pinned.h"

#include <stdlib.h>
#include <string.h>

/* The maximum per part: each segment may need a pin. */
#define SEGMENTS_MOST 256
/* The maximum range of a file for one slice; a longer slice is split into several parts. */
#define SPAN_MOST ((uint64_t)64 << 20)
/* The size in which a store delivers bytes. */
#define PIECE_BYTES ((uint64_t)8 << 20)
/* The maximum gap between two runs. Cache blocks are larger, so a gap never fetches a block that
 * contains no run. */
#define GAP_MOST ((uint64_t)1 << 20)

/* --- what is where --- */

static bool is_remote(const struct segment *segment)
{
    const struct zt_slice *slice;
    const struct zt_source *origin = segment_origin(segment, &slice);

    return origin != NULL && zt_source_is_remote(origin);
}

bool answer_is_remote(const struct answer *answer)
{
    for (size_t i = 0; i < answer->segment_count; i++)
        if (is_remote(&answer->segments[i]))
            return true;
    return false;
}

static bool is_dense(const struct zt_slice *slice)
{
    uint64_t extent = slice->run_bytes;

    for (unsigned i = slice->loop_count; i-- > 0;) {
        if (slice->loops[i].stride_bytes - extent >= GAP_MOST)
            return false;
        extent += (slice->loops[i].count - 1) * slice->loops[i].stride_bytes;
    }
    return slice->run_bytes <= SPAN_MOST;
}

bool pinned_is_possible(const struct answer *answer)
{
    for (size_t i = 0; i < answer->segment_count; i++) {
        const struct zt_slice *slice;
        const struct zt_source *origin = segment_origin(&answer->segments[i], &slice);

        if (origin == NULL || zt_source_descriptor(origin) >= 0)
            continue;
        if (!zt_source_is_remote(origin) || (slice != NULL && !is_dense(slice)))
            return false;
    }
    return true;
}

/* Returns the range that a segment's bytes span in its origin. */
static struct zt_slice_run span_of(const struct segment *segment, uint64_t within, uint64_t length)
{
    const uint64_t offset = segment->offset + within;
    struct zt_slice_run first = {offset, length};
    struct zt_slice_run last;
    const struct zt_slice *slice;

    segment_origin(segment, &slice);
    if (slice == NULL)
        return first;
    zt_slice_source_runs(segment->source, offset, 1, &first, 1);
    zt_slice_source_runs(segment->source, offset + length - 1, 1, &last, 1);
    assert(last.offset >= first.offset);
    return (struct zt_slice_run){first.offset, last.offset + 1 - first.offset};
}

/* Shortens a large piece so that it ends at a boundary of the store's pieces. */
static uint64_t even(const struct segment *segment, uint64_t within, uint64_t length)
{
    const uint64_t over = (segment->offset + within + length) % PIECE_BYTES;

    return length >= PIECE_BYTES && over < length ? length - over : length;
}

/* Returns how many bytes of the segment at a place belong to a part that may still take `most`
 * bytes. */
static uint64_t share(const struct answer *answer, const struct place *place, uint64_t most)
{
    const struct segment *segment = place_segment(place, answer);
    const uint64_t left = segment->length - place->within;
    uint64_t length = left < most ? left : most;
    const struct zt_slice *slice;

    segment_origin(segment, &slice);
    if (slice == NULL && length < left)
        length = even(segment, place->within, length);
    while (slice != NULL && length > 1 &&
           span_of(segment, place->within, length).length > SPAN_MOST)
        length /= 2;
    return length;
}

static void advise(const struct answer *answer, const struct place *from, uint64_t length)
{
    const struct segment *segment = place_segment(from, answer);
    const struct zt_slice *slice;
    struct zt_source *origin = segment_origin(segment, &slice);
    struct zt_slice_run span;

    if (origin == NULL || !zt_source_is_remote(origin))
        return;
    span = span_of(segment, from->within, length);
    if (slice != NULL)
        zt_source_advise(origin, span.offset, span.length);
    else
        zt_source_read_on(origin, span.offset, segment->length - from->within, span.length);
}

void answer_advise(const struct answer *answer, struct place from, uint64_t length)
{
    for (unsigned i = 0; i < SEGMENTS_MOST && length > 0 && from.segment < answer->segment_count;
         i++) {
        const uint64_t piece = share(answer, &from, length);

        advise(answer, &from, piece);
        length -= piece;
        place_advance(&from, answer, piece);
    }
}

/* --- making --- */

static size_t count_segments(const struct answer *answer, struct place from, uint64_t most)
{
    size_t count = 0;

    while (count < SEGMENTS_MOST && most > 0 && from.segment < answer->segment_count) {
        const uint64_t length = share(answer, &from, most);

        most -= length;
        place_advance(&from, answer, length);
        count++;
    }
    return count;
}

static bool allocate(struct pinned *part, size_t count)
{
    assert(count > 0 && part->answer.segments == NULL && part->bytes == NULL);
    part->answer.segments = calloc(count, sizeof(*part->answer.segments));
    part->pins = calloc(count, sizeof(*part->pins));
    part->slices = calloc(count, sizeof(struct zt_source *));
    return part->answer.segments != NULL && part->pins != NULL && part->slices != NULL;
}

/* Turns a segment of a remote source into a segment of a local file. */
static enum zt_status pin(struct pinned *part, struct segment *segment, bool wait,
                          struct zt_error *error)
{
    const struct zt_slice_run span = span_of(segment, 0, segment->length);
    struct zt_pin *pin = &part->pins[part->pin_count];
    const struct zt_slice *slice;
    struct zt_source *origin = segment_origin(segment, &slice);
    enum zt_status status = zt_source_pin(origin, span.offset, span.length, wait, pin, error);

    if (status != ZT_OK)
        return status;
    part->pin_count++;
    segment->is_pinned = true;
    if (slice == NULL) {
        segment->source = pin->view;
        return ZT_OK;
    }
    status =
        zt_slice_source_over(segment->source, pin->view, &part->slices[part->slice_count], error);
    if (status == ZT_OK)
        segment->source = part->slices[part->slice_count++];
    return status;
}

/* Adds `length` bytes of the segment at a place. */
static enum zt_status add(struct pinned *part, const struct segment *from, uint64_t within,
                          uint64_t length, bool wait, struct zt_error *error)
{
    struct segment *segment = &part->answer.segments[part->answer.segment_count];
    enum zt_status status = ZT_OK;

    *segment = *from;
    segment->start = part->answer.content_length;
    segment->length = length;
    if (segment->kind == SEGMENT_MEMORY)
        segment->bytes += within;
    else
        segment->offset += within;
    if (is_remote(segment))
        status = pin(part, segment, wait, error);
    if (status != ZT_OK)
        return status;
    part->answer.segment_count++;
    part->answer.content_length += length;
    return ZT_OK;
}

static enum zt_status no_memory(struct zt_error *error)
{
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a part of an answer");
}

enum zt_status pinned_take(struct pinned *out_part, const struct answer *answer, struct place from,
                           uint64_t most, bool wait, struct zt_error *error)
{
    const size_t count = count_segments(answer, from, most);
    struct pinned part = {.pin_count = 0};
    enum zt_status status = allocate(&part, count) ? ZT_OK : no_memory(error);

    assert(most > 0 && from.segment < answer->segment_count);
    /* Announce all segments together, since the pins wait one after another. */
    if (wait && count > 1)
        answer_advise(answer, from, most);
    for (size_t i = 0; status == ZT_OK && i < count; i++) {
        const uint64_t length = share(answer, &from, most);

        status = add(&part, place_segment(&from, answer), from.within, length, wait, error);
        most -= length;
        place_advance(&from, answer, length);
    }
    if (status == ZT_OK)
        *out_part = part;
    else
        pinned_release(&part);
    return status;
}

/* --- reading --- */

static enum zt_status read_all(const struct answer *answer, struct place from, uint8_t *to,
                               uint64_t length, struct zt_error *error)
{
    while (length > 0) {
        const struct segment *segment = place_segment(&from, answer);
        const uint64_t left = segment->length - from.within;
        const uint64_t piece = left < length ? left : length;
        enum zt_status status = ZT_OK;

        if (segment->kind == SEGMENT_MEMORY)
            memcpy(to, segment->bytes + from.within, (size_t)piece);
        else
            status = zt_source_read_at(segment->source, segment->offset + from.within, to,
                                       (size_t)piece, error);
        if (status != ZT_OK)
            return status;
        to += piece;
        length -= piece;
        place_advance(&from, answer, piece);
    }
    return ZT_OK;
}

enum zt_status pinned_read(struct pinned *out_part, const struct answer *answer, struct place from,
                           uint64_t most, struct zt_error *error)
{
    const uint64_t left = answer->content_length - from.at;
    const uint64_t length = left < most ? left : most;
    struct pinned part = {.pin_count = 0};
    enum zt_status status;

    assert(length > 0);
    part.bytes = malloc((size_t)length);
    part.answer.segments = calloc(1, sizeof(*part.answer.segments));
    status = part.bytes != NULL && part.answer.segments != NULL
                 ? read_all(answer, from, part.bytes, length, error)
                 : no_memory(error);
    if (status != ZT_OK) {
        pinned_release(&part);
        return status;
    }
    part.answer.segments[0] =
        (struct segment){.kind = SEGMENT_MEMORY, .length = length, .bytes = part.bytes};
    part.answer.segment_count = 1;
    part.answer.content_length = length;
    *out_part = part;
    return ZT_OK;
}

enum zt_status pinned_take_arrived(struct pinned *out_part, const struct answer *answer,
                                   struct place from, uint64_t most, struct zt_error *error)
{
    const struct segment *segment = place_segment(&from, answer);
    const uint64_t left = segment->length - from.within;
    const size_t room = (size_t)(left < most ? left : most);
    struct pinned part = {.pin_count = 0};
    const struct zt_slice *slice;
    struct zt_source *origin = segment_origin(segment, &slice);
    size_t length;

    assert(origin != NULL && slice == NULL && room > 0);
    part.bytes = malloc(room);
    part.answer.segments = calloc(1, sizeof(*part.answer.segments));
    if (part.bytes == NULL || part.answer.segments == NULL) {
        pinned_release(&part);
        return no_memory(error);
    }
    length = zt_source_take_arrived(origin, segment->offset + from.within, part.bytes, room);
    if (length == 0) {
        pinned_release(&part);
        return zt_fail(error, ZT_UNAVAILABLE, NULL, segment->offset, "the bytes have not arrived");
    }
    part.answer.segments[0] =
        (struct segment){.kind = SEGMENT_MEMORY, .length = length, .bytes = part.bytes};
    part.answer.segment_count = 1;
    part.answer.content_length = length;
    *out_part = part;
    return ZT_OK;
}

/* --- asking --- */

/* Returns how many bytes of a piece of a segment may be given to a client. */
static uint64_t pass(const struct segment *segment, uint64_t within, uint64_t length)
{
    const struct zt_slice *slice;
    struct zt_source *origin = segment_origin(segment, &slice);
    struct zt_slice_run span;
    uint64_t passed;

    if (!is_remote(segment))
        return length;
    span = span_of(segment, within, length);
    passed = zt_source_pass(origin, span.offset, span.length);
    if (slice == NULL)
        return passed;
    return passed == span.length ? length : 0;
}

uint64_t answer_pass(const struct answer *answer, struct place from, uint64_t most)
{
    uint64_t passed = 0;

    for (unsigned i = 0; i < SEGMENTS_MOST && most > 0 && from.segment < answer->segment_count;
         i++) {
        const uint64_t piece = share(answer, &from, most);
        const uint64_t length = pass(place_segment(&from, answer), from.within, piece);

        passed += length;
        if (length < piece)
            break;
        most -= piece;
        place_advance(&from, answer, piece);
    }
    return passed;
}

bool answer_can_await(const struct answer *answer, struct place from)
{
    const struct zt_slice *slice;
    const struct zt_source *origin = segment_origin(place_segment(&from, answer), &slice);

    if (origin == NULL || !zt_source_is_remote(origin))
        return true;
    return slice == NULL && zt_source_can_await(origin);
}

void answer_await(const struct answer *answer, struct place from, uint64_t length, uint64_t least,
                  struct zt_source_waiter *waiter)
{
    const struct segment *segment = place_segment(&from, answer);
    const struct zt_slice_run span = span_of(segment, from.within, share(answer, &from, length));
    const struct zt_slice *slice;
    struct zt_source *origin = segment_origin(segment, &slice);
    uint64_t passed;

    assert(is_remote(segment) && span.length > 0 && least > 0);
    /* A slice needs all of its span. */
    if (slice != NULL || least > span.length)
        least = span.length;
    passed = zt_source_pass(origin, span.offset, span.length);
    if (passed < least)
        zt_source_await(origin, span.offset + passed, span.length - passed, 1, waiter);
    else
        zt_source_await(origin, span.offset, span.length, least, waiter);
}

void pinned_release(struct pinned *part)
{
    for (size_t i = 0; i < part->slice_count; i++)
        zt_source_close(part->slices[i]);
    for (size_t i = 0; i < part->pin_count; i++)
        zt_pin_release(&part->pins[i]);
    free(part->slices);
    free(part->pins);
    free(part->answer.segments);
    free(part->bytes);
    *part = (struct pinned){.pin_count = 0};
}
