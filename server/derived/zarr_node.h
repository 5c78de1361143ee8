/* The metadata of an array or group of zarr version 3 as JSON. */
#ifndef DERIVED_ZARR_NODE_H
#define DERIVED_ZARR_NODE_H

#include "base/json_write.h"
#include "base/memory.h"
#include "derived/zarr_array.h"

/* Holds one node; writing the next one replaces it. */
struct zarr_node {
    struct json json;      /* the node, without a newline at its end */
    struct zt_buffer text; /* for attributes and names, before they become values */
};

void zarr_node_init(struct zarr_node *node);
void zarr_node_free(struct zarr_node *node);

/* Returns true if memory has ever run out. */
bool zarr_node_failed(const struct zarr_node *node);

/* attributes: a CBOR map, or empty. consolidated: the metadata of all nodes below by path, as a
 * JSON object; NULL: none. */
void zarr_node_group(struct zarr_node *node, struct zt_text attributes,
                     const struct json *consolidated);
void zarr_node_array(struct zarr_node *node, const struct zt_model *model,
                     const struct zarr_array *array);

/* Ends the object in a text without a final newline, because the text becomes a value in another
 * object. */
void zarr_text_end(struct json *json);

#endif
