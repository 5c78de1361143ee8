/* Describing widened objects. The attributes of a quantized tensor state the sizes of its blocks
 * (gguf.<type>/1), which a dense tensor does not have. */
#include "write/widening.h"

#include <string.h>

#include "cbor/cbor_read.h"
#include "cbor/cbor_write.h"

const struct zt_widener *zt_object_widener(const struct zt_model *model,
                                           const struct zt_object *object)
{
    const struct zt_component *data = zt_object_components(model, object);
    const struct zt_widener *widener =
        object->component_count == 1 ? zt_widener_find(object, data) : NULL;

    return widener != NULL && !zt_widener_passes(widener) ? widener : NULL;
}

static bool describes_blocks(const struct zt_cbor_item *key)
{
    return key->kind == ZT_CBOR_TEXT && (zt_text_is(zt_cbor_content(key), "block_bytes") ||
                                         zt_text_is(zt_cbor_content(key), "elems_per_block"));
}

/* Copies the other pairs of a map in their encoding. */
static enum zt_status copy_pairs(struct zt_cbor_reader *reader, struct zt_buffer *pairs,
                                 uint64_t *out_count, struct zt_error *error)
{
    struct zt_cbor_item item;
    struct zt_cbor_walk walk;
    enum zt_status status = zt_cbor_next(reader, &item, error);

    *out_count = 0;
    if (status != ZT_OK)
        return status;
    walk = zt_cbor_enter(reader, &item);
    while (status == ZT_OK && zt_cbor_more(reader, &walk)) {
        const size_t start = reader->position;
        struct zt_text value;

        status = zt_cbor_key(reader, &walk, &item, error);
        if (status == ZT_OK)
            status = zt_cbor_pass_span(reader, &value, error);
        if (status != ZT_OK || describes_blocks(&item))
            continue;
        zt_buffer_append(pairs, reader->bytes + start, reader->position - start);
        *out_count += 1;
    }
    return status;
}

static enum zt_status keep(const struct zt_buffer *pairs, uint64_t count, struct zt_object *object,
                           struct zt_arena *arena, struct zt_error *error)
{
    struct zt_buffer map = {0};
    void *kept = NULL;
    enum zt_status status = ZT_OK;

    object->attributes = NULL;
    object->attributes_length = 0;
    if (count == 0)
        return ZT_OK;
    zt_cbor_put_map(&map, count);
    zt_buffer_append(&map, pairs->bytes, pairs->length);
    if (map.failed || pairs->failed)
        status = zt_fail_memory(error, "attributes");
    if (status == ZT_OK)
        status = zt_arena_take(arena, map.length, &kept, error);
    if (status == ZT_OK) {
        memcpy(kept, map.bytes, map.length);
        object->attributes = kept;
        object->attributes_length = (uint32_t)map.length;
    }
    zt_buffer_free(&map);
    return status;
}

static enum zt_status drop_block_sizes(struct zt_object *object, struct zt_arena *arena,
                                       struct zt_error *error)
{
    struct zt_buffer pairs = {0};
    struct zt_cbor_reader reader;
    uint64_t count;
    enum zt_status status;

    if (object->attributes == NULL)
        return ZT_OK;
    zt_cbor_reader_init(&reader, object->attributes, object->attributes_length, 0, ZT_CBOR_ZT1,
                        arena);
    status = copy_pairs(&reader, &pairs, &count, error);
    if (status == ZT_OK)
        status = keep(&pairs, count, object, arena, error);
    zt_buffer_free(&pairs);
    return status;
}

enum zt_status zt_object_widen(uint64_t elements, struct zt_object *object,
                               struct zt_component *data, struct zt_arena *arena,
                               struct zt_error *error)
{
    enum zt_status status = ZT_OK;
    uint64_t length;

    if (zt_element_bytes(ZT_F32, ZT_LOGICAL_NONE, elements, &length) != ZT_OK)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "the widened elements do not fit in 64 bits");
    if (object->layout == ZT_LAYOUT_GGUF)
        status = drop_block_sizes(object, arena, error);
    object->layout = ZT_LAYOUT_DENSE;
    object->format = "dense";
    object->format_length = 5;
    data->dtype = ZT_F32;
    data->logical = ZT_LOGICAL_NONE;
    data->type = NULL;
    data->type_length = 0;
    data->length = length;
    data->decoded_length = length;
    return status;
}
