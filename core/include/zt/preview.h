/* Previews: a matrix of a tensor, reduced to a picture of at most 1024 x 1024 cells.
 *
 * The matrix is the tensor's last two axes at one index of all others. Each cell represents a block
 * of it. A vector becomes rows of runs: cell (r, c) represents the elements from (r * out_cols + c)
 * * block_cols on. */
#ifndef ZT_PREVIEW_H
#define ZT_PREVIEW_H

#include "zt/elements.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

#define ZT_PREVIEW_MAX 1024

/* MEAN and ABSMAX (the largest magnitude) are of the block's finite elements, SAMPLE is the first
 * of them. A cell without any is not a number. */
enum zt_reduction { ZT_REDUCE_MEAN, ZT_REDUCE_ABSMAX, ZT_REDUCE_SAMPLE };

struct zt_preview {
    enum zt_reduction reduction;
    uint32_t out_rows; /* both 0 if the tensor is empty */
    uint32_t out_cols;
    uint64_t block_rows;
    uint64_t block_cols;
    uint64_t cols; /* of the matrix */
    /* The matrix among the tensor's elements. */
    uint64_t first;
    uint64_t count;
};

/* Plans a picture of at most rows x cols cells (1 to ZT_PREVIEW_MAX each), at index[0] to
 * index[index_count - 1] of the tensor's leading axes and 0 of the others; a negative index counts
 * from the end. False if there are more indices than leading axes, or one is outside. */
bool zt_preview_plan(const struct zt_slice_tensor *tensor, const int64_t *index,
                     unsigned index_count, uint32_t rows, uint32_t cols,
                     struct zt_preview *out_preview);

/* Says when a result is no longer wanted. */
struct zt_cancellation {
    bool (*is_wanted)(void *context); /* NULL: it always is */
    void *context;
};

/* Fills in the out_cols cells of one row. Rows may be made side by side. A row may have all
 * elements of the tensor: is_wanted is called every few milliseconds, and ends the work by
 * returning false. ZT_ARGUMENT if it did, ZT_NO_MEMORY, or the source's status. */
enum zt_status zt_preview_row(const struct zt_preview *preview, const struct zt_elements *elements,
                              uint32_t row, const struct zt_cancellation *cancellation,
                              double *out_cells, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
