/* safetensors: the length of a JSON header, the header, and the data without gaps.
 *
 * Tensors are in the reference writer's order: by type, from wide to narrow as that writer lists
 * them, and then by name. The header is padded with spaces to a multiple of eight bytes. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "cbor/cbor_read.h"
#include "write/planning.h"

#define HEADER_MAX_BYTES 100000000
#define LENGTH_BYTES     8

/* In the order of the data in a file. */
static const struct {
    const char *name;
    enum zt_dtype dtype;
    enum zt_logical logical;
    /* For types that zTensor lacks (ZT_LOGICAL_UNKNOWN), the type's text as this library's
     * safetensors reader sets it. */
    const char *text;
} types[] = {
    {"U64", ZT_U64, ZT_LOGICAL_NONE, NULL},
    {"I64", ZT_I64, ZT_LOGICAL_NONE, NULL},
    {"F64", ZT_F64, ZT_LOGICAL_NONE, NULL},
    {"C64", ZT_F32, ZT_LOGICAL_COMPLEX64, NULL},
    {"F32", ZT_F32, ZT_LOGICAL_NONE, NULL},
    {"U32", ZT_U32, ZT_LOGICAL_NONE, NULL},
    {"I32", ZT_I32, ZT_LOGICAL_NONE, NULL},
    {"BF16", ZT_BF16, ZT_LOGICAL_NONE, NULL},
    {"F16", ZT_F16, ZT_LOGICAL_NONE, NULL},
    {"U16", ZT_U16, ZT_LOGICAL_NONE, NULL},
    {"I16", ZT_I16, ZT_LOGICAL_NONE, NULL},
    {"F8_E5M2FNUZ", ZT_U8, ZT_LOGICAL_F8_E5M2FNUZ, NULL},
    {"F8_E4M3FNUZ", ZT_U8, ZT_LOGICAL_F8_E4M3FNUZ, NULL},
    {"F8_E8M0", ZT_U8, ZT_LOGICAL_F8_E8M0, NULL},
    {"F8_E4M3", ZT_U8, ZT_LOGICAL_F8_E4M3FN, NULL},
    {"F8_E5M2", ZT_U8, ZT_LOGICAL_F8_E5M2, NULL},
    {"I8", ZT_I8, ZT_LOGICAL_NONE, NULL},
    {"U8", ZT_U8, ZT_LOGICAL_NONE, NULL},
    {"F6_E3M2", ZT_U8, ZT_LOGICAL_UNKNOWN, "f6_e3m2"},
    {"F6_E2M3", ZT_U8, ZT_LOGICAL_UNKNOWN, "f6_e2m3"},
    {"F4", ZT_U8, ZT_LOGICAL_F4_E2M1, NULL},
    {"BOOL", ZT_BOOL, ZT_LOGICAL_NONE, NULL},
};

#define TYPE_COUNT (sizeof(types) / sizeof(types[0]))

static bool is_type(size_t rank, const struct zt_component *component)
{
    const char *text;

    assert(rank < TYPE_COUNT);
    text = types[rank].text;
    if (types[rank].dtype != component->dtype || types[rank].logical != component->logical)
        return false;
    return text == NULL ||
           zt_text_is((struct zt_text){component->type, component->type_length}, text);
}

/* The position of a component's type in the order; TYPE_COUNT if safetensors has no such type. */
static size_t type_rank(const struct zt_component *component)
{
    size_t rank = 0;

    while (rank < TYPE_COUNT && !is_type(rank, component))
        rank++;
    return rank;
}

const char *safetensors_type(const struct zt_component *component)
{
    size_t rank = type_rank(component);

    return rank < TYPE_COUNT ? types[rank].name : NULL;
}

/* --- the order of data --- */

static int compare_objects(const void *a, const void *b, void *context)
{
    const struct zt_model *model = context;
    uint32_t first = *(const uint32_t *)a;
    uint32_t second = *(const uint32_t *)b;
    size_t first_rank = type_rank(zt_object_components(model, &model->objects[first]));
    size_t second_rank = type_rank(zt_object_components(model, &model->objects[second]));

    if (first_rank != second_rank)
        return first_rank < second_rank ? -1 : 1;
    return (first > second) - (first < second); /* objects are sorted by name */
}

static uint32_t *make_order(const struct zt_model *model)
{
    uint32_t *order = calloc(model->object_count + (size_t)1, sizeof(*order));

    if (order == NULL)
        return NULL;
    for (uint32_t i = 0; i < model->object_count; i++)
        order[i] = i;
    qsort_r(order, model->object_count, sizeof(*order), compare_objects, (void *)(uintptr_t)model);
    return order;
}

/* --- JSON --- */

static void put(struct zt_buffer *buffer, const char *text)
{
    zt_buffer_append(buffer, text, strlen(text));
}

static void put_uint(struct zt_buffer *buffer, uint64_t value)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%" PRIu64, value);
    put(buffer, digits);
}

/* JSON's escape for a character, or NULL if it stands for itself. */
static const char *escape(unsigned char character, char scratch[8])
{
    static const char letters[] = "\b\f\n\r\t\"\\";
    static const char *const escapes[] = {"\\b", "\\f", "\\n", "\\r", "\\t", "\\\"", "\\\\"};
    const char *letter = character != 0 ? strchr(letters, character) : NULL;

    if (letter != NULL)
        return escapes[letter - letters];
    if (character >= 0x20)
        return NULL;
    snprintf(scratch, 8, "\\u%04x", character);
    return scratch;
}

static void put_text(struct zt_buffer *buffer, struct zt_text text)
{
    char scratch[8];
    size_t plain = 0;

    put(buffer, "\"");
    for (size_t i = 0; i < text.length; i++) {
        const char *escaped = escape((unsigned char)text.bytes[i], scratch);

        if (escaped == NULL)
            continue;
        zt_buffer_append(buffer, text.bytes + plain, i - plain);
        put(buffer, escaped);
        plain = i + 1;
    }
    zt_buffer_append(buffer, text.bytes + plain, text.length - plain);
    put(buffer, "\"");
}

/* The projection has made the model's attributes a map of texts. */
static enum zt_status put_metadata(struct zt_buffer *buffer, struct zt_text attributes,
                                   struct zt_error *error)
{
    struct zt_cbor_reader reader;
    struct zt_cbor_item map;
    struct zt_cbor_item item;
    enum zt_status status;

    if (attributes.length == 0)
        return ZT_OK;
    zt_cbor_reader_init(&reader, attributes.bytes, attributes.length, 0, ZT_CBOR_ZT1, NULL);
    status = zt_cbor_next(&reader, &map, error);
    put(buffer, "\"__metadata__\":{");
    for (uint64_t i = 0; status == ZT_OK && i < 2 * map.value; i++) {
        status = zt_cbor_next(&reader, &item, error);
        if (status != ZT_OK)
            break;
        put(buffer, i == 0 ? "" : i % 2 == 0 ? "," : ":");
        put_text(buffer, (struct zt_text){(const char *)item.bytes, (size_t)item.value});
    }
    put(buffer, "}");
    return status;
}

static void put_entry(struct zt_buffer *buffer, const struct zt_model *model,
                      const struct zt_object *object, uint64_t begin)
{
    const struct zt_component *data = zt_object_components(model, object);
    const uint64_t *shape = zt_object_shape(model, object);

    put(buffer, buffer->length > LENGTH_BYTES + 1 ? "," : "");
    put_text(buffer, zt_object_name(object));
    put(buffer, ":{\"dtype\":\"");
    assert(safetensors_type(data) != NULL); /* checked by the projection */
    put(buffer, safetensors_type(data));
    put(buffer, "\",\"shape\":[");
    for (unsigned i = 0; i < object->rank; i++) {
        put(buffer, i > 0 ? "," : "");
        put_uint(buffer, shape[i]);
    }
    put(buffer, "],\"data_offsets\":[");
    put_uint(buffer, begin);
    put(buffer, ",");
    put_uint(buffer, begin + data->decoded_length);
    put(buffer, "]}");
}

/* --- the whole --- */

static enum zt_status put_header(struct zt_planning *planning, const uint32_t *order,
                                 struct zt_buffer *header)
{
    const struct zt_model *model = planning->projection->model;
    uint64_t begin = 0;
    enum zt_status status;
    uint64_t length;

    zt_buffer_append_le64(header, 0);
    put(header, "{");
    status = put_metadata(header, model->attributes, planning->error);
    for (uint32_t i = 0; i < model->object_count && status == ZT_OK; i++) {
        const struct zt_object *object = &model->objects[order[i]];

        status = zt_planning_place(planning, &begin, object->first_component, 1);
        if (status == ZT_OK)
            put_entry(header, model, object, begin);
        begin += zt_object_components(model, object)->decoded_length;
    }
    put(header, "}");
    while (!header->failed && header->length % 8 != 0)
        put(header, " ");
    if (status != ZT_OK || header->failed)
        return status != ZT_OK ? status : zt_fail_memory(planning->error, "a file plan");
    length = header->length - LENGTH_BYTES;
    if (length > HEADER_MAX_BYTES)
        return zt_fail(planning->error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                       "safetensors cannot hold a header of more than 100 MB");
    assert(header->length % 8 == 0);
    zt_store_le64(header->bytes, length);
    return ZT_OK;
}

enum zt_status safetensors_plan(struct zt_planning *planning)
{
    const struct zt_model *model = planning->projection->model;
    struct zt_buffer header = {0};
    uint32_t *order = make_order(model);
    enum zt_status status;

    if (order == NULL)
        return zt_fail_memory(planning->error, "a file plan");
    status = put_header(planning, order, &header);
    if (status == ZT_OK)
        status = zt_planning_add(planning, 0, &header);
    for (uint32_t i = 0; i < model->object_count && status == ZT_OK; i++)
        status = zt_planning_component(planning, planning->plan->length,
                                       model->objects[order[i]].first_component);
    zt_buffer_free(&header);
    free(order);
    return status;
}
