/* What readers add to a model in the same way: dense tensors of one component, encodings, the names
 * in errors. */
#ifndef ZT_FORMATS_COMPONENT_H
#define ZT_FORMATS_COMPONENT_H

#include "model/model_build.h"

/* A dense tensor stored raw, as most formats describe one. */
struct zt_tensor {
    struct zt_text name; /* lives as long as the model: in its manifest or its arena */
    uint64_t shape[ZT_RANK_MAX];
    uint64_t offset; /* absolute */
    uint64_t length;
    uint8_t rank;
    enum zt_dtype dtype;
    enum zt_logical logical;
};

/* Adds the object, its dimensions and its component "data". ZT_LIMIT, ZT_NO_MEMORY. */
enum zt_status zt_tensor_add(struct zt_builder *builder, const struct zt_tensor *tensor,
                             struct zt_error *error);

/* Sets the encoding of a zTensor 0.1 or 1.x component from its text; no text means raw. The decoded
 * length is known for raw alone. */
void zt_component_set_encoding(struct zt_component *component, struct zt_text encoding);

/* Names object and component (which may be empty) in an error that names none yet. */
void zt_error_within(struct zt_error *error, struct zt_text object, struct zt_text component);

#endif
