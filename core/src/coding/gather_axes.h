/* The axes of an array that is gathered: the positions of its elements, and the blocks in which
 * they are read. */
#ifndef ZT_CODING_GATHER_AXES_H
#define ZT_CODING_GATHER_AXES_H

#include "model/model_build.h"
#include "zt/model.h"

/* Distances in bytes. */
struct gather_axis {
    uint64_t extent;
    uint64_t step; /* between neighbours, as stored; may be 0 */
    uint64_t row;  /* between neighbours, in row-major order */
};

struct gather_axes {
    /* In row-major order, at least one if the array is not empty. None has extent 1, unless it is
     * the only one, and neighbours that could be one axis are. */
    struct gather_axis axes[ZT_RANK_MAX];
    unsigned rank;
    size_t element_bytes;
    uint64_t bytes; /* of the array; if it is 0, nothing else is set */
    uint64_t span;  /* from the first to the last stored byte */
    bool ascends;   /* the row-major order is that of the stored bytes, without overlaps */

    /* A block covers block_steps steps along the split axis, with all later axes whole and all
     * earlier ones fixed. */
    unsigned split;
    uint64_t block_steps;
    /* The split axis and the later ones, in the order in which a block is read, fastest first. */
    uint8_t order[ZT_RANK_MAX];
    unsigned order_count;
    /* Following this order, the stored bytes of a block ascend without overlaps. */
    bool block_ascends;
};

/* Sets everything but the block. */
void gather_axes_find(const struct zt_component *component, struct gather_axes *out_axes);

/* Chooses the split axis and the order for blocks of at most block_max bytes. Only if the array is
 * not empty. */
void gather_axes_split(struct gather_axes *axes, size_t block_max);

/* The stored position, from the array's first byte, of the element at a row-major position that
 * begins a block. Both in bytes. */
uint64_t gather_axes_stored(const struct gather_axes *axes, uint64_t position);

#endif
