/* Turning arrays from Fortran to row-major order, by blocks of bounded size.
 *
 * A block is `count` steps along one axis, the split axis, with all axes after it whole and all
 * before it fixed: a run of the row-major order. Its stored elements are gathered in ascending file
 * order, column by column. The split axis is the first one whose whole remainder fits a block, so
 * mostly the first of all, where columns are contiguous. */
#include "coding/turn.h"

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
/* Runs of stored bytes no further apart than a page are read together. */
#define GAP_MAX 4096

struct zt_turn {
    const struct zt_component *component;
    struct zt_source *source;
    struct zt_inflate_stream *stream; /* NULL: the array lies in the file */
    unsigned rank;
    unsigned split; /* the split axis */
    size_t element_bytes;
    uint64_t rows[ZT_RANK_MAX]; /* distance, in elements, of neighbours along an axis: row-major */
    uint64_t columns[ZT_RANK_MAX]; /* the same as stored */
    uint64_t elements;
    uint64_t given; /* elements of the blocks so far, the one in hand included */
    uint64_t block_steps;
    uint8_t *block;
    size_t block_length;
    size_t block_position;
    uint64_t window_at; /* relative to the first element */
    size_t window_length;
    uint8_t *window;
};

/* A part of a column: stored elements at equal distances. */
struct run {
    uint64_t at; /* first element, as stored */
    uint64_t count;
    uint64_t to; /* first element in the block */
};

bool zt_turn_needed(const struct zt_component *component)
{
    const struct zt_arrangement *arrangement = component->arrangement;
    unsigned wide = 0;

    if (arrangement == NULL || !arrangement->fortran)
        return false;
    for (unsigned i = 0; i < arrangement->rank; i++)
        wide += arrangement->shape[i] != 1;
    return wide > 1;
}

/* --- the blocks' measures --- */

static void measure(struct zt_turn *turn, size_t block_max)
{
    const uint64_t *shape = turn->component->arrangement->shape;
    uint64_t most = block_max / turn->element_bytes;
    uint64_t after;

    turn->elements = 1;
    for (unsigned i = 0; i < turn->rank; i++) {
        turn->columns[i] = turn->elements;
        turn->elements *= shape[i];
    }
    after = 1;
    for (unsigned i = turn->rank; i-- > 0; after *= shape[i])
        turn->rows[i] = after;
    while (turn->rows[turn->split] > most)
        turn->split++;
    turn->block_steps = 0;
    if (turn->elements > 0) {
        assert(turn->rows[turn->split] > 0);
        turn->block_steps = most / turn->rows[turn->split];
    }
    if (turn->block_steps > shape[turn->split])
        turn->block_steps = shape[turn->split];
}

static enum zt_status start_stream(struct zt_turn *turn, struct zt_error *error)
{
    const struct zt_component *component = turn->component;
    uint64_t lead = component->arrangement->lead_bytes;
    enum zt_status status =
        zt_inflate_stream_start(turn->stream, component->offset, component->length,
                                lead + component->decoded_length, error);

    turn->window_at = 0;
    turn->window_length = 0;
    while (status == ZT_OK && lead > 0) {
        size_t length = 0;

        status =
            zt_inflate_stream_read(turn->stream, turn->window,
                                   lead < WINDOW_SIZE ? (size_t)lead : WINDOW_SIZE, &length, error);
        lead -= length;
    }
    return status;
}

static enum zt_status set_up(struct zt_turn *turn, struct zt_error *error)
{
    bool is_deflated = turn->component->encoding == ZT_ENCODING_DEFLATE;
    uint64_t block_bytes;
    enum zt_status status;

    measure(turn, is_deflated ? BLOCK_MAX_DEFLATE : BLOCK_MAX_RAW);
    assert(turn->elements * turn->element_bytes == turn->component->decoded_length);
    block_bytes =
        turn->elements > 0 ? turn->block_steps * turn->rows[turn->split] * turn->element_bytes : 1;
    turn->block = malloc((size_t)block_bytes);
    turn->window = malloc(WINDOW_SIZE);
    if (turn->block == NULL || turn->window == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for turning an array");
    if (!is_deflated)
        return ZT_OK;
    status = zt_inflate_stream_new(turn->source, &turn->stream, error);
    return status == ZT_OK ? start_stream(turn, error) : status;
}

enum zt_status zt_turn_open(const struct zt_component *component, struct zt_source *source,
                            struct zt_turn **out_turn, struct zt_error *error)
{
    struct zt_turn *turn = calloc(1, sizeof(*turn));
    enum zt_status status;

    if (turn == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a decoder");
    turn->component = component;
    turn->source = source;
    turn->rank = component->arrangement->rank;
    turn->element_bytes =
        zt_element_bits((enum zt_dtype)component->dtype, (enum zt_logical)component->logical) / 8;
    status = set_up(turn, error);
    if (status != ZT_OK) {
        zt_turn_close(turn);
        return status;
    }
    *out_turn = turn;
    return ZT_OK;
}

/* --- stored bytes --- */

/* Inflates on until the bytes are in the window; what lies before them is forgotten. */
static enum zt_status fetch_inflated(struct zt_turn *turn, uint64_t at, size_t length,
                                     struct zt_error *error)
{
    while (turn->window_at + turn->window_length < at + length) {
        uint64_t behind = at - turn->window_at;
        size_t drop = behind < turn->window_length ? (size_t)behind : turn->window_length;
        size_t got = 0;
        enum zt_status status;

        turn->window_length -= drop;
        memmove(turn->window, turn->window + drop, turn->window_length);
        turn->window_at += drop;
        status = zt_inflate_stream_read(turn->stream, turn->window + turn->window_length,
                                        WINDOW_SIZE - turn->window_length, &got, error);
        if (status != ZT_OK)
            return status;
        assert(got > 0);
        turn->window_length += got;
    }
    return ZT_OK;
}

static enum zt_status fetch_raw(struct zt_turn *turn, uint64_t at, size_t length, bool ahead,
                                struct zt_error *error)
{
    uint64_t left = turn->component->length - at;
    size_t part = left < WINDOW_SIZE ? (size_t)left : WINDOW_SIZE;
    enum zt_status status;

    if (at >= turn->window_at && at + length <= turn->window_at + turn->window_length)
        return ZT_OK;
    part = ahead ? part : length;
    turn->window_length = 0;
    status =
        zt_source_read_at(turn->source, turn->component->offset + at, turn->window, part, error);
    if (status != ZT_OK)
        return status;
    turn->window_at = at;
    turn->window_length = part;
    return ZT_OK;
}

/* Makes length bytes (at most a window) at a position of the array available; positions ascend
 * within a block. ahead: what follows will be asked for too. */
static enum zt_status fetch(struct zt_turn *turn, uint64_t at, size_t length, bool ahead,
                            const uint8_t **out_bytes, struct zt_error *error)
{
    enum zt_status status = turn->stream != NULL ? fetch_inflated(turn, at, length, error)
                                                 : fetch_raw(turn, at, length, ahead, error);

    if (status == ZT_OK)
        *out_bytes = turn->window + (at - turn->window_at);
    return status;
}

/* --- gathering --- */

#define SPREAD(width)                                          \
    for (size_t i = 0; i < count; i++)                         \
        memcpy(to + i * to_step, from + i * from_step, width); \
    break

/* Copies count elements at one distance to another; steps are in bytes. */
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

static enum zt_status gather_run(struct zt_turn *turn, struct run run, bool ahead,
                                 struct zt_error *error)
{
    size_t width = turn->element_bytes;
    uint64_t step = turn->columns[turn->split];
    size_t row = (size_t)turn->rows[turn->split] * width;
    /* Elements of a column lie side by side, or near each other, or each is fetched alone. */
    uint64_t most = step == 1 || step * width <= GAP_MAX ? WINDOW_SIZE / (step * width) : 1;

    while (run.count > 0) {
        size_t count = run.count < most ? (size_t)run.count : (size_t)most;
        size_t span = ((count - 1) * (size_t)step + 1) * width;
        const uint8_t *from;
        enum zt_status status = fetch(turn, run.at * width, span, ahead, &from, error);

        if (status != ZT_OK)
            return status;
        spread(turn->block + run.to * width, row, from, count > 1 ? (size_t)step * width : 0, count,
               width);
        run.at += count * step;
        run.to += count * turn->rows[turn->split];
        run.count -= count;
    }
    return ZT_OK;
}

/* Steps to the next column: the axes after the split axis, first one fastest. False after the last.
 */
static bool next_column(const struct zt_turn *turn, uint64_t *index, struct run *run)
{
    const uint64_t *shape = turn->component->arrangement->shape;

    for (unsigned axis = turn->split + 1; axis < turn->rank; axis++) {
        run->at += turn->columns[axis];
        run->to += turn->rows[axis];
        if (++index[axis] < shape[axis])
            return true;
        run->at -= shape[axis] * turn->columns[axis];
        run->to -= shape[axis] * turn->rows[axis];
        index[axis] = 0;
    }
    return false;
}

/* Where the block that begins at a row-major position begins as stored. */
static uint64_t stored_position(const struct zt_turn *turn, uint64_t position)
{
    const uint64_t *shape = turn->component->arrangement->shape;
    uint64_t at = 0;

    for (unsigned axis = 0; axis <= turn->split; axis++)
        at += position / turn->rows[axis] % shape[axis] * turn->columns[axis];
    return at;
}

static enum zt_status gather_block(struct zt_turn *turn, uint64_t steps, struct zt_error *error)
{
    uint64_t extent = turn->component->arrangement->shape[turn->split];
    uint64_t step = turn->columns[turn->split];
    uint64_t gap = (step > 1 ? step - 1 : extent - steps) * turn->element_bytes;
    uint64_t index[ZT_RANK_MAX] = {0};
    struct run run = {.at = stored_position(turn, turn->given), .count = steps};
    enum zt_status status;

    do {
        status = gather_run(turn, run, gap <= GAP_MAX, error);
    } while (status == ZT_OK && next_column(turn, index, &run));
    return status;
}

static enum zt_status next_block(struct zt_turn *turn, struct zt_error *error)
{
    uint64_t extent = turn->component->arrangement->shape[turn->split];
    uint64_t row = turn->rows[turn->split];
    uint64_t left = extent - turn->given / row % extent;
    uint64_t steps = left < turn->block_steps ? left : turn->block_steps;
    enum zt_status status = ZT_OK;

    if (turn->stream != NULL && turn->given > 0)
        status = start_stream(turn, error);
    if (status == ZT_OK)
        status = gather_block(turn, steps, error);
    if (status != ZT_OK)
        return status;
    turn->given += steps * row;
    turn->block_length = (size_t)(steps * row) * turn->element_bytes;
    turn->block_position = 0;
    if (turn->component->big_endian)
        zt_words_reverse(turn->block, turn->block_length,
                         zt_dtype_width((enum zt_dtype)turn->component->dtype));
    return ZT_OK;
}

enum zt_status zt_turn_read(struct zt_turn *turn, uint8_t *buffer, size_t capacity,
                            size_t *out_length, struct zt_error *error)
{
    size_t left;
    size_t part;

    if (turn->block_position == turn->block_length && turn->given < turn->elements) {
        enum zt_status status = next_block(turn, error);

        if (status != ZT_OK)
            return status;
    }
    left = turn->block_length - turn->block_position;
    part = left < capacity ? left : capacity;
    memcpy(buffer, turn->block + turn->block_position, part);
    turn->block_position += part;
    *out_length = part;
    return ZT_OK;
}

void zt_turn_close(struct zt_turn *turn)
{
    if (turn == NULL)
        return;
    zt_inflate_stream_free(turn->stream);
    free(turn->block);
    free(turn->window);
    free(turn);
}
