/* Metadata of a .mag file: whole numbers and floats by name, as a CBOR map. */
#include "formats/mag_attributes.h"

#include <stdlib.h>
#include <string.h>

#include "cbor/cbor_write.h"
#include "model/name_sort.h"

struct mag_attribute {
    const char *name; /* first, for name_sort.h */
    uint64_t payload;
    uint32_t name_length;
    enum mag_payload kind;
};

static enum zt_status no_memory(struct zt_error *error)
{
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
}

enum zt_status mag_attributes_add(struct mag_attributes *attributes,
                                  const struct zt_builder *builder,
                                  const struct mag_metadata *metadata, struct zt_error *error)
{
    if (attributes->count == attributes->capacity) {
        size_t capacity = attributes->capacity > 0 ? attributes->capacity * 2 : 8;
        struct mag_attribute *list = realloc(attributes->list, capacity * sizeof(*list));

        if (list == NULL)
            return no_memory(error);
        attributes->list = list;
        attributes->capacity = capacity;
    }
    attributes->list[attributes->count++] = (struct mag_attribute){
        .name = (const char *)builder->model->storage->manifest + metadata->key_at,
        .name_length = metadata->key_length,
        .payload = metadata->payload,
        .kind = metadata->kind,
    };
    return ZT_OK;
}

static void put(struct zt_buffer *buffer, const struct mag_attribute *attribute)
{
    double number;

    zt_cbor_put_text(buffer, (struct zt_text){attribute->name, attribute->name_length});
    switch (attribute->kind) {
    case MAG_OPAQUE:
        zt_cbor_put_uint(buffer, attribute->payload);
        break;
    case MAG_I64:
        zt_cbor_put_int(buffer, (int64_t)attribute->payload);
        break;
    case MAG_F64:
        memcpy(&number, &attribute->payload, sizeof(number));
        zt_cbor_put_float(buffer, number);
        break;
    }
}

static enum zt_status encode(const struct mag_attributes *attributes, struct zt_model *model,
                             struct zt_error *error)
{
    struct zt_buffer buffer = {0};
    enum zt_status status = ZT_OK;
    void *held;

    zt_cbor_put_map(&buffer, attributes->count);
    for (size_t i = 0; i < attributes->count; i++)
        put(&buffer, &attributes->list[i]);
    if (buffer.failed)
        status = no_memory(error);
    if (status == ZT_OK)
        status = zt_arena_take(&model->storage->arena, buffer.length, &held, error);
    if (status == ZT_OK) {
        memcpy(held, buffer.bytes, buffer.length);
        model->attributes = (struct zt_text){held, buffer.length};
    }
    zt_buffer_free(&buffer);
    return status;
}

enum zt_status mag_attributes_settle(struct mag_attributes *attributes,
                                     const struct zt_builder *builder, struct zt_error *error)
{
    struct zt_named_array array = {attributes->list, attributes->count, sizeof(*attributes->list),
                                   offsetof(struct mag_attribute, name_length)};
    enum zt_status status;
    size_t second;

    if (attributes->count == 0)
        return ZT_OK;
    status = zt_names_sort(&array, error);
    if (status != ZT_OK)
        return status;
    second = zt_names_duplicate(&array);
    if (second > 0) {
        const char *first_name = attributes->list[second - 1].name;
        const char *name = attributes->list[second].name;

        return zt_fail(error, ZT_INVALID, "mag §Names DuplicateName",
                       zt_builder_offset_of(builder, name > first_name ? name : first_name),
                       "a name occurs twice");
    }
    return encode(attributes, builder->model, error);
}

void mag_attributes_free(struct mag_attributes *attributes)
{
    free(attributes->list);
    attributes->list = NULL;
}
