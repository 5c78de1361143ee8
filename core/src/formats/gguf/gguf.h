/* GGUF: declarations that its three files share. gguf.c locates the header, gguf_metadata.c reads
 * keys and values, gguf_tensor.c reads the tensors' entries. */
#ifndef ZT_FORMATS_GGUF_GGUF_H
#define ZT_FORMATS_GGUF_GGUF_H

#include "bytes/cursor.h"
#include "formats/attribute_list.h"

/* One more than the largest number of a tensor type. */
#define GGUF_TYPE_COUNT 43
/* The deepest nesting of arrays. */
#define GGUF_DEPTH_MAX 32
/* The same bound as for a zTensor manifest. */
#define GGUF_HEADER_MAX_BYTES (1ull << 30)

/* Types of values, called gguf_metadata_value_type in the specification. */
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

struct gguf_reading {
    struct zt_builder *builder;
    struct zt_cursor cursor; /* over the header in memory */
    struct zt_text version;
    uint64_t tensor_count;
    uint64_t pair_count;
    uint32_t alignment;
    uint64_t data_offset; /* absolute */
    /* For each type, the attributes that all its tensors share; made for the first such tensor. */
    struct zt_text type_attributes[GGUF_TYPE_COUNT];
};

/* --- the header over the file: passing over it to find its end --- */

/* Reads a string's length and checks that as many bytes follow. */
enum zt_status gguf_take_length(struct zt_cursor *cursor, uint64_t *out_length,
                                struct zt_error *error);
/* Rejects a cursor position past GGUF_HEADER_MAX_BYTES, which bounds every walk over the file. */
enum zt_status gguf_check_size(const struct zt_cursor *cursor, struct zt_error *error);
/* Skip all pairs, or all entries, comparing every length and count in them with the remaining
 * bytes. */
enum zt_status gguf_metadata_skip(struct zt_cursor *cursor, uint64_t count, struct zt_error *error);
enum zt_status gguf_tensors_skip(struct zt_cursor *cursor, uint64_t count, struct zt_error *error);

/* --- the header in memory --- */

/* The rule for one kind of name. */
struct gguf_name_rule {
    const char *what; /* for messages */
    const char *rule;
    size_t length_max;
};

/* Reads a string of 1 to length_max bytes of UTF-8, borrowed from the header. */
enum zt_status gguf_take_name(struct zt_cursor *cursor, const struct gguf_name_rule *rule,
                              struct zt_text *out_name, struct zt_error *error);

/* Reads all keys and values into the model's attributes, in the file's order, and takes the
 * alignment from them. */
enum zt_status gguf_metadata_read(struct gguf_reading *reading, struct zt_error *error);

/* Reads the entries of all tensors. data_offset must be set. */
enum zt_status gguf_tensors_read(struct gguf_reading *reading, struct zt_error *error);

#endif
