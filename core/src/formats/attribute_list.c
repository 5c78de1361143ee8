/* Collecting attributes and keeping them as one CBOR map. */
#include "formats/attribute_list.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cbor/cbor_read.h"
#include "model/locate.h"

/* The layout that zt_names_sort requires. */
struct zt_attribute_key {
    const char *bytes;
    uint32_t length;
    uint32_t pair_at; /* position in the list's pairs */
};

static enum zt_status fail_memory(struct zt_error *error)
{
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
}

enum zt_status zt_attribute_list_key(struct zt_attribute_list *list, struct zt_text key,
                                     struct zt_error *error)
{
    assert(key.length <= UINT32_MAX);
    assert(list->key_count == list->count && list->pairs.length <= UINT32_MAX);
    if (zt_array_reserve(&list->keys, &list->key_capacity, list->key_count + 1, sizeof(*list->keys),
                         UINT32_MAX) != ZT_OK)
        return fail_memory(error);
    list->keys[list->key_count++] =
        (struct zt_attribute_key){key.bytes, (uint32_t)key.length, (uint32_t)list->pairs.length};
    list->count++;
    zt_cbor_put_text(&list->pairs, key);
    return list->pairs.failed ? fail_memory(error) : ZT_OK;
}

void zt_attribute_list_pair(struct zt_attribute_list *list, struct zt_text pair)
{
    assert(pair.length > 0);
    zt_buffer_append(&list->pairs, pair.bytes, pair.length);
    list->count++;
}

enum zt_status zt_attribute_list_check(struct zt_attribute_list *list,
                                       const struct zt_builder *builder, const char *duplicate_rule,
                                       struct zt_error *error)
{
    struct zt_named_array keys = {list->keys, list->key_count, sizeof(*list->keys),
                                  offsetof(struct zt_attribute_key, length)};
    enum zt_status status;
    const char *one;
    const char *other;
    size_t second;

    if (list->key_count == 0)
        return ZT_OK;
    status = zt_names_sort(&keys, error);
    second = status == ZT_OK ? zt_names_duplicate(&keys) : 0;
    if (second == 0)
        return status;
    assert(second < list->key_count);
    one = list->keys[second - 1].bytes;
    other = list->keys[second].bytes;
    return zt_fail(error, ZT_INVALID, duplicate_rule,
                   zt_manifest_position(builder->model, one > other ? one : other),
                   "a key occurs twice");
}

/* The pair that begins at a position in the list's pairs. */
static struct zt_text pair_at(const struct zt_attribute_list *list, uint32_t at)
{
    struct zt_cbor_reader reader;
    struct zt_text span;

    zt_cbor_reader_init(&reader, list->pairs.bytes + at, list->pairs.length - at, 0, ZT_CBOR_ZT1,
                        NULL);
    for (unsigned i = 0; i < 2; i++)
        if (zt_cbor_pass_span(&reader, &span, NULL) != ZT_OK)
            assert(!"pairs that were written here can be read");
    return (struct zt_text){(const char *)reader.bytes, reader.position};
}

static void copy_pairs(const struct zt_attribute_list *list, uint8_t *to)
{
    if (!list->is_by_name && list->count > 0)
        memcpy(to, list->pairs.bytes, list->pairs.length);
    for (size_t i = 0; list->is_by_name && i < list->key_count; i++) {
        struct zt_text pair = pair_at(list, list->keys[i].pair_at);

        memcpy(to, pair.bytes, pair.length);
        to += pair.length;
    }
}

enum zt_status zt_attribute_list_keep(const struct zt_attribute_list *list,
                                      const struct zt_builder *builder, struct zt_text *out_map,
                                      struct zt_error *error)
{
    struct zt_buffer head = {0};
    size_t length;
    void *map;
    enum zt_status status;

    assert(!list->is_by_name || list->key_count == list->count);
    zt_cbor_put_map(&head, list->count);
    if (head.failed || list->pairs.failed) {
        zt_buffer_free(&head);
        return fail_memory(error);
    }
    length = head.length + list->pairs.length;
    status = zt_arena_take(&builder->model->storage->arena, length, &map, error);
    if (status == ZT_OK) {
        memcpy(map, head.bytes, head.length);
        copy_pairs(list, (uint8_t *)map + head.length);
        *out_map = (struct zt_text){map, length};
    }
    zt_buffer_free(&head);
    return status;
}

void zt_attribute_list_clear(struct zt_attribute_list *list)
{
    list->pairs.length = 0;
    list->count = list->key_count = 0;
}

void zt_attribute_list_free(struct zt_attribute_list *list)
{
    zt_buffer_free(&list->pairs);
    free(list->keys);
    memset(list, 0, sizeof(*list));
}
