/* Encoding a zTensor 2 model's objects in deterministic CBOR: keys ascend by their encoded bytes,
 * so shorter keys come first.
 *
 * Attributes are copied unchanged, because the reader has checked that they are deterministic
 * CBOR. */
#include "model/zt2_encode.h"

#include <assert.h>
#include <stdlib.h>

#include "base/index_sort.h"

struct encoding {
    const struct zt_model *model;
    enum zt2_view view;
    struct zt_buffer buffer;
};

static enum zt_status no_memory(struct zt_error *error)
{
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to encode a manifest");
}

/* The order of deterministic CBOR: shorter names first, then bytewise. */
static bool name_is_after(struct zt_text a, struct zt_text b)
{
    return a.length != b.length ? a.length > b.length : zt_text_compare(a, b) > 0;
}

static bool object_is_after(const void *objects, uint32_t a, uint32_t b)
{
    const struct zt_object *all = objects;

    return name_is_after(zt_object_name(&all[a]), zt_object_name(&all[b]));
}

static bool part_is_after(const void *parts, uint32_t a, uint32_t b)
{
    const struct zt_component *all = parts;

    return name_is_after(zt_component_name(&all[a]), zt_component_name(&all[b]));
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

    assert(part->digest != NULL && (!with_blob || part->shard == 0));
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
    const struct zt_index_order by_name = {part_is_after, parts};
    uint32_t *order = NULL;

    if (zt_index_make(object->component_count, &by_name, &order) != ZT_OK)
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

/* Writes the buffer's bytes to the sink and empties the buffer. */
static enum zt_status flush(struct encoding *encoding, const struct zt_sink *sink,
                            struct zt_error *error)
{
    enum zt_status status;

    if (encoding->buffer.failed)
        return no_memory(error);
    assert(encoding->buffer.length > 0);
    status = sink->take(sink->context, encoding->buffer.bytes, encoding->buffer.length, error);
    encoding->buffer.length = 0;
    return status;
}

enum zt_status zt2_encode_objects(const struct zt_model *model, enum zt2_view view,
                                  const struct zt_sink *sink, struct zt_error *error)
{
    struct encoding encoding = {.model = model, .view = view};
    const struct zt_index_order by_name = {object_is_after, model->objects};
    uint32_t *order = NULL;
    enum zt_status status;

    if (zt_index_make(model->object_count, &by_name, &order) != ZT_OK)
        return no_memory(error);
    zt_cbor_put_map(&encoding.buffer, model->object_count);
    status = flush(&encoding, sink, error);
    for (uint32_t i = 0; i < model->object_count && status == ZT_OK; i++)
        if (put_object(&encoding, &model->objects[order[i]]) != ZT_OK)
            status = no_memory(error);
        else
            status = flush(&encoding, sink, error);
    zt_buffer_free(&encoding.buffer);
    free(order);
    return status;
}
