/* How an object of a model is an array of zarr's version 3: its name, type and codecs, and where
 * the one chunk is that holds all of it. */
#ifndef DERIVED_ZARR_ARRAY_H
#define DERIVED_ZARR_ARRAY_H

#include "catalog/generation.h"

struct zarr_array {
    const struct zt_object *object;
    const struct zt_component *component;
    const char *data_type; /* "float32" */
    uint64_t bytes;        /* of all elements, decoded */
    bool is_widened;       /* the chunk is the component widened to f32 */
    /* The stored file that holds the chunk, in the store; NULL: it is the decoded component. */
    const char *path;
    /* How the chunk differs from row-major little-endian elements; false without a path. */
    bool big_endian;
    bool transposed;
    bool zstd;
};

/* ZT_UNSUPPORTED if zarr has no such array; error says why, and names the object. to_f32: floats of
 * 16 bits and fewer and quantized tensors are widened. Everything in out_array is borrowed. */
enum zt_status zarr_array_of(const struct generation *generation, const struct zt_object *object,
                             bool to_f32, struct zarr_array *out_array, struct zt_error *error);

/* Why a name cannot be the path of a node, whose parts have slashes between them; NULL: it can. */
const char *zarr_name_fault(struct zt_text name);

#endif
