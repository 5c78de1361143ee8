/* Safetensors: the entries of the header, {"dtype": …, "shape": […], "data_offsets": [begin,
 * end]}. */
#include "formats/safetensors/safetensors_tensor.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cut_off.h"
#include "model/locate.h"
#include "model/model_build.h"

/* --- dtypes --- */

struct tensor_type {
    const char *name;
    enum zt_dtype dtype;
    enum zt_logical logical;
    unsigned bits;        /* of one element */
    const char *own_type; /* text of a type that zTensor lacks; logical is UNKNOWN */
};

static const struct tensor_type types[] = {
    {"F32", ZT_F32, ZT_LOGICAL_NONE, 32, NULL},
    {"BF16", ZT_BF16, ZT_LOGICAL_NONE, 16, NULL},
    {"F16", ZT_F16, ZT_LOGICAL_NONE, 16, NULL},
    {"F64", ZT_F64, ZT_LOGICAL_NONE, 64, NULL},
    {"I64", ZT_I64, ZT_LOGICAL_NONE, 64, NULL},
    {"I32", ZT_I32, ZT_LOGICAL_NONE, 32, NULL},
    {"I16", ZT_I16, ZT_LOGICAL_NONE, 16, NULL},
    {"I8", ZT_I8, ZT_LOGICAL_NONE, 8, NULL},
    {"U64", ZT_U64, ZT_LOGICAL_NONE, 64, NULL},
    {"U32", ZT_U32, ZT_LOGICAL_NONE, 32, NULL},
    {"U16", ZT_U16, ZT_LOGICAL_NONE, 16, NULL},
    {"U8", ZT_U8, ZT_LOGICAL_NONE, 8, NULL},
    {"BOOL", ZT_BOOL, ZT_LOGICAL_NONE, 8, NULL},
    {"F8_E4M3", ZT_U8, ZT_LOGICAL_F8_E4M3FN, 8, NULL},
    {"F8_E5M2", ZT_U8, ZT_LOGICAL_F8_E5M2, 8, NULL},
    {"F8_E4M3FNUZ", ZT_U8, ZT_LOGICAL_F8_E4M3FNUZ, 8, NULL},
    {"F8_E5M2FNUZ", ZT_U8, ZT_LOGICAL_F8_E5M2FNUZ, 8, NULL},
    {"F8_E8M0", ZT_U8, ZT_LOGICAL_F8_E8M0, 8, NULL},
    {"F4", ZT_U8, ZT_LOGICAL_F4_E2M1, 4, NULL},
    {"F6_E2M3", ZT_U8, ZT_LOGICAL_UNKNOWN, 6, "f6_e2m3"},
    {"F6_E3M2", ZT_U8, ZT_LOGICAL_UNKNOWN, 6, "f6_e3m2"},
    {"C64", ZT_F32, ZT_LOGICAL_COMPLEX64, 64, NULL},
};

static const struct tensor_type *find_type(struct zt_text name)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (zt_text_is(name, types[i].name))
            return &types[i];
    return NULL;
}

/* --- one entry --- */

/* The part of an entry read so far. Positions of the fields' values; 0 for a field that has not
 * occurred yet. */
struct entry {
    struct safetensors_reading *reading;
    const struct tensor_type *type;
    struct zt_tensor tensor;
    uint64_t elements;
    uint64_t begin;
    uint64_t end;
    uint64_t dtype_at;
    uint64_t shape_at;
    uint64_t offsets_at;
};

static enum zt_status fail_schema(const struct zt_json_item *value, const char *message,
                                  struct zt_error *error)
{
    return zt_fail(error, ZT_INVALID, SAFETENSORS_SCHEMA, value->offset, "%s", message);
}

static enum zt_status read_dtype(struct entry *entry, const struct zt_json_item *value,
                                 struct zt_error *error)
{
    entry->dtype_at = value->offset;
    if (value->kind != ZT_JSON_TEXT)
        return fail_schema(value, "\"dtype\" is not a text", error);
    entry->type = find_type(value->text);
    if (entry->type == NULL) {
        return zt_fail(error, ZT_INVALID, "safetensors §Header Dtype", value->offset,
                       "the dtype \"%.*s\" is not known",
                       value->text.length < 32 ? (int)value->text.length : 0, value->text.bytes);
    }
    return ZT_OK;
}

static enum zt_status read_extent(struct entry *entry, const struct zt_json_item *value,
                                  struct zt_error *error)
{
    struct zt_tensor *tensor = &entry->tensor;
    uint64_t extent;

    if (!zt_json_uint(value, &extent))
        return fail_schema(value, "a dimension is not a whole number below 2^64", error);
    if (tensor->rank == ZT_RANK_MAX)
        return zt_fail(error, ZT_INVALID, "safetensors §Header Shape", entry->shape_at,
                       "more than %d dimensions", ZT_RANK_MAX);
    if (__builtin_mul_overflow(entry->elements, extent, &entry->elements))
        return zt_fail(error, ZT_INVALID, "safetensors §Header Shape", entry->shape_at,
                       "the number of elements does not fit in 64 bits");
    tensor->shape[tensor->rank++] = extent;
    return ZT_OK;
}

static enum zt_status read_shape(struct entry *entry, const struct zt_json_item *value,
                                 struct zt_error *error)
{
    struct zt_json_walk walk = {0};
    struct zt_json_item item;
    bool more = true;

    entry->shape_at = value->offset;
    if (value->kind != ZT_JSON_ARRAY)
        return fail_schema(value, "\"shape\" is not an array", error);
    entry->elements = 1;
    for (;;) {
        enum zt_status status = zt_json_element(&entry->reading->json, &walk, &more, error);

        if (status != ZT_OK || !more)
            return status;
        status = zt_json_next(&entry->reading->json, &item, error);
        if (status == ZT_OK)
            status = read_extent(entry, &item, error);
        if (status != ZT_OK)
            return status;
    }
}

static enum zt_status read_offsets(struct entry *entry, const struct zt_json_item *value,
                                   struct zt_error *error)
{
    struct zt_json_walk walk = {0};
    struct zt_json_item item;
    uint64_t numbers[2];
    unsigned count = 0;
    bool more = true;

    entry->offsets_at = value->offset;
    if (value->kind != ZT_JSON_ARRAY)
        return fail_schema(value, "\"data_offsets\" is not an array", error);
    for (;;) {
        enum zt_status status = zt_json_element(&entry->reading->json, &walk, &more, error);

        if (status != ZT_OK)
            return status;
        if (!more)
            break;
        status = zt_json_next(&entry->reading->json, &item, error);
        if (status != ZT_OK)
            return status;
        if (count == 2 || !zt_json_uint(&item, &numbers[count++])) {
            return fail_schema(&item, "\"data_offsets\" is not two whole numbers below 2^64",
                               error);
        }
    }
    if (count != 2)
        return fail_schema(value, "\"data_offsets\" is not two numbers", error);
    entry->begin = numbers[0];
    entry->end = numbers[1];
    return ZT_OK;
}

static enum zt_status read_field(struct entry *entry, const struct zt_json_item *key,
                                 struct zt_error *error)
{
    static const struct {
        const char *name;
        size_t position_at;
        enum zt_status (*read)(struct entry *entry, const struct zt_json_item *value,
                               struct zt_error *error);
    } fields[] = {
        {"dtype", offsetof(struct entry, dtype_at), read_dtype},
        {"shape", offsetof(struct entry, shape_at), read_shape},
        {"data_offsets", offsetof(struct entry, offsets_at), read_offsets},
    };

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        uint64_t position;
        struct zt_json_item value;
        enum zt_status status;

        if (!zt_text_is(key->text, fields[i].name))
            continue;
        memcpy(&position, (const char *)entry + fields[i].position_at, sizeof(position));
        if (position != 0) {
            return zt_fail(error, ZT_INVALID, SAFETENSORS_DUPLICATE, key->offset + 1,
                           "\"%s\" occurs twice", fields[i].name);
        }
        status = zt_json_next(&entry->reading->json, &value, error);
        return status == ZT_OK ? fields[i].read(entry, &value, error) : status;
    }
    return zt_json_skip(&entry->reading->json, error);
}

static enum zt_status read_fields(struct entry *entry, struct zt_error *error)
{
    struct zt_json_walk walk = {0};
    struct zt_json_item key;
    bool more = true;

    for (;;) {
        enum zt_status status = zt_json_member(&entry->reading->json, &walk, &more, &key, error);

        if (status != ZT_OK || !more)
            return status;
        status = read_field(entry, &key, error);
        if (status != ZT_OK)
            return status;
    }
}

/* --- rules on the fields together --- */

static enum zt_status check_size(const struct entry *entry, struct zt_error *error)
{
    uint64_t bits;

    if (__builtin_mul_overflow(entry->elements, entry->type->bits, &bits)) {
        return zt_fail(error, ZT_INVALID, "safetensors §Header Shape", entry->shape_at,
                       "the tensor's bits do not fit in 64 bits");
    }
    if (bits % 8 != 0) {
        return zt_fail(error, ZT_INVALID, "safetensors §Header Shape", entry->shape_at,
                       "%" PRIu64 " elements of %u bits do not end at a byte", entry->elements,
                       entry->type->bits);
    }
    if (entry->begin > entry->end || entry->end > entry->reading->data_length) {
        return zt_fail(error, ZT_INVALID, "safetensors §Header BlobBounds", entry->offsets_at,
                       "%sbytes %" PRIu64 " to %" PRIu64 " are not within the %" PRIu64
                       " bytes of data",
                       entry->begin <= entry->end ? CUT_OFF : "", entry->begin, entry->end,
                       entry->reading->data_length);
    }
    if (entry->end - entry->begin != bits / 8) {
        return zt_fail(error, ZT_INVALID, "safetensors §Header BlobSize", entry->offsets_at,
                       "%" PRIu64 " bytes where shape and dtype take %" PRIu64,
                       entry->end - entry->begin, bits / 8);
    }
    return ZT_OK;
}

static enum zt_status check_fields(const struct entry *entry, const struct zt_json_item *value,
                                   struct zt_error *error)
{
    if (entry->dtype_at == 0 || entry->shape_at == 0 || entry->offsets_at == 0)
        return fail_schema(value, "a tensor lacks \"dtype\", \"shape\" or \"data_offsets\"", error);
    return check_size(entry, error);
}

static enum zt_status add_tensor(struct entry *entry, struct zt_error *error)
{
    struct zt_builder *builder = entry->reading->builder;
    struct zt_tensor *tensor = &entry->tensor;
    const struct tensor_type *type = entry->type;
    enum zt_status status;

    assert(type != NULL);
    assert(entry->begin <= entry->end && entry->end <= entry->reading->data_length);
    tensor->dtype = type->dtype;
    tensor->logical = type->logical;
    tensor->offset = entry->reading->data_offset + entry->begin;
    tensor->length = entry->end - entry->begin;
    status = zt_tensor_add(builder, tensor, error);
    if (status == ZT_OK && type->own_type != NULL) {
        struct zt_component *component = zt_last_component(builder);

        component->type = type->own_type;
        component->type_length = (uint32_t)strlen(type->own_type);
    }
    return status;
}

enum zt_status safetensors_tensor_read(struct safetensors_reading *reading,
                                       const struct zt_json_item *key, struct zt_error *error)
{
    struct entry entry = {.reading = reading, .tensor.name = key->text};
    struct zt_json_item value;
    enum zt_status status = zt_json_next(&reading->json, &value, error);

    if (status == ZT_OK && value.kind != ZT_JSON_OBJECT)
        status = fail_schema(&value, "a tensor is not an object", error);
    if (status == ZT_OK)
        status = read_fields(&entry, error);
    if (status == ZT_OK)
        status = check_fields(&entry, &value, error);
    if (status == ZT_OK)
        status = add_tensor(&entry, error);
    if (status != ZT_OK)
        zt_error_within(error, key->text, (struct zt_text){NULL, 0});
    return status;
}

/* --- rules on the tensors together --- */

/* Whether the components, in their present order, cover the data one after another. */
static bool tiles_in_order(const struct zt_model *model, uint64_t data_offset)
{
    uint64_t at = data_offset;

    for (uint32_t i = 0; i < model->component_count; i++) {
        if (model->components[i].offset != at)
            return false;
        at += model->components[i].length;
    }
    return at == model->file_size;
}

static int compare_places(const void *a, const void *b)
{
    const struct zt_component *const *left = a;
    const struct zt_component *const *right = b;

    if ((*left)->offset != (*right)->offset)
        return (*left)->offset < (*right)->offset ? -1 : 1;
    return ((*left)->length > (*right)->length) - ((*left)->length < (*right)->length);
}

static enum zt_status fail_tiling(const struct zt_model *model,
                                  const struct zt_component *component, uint64_t at,
                                  struct zt_error *error)
{
    const struct zt_object *object = zt_component_owner(model, component);

    assert(object != NULL);
    if (component->offset < at) {
        zt_fail(error, ZT_INVALID, "safetensors §Header Tiling", component->offset,
                "the tensor's bytes begin inside another tensor's");
    } else {
        zt_fail(error, ZT_INVALID, "safetensors §Header Tiling", at,
                "no tensor covers the %" PRIu64 " bytes before the tensor's",
                component->offset - at);
    }
    zt_error_at(error, zt_object_name(object), zt_component_name(component));
    return ZT_INVALID;
}

static enum zt_status check_sorted(const struct zt_model *model,
                                   const struct zt_component *const *sorted, uint64_t data_offset,
                                   struct zt_error *error)
{
    uint64_t at = data_offset;

    for (uint32_t i = 0; i < model->component_count; i++) {
        if (sorted[i]->offset != at)
            return fail_tiling(model, sorted[i], at, error);
        at += sorted[i]->length;
    }
    if (at != model->file_size) {
        return zt_fail(error, ZT_INVALID, "safetensors §Header Tiling", at,
                       "no tensor covers the last %" PRIu64 " bytes of the file",
                       model->file_size - at);
    }
    return ZT_OK;
}

enum zt_status safetensors_tiling_check(const struct zt_model *model, uint64_t data_offset,
                                        struct zt_error *error)
{
    const struct zt_component **sorted;
    enum zt_status status;

    if (tiles_in_order(model, data_offset))
        return ZT_OK;
    sorted = malloc((model->component_count + 1) * sizeof(*sorted));
    if (sorted == NULL) {
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET,
                       "no memory to compare the tensors' ranges");
    }
    for (uint32_t i = 0; i < model->component_count; i++)
        sorted[i] = &model->components[i];
    qsort(sorted, model->component_count, sizeof(*sorted), compare_places);
    status = check_sorted(model, sorted, data_offset, error);
    free(sorted);
    return status;
}
