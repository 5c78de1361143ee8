/* Objects and components as readers add them. */
#include "formats/component.h"

#include <assert.h>
#include <string.h>

void zt_component_set_encoding(struct zt_component *component, struct zt_text encoding)
{
    if (encoding.bytes == NULL)
        encoding = zt_text_from("raw");
    component->encoding_name = encoding.bytes;
    component->encoding_length = (uint32_t)encoding.length;
    component->encoding = ZT_ENCODING_UNKNOWN;
    component->decoded_length = ZT_LENGTH_UNKNOWN;
    if (zt_text_is(encoding, "zstd")) {
        component->encoding = ZT_ENCODING_ZSTD;
    } else if (zt_text_is(encoding, "raw")) {
        component->encoding = ZT_ENCODING_RAW;
        component->decoded_length = component->length;
    }
}

static enum zt_status add_object(struct zt_builder *builder, const struct zt_tensor *tensor,
                                 struct zt_error *error)
{
    struct zt_object *object;
    enum zt_status status = zt_builder_object(builder, &object, error);

    if (status != ZT_OK)
        return status;
    object->name = tensor->name.bytes;
    object->name_length = (uint32_t)tensor->name.length;
    object->format = "dense";
    object->format_length = 5;
    object->layout = ZT_LAYOUT_DENSE;
    for (unsigned i = 0; i < tensor->rank && status == ZT_OK; i++)
        status = zt_builder_dimension(builder, tensor->shape[i], error);
    return status;
}

enum zt_status zt_tensor_add(struct zt_builder *builder, const struct zt_tensor *tensor,
                             struct zt_error *error)
{
    struct zt_component *component;
    enum zt_status status;

    assert(tensor->rank <= ZT_RANK_MAX);
    assert(tensor->name.length <= UINT32_MAX);
    status = add_object(builder, tensor, error);
    if (status == ZT_OK)
        status = zt_builder_component(builder, &component, error);
    if (status != ZT_OK)
        return status;
    component->name = "data";
    component->name_length = 4;
    component->dtype = (uint8_t)tensor->dtype;
    component->logical = (uint8_t)tensor->logical;
    component->type = zt_logical_name(tensor->logical);
    component->type_length = component->type != NULL ? (uint32_t)strlen(component->type) : 0;
    component->offset = tensor->offset;
    component->length = tensor->length;
    zt_component_set_encoding(component, (struct zt_text){NULL, 0});
    assert(zt_last_object(builder)->component_count == 1);
    return ZT_OK;
}

void zt_error_within(struct zt_error *error, struct zt_text object, struct zt_text component)
{
    if (error != NULL && !error->has_object && error->component[0] == '\0')
        zt_error_at(error, object, component);
}
