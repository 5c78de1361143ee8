/* References: a JSON text with which zarr reads a model as a group of arrays, through fsspec
 * (version 1 of the kerchunk format). It contains the metadata of zarr version 3 as texts and, for
 * each array, the address of its only chunk: [URL, offset, length]. */
#ifndef DERIVED_REFERENCE_JSON_H
#define DERIVED_REFERENCE_JSON_H

#include "base/json_write.h"
#include "catalog/generation.h"

/* The objects to refer to. The texts are not copied. */
struct reference_wish {
    const char *base_url;          /* prefix of addresses (request_base_url) */
    struct zt_text prefix;         /* of objects' names; empty: all */
    const struct zt_text *matches; /* and any of these globs; none: all names */
    size_t match_count;
    bool to_f32; /* widen floats of up to 16 bits, and quantized tensors */
};

/* Writes the text. Fails with ZT_NOT_FOUND if no object is selected, or ZT_UNSUPPORTED if zarr
 * cannot represent an object, which error names. On ZT_OK, json->failed is set if out of memory, or
 * if the text would be out of proportion to the manifest; in the latter case json->too_long is set
 * too. */
enum zt_status reference_write(struct json *json, const struct generation *generation,
                               const struct reference_wish *wish, struct zt_error *error);

#endif
