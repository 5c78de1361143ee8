/* References: a JSON text by which zarr reads a model as a group of arrays, through fsspec (version
 * 1 of kerchunk's form). It holds the metadata of zarr's version 3 as texts, and for
 * each array the address of its one chunk: [URL, offset, length]. */
#ifndef DERIVED_REFERENCE_JSON_H
#define DERIVED_REFERENCE_JSON_H

#include "base/json_write.h"
#include "catalog/generation.h"

/* What to refer to; texts are borrowed. */
struct reference_wish {
    const char *base_url;          /* what addresses begin with (request_base_url) */
    struct zt_text prefix;         /* of objects' names; empty: any */
    const struct zt_text *matches; /* and any of these globs; none: any name */
    size_t match_count;
    bool to_f32; /* widens floats of 16 bits and fewer, and quantized tensors */
};

/* Writes the text. ZT_NOT_FOUND if no object is selected; ZT_UNSUPPORTED if zarr cannot hold one of
 * them, which error names. On ZT_OK json->failed is set if memory ran out, or the text would be out
 * of proportion to the manifest; json->too_long is then set as well. */
enum zt_status reference_write(struct json *json, const struct generation *generation,
                               const struct reference_wish *wish, struct zt_error *error);

#endif
