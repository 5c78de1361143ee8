/* Slices: a box of a dense tensor, as runs of its row-major bytes.
 *
 * NumPy's basic indexing with integers and start:stop (no steps), or one of N equal parts along an
 * axis. What comes out is row-major itself: either one run of the tensor's bytes, which costs what
 * a range costs, or many runs of one length that are gathered. */
#ifndef ZT_SLICE_H
#define ZT_SLICE_H

#include "zt/dtype.h"
#include "zt/source.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* No tensor has more dimensions. */
#define ZT_SLICE_RANK_MAX 64

/* What is cut: shape and type of a dense tensor's elements. */
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
    uint64_t run_bytes; /* equal to length when it is one run; 0 when length is */
    /* How runs follow one another: counts and distances in bytes, outermost first. Empty for one
     * run. */
    unsigned loop_count;
    struct {
        uint64_t count;
        uint64_t stride_bytes;
    } loops[ZT_SLICE_RANK_MAX]; /* each turns at least twice and can be merged with no other */
};

enum zt_slice_verdict {
    ZT_SLICE_FITS,
    ZT_SLICE_MALFORMED,
    ZT_SLICE_OUT_OF_RANGE, /* an integer outside, an axis that is not there, too many dimensions */
    /* of a sub-byte type: a run begins or ends inside a byte, and not at the data's end */
    ZT_SLICE_NOT_ALIGNED,
    ZT_SLICE_NOT_DIVISIBLE /* N does not divide the dimension */
};

/* "0:128,:,3": one item a dimension, missing ones whole, "..." once. Bounds of any size are
 * clipped; leading zeros mean nothing; a minus is the one sign, and blanks are malformed. A text
 * that is malformed anywhere is MALFORMED whatever else is wrong with it. Only with FITS is
 * *out_slice set; else out_error (which may be NULL) has ZT_ARGUMENT and a message that says what
 * is wrong, and where in the text or in which dimension. Never allocates. A tensor whose bytes do
 * not fit in 64 bits, which no model has, is OUT_OF_RANGE. */
enum zt_slice_verdict zt_slice_parse(const struct zt_slice_tensor *tensor, struct zt_text text,
                                     struct zt_slice *out_slice, struct zt_error *out_error);

/* The part-th (from 0) of parts equal parts along an axis; a negative axis counts from the end.
 * MALFORMED when part >= parts; a scalar has no axis. Never allocates. */
enum zt_slice_verdict zt_slice_shard(const struct zt_slice_tensor *tensor, uint64_t part,
                                     uint64_t parts, int64_t axis, struct zt_slice *out_slice,
                                     struct zt_error *out_error);

static inline bool zt_slice_is_contiguous(const struct zt_slice *slice)
{
    return slice->run_bytes == slice->length;
}

/* The slice's bytes as a source: gathered when they are read, from any position, in pieces as large
 * as they lie. tensor's bytes begin at base of the source, which is borrowed. The slice is copied.
 * ZT_NO_MEMORY. It reads by read_at, never from a mapping, allocates nothing and keeps nothing, so
 * that threads may share it; read_at takes 66 KiB of stack. A slice in one run is better sent from
 * the tensor's own source, at base + offset. */
enum zt_status zt_slice_source(const struct zt_slice *slice, struct zt_source *tensor,
                               uint64_t base, struct zt_source **out_source,
                               struct zt_error *error);

/* --- NPY --- */

/* The head of an NPY 1.0 file for elements of that shape (a multiple of 64 bytes): bf16 as <u2,
 * 8-bit floats as |u1, complex as <c8 and <c16. ZT_UNSUPPORTED for types of less than a byte and
 * unknown ones; ZT_NO_MEMORY. Freed with free(). */
enum zt_status zt_npy_head(const struct zt_slice_tensor *tensor, uint8_t **out_head,
                           size_t *out_length, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
