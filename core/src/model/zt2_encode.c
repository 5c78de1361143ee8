/* Encoding of a zTensor 2 model's objects (deterministic CBOR: keys ascend by their encoded bytes,
 * shorter first).
 *
 * Attributes are copied as they are: the reader has checked that they are deterministic CBOR
 * already. */
#include "model/zt2_encode.h"

#include <stdlib.h>
#include <string.h>

struct encoding {
    const struct zt_model *model;
    enum zt2_view view;
    struct zt_buffer buffer;
};

static int compare_keys(struct zt_text a, struct zt_text b)
{
    if (a.length != b.length)
        return a.length < b.length ? -1 : 1;
    return memcmp(a.bytes, b.bytes, a.length);
}

static int compare_objects(const void *a, const void *b, void *objects)
{
    const struct zt_object *all = *(const struct zt_object *const *)objects;

    return compare_keys(zt_object_name(&all[*(const uint32_t *)a]),
                        zt_object_name(&all[*(const uint32_t *)b]));
}

static int compare_parts(const void *a, const void *b, void *parts)
{
    const struct zt_component *all = *(const struct zt_component *const *)parts;

    return compare_keys(zt_component_name(&all[*(const uint32_t *)a]),
                        zt_component_name(&all[*(const uint32_t *)b]));
}

/* 0 to count - 1 in the order that compare gives, which gets context. NULL without memory. */
static uint32_t *make_order(uint32_t count, int (*compare)(const void *, const void *, void *),
                            void *context)
{
    uint32_t *order = calloc(count + (size_t)1, sizeof(*order));

    if (order == NULL)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof(*order), compare, context);
    return order;
}

static void put_span(struct zt_buffer *buffer, const char *bytes, uint32_t length)
{
    zt_cbor_put_text(buffer, (struct zt_text){bytes, length});
}

static void put_part(struct encoding *encoding, const struct zt_component *part)
{
    struct zt_buffer *buffer = &encoding->buffer;
    const bool with_blob = encoding->view == ZT2_VIEW_MANIFEST;

    const bool encoded = with_blob && part->encoding != ZT_ENCODING_RAW;

    zt_cbor_put_text(buffer, zt_component_name(part));
    zt_cbor_put_map(buffer,
                    2 + (with_blob ? 1 : 0) + (part->type != NULL ? 1 : 0) + (encoded ? 2 : 0));
    if (with_blob) {
        zt_cbor_put_string(buffer, "blob");
        zt_cbor_put_array(buffer, 2);
        zt_cbor_put_uint(buffer, part->offset);
        zt_cbor_put_uint(buffer, part->length);
    }
    if (part->type != NULL) {
        zt_cbor_put_string(buffer, "type");
        put_span(buffer, part->type, part->type_length);
    }
    zt_cbor_put_string(buffer, "dtype");
    zt_cbor_put_string(buffer, zt_dtype_name((enum zt_dtype)part->dtype));
    zt_cbor_put_string(buffer, "digest");
    put_span(buffer, part->digest, part->digest_length);
    if (encoded) {
        zt_cbor_put_string(buffer, "encoding");
        put_span(buffer, part->encoding_name, part->encoding_length);
        zt_cbor_put_string(buffer, "decoded_length");
        zt_cbor_put_uint(buffer, part->decoded_length);
    }
}

static enum zt_status put_parts(struct encoding *encoding, const struct zt_object *object)
{
    const struct zt_component *parts = zt_object_components(encoding->model, object);
    uint32_t *order = make_order(object->component_count, compare_parts, &parts);

    if (order == NULL)
        return ZT_NO_MEMORY;
    zt_cbor_put_string(&encoding->buffer, "parts");
    zt_cbor_put_map(&encoding->buffer, object->component_count);
    for (uint32_t i = 0; i < object->component_count; i++)
        put_part(encoding, &parts[order[i]]);
    free(order);
    return ZT_OK;
}

static enum zt_status put_object(struct encoding *encoding, const struct zt_object *object)
{
    struct zt_buffer *buffer = &encoding->buffer;
    const uint64_t *shape = zt_object_shape(encoding->model, object);
    enum zt_status status;

    zt_cbor_put_text(buffer, zt_object_name(object));
    zt_cbor_put_map(buffer, object->attributes != NULL ? 4 : 3);
    status = put_parts(encoding, object);
    if (status != ZT_OK)
        return status;
    zt_cbor_put_string(buffer, "shape");
    zt_cbor_put_array(buffer, object->rank);
    for (unsigned i = 0; i < object->rank; i++)
        zt_cbor_put_uint(buffer, shape[i]);
    zt_cbor_put_string(buffer, "layout");
    put_span(buffer, object->format, object->format_length);
    if (object->attributes != NULL) {
        zt_cbor_put_string(buffer, "attributes");
        zt_buffer_append(buffer, object->attributes, object->attributes_length);
    }
    return buffer->failed ? ZT_NO_MEMORY : ZT_OK;
}

/* Hands over what the buffer holds, and empties it. */
static enum zt_status flush(struct encoding *encoding, const struct zt2_sink *sink)
{
    enum zt_status status =
        encoding->buffer.failed
            ? ZT_NO_MEMORY
            : sink->take(sink->context, encoding->buffer.bytes, encoding->buffer.length);

    encoding->buffer.length = 0;
    return status;
}

enum zt_status zt2_encode_objects(const struct zt_model *model, enum zt2_view view,
                                  const struct zt2_sink *sink)
{
    struct encoding encoding = {.model = model, .view = view};
    const struct zt_object *objects = model->objects;
    uint32_t *order = make_order(model->object_count, compare_objects, &objects);
    enum zt_status status;

    if (order == NULL)
        return ZT_NO_MEMORY;
    zt_cbor_put_map(&encoding.buffer, model->object_count);
    status = flush(&encoding, sink);
    for (uint32_t i = 0; i < model->object_count && status == ZT_OK; i++) {
        status = put_object(&encoding, &objects[order[i]]);
        if (status == ZT_OK)
            status = flush(&encoding, sink);
    }
    zt_buffer_free(&encoding.buffer);
    free(order);
    return status;
}
