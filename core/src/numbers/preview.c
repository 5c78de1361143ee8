/* Reduces blocks of a matrix to cells. */
#include "zt/preview.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#include "numbers/values.h"

/* Elements that are reduced before it is asked whether to go on. */
#define STEP_ELEMENTS ((uint64_t)4 << 20)
/* Makes the sum of 2^64 doubles, of any size, finite. */
#define SUMMABLE 0x1p-65

static uint64_t divide_up(uint64_t amount, uint64_t by)
{
    return amount / by + (amount % by != 0);
}

/* --- the plan --- */

/* The element at which the matrix begins. False: no such index. */
static bool find_matrix(const uint64_t *shape, unsigned leading, const int64_t *index,
                        unsigned index_count, uint64_t *out_matrix)
{
    uint64_t at = 0;

    if (index_count > leading)
        return false;
    for (unsigned i = 0; i < leading; i++) {
        const int64_t given = i < index_count ? index[i] : 0;
        const uint64_t from_start = given < 0 ? shape[i] - -(uint64_t)given : (uint64_t)given;

        if ((given < 0 && -(uint64_t)given > shape[i]) ||
            (i < index_count && from_start >= shape[i]))
            return false;
        at = at * shape[i] + from_start;
    }
    *out_matrix = at;
    return true;
}

static void plan_vector(uint64_t length, uint32_t rows, uint32_t cols, struct zt_preview *preview)
{
    const uint64_t run = divide_up(length, (uint64_t)rows * cols);

    assert(length > 0);
    preview->block_rows = 1;
    preview->block_cols = run;
    preview->out_cols = (uint32_t)(length < cols ? length : cols);
    preview->cols = preview->out_cols * run;
    preview->out_rows = (uint32_t)divide_up(length, preview->cols);
    assert(preview->out_rows <= rows && preview->out_cols <= cols);
}

static void plan_matrix(uint64_t height, uint64_t width, uint32_t rows, uint32_t cols,
                        struct zt_preview *preview)
{
    assert(height > 0 && width > 0);
    preview->cols = width;
    preview->block_rows = divide_up(height, rows);
    preview->block_cols = divide_up(width, cols);
    preview->out_rows = (uint32_t)divide_up(height, preview->block_rows);
    preview->out_cols = (uint32_t)divide_up(width, preview->block_cols);
    assert(preview->out_rows <= rows && preview->out_cols <= cols);
}

bool zt_preview_plan(const struct zt_slice_tensor *tensor, const int64_t *index,
                     unsigned index_count, uint32_t rows, uint32_t cols,
                     struct zt_preview *out_preview)
{
    const uint64_t *shape = tensor->shape;
    const unsigned rank = tensor->rank;
    const unsigned leading = rank > 2 ? rank - 2 : 0;
    struct zt_preview preview = {.block_rows = 1, .block_cols = 1, .count = 1};
    uint64_t elements = 1;
    uint64_t matrix;

    assert(rows > 0 && rows <= ZT_PREVIEW_MAX && cols > 0 && cols <= ZT_PREVIEW_MAX);
    if (!find_matrix(shape, leading, index, index_count, &matrix))
        return false;
    for (unsigned i = 0; i < rank; i++)
        elements *= shape[i];
    for (unsigned i = leading; i < rank; i++)
        preview.count *= shape[i];
    preview.first = matrix * preview.count;
    if (elements == 0)
        preview = (struct zt_preview){.block_rows = 1, .block_cols = 1};
    else if (rank < 2)
        plan_vector(preview.count, rows, cols, &preview);
    else
        plan_matrix(shape[rank - 2], shape[rank - 1], rows, cols, &preview);
    *out_preview = preview;
    return true;
}

/* --- cells --- */

struct reducing {
    const struct zt_preview *preview;
    bool is_scaled; /* sums are of elements times SUMMABLE */
    uint64_t col;   /* of the next element */
    double cells[ZT_PREVIEW_MAX];
    uint64_t counts[ZT_PREVIEW_MAX]; /* of the finite elements in a cell */
};

static void add_mean(struct reducing *reducing, uint32_t cell, const double *values, size_t count)
{
    double sum = 0;
    double finite_sum = 0;
    uint64_t finite = 0;

    for (size_t i = 0; i < count; i++)
        sum += values[i];
    if (isfinite(sum)) {
        reducing->cells[cell] += sum;
        reducing->counts[cell] += count;
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            finite_sum += values[i];
            finite++;
        }
    reducing->cells[cell] += finite_sum;
    reducing->counts[cell] += finite;
}

/* For cells whose sum overflows. */
static void add_scaled(struct reducing *reducing, uint32_t cell, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            reducing->cells[cell] += values[i] * SUMMABLE;
            reducing->counts[cell]++;
        }
}

static void add_largest(struct reducing *reducing, uint32_t cell, const double *values,
                        size_t count)
{
    double largest = reducing->cells[cell];

    for (size_t i = 0; i < count; i++) {
        const double magnitude = fabs(values[i]);

        if (isfinite(magnitude)) {
            largest = magnitude > largest ? magnitude : largest;
            reducing->counts[cell] = 1;
        }
    }
    reducing->cells[cell] = largest;
}

static void add_first(struct reducing *reducing, uint32_t cell, const double *values, size_t count)
{
    for (size_t i = 0; i < count && reducing->counts[cell] == 0; i++)
        if (isfinite(values[i])) {
            reducing->cells[cell] = values[i];
            reducing->counts[cell] = 1;
        }
}

static void reduce(struct reducing *reducing, uint32_t cell, const double *values, size_t count)
{
    switch (reducing->preview->reduction) {
    case ZT_REDUCE_MEAN:
        if (reducing->is_scaled)
            add_scaled(reducing, cell, values, count);
        else
            add_mean(reducing, cell, values, count);
        break;
    case ZT_REDUCE_ABSMAX:
        add_largest(reducing, cell, values, count);
        break;
    case ZT_REDUCE_SAMPLE:
        add_first(reducing, cell, values, count);
        break;
    }
}

/* Divides the elements among cells; a cell ends where its block or the row ends. */
static void add_chunk(void *context, const uint8_t *bytes, double *values, size_t count)
{
    struct reducing *reducing = context;
    const uint64_t block = reducing->preview->block_cols;
    const uint64_t cols = reducing->preview->cols;
    uint32_t cell = (uint32_t)(reducing->col / block);
    uint64_t end = (cell + (uint64_t)1) * block;
    size_t at = 0;

    (void)bytes;
    while (at < count) {
        const uint64_t rest = (end < cols ? end : cols) - reducing->col;
        const size_t part = rest < count - at ? (size_t)rest : count - at;

        assert(cell < reducing->preview->out_cols && reducing->col < cols);
        reduce(reducing, cell, values + at, part);
        at += part;
        reducing->col += part;
        if (reducing->col == cols) {
            reducing->col = 0;
            cell = 0;
            end = block;
        } else if (reducing->col == end) {
            cell++;
            end += block;
        }
    }
}

static bool is_complete(const struct reducing *reducing)
{
    for (uint32_t i = 0; i < reducing->preview->out_cols; i++)
        if (reducing->counts[i] == 0)
            return false;
    return true;
}

static double finish(const struct reducing *reducing, uint32_t cell)
{
    const double value = reducing->cells[cell] / (double)reducing->counts[cell];

    if (reducing->counts[cell] == 0)
        return NAN;
    /* What rounding makes of a mean may be beyond the greatest double. */
    return reducing->is_scaled ? fmax(-DBL_MAX, fmin(value / SUMMABLE, DBL_MAX)) : value;
}

static enum zt_status reduce_band(struct reducing *reducing, const struct zt_elements *elements,
                                  uint32_t row, const struct zt_cancellation *cancellation,
                                  struct zt_error *error)
{
    const struct zt_preview *preview = reducing->preview;
    const uint64_t band = preview->block_rows * preview->cols;
    const uint64_t start = row * band;
    const uint64_t left = preview->count - start < band ? preview->count - start : band;
    const uint64_t most = preview->reduction == ZT_REDUCE_SAMPLE ? preview->cols : band;
    /* A sample seldom needs more than the first row of elements. */
    const uint64_t step = most < STEP_ELEMENTS ? most : STEP_ELEMENTS;
    enum zt_status status = ZT_OK;

    assert(row < preview->out_rows && start < preview->count);
    for (uint64_t at = 0; status == ZT_OK && at < left; at += step) {
        const uint64_t count = left - at < step ? left - at : step;

        if (preview->reduction == ZT_REDUCE_SAMPLE && at > 0 && is_complete(reducing))
            break;
        if (cancellation->is_wanted != NULL && !cancellation->is_wanted(cancellation->context))
            return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                           "no request is waiting for it any more");
        status = zt_values_visit(elements, preview->first + start + at, count, add_chunk, reducing,
                                 error);
    }
    return status;
}

/* Whether the sum of a cell's finite elements is not finite. */
static bool has_overflowed(const struct reducing *reducing)
{
    for (uint32_t i = 0; i < reducing->preview->out_cols; i++)
        if (reducing->counts[i] > 0 && !isfinite(reducing->cells[i]))
            return true;
    return false;
}

enum zt_status zt_preview_row(const struct zt_preview *preview, const struct zt_elements *elements,
                              uint32_t row, const struct zt_cancellation *cancellation,
                              double *out_cells, struct zt_error *error)
{
    struct reducing reducing = {.preview = preview};
    enum zt_status status = reduce_band(&reducing, elements, row, cancellation, error);

    for (uint32_t cell = 0; status == ZT_OK && cell < preview->out_cols; cell++)
        out_cells[cell] = finish(&reducing, cell);
    if (status != ZT_OK || !has_overflowed(&reducing))
        return status;
    reducing = (struct reducing){.preview = preview, .is_scaled = true};
    status = reduce_band(&reducing, elements, row, cancellation, error);
    /* Scaled, the smallest doubles are lost, so that other cells keep what they have. */
    for (uint32_t cell = 0; status == ZT_OK && cell < preview->out_cols; cell++)
        if (!isfinite(out_cells[cell]))
            out_cells[cell] = finish(&reducing, cell);
    return status;
}
