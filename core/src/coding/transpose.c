/* Transposing arrays from Fortran to row-major order, by blocks of bounded size.
 *
 * A block covers `count` steps along one axis, the split axis, with all later axes whole and all
 * earlier axes fixed, so it is a run of the row-major order. Its elements are gathered in file
 * order, column by column. The split axis is the first axis for which one step fits into a block:
 * usually the first axis of all, along which columns are contiguous. */
#include "coding/transpose.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/byte_order.h"
#include "coding/inflate_stream.h"
#include "model/model_build.h"

#define BLOCK_MAX_RAW     ((size_t)8 << 20)
#define BLOCK_MAX_DEFLATE ((size_t)64 << 20)
/* Stored bytes held at a time. */
#define WINDOW_SIZE ((size_t)256 << 10)
/* Runs of stored bytes are read together if they are at most a page apart. */
#define GAP_MAX 4096

struct zt_transpose {
    const struct zt_component *component;
    struct zt_source *source;
    struct zt_inflate_stream *stream; /* NULL: the array is raw */
    unsigned rank;
    unsigned split; /* the split axis */
    size_t element_bytes;
    /* Distance in elements between neighbours along each axis, in row-major order and as stored. */
    uint64_t rows[ZT_RANK_MAX];
    uint64_t columns[ZT_RANK_MAX];
    uint64_t elements;
    uint64_t gathered; /* elements of all blocks so far, including the current one */
    uint64_t block_steps;
    uint8_t *block;
    size_t block_length;
    size_t block_position;
    uint64_t window_at; /* relative to the first element */
    size_t window_length;
    uint8_t *window;
};

/* A part of a column: stored elements at equal distances from each other. */
struct run {
    uint64_t at; /* first element, as stored */
    uint64_t count;
    uint64_t to; /* first element in the block */
};

/* --- the blocks' measures --- */

static void measure(struct zt_transpose *transpose, size_t block_max)
{
    const uint64_t *shape = transpose->component->arrangement->shape;
    uint64_t most = block_max / transpose->element_bytes;
    uint64_t after;

    transpose->elements = 1;
    for (unsigned i = 0; i < transpose->rank; i++) {
        transpose->columns[i] = transpose->elements;
        transpose->elements *= shape[i];
    }
    after = 1;
    for (unsigned i = transpose->rank; i-- > 0; after *= shape[i])
        transpose->rows[i] = after;
    while (transpose->rows[transpose->split] > most)
        transpose->split++;
    transpose->block_steps = 0;
    if (transpose->elements > 0) {
        assert(transpose->rows[transpose->split] > 0);
        transpose->block_steps = most / transpose->rows[transpose->split];
    }
    if (transpose->block_steps > shape[transpose->split])
        transpose->block_steps = shape[transpose->split];
}

static enum zt_status start_stream(struct zt_transpose *transpose, struct zt_error *error)
{
    const struct zt_component *component = transpose->component;
    uint64_t lead = component->arrangement->lead_bytes;
    enum zt_status status =
        zt_inflate_stream_start(transpose->stream, component->offset, component->length,
                                lead + component->decoded_length, error);

    transpose->window_at = 0;
    transpose->window_length = 0;
    while (status == ZT_OK && lead > 0) {
        size_t length = 0;

        status =
            zt_inflate_stream_read(transpose->stream, transpose->window,
                                   lead < WINDOW_SIZE ? (size_t)lead : WINDOW_SIZE, &length, error);
        lead -= length;
    }
    return status;
}

static enum zt_status set_up(struct zt_transpose *transpose, struct zt_error *error)
{
    bool is_deflated = transpose->component->encoding == ZT_ENCODING_DEFLATE;
    uint64_t block_bytes;
    enum zt_status status;

    measure(transpose, is_deflated ? BLOCK_MAX_DEFLATE : BLOCK_MAX_RAW);
    assert(transpose->elements * transpose->element_bytes == transpose->component->decoded_length);
    block_bytes =
        transpose->elements > 0
            ? transpose->block_steps * transpose->rows[transpose->split] * transpose->element_bytes
            : 1;
    transpose->block = malloc((size_t)block_bytes);
    transpose->window = malloc(WINDOW_SIZE);
    if (transpose->block == NULL || transpose->window == NULL)
        return zt_fail_memory(error, "transposing an array");
    if (!is_deflated)
        return ZT_OK;
    status = zt_inflate_stream_new(transpose->source, &transpose->stream, error);
    return status == ZT_OK ? start_stream(transpose, error) : status;
}

enum zt_status zt_transpose_open(const struct zt_component *component, struct zt_source *source,
                                 struct zt_transpose **out_transpose, struct zt_error *error)
{
    struct zt_transpose *transpose = calloc(1, sizeof(*transpose));
    enum zt_status status;

    if (transpose == NULL)
        return zt_fail_memory(error, "a decoder");
    transpose->component = component;
    transpose->source = source;
    transpose->rank = component->arrangement->rank;
    transpose->element_bytes =
        zt_element_bits((enum zt_dtype)component->dtype, (enum zt_logical)component->logical) / 8;
    status = set_up(transpose, error);
    if (status != ZT_OK) {
        zt_transpose_close(transpose);
        return status;
    }
    *out_transpose = transpose;
    return ZT_OK;
}

/* --- stored bytes --- */

/* Inflates until the window holds the bytes, dropping earlier ones. */
static enum zt_status fetch_inflated(struct zt_transpose *transpose, uint64_t at, size_t length,
                                     struct zt_error *error)
{
    while (transpose->window_at + transpose->window_length < at + length) {
        uint64_t behind = at - transpose->window_at;
        size_t drop = behind < transpose->window_length ? (size_t)behind : transpose->window_length;
        size_t got = 0;
        enum zt_status status;

        transpose->window_length -= drop;
        memmove(transpose->window, transpose->window + drop, transpose->window_length);
        transpose->window_at += drop;
        status =
            zt_inflate_stream_read(transpose->stream, transpose->window + transpose->window_length,
                                   WINDOW_SIZE - transpose->window_length, &got, error);
        if (status != ZT_OK)
            return status;
        assert(got > 0);
        transpose->window_length += got;
    }
    return ZT_OK;
}

static enum zt_status fetch_raw(struct zt_transpose *transpose, uint64_t at, size_t length,
                                bool ahead, struct zt_error *error)
{
    uint64_t left = transpose->component->length - at;
    size_t part = left < WINDOW_SIZE ? (size_t)left : WINDOW_SIZE;
    enum zt_status status;

    if (at >= transpose->window_at &&
        at + length <= transpose->window_at + transpose->window_length)
        return ZT_OK;
    part = ahead ? part : length;
    transpose->window_length = 0;
    status = zt_source_read_at(transpose->source, transpose->component->offset + at,
                               transpose->window, part, error);
    if (status != ZT_OK)
        return status;
    transpose->window_at = at;
    transpose->window_length = part;
    return ZT_OK;
}

/* Brings length bytes (at most a window) at a position of the array into the window. Positions must
 * ascend within a block. ahead means that the following bytes will be needed too. */
static enum zt_status fetch(struct zt_transpose *transpose, uint64_t at, size_t length, bool ahead,
                            const uint8_t **out_bytes, struct zt_error *error)
{
    enum zt_status status = transpose->stream != NULL
                                ? fetch_inflated(transpose, at, length, error)
                                : fetch_raw(transpose, at, length, ahead, error);

    if (status == ZT_OK)
        *out_bytes = transpose->window + (at - transpose->window_at);
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

static enum zt_status gather_run(struct zt_transpose *transpose, struct run run, bool ahead,
                                 struct zt_error *error)
{
    size_t width = transpose->element_bytes;
    uint64_t step = transpose->columns[transpose->split];
    size_t row = (size_t)transpose->rows[transpose->split] * width;
    /* If the elements of a column are contiguous or near each other, many are fetched at once,
     * otherwise one at a time. */
    uint64_t most = step == 1 || step * width <= GAP_MAX ? WINDOW_SIZE / (step * width) : 1;

    while (run.count > 0) {
        size_t count = run.count < most ? (size_t)run.count : (size_t)most;
        size_t span = ((count - 1) * (size_t)step + 1) * width;
        const uint8_t *from;
        enum zt_status status = fetch(transpose, run.at * width, span, ahead, &from, error);

        if (status != ZT_OK)
            return status;
        spread(transpose->block + run.to * width, row, from, count > 1 ? (size_t)step * width : 0,
               count, width);
        run.at += count * step;
        run.to += count * transpose->rows[transpose->split];
        run.count -= count;
    }
    return ZT_OK;
}

/* Steps to the next column, along the axes after the split axis, the first one fastest. False after
 * the last. */
static bool next_column(const struct zt_transpose *transpose, uint64_t *index, struct run *run)
{
    const uint64_t *shape = transpose->component->arrangement->shape;

    for (unsigned axis = transpose->split + 1; axis < transpose->rank; axis++) {
        run->at += transpose->columns[axis];
        run->to += transpose->rows[axis];
        if (++index[axis] < shape[axis])
            return true;
        run->at -= shape[axis] * transpose->columns[axis];
        run->to -= shape[axis] * transpose->rows[axis];
        index[axis] = 0;
    }
    return false;
}

/* The stored position of the first element of the block at a row-major position. */
static uint64_t stored_position(const struct zt_transpose *transpose, uint64_t position)
{
    const uint64_t *shape = transpose->component->arrangement->shape;
    uint64_t at = 0;

    for (unsigned axis = 0; axis <= transpose->split; axis++)
        at += position / transpose->rows[axis] % shape[axis] * transpose->columns[axis];
    return at;
}

static enum zt_status gather_block(struct zt_transpose *transpose, uint64_t steps,
                                   struct zt_error *error)
{
    uint64_t extent = transpose->component->arrangement->shape[transpose->split];
    uint64_t step = transpose->columns[transpose->split];
    uint64_t gap = (step > 1 ? step - 1 : extent - steps) * transpose->element_bytes;
    uint64_t index[ZT_RANK_MAX] = {0};
    struct run run = {.at = stored_position(transpose, transpose->gathered), .count = steps};
    enum zt_status status;

    do {
        status = gather_run(transpose, run, gap <= GAP_MAX, error);
    } while (status == ZT_OK && next_column(transpose, index, &run));
    return status;
}

static enum zt_status next_block(struct zt_transpose *transpose, struct zt_error *error)
{
    uint64_t extent = transpose->component->arrangement->shape[transpose->split];
    uint64_t row = transpose->rows[transpose->split];
    uint64_t left = extent - transpose->gathered / row % extent;
    uint64_t steps = left < transpose->block_steps ? left : transpose->block_steps;
    enum zt_status status = ZT_OK;

    if (transpose->stream != NULL && transpose->gathered > 0)
        status = start_stream(transpose, error);
    if (status == ZT_OK)
        status = gather_block(transpose, steps, error);
    if (status != ZT_OK)
        return status;
    transpose->gathered += steps * row;
    assert(transpose->gathered <= transpose->elements);
    transpose->block_length = (size_t)(steps * row) * transpose->element_bytes;
    transpose->block_position = 0;
    if (transpose->component->big_endian)
        zt_words_reverse(transpose->block, transpose->block_length,
                         zt_dtype_width((enum zt_dtype)transpose->component->dtype));
    return ZT_OK;
}

enum zt_status zt_transpose_read(struct zt_transpose *transpose, uint8_t *buffer, size_t capacity,
                                 size_t *out_length, struct zt_error *error)
{
    size_t left;
    size_t part;

    if (transpose->block_position == transpose->block_length &&
        transpose->gathered < transpose->elements) {
        enum zt_status status = next_block(transpose, error);

        if (status != ZT_OK)
            return status;
    }
    left = transpose->block_length - transpose->block_position;
    assert(transpose->block_position <= transpose->block_length);
    part = left < capacity ? left : capacity;
    memcpy(buffer, transpose->block + transpose->block_position, part);
    transpose->block_position += part;
    *out_length = part;
    return ZT_OK;
}

void zt_transpose_close(struct zt_transpose *transpose)
{
    if (transpose == NULL)
        return;
    zt_inflate_stream_free(transpose->stream);
    free(transpose->block);
    free(transpose->window);
    free(transpose);
}
