/* Maps an object of a model to an array of zarr version 3: name, type and codecs, and the location
 * of the single chunk that contains it. */
#ifndef DERIVED_ZARR_ARRAY_H
#define DERIVED_ZARR_ARRAY_H

#include "catalog/generation.h"

struct zarr_array {
    const struct zt_object *object;
    const struct zt_component *component;
    const char *data_type; /* "float32" */
    uint64_t bytes;        /* size of all elements, decoded */
    bool is_widened;       /* the chunk is the component widened to f32 */
    /* The stored file that contains the chunk; NULL: the chunk is the decoded component. */
    const char *path;
    /* Differences between the chunk and row-major little-endian elements; false without a path. */
    bool big_endian;
    bool transposed;
    bool zstd;
};

/* Fails with ZT_UNSUPPORTED if zarr has no such array; error has the reason and names the object.
 * to_f32: widen floats of up to 16 bits and quantized tensors. out_array points into the
 * generation. */
enum zt_status zarr_array_of(const struct generation *generation, const struct zt_object *object,
                             bool to_f32, struct zarr_array *out_array, struct zt_error *error);

#endif
