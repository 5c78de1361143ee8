/* GGUF: keys and values, which become one CBOR map. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/fields.h"
#include "formats/gguf_read.h"
#include "formats/gguf_values.h"
#include "zt/utf8.h"

#define KEY_MAX_BYTES 65535
/* Where "general.alignment" does not say otherwise. */
#define DEFAULT_ALIGNMENT 32
#define LEAST_ALIGNMENT   8

/* As zt_names_sort wants them. */
struct metadata_key {
    const char *bytes;
    uint32_t length;
};

static enum zt_status no_memory(struct zt_error *error)
{
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
}

static enum zt_status take_key(struct gguf_cursor *cursor, struct zt_text *out_key,
                               struct zt_error *error)
{
    uint64_t at = cursor->position;
    struct zt_text key;
    enum zt_status status = gguf_take_string(cursor, &key, error);

    if (status != ZT_OK)
        return status;
    if (key.length == 0 || key.length > KEY_MAX_BYTES) {
        return zt_fail(error, ZT_INVALID, "gguf §Metadata Key", at,
                       "a key of %zu bytes, not 1 to %d", key.length, KEY_MAX_BYTES);
    }
    if (!zt_utf8_valid(key.bytes, key.length))
        return zt_fail(error, ZT_INVALID, "gguf §Metadata Key", at, "a key that is not UTF-8");
    *out_key = key;
    return ZT_OK;
}

/* The cursor stands at the value, which is looked at and left to be read. */
static enum zt_status look_at_alignment(struct gguf_reading *reading, enum gguf_value type,
                                        struct zt_error *error)
{
    struct gguf_cursor cursor = reading->cursor;
    uint32_t alignment;
    enum zt_status status;

    if (type != GGUF_U32) {
        return zt_fail(error, ZT_INVALID, "gguf §Metadata Alignment", cursor.position,
                       "general.alignment is not a 32-bit unsigned integer");
    }
    status = gguf_take_u32(&cursor, &alignment, error);
    if (status != ZT_OK)
        return status;
    if (alignment < LEAST_ALIGNMENT || (alignment & (alignment - 1)) != 0) {
        return zt_fail(error, ZT_INVALID, "gguf §Metadata Alignment", reading->cursor.position,
                       "general.alignment is %" PRIu32 ", not a power of two from %d on", alignment,
                       LEAST_ALIGNMENT);
    }
    reading->alignment = alignment;
    return ZT_OK;
}

static enum zt_status read_pair(struct gguf_reading *reading, struct metadata_key *out_key,
                                struct zt_buffer *buffer, struct zt_error *error)
{
    struct zt_text key;
    enum gguf_value type;
    enum zt_status status = take_key(&reading->cursor, &key, error);

    if (status == ZT_OK)
        status = gguf_take_value_type(&reading->cursor, &type, error);
    if (status == ZT_OK && zt_text_is(key, "general.alignment"))
        status = look_at_alignment(reading, type, error);
    if (status != ZT_OK)
        return status;
    zt_cbor_put_text(buffer, key);
    *out_key = (struct metadata_key){key.bytes, (uint32_t)key.length};
    status = gguf_value_encode(&reading->cursor, type, buffer, error);
    return status == ZT_OK && buffer->failed ? no_memory(error) : status;
}

static enum zt_status check_keys(const struct gguf_reading *reading, struct metadata_key *list,
                                 struct zt_error *error)
{
    struct zt_named_array keys = {list, (size_t)reading->pair_count, sizeof(*list),
                                  offsetof(struct metadata_key, length)};
    enum zt_status status = zt_names_sort(&keys, error);
    size_t second = status == ZT_OK ? zt_names_duplicate(&keys) : 0;

    if (second > 0) {
        const char *a = list[second - 1].bytes;
        const char *b = list[second].bytes;

        return zt_fail(error, ZT_INVALID, "gguf §Metadata DuplicateKey",
                       zt_builder_offset_of(&reading->builder, a > b ? a : b),
                       "a key occurs twice");
    }
    return status;
}

/* The buffer grows as it is filled; what the model keeps is as long as it is. */
static enum zt_status keep_attributes(struct zt_model *model, const struct zt_buffer *buffer,
                                      struct zt_error *error)
{
    void *bytes;
    enum zt_status status = zt_arena_take(&model->storage->arena, buffer->length, &bytes, error);

    if (status == ZT_OK) {
        memcpy(bytes, buffer->bytes, buffer->length);
        model->attributes = (struct zt_text){bytes, buffer->length};
    }
    return status;
}

enum zt_status gguf_metadata_read(struct gguf_reading *reading, struct zt_error *error)
{
    struct zt_buffer buffer = {0};
    enum zt_status status = ZT_OK;
    struct metadata_key *keys;

    reading->alignment = DEFAULT_ALIGNMENT;
    if (reading->pair_count == 0)
        return ZT_OK;
    /* The header was walked to its end before: so many pairs are in it. */
    keys = malloc((size_t)reading->pair_count * sizeof(*keys));
    if (keys == NULL)
        return no_memory(error);
    reading->cursor.bounds_rule = GGUF_METADATA_BOUNDS;
    zt_cbor_put_map(&buffer, reading->pair_count);
    for (uint64_t i = 0; i < reading->pair_count && status == ZT_OK; i++)
        status = read_pair(reading, &keys[i], &buffer, error);
    if (status == ZT_OK)
        status = check_keys(reading, keys, error);
    if (status == ZT_OK)
        status = keep_attributes(reading->builder.model, &buffer, error);
    zt_buffer_free(&buffer);
    free(keys);
    return status;
}
