/* GGUF: the tensors' entries. */
#include <inttypes.h>
#include <string.h>

#include "cbor/cbor_write.h"
#include "formats/fields.h"
#include "formats/gguf_read.h"
#include "model/layout.h"
#include "zt/utf8.h"

/* Programs that run models take 63 bytes; longer names are told apart all the same. */
#define NAME_MAX_BYTES 1024

/* An entry as it stands in the file. */
struct entry {
    struct zt_text name;
    uint32_t rank;
    uint64_t shape[GGUF_RANK_MAX]; /* slowest first, unlike in the file */
    uint32_t type_number;
    const struct gguf_type *type;
    uint64_t offset; /* from where the data begins */
    uint64_t rank_at;
    uint64_t offset_at;
};

enum zt_status gguf_take_rank(struct gguf_cursor *cursor, uint32_t *out_rank,
                              struct zt_error *error)
{
    uint64_t at = cursor->position;
    uint32_t rank;
    enum zt_status status = gguf_take_u32(cursor, &rank, error);

    if (status != ZT_OK)
        return status;
    if (rank > GGUF_RANK_MAX) {
        return zt_fail(error, ZT_INVALID, "gguf §Tensor Rank", at,
                       "%" PRIu32 " dimensions, more than %d", rank, GGUF_RANK_MAX);
    }
    *out_rank = rank;
    return ZT_OK;
}

/* --- reading --- */

static enum zt_status take_name(struct gguf_cursor *cursor, struct zt_text *out_name,
                                struct zt_error *error)
{
    uint64_t at = cursor->position;
    struct zt_text name;
    enum zt_status status = gguf_take_string(cursor, &name, error);

    if (status != ZT_OK)
        return status;
    if (name.length == 0 || name.length > NAME_MAX_BYTES) {
        return zt_fail(error, ZT_INVALID, "gguf §Tensor Name", at,
                       "a name of %zu bytes, not 1 to %d", name.length, NAME_MAX_BYTES);
    }
    if (!zt_utf8_valid(name.bytes, name.length))
        return zt_fail(error, ZT_INVALID, "gguf §Tensor Name", at, "a name that is not UTF-8");
    *out_name = name;
    return ZT_OK;
}

static enum zt_status take_type(struct gguf_cursor *cursor, struct entry *entry,
                                struct zt_error *error)
{
    uint64_t at = cursor->position;
    enum zt_status status = gguf_take_u32(cursor, &entry->type_number, error);

    if (status != ZT_OK)
        return status;
    entry->type = gguf_type_find(entry->type_number);
    if (entry->type == NULL) {
        return zt_fail(error, ZT_INVALID, "gguf §Tensor Type", at,
                       "tensor type %" PRIu32 " is not known, or was removed", entry->type_number);
    }
    return ZT_OK;
}

/* What follows the name. */
static enum zt_status take_rest(struct gguf_cursor *cursor, struct entry *entry,
                                struct zt_error *error)
{
    enum zt_status status;

    entry->rank_at = cursor->position;
    status = gguf_take_rank(cursor, &entry->rank, error);
    for (uint32_t i = 0; i < entry->rank && status == ZT_OK; i++)
        status = gguf_take_u64(cursor, &entry->shape[entry->rank - 1 - i], error);
    if (status == ZT_OK)
        status = take_type(cursor, entry, error);
    entry->offset_at = cursor->position;
    return status == ZT_OK ? gguf_take_u64(cursor, &entry->offset, error) : status;
}

/* --- rules --- */

static enum zt_status count_bytes(const struct entry *entry, uint64_t *out_bytes,
                                  struct zt_error *error)
{
    uint64_t elements;
    uint64_t fastest = entry->rank > 0 ? entry->shape[entry->rank - 1] : 1;

    if (!zt_shape_product(entry->shape, entry->rank, &elements)) {
        return zt_fail(error, ZT_INVALID, "gguf §Tensor Shape", entry->rank_at,
                       "the number of elements does not fit in 64 bits");
    }
    if (fastest % entry->type->elements_per_block != 0) {
        return zt_fail(error, ZT_INVALID, "gguf §Tensor Shape", entry->rank_at,
                       "rows of %" PRIu64 " elements are not whole blocks of %" PRIu32, fastest,
                       entry->type->elements_per_block);
    }
    if (__builtin_mul_overflow(elements / entry->type->elements_per_block, entry->type->block_bytes,
                               out_bytes)) {
        return zt_fail(error, ZT_INVALID, "gguf §Tensor Shape", entry->rank_at,
                       "the tensor's bytes do not fit in 64 bits");
    }
    return ZT_OK;
}

static enum zt_status check_place(const struct gguf_reading *reading, const struct entry *entry,
                                  uint64_t length, struct zt_error *error)
{
    uint64_t size = reading->builder.model->file_size;

    if (entry->offset % reading->alignment != 0) {
        return zt_fail(error, ZT_INVALID, "gguf §Data BlobAlignment", entry->offset_at,
                       "the offset %" PRIu64 " is not a multiple of %" PRIu32, entry->offset,
                       reading->alignment);
    }
    if (reading->data_offset > size || entry->offset > size - reading->data_offset ||
        length > size - reading->data_offset - entry->offset) {
        return zt_fail(error, ZT_INVALID, "gguf §Data BlobBounds", entry->offset_at,
                       "%" PRIu64 " bytes at %" PRIu64 " of the data, which begins at %" PRIu64
                       ", do not end in a file of %" PRIu64,
                       length, entry->offset, reading->data_offset, size);
    }
    return ZT_OK;
}

/* --- adding --- */

/* Keys in the order of deterministic CBOR. */
static enum zt_status make_attributes(struct gguf_reading *reading, const struct gguf_type *type,
                                      struct zt_text *out_attributes, struct zt_error *error)
{
    struct zt_buffer buffer = {0};
    void *bytes;
    enum zt_status status;

    zt_cbor_put_map(&buffer, 2);
    zt_cbor_put_string(&buffer, "block_bytes");
    zt_cbor_put_uint(&buffer, type->block_bytes);
    zt_cbor_put_string(&buffer, "elems_per_block");
    zt_cbor_put_uint(&buffer, type->elements_per_block);
    status = ZT_OK;
    if (buffer.failed) {
        status = zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
        goto out;
    }
    status = zt_arena_take(&reading->builder.model->storage->arena, buffer.length, &bytes, error);
    if (status == ZT_OK) {
        memcpy(bytes, buffer.bytes, buffer.length);
        *out_attributes = (struct zt_text){bytes, buffer.length};
    }
out:
    zt_buffer_free(&buffer);
    return status;
}

static enum zt_status set_layout(struct gguf_reading *reading, struct zt_object *object,
                                 const struct entry *entry, struct zt_error *error)
{
    struct zt_text *attributes = &reading->type_attributes[entry->type_number];

    if (entry->type->layout == NULL) {
        object->format = "dense";
        object->format_length = 5;
        object->layout = ZT_LAYOUT_DENSE;
        return ZT_OK;
    }
    if (attributes->length == 0) {
        enum zt_status status = make_attributes(reading, entry->type, attributes, error);

        if (status != ZT_OK)
            return status;
    }
    object->format = entry->type->layout;
    object->format_length = (uint32_t)strlen(entry->type->layout);
    object->layout = ZT_LAYOUT_GGUF;
    object->attributes = (const uint8_t *)attributes->bytes;
    object->attributes_length = (uint32_t)attributes->length;
    return ZT_OK;
}

static enum zt_status add_component(struct gguf_reading *reading, const struct entry *entry,
                                    uint64_t length, struct zt_error *error)
{
    struct zt_component *component;
    enum zt_status status = zt_builder_component(&reading->builder, &component, error);

    if (status != ZT_OK)
        return status;
    component->name = "data";
    component->name_length = 4;
    component->dtype = (uint8_t)entry->type->dtype;
    component->logical = ZT_LOGICAL_NONE;
    component->offset = reading->data_offset + entry->offset;
    component->length = length;
    zt_component_set_encoding(component, (struct zt_text){NULL, 0});
    return ZT_OK;
}

static enum zt_status add_tensor(struct gguf_reading *reading, const struct entry *entry,
                                 uint64_t length, struct zt_error *error)
{
    struct zt_object *object;
    enum zt_status status = zt_builder_object(&reading->builder, &object, error);

    if (status != ZT_OK)
        return status;
    object->name = entry->name.bytes;
    object->name_length = (uint32_t)entry->name.length;
    status = set_layout(reading, object, entry, error);
    for (uint32_t i = 0; i < entry->rank && status == ZT_OK; i++)
        status = zt_builder_dimension(&reading->builder, entry->shape[i], error);
    return status == ZT_OK ? add_component(reading, entry, length, error) : status;
}

static enum zt_status read_tensor(struct gguf_reading *reading, struct zt_error *error)
{
    struct entry entry = {0};
    uint64_t length = 0;
    enum zt_status status = take_name(&reading->cursor, &entry.name, error);

    if (status != ZT_OK)
        return status;
    status = take_rest(&reading->cursor, &entry, error);
    if (status == ZT_OK)
        status = count_bytes(&entry, &length, error);
    if (status == ZT_OK)
        status = check_place(reading, &entry, length, error);
    if (status == ZT_OK)
        status = add_tensor(reading, &entry, length, error);
    if (status != ZT_OK)
        zt_error_within(error, entry.name, (struct zt_text){NULL, 0});
    return status;
}

enum zt_status gguf_tensors_read(struct gguf_reading *reading, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    reading->cursor.bounds_rule = GGUF_TENSOR_BOUNDS;
    for (uint64_t i = 0; i < reading->tensor_count && status == ZT_OK; i++)
        status = read_tensor(reading, error);
    return status;
}
