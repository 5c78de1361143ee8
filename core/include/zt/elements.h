/* The elements of a tensor as numbers, from any stored type.
 *
 * Floats of 16 bits and fewer, integers of less than a byte and quantized blocks are widened to f32
 * (zt/widen.h); all other numbers are read unchanged. Elements are read in pieces of a fixed size,
 * so that results do not depend on the number of threads. */
#ifndef ZT_ELEMENTS_H
#define ZT_ELEMENTS_H

#include "zt/slice.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* The tensor that an object's elements are, as slices address it: of f32 if they are widened. False
 * if the component has no such elements, or has complex ones, or its length contradicts the
 * shape. */
bool zt_elements_tensor(const struct zt_model *model, const struct zt_object *object,
                        const struct zt_component *component, struct zt_slice_tensor *out_tensor);

/* How many of the component's decoded bytes are read for `count` elements of a slice of that
 * tensor, or of all (NULL), whole blocks for each of its runs; UINT64_MAX if they do not fit in 64
 * bits. zt_elements_tensor must be true. */
uint64_t zt_elements_bytes(const struct zt_object *object, const struct zt_component *component,
                           const struct zt_slice *slice, uint64_t count);

struct zt_elements {
    struct zt_source *source;
    uint64_t base;
    uint64_t count;
    enum zt_dtype dtype; /* little-endian; not f16, not bf16 */
    /* Made by zt_elements_open and closed by zt_elements_close; NULL: not needed. */
    struct zt_source *widened;
    struct zt_source *sliced;
};

/* A component for which zt_elements_tensor is true, and its decoded bytes. */
struct zt_stored_tensor {
    const struct zt_model *model;
    const struct zt_object *object;
    const struct zt_component *component;
    struct zt_source *decoded; /* borrowed */
    uint64_t base;             /* where the component begins in decoded */
};

/* Opens the elements of a tensor, or only those of a slice of it (slice may be NULL). Threads may
 * share the elements. ZT_NO_MEMORY. */
enum zt_status zt_elements_open(const struct zt_stored_tensor *stored, const struct zt_slice *slice,
                                struct zt_elements *out_elements, struct zt_error *error);
/* Takes cleared ones. */
void zt_elements_close(struct zt_elements *elements);

/* Bytes of elements in a piece. */
#define ZT_PIECE_BYTES ((uint64_t)1 << 20)

/* How many pieces there are; the last may be shorter. */
uint64_t zt_elements_pieces(const struct zt_elements *elements);
/* The elements of one piece. */
void zt_elements_piece(const struct zt_elements *elements, uint64_t piece, uint64_t *out_first,
                       uint64_t *out_count);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
