/* Reading an array whose elements are not in row-major order: in Fortran order (NPY section
 * "fortran_order"), or at any distances from each other (the strides of PyTorch).
 *
 * The array is gathered in blocks, each a run of the row-major order, whose elements are read in
 * the order of the file. Then words are swapped and signs flipped. Memory is bounded for every
 * shape: blocks have at most 8 MiB for a stored array, and 64 MiB for a deflated one, which is
 * inflated again for every block that begins before the previous one's end. A deflated array whose
 * elements overlap or repeat is inflated into memory, at most 56 MiB. */
#ifndef ZT_CODING_GATHER_H
#define ZT_CODING_GATHER_H

#include "zt/model.h"

struct zt_gather;

/* Whether a component is read by gathering. */
bool zt_gather_is_needed(const struct zt_component *component);

/* Starts reading. The component must have the decoded length that its arrangement requires, and all
 * elements must be within the stored bytes. component and source are borrowed. ZT_LIMIT for a
 * deflated array whose elements overlap or repeat over more than 56 MiB; ZT_CORRUPT and ZT_IO from
 * inflating; ZT_NO_MEMORY. */
enum zt_status zt_gather_open(const struct zt_component *component, struct zt_source *source,
                              struct zt_gather **out_gather, struct zt_error *error);

/* Reads up to capacity bytes of the little-endian, row-major array; *out_length is 0 at the end. */
enum zt_status zt_gather_read(struct zt_gather *gather, uint8_t *buffer, size_t capacity,
                              size_t *out_length, struct zt_error *error);

/* Takes NULL. */
void zt_gather_close(struct zt_gather *gather);

#endif
