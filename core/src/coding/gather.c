/* Gathering arrays into row-major order, by blocks of bounded size.
 *
 * The elements of a block are read in the order of the file: along the axis with the closest
 * neighbours first, and along each axis only as far as the block goes. Elements close together in
 * the file are read together. The positions of a deflated stream must ascend: an array that does
 * not allow this is inflated into memory first. */
#include "coding/gather.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/byte_order.h"
#include "coding/gather_axes.h"
#include "coding/inflate_stream.h"

#define BLOCK_MAX_STORED  ((size_t)8 << 20)
#define BLOCK_MAX_DEFLATE ((size_t)64 << 20)
/* Enough if blocks need not be large to be read in the order of the file. */
#define BLOCK_MAX_ASCENDING ((size_t)1 << 20)
/* Together with a block, no more than a block of a deflated array. */
#define INFLATED_MAX (BLOCK_MAX_DEFLATE - BLOCK_MAX_STORED)
/* Stored bytes held at once. */
#define WINDOW_SIZE ((size_t)256 << 10)
/* Runs of stored bytes are read together if they are at most a page apart. */
#define GAP_MAX 4096
/* Runs of this length are read where they belong, not into the window. */
#define DIRECT_MIN ((uint64_t)64 << 10)
#define WORD_MAX   8

struct zt_gather {
    const struct zt_component *component;
    struct zt_source *source;
    uint64_t base;                    /* the array's first byte in source */
    struct zt_inflate_stream *stream; /* NULL: source has the bytes */
    /* The inflated bytes, if they are held, and a source over them. */
    uint8_t *inflated;
    struct zt_source *inflated_source;
    struct gather_axes axes;
    uint64_t gathered; /* bytes of all blocks so far, including the current one */
    uint8_t *block;
    size_t block_length;
    size_t block_position;
    uint64_t window_at; /* relative to the array's first byte */
    size_t window_length;
    uint8_t *window;
};

/* Elements along one axis. Positions are in bytes. */
struct run {
    uint64_t at; /* of the first element, as stored */
    uint64_t to; /* of the first element in the block */
    uint64_t count;
    uint64_t step;
    uint64_t row;
    uint64_t near_end; /* up to here the stored bytes will be needed too */
};

bool zt_gather_is_needed(const struct zt_component *component)
{
    const struct zt_arrangement *arrangement = component->arrangement;

    if (component->encoding == ZT_ENCODING_STRIDED)
        return true;
    return zt_component_is_transposed(component) ||
           (arrangement != NULL &&
            (arrangement->partial || arrangement->strides != NULL || arrangement->flip != 0));
}

/* --- opening --- */

static uint64_t skipped_bytes(const struct zt_component *component)
{
    const struct zt_arrangement *arrangement = component->arrangement;

    return arrangement != NULL ? arrangement->lead_bytes + arrangement->skipped_bytes : 0;
}

static enum zt_status start_stream(struct zt_gather *gather, struct zt_error *error)
{
    const struct zt_component *component = gather->component;
    uint64_t skipped = skipped_bytes(component);
    enum zt_status status = zt_inflate_stream_start(gather->stream, component->offset,
                                                    component->length, skipped + gather->axes.span,
                                                    component->arrangement->partial, error);

    gather->window_at = 0;
    gather->window_length = 0;
    while (status == ZT_OK && skipped > 0) {
        size_t part = skipped < WINDOW_SIZE ? (size_t)skipped : WINDOW_SIZE;
        size_t length = 0;

        status = zt_inflate_stream_read(gather->stream, gather->window, part, &length, error);
        assert(length <= skipped);
        skipped -= length;
    }
    return status;
}

/* Continues with a source over the inflated bytes. */
static enum zt_status inflate_whole(struct zt_gather *gather, struct zt_error *error)
{
    const uint64_t span = gather->axes.span;
    size_t length = 0;
    enum zt_status status;

    if (span > INFLATED_MAX)
        return zt_fail(error, ZT_LIMIT, NULL, gather->component->offset,
                       "a view of %" PRIu64 " bytes of a deflated storage, with elements that "
                       "overlap or repeat, cannot be gathered: at most %zu bytes are inflated",
                       span, INFLATED_MAX);
    gather->inflated = malloc((size_t)span);
    if (gather->inflated == NULL)
        return zt_fail_memory(error, "gathering an array");
    status = zt_inflate_stream_read(gather->stream, gather->inflated, (size_t)span, &length, error);
    if (status == ZT_OK)
        status =
            zt_source_from_memory(gather->inflated, (size_t)span, &gather->inflated_source, error);
    if (status != ZT_OK)
        return status;
    assert(length == span);
    zt_inflate_stream_free(gather->stream);
    gather->stream = NULL;
    gather->source = gather->inflated_source;
    gather->base = 0;
    return ZT_OK;
}

static enum zt_status open_stream(struct zt_gather *gather, struct zt_error *error)
{
    enum zt_status status = zt_inflate_stream_new(gather->source, &gather->stream, error);

    if (status == ZT_OK)
        status = start_stream(gather, error);
    if (status == ZT_OK && gather->axes.rank > 0 && !gather->axes.ascends &&
        !gather->axes.block_ascends) {
        status = inflate_whole(gather, error);
        gather_axes_split(&gather->axes, BLOCK_MAX_STORED);
    }
    return status;
}

static size_t block_max_of(const struct zt_gather *gather)
{
    if (gather->axes.ascends)
        return BLOCK_MAX_ASCENDING;
    return gather->component->encoding == ZT_ENCODING_DEFLATE ? BLOCK_MAX_DEFLATE
                                                              : BLOCK_MAX_STORED;
}

static enum zt_status set_up(struct zt_gather *gather, struct zt_error *error)
{
    struct gather_axes *axes = &gather->axes;
    const bool is_deflated = gather->component->encoding == ZT_ENCODING_DEFLATE;
    enum zt_status status = ZT_OK;

    gather_axes_find(gather->component, axes);
    assert(axes->bytes == gather->component->decoded_length);
    if (axes->rank > 0)
        gather_axes_split(axes, block_max_of(gather));
    assert(is_deflated || axes->span <= gather->component->length);
    gather->window = malloc(WINDOW_SIZE);
    if (gather->window == NULL)
        return zt_fail_memory(error, "gathering an array");
    if (is_deflated)
        status = open_stream(gather, error);
    if (status != ZT_OK || axes->rank == 0)
        return status;
    gather->block = malloc((size_t)(axes->block_steps * axes->axes[axes->split].row));
    return gather->block != NULL ? ZT_OK : zt_fail_memory(error, "gathering an array");
}

enum zt_status zt_gather_open(const struct zt_component *component, struct zt_source *source,
                              struct zt_gather **out_gather, struct zt_error *error)
{
    struct zt_gather *gather = calloc(1, sizeof(*gather));
    enum zt_status status;

    if (gather == NULL)
        return zt_fail_memory(error, "a decoder");
    gather->component = component;
    gather->source = source;
    gather->base = component->offset;
    status = set_up(gather, error);
    if (status != ZT_OK) {
        zt_gather_close(gather);
        return status;
    }
    *out_gather = gather;
    return ZT_OK;
}

/* --- stored bytes --- */

/* Inflates until the window holds the bytes, dropping earlier ones. */
static enum zt_status fetch_inflated(struct zt_gather *gather, uint64_t at, size_t length,
                                     struct zt_error *error)
{
    assert(at >= gather->window_at && length <= WINDOW_SIZE);
    while (gather->window_at + gather->window_length < at + length) {
        uint64_t behind = at - gather->window_at;
        size_t drop = behind < gather->window_length ? (size_t)behind : gather->window_length;
        size_t got = 0;
        enum zt_status status;

        gather->window_length -= drop;
        memmove(gather->window, gather->window + drop, gather->window_length);
        gather->window_at += drop;
        status = zt_inflate_stream_read(gather->stream, gather->window + gather->window_length,
                                        WINDOW_SIZE - gather->window_length, &got, error);
        if (status != ZT_OK)
            return status;
        assert(got > 0);
        gather->window_length += got;
    }
    return ZT_OK;
}

static enum zt_status fetch_stored(struct zt_gather *gather, uint64_t at, size_t length,
                                   uint64_t near_end, struct zt_error *error)
{
    uint64_t part = near_end > at + length ? near_end - at : length;
    enum zt_status status;

    if (at >= gather->window_at && at + length <= gather->window_at + gather->window_length)
        return ZT_OK;
    part = part < WINDOW_SIZE ? part : WINDOW_SIZE;
    gather->window_length = 0;
    status =
        zt_source_read_at(gather->source, gather->base + at, gather->window, (size_t)part, error);
    if (status != ZT_OK)
        return status;
    gather->window_at = at;
    gather->window_length = (size_t)part;
    return ZT_OK;
}

/* Reads length bytes (at most a window) at a position of the array into the window. Those of a
 * stream must ascend within a block. */
static enum zt_status fetch(struct zt_gather *gather, uint64_t at, size_t length, uint64_t near_end,
                            const uint8_t **out_bytes, struct zt_error *error)
{
    enum zt_status status = gather->stream != NULL
                                ? fetch_inflated(gather, at, length, error)
                                : fetch_stored(gather, at, length, near_end, error);

    if (status == ZT_OK)
        *out_bytes = gather->window + (at - gather->window_at);
    return status;
}

/* --- gathering --- */

#define SPREAD(width)                                          \
    for (size_t i = 0; i < count; i++)                         \
        memcpy(to + i * to_step, from + i * from_step, width); \
    break

/* Copies count elements, from_step bytes apart, to places to_step bytes apart. */
static void spread(uint8_t *to, size_t to_step, const uint8_t *from, size_t from_step, size_t count,
                   size_t width)
{
    if (from_step == width && to_step == width) {
        memcpy(to, from, count * width);
        return;
    }
    switch (width) {
    case 1:
        SPREAD(1);
    case 2:
        SPREAD(2);
    case 4:
        SPREAD(4);
    case 8:
        SPREAD(8);
    default:
        assert(width == 16);
        SPREAD(16);
    }
}

/* How many elements of a run are fetched at once: many if they are near each other. */
static uint64_t most_at_once(const struct run *run)
{
    if (run->step == 0)
        return UINT64_MAX;
    return run->step <= GAP_MAX ? WINDOW_SIZE / run->step : 1;
}

/* Whether a run can be read into the block directly. */
static bool is_direct(const struct zt_gather *gather, const struct run *run)
{
    const size_t width = gather->axes.element_bytes;

    return gather->stream == NULL && run->step == width && run->row == width &&
           run->count * width >= DIRECT_MIN;
}

static enum zt_status gather_run(struct zt_gather *gather, struct run run, struct zt_error *error)
{
    const size_t width = gather->axes.element_bytes;
    const uint64_t most = most_at_once(&run);

    assert(most > 0);
    if (is_direct(gather, &run))
        return zt_source_read_at(gather->source, gather->base + run.at, gather->block + run.to,
                                 (size_t)run.count * width, error);
    while (run.count > 0) {
        size_t count = run.count < most ? (size_t)run.count : (size_t)most;
        size_t span = (count - 1) * (size_t)run.step + width;
        const uint8_t *from;
        enum zt_status status = fetch(gather, run.at, span, run.near_end, &from, error);

        if (status != ZT_OK)
            return status;
        spread(gather->block + run.to, (size_t)run.row, from, count > 1 ? (size_t)run.step : 0,
               count, width);
        run.at += count * run.step;
        run.to += count * run.row;
        run.count -= count;
    }
    return ZT_OK;
}

/* The block that is being gathered: how many steps along each axis, in the order of reading. */
struct block {
    uint64_t counts[ZT_RANK_MAX];
    uint64_t index[ZT_RANK_MAX];
    unsigned near_axes; /* so many axes, the fastest ones, leave no gaps worth skipping */
    uint64_t near_span; /* bytes of a pass over them */
};

static const struct gather_axis *axis_of(const struct zt_gather *gather, unsigned place)
{
    return &gather->axes.axes[gather->axes.order[place]];
}

static void measure_block(const struct zt_gather *gather, uint64_t steps, struct block *out_block)
{
    const struct gather_axes *axes = &gather->axes;
    bool is_near = true;

    *out_block = (struct block){.near_span = axes->element_bytes};
    for (unsigned i = 0; i < axes->order_count; i++) {
        const struct gather_axis *axis = axis_of(gather, i);

        out_block->counts[i] = axes->order[i] == axes->split ? steps : axis->extent;
        is_near = is_near && axis->step <= out_block->near_span + GAP_MAX;
        if (is_near) {
            out_block->near_axes = i + 1;
            out_block->near_span += (out_block->counts[i] - 1) * axis->step;
        }
    }
}

/* Steps to the next run. False after the last. */
static bool next_run(const struct zt_gather *gather, struct block *block, struct run *run)
{
    for (unsigned i = 1; i < gather->axes.order_count; i++) {
        const struct gather_axis *axis = axis_of(gather, i);

        run->at += axis->step;
        run->to += axis->row;
        if (++block->index[i] < block->counts[i]) {
            if (i >= block->near_axes)
                run->near_end = run->at + block->near_span;
            return true;
        }
        run->at -= block->counts[i] * axis->step;
        run->to -= block->counts[i] * axis->row;
        block->index[i] = 0;
    }
    return false;
}

static enum zt_status gather_block(struct zt_gather *gather, uint64_t at, uint64_t steps,
                                   struct zt_error *error)
{
    const struct gather_axis *fastest = axis_of(gather, 0);
    struct block block;
    struct run run = {.at = at, .step = fastest->step, .row = fastest->row};
    enum zt_status status;

    assert(steps > 0);
    measure_block(gather, steps, &block);
    run.count = block.counts[0];
    /* Without near axes every element is fetched alone. */
    run.near_end = block.near_axes > 0 ? at + block.near_span : 0;
    do {
        status = gather_run(gather, run, error);
    } while (status == ZT_OK && next_run(gather, &block, &run));
    return status;
}

/* --- values --- */

static bool has_sign_bit(enum zt_dtype dtype)
{
    return dtype == ZT_F64 || dtype == ZT_F32 || dtype == ZT_F16 || dtype == ZT_BF16;
}

/* Negates the words of a block, all or every second. Floating-point words have a sign; the others
 * are two's complement. */
static void flip_words(uint8_t *bytes, size_t length, enum zt_dtype dtype, enum zt_sign_flip flip)
{
    const unsigned width = zt_dtype_width(dtype);
    const size_t step = flip == ZT_FLIP_ALL ? width : 2 * (size_t)width;
    const bool is_float = has_sign_bit(dtype);

    assert(width > 0 && width <= sizeof(uint64_t));
    for (size_t at = flip == ZT_FLIP_IMAGINARY ? width : 0; at + width <= length; at += step) {
        uint64_t word = 0;

        memcpy(&word, bytes + at, width);
        word = is_float ? word ^ (uint64_t)1 << (8 * width - 1) : 0 - word;
        memcpy(bytes + at, &word, width);
    }
}

static void adapt_block(struct zt_gather *gather)
{
    const struct zt_component *component = gather->component;
    const enum zt_dtype dtype = (enum zt_dtype)component->dtype;

    if (zt_component_is_swapped(component))
        zt_words_reverse(gather->block, gather->block_length, zt_dtype_width(dtype));
    if (component->arrangement != NULL && component->arrangement->flip != ZT_FLIP_NONE)
        flip_words(gather->block, gather->block_length, dtype,
                   (enum zt_sign_flip)component->arrangement->flip);
}

/* --- block by block --- */

static enum zt_status next_block(struct zt_gather *gather, struct zt_error *error)
{
    const struct gather_axes *axes = &gather->axes;
    const struct gather_axis *split = &axes->axes[axes->split];
    uint64_t left = split->extent - gather->gathered / split->row % split->extent;
    uint64_t steps = left < axes->block_steps ? left : axes->block_steps;
    uint64_t at = gather_axes_stored(axes, gather->gathered);
    enum zt_status status = ZT_OK;

    if (gather->stream != NULL && at < gather->window_at)
        status = start_stream(gather, error);
    if (status == ZT_OK)
        status = gather_block(gather, at, steps, error);
    if (status != ZT_OK)
        return status;
    gather->block_length = (size_t)(steps * split->row);
    gather->block_position = 0;
    gather->gathered += gather->block_length;
    assert(gather->gathered <= axes->bytes);
    adapt_block(gather);
    return ZT_OK;
}

enum zt_status zt_gather_read(struct zt_gather *gather, uint8_t *buffer, size_t capacity,
                              size_t *out_length, struct zt_error *error)
{
    size_t left;
    size_t part;

    if (gather->block_position == gather->block_length && gather->gathered < gather->axes.bytes) {
        enum zt_status status = next_block(gather, error);

        if (status != ZT_OK)
            return status;
    }
    left = gather->block_length - gather->block_position;
    assert(gather->block_position <= gather->block_length);
    part = left < capacity ? left : capacity;
    if (part > 0)
        memcpy(buffer, gather->block + gather->block_position, part);
    gather->block_position += part;
    *out_length = part;
    return ZT_OK;
}

void zt_gather_close(struct zt_gather *gather)
{
    if (gather == NULL)
        return;
    zt_inflate_stream_free(gather->stream);
    zt_source_close(gather->inflated_source);
    free(gather->inflated);
    free(gather->block);
    free(gather->window);
    free(gather);
}
