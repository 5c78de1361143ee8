/* The metadata of one array or group of zarr's version 3, written as JSON. */
#ifndef DERIVED_ZARR_NODE_H
#define DERIVED_ZARR_NODE_H

#include "base/json_write.h"
#include "base/memory.h"
#include "derived/zarr_array.h"

/* One node after the other; each replaces the one before. */
struct zarr_node {
    struct json json;      /* the node, without a newline at its end */
    struct zt_buffer text; /* for attributes and names, before they become values */
};

void zarr_node_init(struct zarr_node *node);
void zarr_node_free(struct zarr_node *node);

/* Whether memory ran out at any time. */
bool zarr_node_failed(const struct zarr_node *node);

/* attributes: a CBOR map, or empty. consolidated: the metadata of all nodes below by path, a JSON
 * object; NULL: none. */
void zarr_node_group(struct zarr_node *node, struct zt_text attributes,
                     const struct json *consolidated);
void zarr_node_array(struct zarr_node *node, const struct zt_model *model,
                     const struct zarr_array *array);

/* Ends the object that a text is, without the newline of an answer: the text becomes a value in
 * another one. */
void zarr_text_end(struct json *json);

#endif
