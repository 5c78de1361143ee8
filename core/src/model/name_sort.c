/* Sorting named entries: an index is sorted first, then the entries are permuted in place. */
#include "model/name_sort.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/index_sort.h"

struct zt_text zt_names_at(const struct zt_named_array *array, size_t place)
{
    const char *entry = (const char *)array->entries + place * array->stride;
    const char *name;
    uint32_t length;

    memcpy(&name, entry, sizeof(name));
    memcpy(&length, entry + array->length_at, sizeof(length));
    return (struct zt_text){name, length};
}

static bool is_after(const void *array, uint32_t a, uint32_t b)
{
    return zt_text_compare(zt_names_at(array, a), zt_names_at(array, b)) > 0;
}

static bool is_sorted(const struct zt_named_array *array)
{
    for (size_t i = 1; i < array->count; i++)
        if (is_after(array, (uint32_t)i - 1, (uint32_t)i))
            return false;
    return true;
}

/* Moves every entry to its place, cycle by cycle; index[place] is the entry that belongs there.
 * Held has room for one entry. */
static void permute(const struct zt_named_array *array, uint32_t *index, void *held)
{
    char *entries = array->entries;
    size_t stride = array->stride;

    for (size_t start = 0; start < array->count; start++) {
        size_t place;

        assert(index[start] < array->count);
        if (index[start] == start)
            continue;
        memcpy(held, entries + start * stride, stride);
        place = start;
        while (index[place] != start) {
            size_t source = index[place];

            memcpy(entries + place * stride, entries + source * stride, stride);
            index[place] = (uint32_t)place;
            place = source;
        }
        memcpy(entries + place * stride, held, stride);
        index[place] = (uint32_t)place;
    }
}

enum zt_status zt_names_sort(const struct zt_named_array *array, struct zt_error *error)
{
    const struct zt_index_order order = {is_after, array};
    uint32_t *index = NULL;
    void *held;

    assert(array->count <= UINT32_MAX && array->length_at + sizeof(uint32_t) <= array->stride);
    if (is_sorted(array))
        return ZT_OK;
    held = malloc(array->stride);
    if (held == NULL || zt_index_make((uint32_t)array->count, &order, &index) != ZT_OK) {
        free(held);
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
    }
    permute(array, index, held);
    free(index);
    free(held);
    return ZT_OK;
}

size_t zt_names_duplicate(const struct zt_named_array *array)
{
    for (size_t i = 1; i < array->count; i++)
        if (zt_text_compare(zt_names_at(array, i - 1), zt_names_at(array, i)) == 0)
            return i;
    return 0;
}

void *zt_names_find(const struct zt_named_array *array, struct zt_text name)
{
    size_t low = 0;
    size_t high = array->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = zt_text_compare(zt_names_at(array, middle), name);

        if (order == 0)
            return (char *)array->entries + middle * array->stride;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
