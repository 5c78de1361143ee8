/* Projecting to the formats that hold only dense tensors: safetensors, NPZ, NPY and .mag.
 *
 * Attributes for which the format has no place are left out, counted and named. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "cbor/attributes_encode.h"
#include "cbor/cbor_read.h"
#include "write/planning.h"
#include "write/projecting.h"
#include "write/widening.h"

#define MAG_RANK_MAX 6
/* Bound on .mag's keys, and on names in a ZIP archive including ".npy". */
#define NAME_MAX_BYTES 65535
/* Percent-encoding makes a name at most this many times as long. */
#define ZIP_NAME_FACTOR 3

/* --- the model's attributes --- */

static bool holds(enum zt_target target, const struct zt_cbor_item *value)
{
    return (target == ZT_TARGET_SAFETENSORS && value->kind == ZT_CBOR_TEXT) ||
           (target == ZT_TARGET_MAG && value->kind == ZT_CBOR_UINT);
}

static bool is_mag_key(const struct zt_cbor_item *key)
{
    return key->value > 0 && key->value <= NAME_MAX_BYTES &&
           memchr(key->bytes, 0, (size_t)key->value) == NULL;
}

/* Names an attribute that is left out, unless enough are named. The key may be temporary. */
static enum zt_status name_left_out(struct zt_projecting *projecting, struct zt_text object,
                                    const struct zt_cbor_item *key)
{
    struct zt_projection *projection = projecting->projection;
    const struct zt_text text = {(const char *)key->bytes, (size_t)key->value};
    struct zt_left_out named = {.object = object};
    enum zt_status status;

    assert(projection->named_count <= ZT_LEFT_OUT_NAMED);
    if (projection->named_count == ZT_LEFT_OUT_NAMED || key->kind != ZT_CBOR_TEXT)
        return ZT_OK;
    status = zt_project_keep(projecting, text, &named.name);
    if (status == ZT_OK)
        projection->named[projection->named_count++] = named;
    return status;
}

/* Encodes a pair if the target can hold it, otherwise counts and names it as left out. */
static enum zt_status project_pair(struct zt_projecting *projecting, struct zt_cbor_reader *reader,
                                   const struct zt_cbor_item *key, struct zt_buffer *pairs,
                                   uint64_t *count)
{
    enum zt_target target = projecting->projection->target;
    struct zt_cbor_reader ahead = *reader;
    struct zt_cbor_item value;
    enum zt_status status = zt_cbor_next(&ahead, &value, projecting->error);

    if (status == ZT_OK && holds(target, &value) && (target != ZT_TARGET_MAG || is_mag_key(key))) {
        zt_cbor_put_text(pairs, (struct zt_text){(const char *)key->bytes, (size_t)key->value});
        if (value.kind == ZT_CBOR_TEXT)
            zt_cbor_put_text(pairs,
                             (struct zt_text){(const char *)value.bytes, (size_t)value.value});
        else
            zt_cbor_put_uint(pairs, value.value);
        (*count)++;
    } else {
        projecting->projection->left_out++;
        if (status == ZT_OK)
            status = name_left_out(projecting, (struct zt_text){NULL, 0}, key);
    }
    return status == ZT_OK ? zt_cbor_skip(reader, projecting->error) : status;
}

static enum zt_status project_pairs(struct zt_projecting *projecting, struct zt_arena *arena,
                                    struct zt_buffer *pairs, uint64_t *out_count)
{
    struct zt_text map = projecting->source->attributes;
    struct zt_cbor_reader reader;
    struct zt_cbor_item item;
    struct zt_cbor_walk walk;
    enum zt_status status;

    zt_cbor_reader_init(&reader, map.bytes, map.length, 0, ZT_CBOR_ZT1, arena);
    status = zt_cbor_next(&reader, &item, projecting->error);
    if (status != ZT_OK)
        return status;
    walk = zt_cbor_enter(&reader, &item);
    while (status == ZT_OK && zt_cbor_more(&reader, &walk)) {
        status = zt_cbor_key(&reader, &walk, &item, projecting->error);
        if (status == ZT_OK)
            status = project_pair(projecting, &reader, &item, pairs, out_count);
    }
    return status;
}

/* A map without pairs is kept where the target has one: readers tell it from none. */
static bool is_empty_map(const struct zt_projecting *projecting)
{
    return projecting->projection->target == ZT_TARGET_SAFETENSORS &&
           zt_attributes_count(projecting->source->attributes) == 0;
}

/* Keeps the attributes that the target can hold, as a map sorted bytewise by key. */
enum zt_status zt_project_dense_model(struct zt_projecting *projecting)
{
    struct zt_buffer pairs = {0};
    struct zt_buffer map = {0};
    struct zt_buffer sorted = {0};
    struct zt_arena arena;
    uint64_t count = 0;
    enum zt_status status = ZT_OK;

    if (projecting->source->attributes.length == 0)
        return ZT_OK;
    if (is_empty_map(projecting)) {
        projecting->model->attributes = (struct zt_text){"\xa0", 1};
        return ZT_OK;
    }
    zt_arena_init(&arena, SIZE_MAX / 2);
    status = project_pairs(projecting, &arena, &pairs, &count);
    if (status != ZT_OK || count == 0)
        goto out;
    zt_cbor_put_map(&map, count);
    zt_buffer_append(&map, pairs.bytes, pairs.length);
    if (pairs.failed || map.failed) {
        status = zt_fail_memory(projecting->error, "a projection");
        goto out;
    }
    status = zt_attributes_encode((struct zt_text){(const char *)map.bytes, map.length},
                                  ZT_ATTRIBUTES_ZT1, 1, &sorted, projecting->error);
    if (status == ZT_OK)
        status =
            zt_project_keep(projecting, (struct zt_text){(const char *)sorted.bytes, sorted.length},
                            &projecting->model->attributes);
out:
    zt_arena_free(&arena);
    zt_buffer_free(&pairs);
    zt_buffer_free(&map);
    zt_buffer_free(&sorted);
    return status;
}

/* --- one object --- */

static enum zt_status check_type(const struct zt_projecting *projecting,
                                 const struct zt_component *part)
{
    const char *type = part->type != NULL ? part->type : zt_dtype_name((enum zt_dtype)part->dtype);
    int length = part->type != NULL ? (int)(part->type_length < 60 ? part->type_length : 60)
                                    : (int)strlen(type);
    bool known = false;

    switch (projecting->projection->target) {
    case ZT_TARGET_SAFETENSORS:
        known = safetensors_type(part) != NULL;
        break;
    case ZT_TARGET_MAG:
        known = mag_type(part) >= 0;
        break;
    default:
        known = npy_type(part) != NULL;
        break;
    }
    return known ? ZT_OK : zt_project_fail(projecting, part, "data of type \"%.*s\"", length, type);
}

static enum zt_status check_mag(const struct zt_projecting *projecting)
{
    const struct zt_object *object = projecting->object;
    const uint64_t *shape = zt_object_shape(projecting->model, object);

    assert(projecting->projection->target == ZT_TARGET_MAG);
    if (object->rank < 1 || object->rank > MAG_RANK_MAX)
        return zt_project_fail(projecting, NULL, "%u dimensions: it takes 1 to 6", object->rank);
    for (unsigned i = 0; i < object->rank; i++)
        if (shape[i] == 0 || shape[i] > INT64_MAX)
            return zt_project_fail(projecting, NULL, "a dimension of %" PRIu64, shape[i]);
    return ZT_OK;
}

static enum zt_status check_name(const struct zt_projecting *projecting)
{
    const struct zt_object *object = projecting->object;
    enum zt_target target = projecting->projection->target;
    uint32_t longest =
        target == ZT_TARGET_NPZ ? (NAME_MAX_BYTES - 4) / ZIP_NAME_FACTOR : NAME_MAX_BYTES;

    if (target == ZT_TARGET_NPY)
        return ZT_OK;
    if (target == ZT_TARGET_SAFETENSORS) {
        if (zt_text_is(zt_object_name(object), "__metadata__"))
            return zt_project_fail(projecting, NULL, "an object with that name, which is reserved");
        return ZT_OK;
    }
    if (object->name_length > longest || (object->name_length == 0 && target != ZT_TARGET_NPZ))
        return zt_project_fail(projecting, NULL, "a name of %u bytes", object->name_length);
    if (memchr(object->name, 0, object->name_length) != NULL)
        return zt_project_fail(projecting, NULL, "a name with a NUL character");
    return ZT_OK;
}

/* Checks that an object's bits fill whole bytes, as safetensors requires. The library does not know
 * six-bit types, so their size was not checked against the shape when the model was opened. */
static enum zt_status check_bits(const struct zt_projecting *projecting,
                                 const struct zt_component *part)
{
    uint64_t elements = zt_object_elements(projecting->model, projecting->object);

    assert(projecting->projection->target == ZT_TARGET_SAFETENSORS);
    if (part->logical == ZT_LOGICAL_F4_E2M1 && elements % 2 != 0)
        return zt_project_fail(projecting, part, "an odd number of four-bit elements");
    if (part->logical != ZT_LOGICAL_UNKNOWN)
        return ZT_OK;
    if (elements % 4 != 0 || part->decoded_length % 3 != 0 ||
        part->decoded_length / 3 != elements / 4)
        return zt_project_fail(projecting, part, "six-bit elements that do not fill whole bytes");
    return ZT_OK;
}

static bool is_dense(const struct zt_projecting *projecting)
{
    const struct zt_object *object = projecting->object;
    const struct zt_component *part = zt_projecting_parts(projecting);

    return object->layout == ZT_LAYOUT_DENSE && object->component_count == 1 &&
           zt_text_is(zt_component_name(part), "data");
}

static enum zt_status refuse_layout(const struct zt_projecting *projecting)
{
    const struct zt_object *object = projecting->object;
    const char *advice = "";

    if (zt_object_widener(projecting->source, projecting->from) != NULL)
        advice = "; dtype=f32 (--dtype f32) gives its dequantized values";
    else if (object->layout == ZT_LAYOUT_GGUF)
        advice = "; blocks of this type have no dequantized values";
    return zt_project_fail(projecting, NULL, "an object of format \"%.*s\": only dense ones%s",
                           (int)(object->format_length < 60 ? object->format_length : 60),
                           object->format, advice);
}

/* Counts and names the attributes of the current object: no dense format has a place for them. */
static enum zt_status leave_out_attributes(struct zt_projecting *projecting)
{
    const struct zt_object *from = projecting->from;
    const struct zt_text map = {(const char *)from->attributes, from->attributes_length};
    struct zt_cbor_reader reader;
    struct zt_cbor_item item;
    struct zt_cbor_walk walk;
    struct zt_arena arena;
    enum zt_status status;

    projecting->projection->left_out += zt_attributes_count(map);
    if (map.length == 0 || projecting->projection->named_count == ZT_LEFT_OUT_NAMED)
        return ZT_OK;
    zt_arena_init(&arena, SIZE_MAX / 2);
    zt_cbor_reader_init(&reader, map.bytes, map.length, 0, ZT_CBOR_ZT1, &arena);
    status = zt_cbor_next(&reader, &item, projecting->error);
    assert(status != ZT_OK || item.kind == ZT_CBOR_MAP);
    if (status == ZT_OK)
        walk = zt_cbor_enter(&reader, &item);
    while (status == ZT_OK && zt_cbor_more(&reader, &walk)) {
        status = zt_cbor_key(&reader, &walk, &item, projecting->error);
        if (status == ZT_OK)
            status = name_left_out(projecting, zt_object_name(from), &item);
        if (status == ZT_OK)
            status = zt_cbor_skip(&reader, projecting->error);
    }
    zt_arena_free(&arena);
    return status;
}

enum zt_status zt_project_dense(struct zt_projecting *projecting)
{
    struct zt_object *object = projecting->object;
    struct zt_component *part = zt_projecting_parts(projecting);
    enum zt_status status;

    if (!is_dense(projecting))
        return refuse_layout(projecting);
    status = leave_out_attributes(projecting);
    if (status != ZT_OK)
        return status;
    object->attributes = NULL;
    object->attributes_length = 0;
    assert(part->encoding == ZT_ENCODING_RAW && part->length == part->decoded_length);
    zt_project_set_format(object, "dense", 5);
    if (part->logical == ZT_LOGICAL_BOOL)
        zt_project_set_type(part, ZT_BOOL, ZT_LOGICAL_NONE);
    status = check_name(projecting);
    if (status == ZT_OK)
        status = check_type(projecting, part);
    if (status == ZT_OK && projecting->projection->target == ZT_TARGET_SAFETENSORS)
        status = check_bits(projecting, part);
    if (status == ZT_OK && projecting->projection->target == ZT_TARGET_MAG)
        status = check_mag(projecting);
    return status;
}
