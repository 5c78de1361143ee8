/* zTensor 1.2: data at multiples of 64, followed directly by the manifest, the manifest's size, and
 * the magic again (sections 1, 4, 5).
 *
 * Keys are in the reference writer's order; names ascend bytewise. */
#include <assert.h>
#include <string.h>

#include "write/container.h"

static enum zt_status place_component(struct zt_planning *planning, struct zt_placed *placed,
                                      uint32_t number, uint64_t *offset);
static enum zt_status put_end(const struct zt_model *model, uint64_t offset,
                              struct zt_buffer *buffer, struct zt_error *error);

const struct zt_container zt1_container = {
    .magic = {'Z', 'T', 'E', 'N', '1', '0', '0', '0'},
    .data_alignment = 64,
    .manifest_alignment = 1,
    .digest = ZT_DIGEST_SHA256,
    .digest_covers_stored = true,
    .encoding = ZT_ENCODING_ZSTD,
    .encoding_name = "zstd",
    .layouts = ZT_LAYOUTS_ZT1,
    .place = place_component,
    .put_end = put_end,
};

static void put_pair_text(struct zt_buffer *buffer, const char *key, const char *text,
                          uint32_t length)
{
    zt_cbor_put_string(buffer, key);
    zt_cbor_put_text(buffer, (struct zt_text){text, length});
}

static void put_pair_uint(struct zt_buffer *buffer, const char *key, uint64_t value)
{
    zt_cbor_put_string(buffer, key);
    zt_cbor_put_uint(buffer, value);
}

static void put_component(struct zt_buffer *buffer, const struct zt_component *component)
{
    bool encoded = component->encoding != ZT_ENCODING_RAW;

    zt_cbor_put_text(buffer, zt_component_name(component));
    zt_cbor_put_map(buffer, 3 + (component->type != NULL ? 1 : 0) + (encoded ? 2 : 0) +
                                (component->digest != NULL ? 1 : 0));
    zt_cbor_put_string(buffer, "dtype");
    zt_cbor_put_string(buffer, zt_dtype_name((enum zt_dtype)component->dtype));
    if (component->type != NULL)
        put_pair_text(buffer, "type", component->type, component->type_length);
    put_pair_uint(buffer, "offset", component->offset);
    put_pair_uint(buffer, "length", component->length);
    if (encoded) {
        put_pair_uint(buffer, "uncompressed_length", component->decoded_length);
        put_pair_text(buffer, "encoding", component->encoding_name, component->encoding_length);
    }
    if (component->digest != NULL)
        put_pair_text(buffer, "digest", component->digest, component->digest_length);
}

static void put_object(struct zt_buffer *buffer, const struct zt_model *model,
                       const struct zt_object *object)
{
    const struct zt_component *components = zt_object_components(model, object);
    const uint64_t *shape = zt_object_shape(model, object);

    zt_cbor_put_text(buffer, zt_object_name(object));
    zt_cbor_put_map(buffer, object->attributes != NULL ? 4 : 3);
    zt_cbor_put_string(buffer, "shape");
    zt_cbor_put_array(buffer, object->rank);
    for (unsigned i = 0; i < object->rank; i++)
        zt_cbor_put_uint(buffer, shape[i]);
    put_pair_text(buffer, "format", object->format, object->format_length);
    if (object->attributes != NULL) {
        zt_cbor_put_string(buffer, "attributes");
        zt_buffer_append(buffer, object->attributes, object->attributes_length);
    }
    zt_cbor_put_string(buffer, "components");
    zt_cbor_put_map(buffer, object->component_count);
    for (uint32_t i = 0; i < object->component_count; i++)
        put_component(buffer, &components[i]);
}

static void put_manifest(struct zt_buffer *buffer, const struct zt_model *model)
{
    zt_cbor_put_map(buffer, model->attributes.length > 0 ? 3 : 2);
    zt_cbor_put_string(buffer, "version");
    zt_cbor_put_text(buffer, model->version);
    if (model->attributes.length > 0) {
        zt_cbor_put_string(buffer, "attributes");
        zt_buffer_append(buffer, model->attributes.bytes, model->attributes.length);
    }
    zt_cbor_put_string(buffer, "objects");
    zt_cbor_put_map(buffer, model->object_count);
    for (uint32_t i = 0; i < model->object_count; i++)
        put_object(buffer, model, &model->objects[i]);
}

static enum zt_status put_end(const struct zt_model *model, uint64_t offset,
                              struct zt_buffer *buffer, struct zt_error *error)
{
    size_t begin = buffer->length;
    uint64_t length;

    (void)offset;
    put_manifest(buffer, model);
    length = buffer->length - begin;
    zt_buffer_append_le64(buffer, length);
    zt_buffer_append(buffer, zt1_container.magic, sizeof(zt1_container.magic));
    return buffer->failed ? zt_fail_memory(error, "a manifest")
                          : zt_check_manifest_length(length, error);
}

static enum zt_status place_component(struct zt_planning *planning, struct zt_placed *placed,
                                      uint32_t number, uint64_t *offset)
{
    struct zt_component *component = &placed->components[number];
    enum zt_status status;

    assert(number < placed->model.component_count);
    status = zt_planning_place(planning, offset, number, zt1_container.data_alignment);
    if (status != ZT_OK)
        return status;
    component->offset = *offset;
    component->length = planning->fingerprints[number].length;
    component->decoded_length = component->length;
    zt_placed_set_digest(placed, number, &planning->fingerprints[number].digest);
    *offset += component->length;
    return zt_planning_component(planning, component->offset, number);
}

enum zt_status zt1_plan(struct zt_planning *planning)
{
    return zt_container_plan(&zt1_container, planning);
}
