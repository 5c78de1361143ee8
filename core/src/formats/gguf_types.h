/* GGUF: the types of tensors and of values, as the files number them. */
#ifndef ZT_FORMATS_GGUF_TYPES_H
#define ZT_FORMATS_GGUF_TYPES_H

#include "zt/model.h"

/* One more than the largest tensor type there is. */
#define GGUF_TYPE_COUNT 43

/* A tensor's type. Plain types are dense; the others are blocks that only their layout explains. */
struct gguf_type {
    const char *name;
    /* The layout's text; NULL for plain types. */
    const char *layout;
    uint32_t elements_per_block;
    uint32_t block_bytes;
    enum zt_dtype dtype; /* ZT_U8 for blocks */
};

/* NULL for numbers that never were a type, and for types that were taken out of the format again.
 */
const struct gguf_type *gguf_type_find(uint32_t number);

/* Types of values, "gguf_metadata_value_type". */
enum gguf_value {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_VALUE_COUNT
};

/* The fewest bytes that a value of the type takes: all of them but for strings and arrays. */
unsigned gguf_value_bytes(enum gguf_value type);

#endif
