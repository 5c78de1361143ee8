/* Two sorted arrays, rebuilt by merging: a change costs one pass over pointers, and a scan's
 * thousands of changes no more than that. */
#include "catalog/catalog_index.h"

#include <stdlib.h>
#include <string.h>

int catalog_text_compare(struct zt_text a, struct zt_text b)
{
    size_t common = a.length < b.length ? a.length : b.length;
    int order = common == 0 ? 0 : memcmp(a.bytes, b.bytes, common);

    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

static unsigned rank_of(const struct generation *generation)
{
    size_t length;
    unsigned rank = 0;

    (void)model_path_split(generation->path, &length, &rank);
    return rank;
}

static int compare_names(const struct generation *a, const struct generation *b)
{
    int order = catalog_text_compare(generation_name(a), generation_name(b));
    unsigned rank_a;
    unsigned rank_b;

    if (order != 0)
        return order;
    rank_a = rank_of(a);
    rank_b = rank_of(b);
    return (rank_a > rank_b) - (rank_a < rank_b);
}

static int compare_names_for_sort(const void *a, const void *b)
{
    return compare_names(*(struct generation *const *)a, *(struct generation *const *)b);
}

static struct zt_text path_of(const struct generation *generation)
{
    return (struct zt_text){generation->path, strlen(generation->path)};
}

size_t catalog_index_path_bound(const struct catalog_index *index, struct zt_text path)
{
    size_t low = 0;
    size_t high = index->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (catalog_text_compare(path_of(index->by_path[middle]), path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Merges the changes into the order of paths. */
static size_t merge_paths(const struct catalog_index *index, const struct catalog_change *changes,
                          size_t count, struct generation **out_paths,
                          struct generation **out_dropped, size_t *out_dropped_count)
{
    size_t used = 0;
    size_t at = 0;
    size_t dropped = 0;

    for (size_t i = 0; i < count; i++) {
        while (at < index->count && strcmp(index->by_path[at]->path, changes[i].path) < 0)
            out_paths[used++] = index->by_path[at++];
        if (at < index->count && strcmp(index->by_path[at]->path, changes[i].path) == 0)
            out_dropped[dropped++] = index->by_path[at++];
        if (changes[i].generation != NULL)
            out_paths[used++] = changes[i].generation;
    }
    while (at < index->count)
        out_paths[used++] = index->by_path[at++];
    *out_dropped_count = dropped;
    return used;
}

/* Merges the added generations, sorted by name, with what stays of the order of names. */
static void merge_names(const struct catalog_index *index, struct generation *const *added,
                        size_t added_count, struct generation **out_names)
{
    size_t used = 0;
    size_t next = 0;

    for (size_t at = 0; at < index->count; at++) {
        if (atomic_load(&index->by_name[at]->retired))
            continue;
        while (next < added_count && compare_names(added[next], index->by_name[at]) < 0)
            out_names[used++] = added[next++];
        out_names[used++] = index->by_name[at];
    }
    while (next < added_count)
        out_names[used++] = added[next++];
}

bool catalog_index_apply(struct catalog_index *index, const struct catalog_change *changes,
                         size_t count, struct generation **out_dropped, size_t *out_dropped_count)
{
    size_t most = index->count + count;
    struct generation **paths = calloc(most + 1, sizeof(*paths));
    struct generation **names = calloc(most + 1, sizeof(*names));
    struct generation **added = calloc(count + 1, sizeof(*added));
    size_t added_count = 0;
    size_t used;

    if (paths == NULL || names == NULL || added == NULL) {
        free(paths);
        free(names);
        free(added);
        return false;
    }
    used = merge_paths(index, changes, count, paths, out_dropped, out_dropped_count);
    for (size_t i = 0; i < *out_dropped_count; i++)
        atomic_store(&out_dropped[i]->retired, true);
    for (size_t i = 0; i < count; i++)
        if (changes[i].generation != NULL)
            added[added_count++] = changes[i].generation;
    if (added_count > 1)
        qsort(added, added_count, sizeof(*added), compare_names_for_sort);
    merge_names(index, added, added_count, names);
    free(added);
    free(index->by_path);
    free(index->by_name);
    *index = (struct catalog_index){paths, names, used};
    return true;
}

struct generation *catalog_index_find_path(const struct catalog_index *index, struct zt_text path)
{
    size_t at = catalog_index_path_bound(index, path);

    if (at == index->count || catalog_text_compare(path_of(index->by_path[at]), path) != 0)
        return NULL;
    return index->by_path[at];
}

size_t catalog_index_lower_bound(const struct catalog_index *index, struct zt_text name)
{
    size_t low = 0;
    size_t high = index->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (catalog_text_compare(generation_name(index->by_name[middle]), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool same_name(const struct generation *a, const struct generation *b)
{
    return catalog_text_compare(generation_name(a), generation_name(b)) == 0;
}

struct generation *catalog_index_model_at(const struct catalog_index *index, size_t at,
                                          size_t *out_next)
{
    struct generation *found = NULL;

    while (at < index->count && found == NULL) {
        const struct generation *first = index->by_name[at];

        for (; at < index->count && same_name(index->by_name[at], first); at++)
            if (found == NULL && index->by_name[at]->error.status != ZT_DATA_SHARD)
                found = index->by_name[at];
    }
    *out_next = at;
    return found;
}

struct generation *catalog_index_find_name(const struct catalog_index *index, struct zt_text name)
{
    size_t at = catalog_index_lower_bound(index, name);
    size_t next;
    struct generation *found = catalog_index_model_at(index, at, &next);

    if (found == NULL || catalog_text_compare(generation_name(found), name) != 0)
        return NULL;
    return found;
}

void catalog_index_clear(struct catalog_index *index)
{
    for (size_t i = 0; i < index->count; i++)
        generation_release(index->by_path[i]);
    free(index->by_path);
    free(index->by_name);
    *index = (struct catalog_index){NULL, NULL, 0};
}
