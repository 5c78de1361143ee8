/* Walking the runs of a slice, which is not one run. */
#ifndef ZT_MODEL_SLICE_WALK_H
#define ZT_MODEL_SLICE_WALK_H

#include <assert.h>

#include "zt/slice.h"

/* The source of zt_slice_source. */
struct slice_source {
    struct zt_source base;
    struct zt_slice slice;
    struct zt_source *tensor;
    uint64_t tensor_base;
    /* The outermost of the inner loops whose gaps are cheaper to read than to skip; loop_count if
     * there are none. */
    unsigned first_dense_loop;
    /* Bytes from the first to the last byte of one pass over those loops. */
    uint64_t dense_extent;
    uint64_t dense_bytes; /* of the slice, in such a pass */
};

/* The current run, as a position in each loop. */
struct slice_walk {
    const struct zt_slice *slice;
    uint64_t at;     /* of the run, in the tensor */
    uint64_t within; /* bytes of the run to skip; 0 after the first run */
    uint64_t positions[ZT_SLICE_RANK_MAX];
};

/* The innermost loop. */
static inline unsigned slice_walk_last_loop(const struct slice_walk *walk)
{
    return walk->slice->loop_count - 1;
}

/* To a byte of the slice. */
static inline void slice_walk_seek(struct slice_walk *walk, uint64_t offset)
{
    const struct zt_slice *slice = walk->slice;
    uint64_t run = offset / slice->run_bytes;

    walk->within = offset % slice->run_bytes;
    walk->at = slice->offset;
    for (unsigned i = slice->loop_count; i-- > 0;) {
        walk->positions[i] = run % slice->loops[i].count;
        walk->at += walk->positions[i] * slice->loops[i].stride_bytes;
        run /= slice->loops[i].count;
    }
}

/* Moves forward by `passes` passes of loop i, at most to the loop's end. After the very last one
 * the position is that of the first again. */
static inline void slice_walk_advance_loop(struct slice_walk *walk, unsigned i, uint64_t passes)
{
    const struct zt_slice *slice = walk->slice;

    assert(passes <= slice->loops[i].count - walk->positions[i]);
    walk->positions[i] += passes;
    walk->at += passes * slice->loops[i].stride_bytes;
    while (walk->positions[i] == slice->loops[i].count) {
        walk->at -= slice->loops[i].count * slice->loops[i].stride_bytes;
        walk->positions[i] = 0;
        if (i-- == 0)
            return;
        walk->positions[i]++;
        walk->at += slice->loops[i].stride_bytes;
    }
}

static inline void slice_walk_advance(struct slice_walk *walk, uint64_t runs)
{
    slice_walk_advance_loop(walk, slice_walk_last_loop(walk), runs);
}

#endif
