/* Slices: a box within a dense tensor, as runs of the tensor's row-major bytes.
 *
 * A slice is given by NumPy's basic indexing with integers and start:stop (no steps), or as one of
 * N equal parts along an axis. Its bytes are row-major too: either one run of the tensor's bytes,
 * as cheap to read as a range, or many runs of equal length, which are gathered. */
#ifndef ZT_SLICE_H
#define ZT_SLICE_H

#include "zt/model.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* The most dimensions that any format allows. */
#define ZT_SLICE_RANK_MAX 64

/* The tensor that is sliced. */
struct zt_slice_tensor {
    const uint64_t *shape;
    unsigned rank;
    enum zt_dtype dtype;
    enum zt_logical logical; /* not ZT_LOGICAL_UNKNOWN */
};

struct zt_slice {
    uint64_t shape[ZT_SLICE_RANK_MAX]; /* of the result */
    unsigned rank;
    uint64_t length;    /* of the result, in bytes */
    uint64_t offset;    /* of the first run, in the tensor's bytes */
    uint64_t run_bytes; /* equal to length if it is one run; 0 if length is 0 */
    /* Loops over the runs, outermost first; there are none if it is one run. */
    unsigned loop_count;
    struct {
        uint64_t count;
        uint64_t stride_bytes;
    } loops[ZT_SLICE_RANK_MAX]; /* each count is at least 2, and no two loops could be merged */
    /* The range selected from each dimension of the tensor. */
    uint64_t starts[ZT_SLICE_RANK_MAX];
    uint64_t counts[ZT_SLICE_RANK_MAX];
};

enum zt_slice_verdict {
    ZT_SLICE_FITS,
    ZT_SLICE_MALFORMED,
    ZT_SLICE_OUT_OF_RANGE, /* an index or axis that does not exist, or too many dimensions */
    /* in a sub-byte type, a run begins or ends inside a byte other than the last */
    ZT_SLICE_NOT_ALIGNED,
    ZT_SLICE_NOT_DIVISIBLE /* N does not divide the dimension */
};

/* Parses a slice such as "0:128,:,3": one item for each dimension; missing items mean the whole
 * dimension, and "..." may occur once. Bounds of start:stop are clipped to the dimension and
 * leading zeros ignored; plus signs and blanks are malformed. MALFORMED takes precedence over the
 * other verdicts. OUT_OF_RANGE also for a tensor whose bytes do not fit in 64 bits, which no model
 * has. *out_slice is set only with FITS. Otherwise *out_error (out_error may be NULL) has status
 * ZT_ARGUMENT and names the fault and its place in the text or its dimension. Never allocates. */
enum zt_slice_verdict zt_slice_parse(const struct zt_slice_tensor *tensor, struct zt_text text,
                                     struct zt_slice *out_slice, struct zt_error *out_error);

/* Divides an axis into `parts` equal parts and returns number `part`, counted from 0. A negative
 * axis counts from the end. MALFORMED if part >= parts; OUT_OF_RANGE for any axis of a scalar.
 * Outputs as zt_slice_parse. Never allocates. */
enum zt_slice_verdict zt_slice_shard(const struct zt_slice_tensor *tensor, uint64_t part,
                                     uint64_t parts, int64_t axis, struct zt_slice *out_slice,
                                     struct zt_error *out_error);

/* The same slice (NULL: the whole tensor) as runs of the stored bytes of a component with strides,
 * relative to zt_component.offset: a slice of a view is a view. False if the bytes must be decoded:
 * those of any other component, elements that do not ascend in the file, and those that are swapped
 * or flipped. */
bool zt_slice_of_view(const struct zt_slice *slice, const struct zt_component *component,
                      struct zt_slice *out_slice);

static inline bool zt_slice_is_contiguous(const struct zt_slice *slice)
{
    return slice->run_bytes == slice->length;
}

/* The slice's bytes as a source, which gathers them during reading. The tensor's bytes begin at
 * position base of the source `tensor`, which is borrowed; the slice is copied. Reading does not
 * map, allocate or keep anything, so threads may share the source; it takes 66 KiB of stack. A
 * slice of one run is better read directly from `tensor`, at base + slice->offset. ZT_NO_MEMORY. */
enum zt_status zt_slice_source(const struct zt_slice *slice, struct zt_source *tensor,
                               uint64_t base, struct zt_source **out_source,
                               struct zt_error *error);

/* The same slice of another source, which is borrowed and has the same bytes as the first where the
 * slice's are. ZT_NO_MEMORY. */
enum zt_status zt_slice_source_over(const struct zt_source *slice, struct zt_source *tensor,
                                    struct zt_source **out_source, struct zt_error *error);

/* The slice of a source made by zt_slice_source, and the source that it gathers from, both borrowed
 * from it. NULL for any other source; *out_tensor is then untouched. */
const struct zt_slice *zt_slice_of_source(const struct zt_source *source,
                                          struct zt_source **out_tensor);

/* Bytes of the source that a slice gathers from. */
struct zt_slice_run {
    uint64_t offset;
    uint64_t length;
};

/* Lists the runs that hold the bytes from offset on of a source made by zt_slice_source, in order:
 * as many as hold length bytes, at most `most`. The first and the last are cut to those bytes.
 * Returns their number. length is not 0, and the bytes are within the source. */
size_t zt_slice_source_runs(const struct zt_source *source, uint64_t offset, uint64_t length,
                            struct zt_slice_run *out_runs, size_t most);

/* Does the same with runs that are joined where the gap between them is cheaper to read than to
 * skip: what must be in memory so that they can be gathered. *out_bytes: how many of the length
 * bytes they hold. */
size_t zt_slice_source_extents(const struct zt_source *source, uint64_t offset, uint64_t length,
                               struct zt_slice_run *out_extents, size_t most, uint64_t *out_bytes);

/* --- NPY --- */

/* The header of an NPY 1.0 file for a tensor, padded to a multiple of 64 bytes: bf16 as <u2, 8-bit
 * floats as |u1, complex numbers as <c8 and <c16. ZT_UNSUPPORTED for sub-byte and unknown types;
 * ZT_NO_MEMORY. *out_head is freed with free(). */
enum zt_status zt_npy_head(const struct zt_slice_tensor *tensor, uint8_t **out_head,
                           size_t *out_length, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
