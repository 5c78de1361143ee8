/* Skipping whole CBOR values, looking keys up, and finding repeated keys in unsorted maps.
 *
 * The keys of a map and of the maps around it are on one stack. When a map ends, its own keys are
 * compared and dropped. */
#include "cbor/cbor_read.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"

/* --- keys --- */

/* Twice the number of halvings that a list of 2^30 keys takes. */
#define SORT_ROUNDS 60

/* A key. Numbers are compared by value, strings by content, all other keys by their encoded
 * bytes. */
struct zt_cbor_key {
    union {
        uint64_t number;
        const uint8_t *bytes;
    } is;
    uint32_t length;
    uint32_t position; /* of the key's head in the reader's bytes */
    enum zt_cbor_kind kind;
};

enum zt_status zt_cbor_keys_add(struct zt_cbor_keys *keys, const struct zt_cbor_reader *reader,
                                const struct zt_cbor_item *key, struct zt_error *error)
{
    uint64_t position;
    struct zt_cbor_key *entry;
    size_t most;

    /* Each remaining key and its value take at least one byte each, which bounds the number of
     * keys. */
    most = keys->count + 1 + (reader->length - reader->position) / 2;
    if (zt_array_reserve(&keys->list, &keys->capacity, keys->count + 1, sizeof(*keys->list),
                         most) != ZT_OK)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
    position = key->offset - reader->base_offset;
    assert(position <= UINT32_MAX && position <= reader->position);
    entry = &keys->list[keys->count++];
    entry->position = (uint32_t)position;
    entry->kind = key->kind;
    entry->length = 0;
    switch (key->kind) {
    case ZT_CBOR_UINT:
    case ZT_CBOR_NINT:
        entry->is.number = key->value;
        break;
    case ZT_CBOR_TEXT:
    case ZT_CBOR_BYTES:
        entry->is.bytes = key->bytes;
        entry->length = (uint32_t)key->value;
        break;
    default:
        entry->is.bytes = reader->bytes + position;
        entry->length = (uint32_t)(reader->position - position);
        break;
    }
    return ZT_OK;
}

static int compare_keys(const struct zt_cbor_key *a, const struct zt_cbor_key *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->kind == ZT_CBOR_UINT || a->kind == ZT_CBOR_NINT)
        return (a->is.number > b->is.number) - (a->is.number < b->is.number);
    return zt_text_compare((struct zt_text){(const char *)a->is.bytes, a->length},
                           (struct zt_text){(const char *)b->is.bytes, b->length});
}

static void swap_keys(struct zt_cbor_key *a, struct zt_cbor_key *b)
{
    struct zt_cbor_key held = *a;

    *a = *b;
    *b = held;
}

static void sift_down(struct zt_cbor_key *list, size_t root, size_t count)
{
    struct zt_cbor_key moved = list[root];
    size_t child;

    assert(root < count);
    while ((child = 2 * root + 1) < count) {
        if (child + 1 < count && compare_keys(&list[child], &list[child + 1]) < 0)
            child++;
        if (compare_keys(&moved, &list[child]) >= 0)
            break;
        list[root] = list[child];
        root = child;
    }
    list[root] = moved;
}

static void heap_sort(struct zt_cbor_key *list, size_t count)
{
    for (size_t root = count / 2; root-- > 0;)
        sift_down(list, root, count);
    for (size_t last = count; last-- > 1;) {
        swap_keys(&list[0], &list[last]);
        sift_down(list, 0, last);
    }
}

/* Partitions the list around its middle key: keys before the returned position are not greater than
 * that key, the others are not less. */
static size_t partition_keys(struct zt_cbor_key *list, size_t count)
{
    struct zt_cbor_key pivot = list[count / 2];
    size_t low = 0;
    size_t high = count - 1;

    assert(count > 1);
    for (;;) {
        while (compare_keys(&list[low], &pivot) < 0)
            low++;
        while (compare_keys(&pivot, &list[high]) < 0)
            high--;
        if (low >= high)
            return low > 0 ? low : 1;
        swap_keys(&list[low++], &list[high--]);
    }
}

/* Quicksort that falls back to heap sort if the partitions stay large, so that no input makes it
 * slow. It sorts in place; qsort would need as much memory as the list again. */
static void sort_keys(struct zt_cbor_key *list, size_t count, unsigned rounds)
{
    while (count > 1) {
        size_t middle;

        if (rounds-- == 0) {
            heap_sort(list, count);
            return;
        }
        middle = partition_keys(list, count);
        assert(middle > 0 && middle < count);
        sort_keys(list, middle, rounds);
        list += middle;
        count -= middle;
    }
}

static bool is_ascending(const struct zt_cbor_key *list, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (compare_keys(&list[i - 1], &list[i]) >= 0)
            return false;
    return true;
}

enum zt_status zt_cbor_keys_check(struct zt_cbor_keys *keys, size_t first,
                                  const struct zt_cbor_reader *reader, struct zt_error *error)
{
    size_t count;
    struct zt_cbor_key *list;

    assert(first <= keys->count);
    count = keys->count - first;
    keys->count = first;
    if (count < 2)
        return ZT_OK;
    list = keys->list + first;
    if (is_ascending(list, count))
        return ZT_OK;
    sort_keys(list, count, SORT_ROUNDS);
    for (size_t i = 1; i < count; i++) {
        if (compare_keys(&list[i - 1], &list[i]) == 0) {
            uint32_t second =
                list[i].position > list[i - 1].position ? list[i].position : list[i - 1].position;

            return zt_fail(error, ZT_INVALID, zt_cbor_rule_name(reader, ZT_CBOR_DUPLICATE_KEY),
                           reader->base_offset + second, "CBOR: a map has a key twice");
        }
    }
    return ZT_OK;
}

void zt_cbor_keys_free(struct zt_cbor_keys *keys)
{
    free(keys->list);
    *keys = (struct zt_cbor_keys){0};
}

/* --- skipping --- */

static enum zt_status skip_value(struct zt_cbor_reader *reader, struct zt_cbor_keys *keys,
                                 struct zt_error *error);

/* Skips a map's next key. In ZT2 zt_cbor_key checks the order; otherwise the key is added to keys,
 * to be compared at the end of the map. If keys is NULL, the map has already been validated: the
 * key is not added, and no memory is taken. */
static enum zt_status skip_key(struct zt_cbor_reader *reader, struct zt_cbor_walk *walk,
                               struct zt_cbor_keys *keys, struct zt_error *error)
{
    struct zt_cbor_item key;
    enum zt_status status = zt_cbor_key(reader, walk, &key, error);

    if (status == ZT_OK && keys != NULL && reader->profile != ZT_CBOR_ZT2)
        status = zt_cbor_keys_add(keys, reader, &key, error);
    return status;
}

static enum zt_status skip_items(struct zt_cbor_reader *reader, const struct zt_cbor_item *item,
                                 struct zt_cbor_keys *keys, struct zt_error *error)
{
    struct zt_cbor_walk walk = zt_cbor_enter(reader, item);
    size_t first_key = keys != NULL ? keys->count : 0;
    enum zt_status status = ZT_OK;

    assert(item->kind == ZT_CBOR_ARRAY || item->kind == ZT_CBOR_MAP);
    while (status == ZT_OK && zt_cbor_more(reader, &walk)) {
        if (walk.is_map)
            status = skip_key(reader, &walk, keys, error);
        if (status == ZT_OK)
            status = skip_value(reader, keys, error);
    }
    return status == ZT_OK && keys != NULL ? zt_cbor_keys_check(keys, first_key, reader, error)
                                           : status;
}

/* Recurses at most to the profile's limit on nesting. */
static enum zt_status skip_value(struct zt_cbor_reader *reader, struct zt_cbor_keys *keys,
                                 struct zt_error *error)
{
    const unsigned depth = reader->depth;
    struct zt_cbor_item item;
    enum zt_status status;

    while ((status = zt_cbor_head(reader, &item, error)) == ZT_OK && item.kind == ZT_CBOR_TAG)
        reader->depth++;
    if (status == ZT_OK) {
        if (item.kind == ZT_CBOR_ARRAY || item.kind == ZT_CBOR_MAP)
            status = skip_items(reader, &item, keys, error);
        else if (item.indefinite)
            status = zt_cbor_pass_chunks(reader, item.kind, error);
    }
    reader->depth = depth;
    return status;
}

enum zt_status zt_cbor_skip(struct zt_cbor_reader *reader, struct zt_error *error)
{
    struct zt_cbor_keys keys = {0};
    enum zt_status status = skip_value(reader, &keys, error);

    zt_cbor_keys_free(&keys);
    return status;
}

enum zt_status zt_cbor_skip_span(struct zt_cbor_reader *reader, struct zt_text *out_span,
                                 struct zt_error *error)
{
    size_t start = reader->position;
    enum zt_status status = zt_cbor_skip(reader, error);

    assert(status != ZT_OK || reader->position > start);
    if (status == ZT_OK)
        *out_span = (struct zt_text){(const char *)reader->bytes + start, reader->position - start};
    return status;
}

enum zt_status zt_cbor_pass_span(struct zt_cbor_reader *reader, struct zt_text *out_span,
                                 struct zt_error *error)
{
    size_t start = reader->position;
    enum zt_status status = skip_value(reader, NULL, error);

    assert(status != ZT_OK || reader->position > start);
    if (status == ZT_OK)
        *out_span = (struct zt_text){(const char *)reader->bytes + start, reader->position - start};
    return status;
}

/* --- looking up --- */

static bool find_key(struct zt_cbor_reader *reader, const char *key)
{
    struct zt_cbor_item item;
    struct zt_cbor_walk walk;

    if (zt_cbor_next_untagged(reader, &item, NULL) != ZT_OK || item.kind != ZT_CBOR_MAP)
        return false;
    walk = zt_cbor_enter(reader, &item);
    while (zt_cbor_more(reader, &walk)) {
        if (zt_cbor_key(reader, &walk, &item, NULL) != ZT_OK)
            return false;
        if (item.kind == ZT_CBOR_TEXT && zt_text_is(zt_cbor_content(&item), key))
            return true;
        if (skip_value(reader, NULL, NULL) != ZT_OK)
            return false;
    }
    return false;
}

bool zt_cbor_map_find(struct zt_text map, const char *key, struct zt_cbor_reader *out_value)
{
    /* Holds only joined keys, which are not longer than the map. */
    struct zt_arena joined;
    struct zt_cbor_reader reader;
    bool found;

    if (map.length == 0)
        return false;
    zt_arena_init(&joined, SIZE_MAX);
    zt_cbor_reader_init(&reader, map.bytes, map.length, 0, ZT_CBOR_ZT1, &joined);
    found = find_key(&reader, key);
    zt_arena_free(&joined);
    if (found) {
        reader.arena = NULL;
        *out_value = reader;
    }
    return found;
}
