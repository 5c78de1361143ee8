/* Which files are parts of joined models: all of them, sorted by path. An index may name any file
 * beside it, so a part's own name does not tell. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog_index.h"

static int compare_parts(const void *a, const void *b)
{
    const struct catalog_part *one = a;
    const struct catalog_part *other = b;
    const int order = strcmp(one->path, other->path);

    return order != 0 ? order : strcmp(one->joined->path, other->joined->path);
}

static bool is_dropped(const struct generation *joined, const struct catalog_change *changes,
                       size_t count)
{
    size_t low = 0;

    for (size_t high = count; low < high;) {
        const size_t middle = low + (high - low) / 2;

        if (strcmp(changes[middle].path, joined->path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && strcmp(changes[low].path, joined->path) == 0;
}

static size_t count_of(const struct generation *generation)
{
    if (generation == NULL || !generation->is_joined)
        return 0;
    return generation->shards.count + generation_is_split(generation);
}

static size_t add_parts(struct generation *joined, struct catalog_part *out)
{
    size_t used = 0;

    if (generation_is_split(joined))
        out[used++] = (struct catalog_part){joined->own_path, joined};
    for (uint32_t i = 0; i < joined->shards.count; i++)
        out[used++] = (struct catalog_part){joined->shards.items[i].sibling, joined};
    return used;
}

/* Merges what is there, without what goes, with what comes. Returns how many there are then. */
static size_t merge(const struct catalog_index *index, const struct catalog_change *changes,
                    size_t count, const struct catalog_part *added, size_t added_count,
                    struct catalog_part *out)
{
    size_t used = 0;
    size_t next = 0;

    for (size_t i = 0; i < index->part_count; i++) {
        const struct catalog_part *part = &index->parts[i];

        if (is_dropped(part->joined, changes, count))
            continue;
        while (next < added_count && compare_parts(&added[next], part) < 0)
            out[used++] = added[next++];
        out[used++] = *part;
    }
    while (next < added_count)
        out[used++] = added[next++];
    return used;
}

bool catalog_parts_merge(const struct catalog_index *index, const struct catalog_change *changes,
                         size_t count, struct catalog_index *next)
{
    struct catalog_part *added = NULL;
    size_t added_count = 0;
    size_t at = 0;

    for (size_t i = 0; i < count; i++)
        added_count += count_of(changes[i].generation);
    next->parts = malloc((index->part_count + added_count + 1) * sizeof(*next->parts));
    if (added_count > 0)
        added = malloc(added_count * sizeof(*added));
    if (next->parts == NULL || (added_count > 0 && added == NULL)) {
        free(added);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        if (count_of(changes[i].generation) > 0)
            at += add_parts(changes[i].generation, added + at);
    assert(at == added_count);
    if (added_count > 1)
        qsort(added, added_count, sizeof(*added), compare_parts);
    next->part_count = merge(index, changes, count, added, added_count, next->parts);
    free(added);
    return true;
}

struct generation *catalog_index_model_of(const struct catalog_index *index, const char *path,
                                          struct name_filter filter)
{
    size_t low = 0;

    for (size_t high = index->part_count; low < high;) {
        const size_t middle = low + (high - low) / 2;

        if (strcmp(index->parts[middle].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < index->part_count && strcmp(index->parts[low].path, path) == 0; low++) {
        struct generation *joined = index->parts[low].joined;

        if (name_filter_passes(filter, generation_name(joined)) &&
            catalog_index_find_name(index, generation_name(joined)) == joined)
            return joined;
    }
    return NULL;
}
