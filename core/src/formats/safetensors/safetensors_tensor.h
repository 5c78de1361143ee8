/* Safetensors: reading a tensor's entry of the header, and checking that the tensors cover the
 * data. Called only by safetensors.c. */
#ifndef ZT_FORMATS_SAFETENSORS_SAFETENSORS_TENSOR_H
#define ZT_FORMATS_SAFETENSORS_SAFETENSORS_TENSOR_H

#include "cbor/json_read.h"
#include "model/model_build.h"

#define SAFETENSORS_DUPLICATE "safetensors §Header DuplicateKey"
#define SAFETENSORS_SCHEMA    "safetensors §Header Schema"

struct safetensors_reading {
    struct zt_builder *builder;
    struct zt_json_reader json;
    /* Position in the file and length of the bytes after the header. */
    uint64_t data_offset;
    uint64_t data_length;
    bool has_metadata;
};

/* Reads the value of the member `key` of the header and adds the object that it describes. */
enum zt_status safetensors_tensor_read(struct safetensors_reading *reading,
                                       const struct zt_json_item *key, struct zt_error *error);

/* Rejects data that the tensors do not cover from beginning to end, each byte exactly once. */
enum zt_status safetensors_tiling_check(const struct zt_model *model, uint64_t data_offset,
                                        struct zt_error *error);

#endif
