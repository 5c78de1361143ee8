/* Building a slice's loops, from the innermost dimension outwards. */
#ifndef ZT_MODEL_SLICE_LOOPS_H
#define ZT_MODEL_SLICE_LOOPS_H

#include "zt/slice.h"

/* Adds the next outer dimension, in elements or in bytes: it extends the run or the outermost loop,
 * or becomes a new loop. Loops are innermost first here. */
void zt_slice_add_dimension(struct zt_slice *slice, uint64_t *run, uint64_t count, uint64_t stride);

/* Puts the loops in order when all dimensions have been added. */
void zt_slice_reverse_loops(struct zt_slice *slice);

#endif
