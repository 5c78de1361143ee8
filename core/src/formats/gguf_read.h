/* GGUF: from the header's bytes to a model under construction. Called by gguf.c alone. */
#ifndef ZT_FORMATS_GGUF_READ_H
#define ZT_FORMATS_GGUF_READ_H

#include "formats/gguf_cursor.h"
#include "model/model_build.h"

/* Bytes that stand before the metadata: magic, version and two counts. */
#define GGUF_HEAD_BYTES 24

struct gguf_reading {
    struct zt_builder builder;
    struct gguf_cursor cursor; /* over the header in memory */
    uint64_t tensor_count;
    uint64_t pair_count;
    uint32_t alignment;
    uint64_t data_offset; /* absolute */
    /* The attributes of tensors of one type are the same bytes: made with the first of them. */
    struct zt_text type_attributes[GGUF_TYPE_COUNT];
};

/* What broken bounds are called while the metadata, and the tensors' entries, are read. */
#define GGUF_METADATA_BOUNDS "gguf §Metadata Bounds"
#define GGUF_TENSOR_BOUNDS   "gguf §Tensor Bounds"
/* The spec's bound on dimensions. */
#define GGUF_RANK_MAX 4

/* Reads the number of dimensions, at most GGUF_RANK_MAX. Rule "gguf §Tensor Rank". */
enum zt_status gguf_take_rank(struct gguf_cursor *cursor, uint32_t *out_rank,
                              struct zt_error *error);

/* Reads all keys and values into the model's attributes, in the file's order, and finds the
 * alignment among them. */
enum zt_status gguf_metadata_read(struct gguf_reading *reading, struct zt_error *error);

/* Reads all tensors' entries, once data_offset is known. */
enum zt_status gguf_tensors_read(struct gguf_reading *reading, struct zt_error *error);

#endif
