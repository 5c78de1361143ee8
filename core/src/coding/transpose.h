/* Reading an array stored in Fortran order (first index fastest) in row-major order (NPY section
 * "fortran_order").
 *
 * The array is transposed in blocks, each a run of the row-major order. Memory is bounded whatever
 * the shape: blocks have at most 8 MiB for a raw array, and 64 MiB for a deflated one, which is
 * inflated again for every block. */
#ifndef ZT_CODING_TRANSPOSE_H
#define ZT_CODING_TRANSPOSE_H

#include "zt/model.h"

struct zt_transpose;

/* Starts reading. The component must be in Fortran order, raw or deflated, with the decoded length
 * that its shape requires. component and source are borrowed. ZT_CORRUPT and ZT_IO from inflating;
 * ZT_NO_MEMORY. */
enum zt_status zt_transpose_open(const struct zt_component *component, struct zt_source *source,
                                 struct zt_transpose **out_transpose, struct zt_error *error);

/* Reads up to capacity bytes of the little-endian, row-major array; *out_length is 0 at the end. */
enum zt_status zt_transpose_read(struct zt_transpose *transpose, uint8_t *buffer, size_t capacity,
                                 size_t *out_length, struct zt_error *error);

/* Takes NULL. */
void zt_transpose_close(struct zt_transpose *transpose);

#endif
