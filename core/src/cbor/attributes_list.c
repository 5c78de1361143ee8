/* Adding a list of texts to a model's attributes. The pairs that are kept are copied as they are
 * encoded. */
#include <assert.h>

#include "base/memory.h"
#include "cbor/cbor_read.h"
#include "cbor/cbor_write.h"
#include "zt/attributes.h"

static enum zt_status no_memory(struct zt_error *error)
{
    return zt_fail_memory(error, "attributes");
}

/* --- the pairs that are kept --- */

static enum zt_status keep_pair(struct zt_cbor_reader *reader, struct zt_cbor_walk *walk,
                                const char *key, struct zt_buffer *pairs, uint64_t *count,
                                struct zt_error *error)
{
    const size_t begin = reader->position;
    struct zt_cbor_item item;
    struct zt_text value;
    enum zt_status status = zt_cbor_key(reader, walk, &item, error);

    if (status == ZT_OK)
        status = zt_cbor_pass_span(reader, &value, error);
    if (status != ZT_OK)
        return status;
    if (item.kind == ZT_CBOR_TEXT && zt_text_is(zt_cbor_content(&item), key))
        return ZT_OK;
    zt_buffer_append(pairs, reader->bytes + begin, reader->position - begin);
    *count += 1;
    return ZT_OK;
}

static enum zt_status keep_pairs(struct zt_text map, const char *key, struct zt_buffer *pairs,
                                 uint64_t *count, struct zt_error *error)
{
    struct zt_arena arena;
    struct zt_cbor_reader reader;
    struct zt_cbor_walk walk;
    struct zt_cbor_item head;
    enum zt_status status;

    if (map.length == 0)
        return ZT_OK;
    /* Joined texts are not longer than the map. */
    zt_arena_init(&arena, SIZE_MAX / 2);
    zt_cbor_reader_init(&reader, map.bytes, map.length, 0, ZT_CBOR_ZT1, &arena);
    status = zt_cbor_next(&reader, &head, error);
    assert(status != ZT_OK || head.kind == ZT_CBOR_MAP);
    if (status == ZT_OK)
        walk = zt_cbor_enter(&reader, &head);
    while (status == ZT_OK && zt_cbor_more(&reader, &walk))
        status = keep_pair(&reader, &walk, key, pairs, count, error);
    zt_arena_free(&arena);
    return status;
}

/* --- the list --- */

static void append(void *context, const char *text, size_t length)
{
    zt_buffer_append(context, text, length);
}

static enum zt_status put_list(const struct zt_attribute_list *list, struct zt_buffer *pairs,
                               struct zt_error *error)
{
    struct zt_buffer array = {0};
    struct zt_buffer json = {0};
    enum zt_status status = ZT_OK;

    zt_cbor_put_array(&array, list->count);
    for (size_t i = 0; i < list->count; i++)
        zt_cbor_put_text(&array, list->texts[i]);
    zt_cbor_put_string(pairs, list->key);
    if (array.failed) {
        status = no_memory(error);
    } else if (list->is_json) {
        status = zt_attributes_write_json((struct zt_text){(const char *)array.bytes, array.length},
                                          append, &json, error);
        zt_cbor_put_text(pairs, (struct zt_text){(const char *)json.bytes, json.length});
    } else {
        zt_buffer_append(pairs, array.bytes, array.length);
    }
    if (status == ZT_OK && (json.failed || pairs->failed))
        status = no_memory(error);
    zt_buffer_free(&array);
    zt_buffer_free(&json);
    return status;
}

enum zt_status zt_attributes_with_list(struct zt_text map, const struct zt_attribute_list *list,
                                       struct zt_text *out_map, struct zt_error *error)
{
    struct zt_buffer pairs = {0};
    struct zt_buffer whole = {0};
    uint64_t count = 0;
    enum zt_status status = keep_pairs(map, list->key, &pairs, &count, error);

    if (status == ZT_OK)
        status = put_list(list, &pairs, error);
    if (status == ZT_OK) {
        zt_cbor_put_map(&whole, count + 1);
        zt_buffer_append(&whole, pairs.bytes, pairs.length);
        if (whole.failed)
            status = no_memory(error);
    }
    zt_buffer_free(&pairs);
    if (status == ZT_OK)
        *out_map = (struct zt_text){(const char *)whole.bytes, whole.length};
    else
        zt_buffer_free(&whole);
    return status;
}
