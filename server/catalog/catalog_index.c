/* Two sorted arrays, rebuilt by merging: one change costs a pass over pointers, and so do thousands
 * of changes from a scan. Comparing with a listing opens nothing: a scan of a hundred thousand
 * unchanged files costs only a stat for each. */
#include "catalog/catalog_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static unsigned rank_of(const struct generation *generation)
{
    size_t length;
    unsigned rank = 0;

    (void)model_path_split(generation->path, &length, &rank);
    return rank;
}

static int compare_names(const struct generation *a, const struct generation *b)
{
    int order = zt_text_compare(generation_name(a), generation_name(b));
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
    return zt_text_from(generation->path);
}

/* The first index whose key, a path or a name, does not sort before the given one. */
static size_t lower_bound(struct generation *const *items, size_t count,
                          struct zt_text (*key_of)(const struct generation *generation),
                          struct zt_text key)
{
    size_t low = 0;
    size_t high = count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (zt_text_compare(key_of(items[middle]), key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t catalog_index_path_bound(const struct catalog_index *index, struct zt_text path)
{
    return lower_bound(index->by_path, index->count, path_of, path);
}

size_t catalog_index_lower_bound(const struct catalog_index *index, struct zt_text name)
{
    return lower_bound(index->by_name, index->count, generation_name, name);
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
    assert(used <= index->count + count && dropped <= count);
    *out_dropped_count = dropped;
    return used;
}

/* Merges the added generations, sorted by name, with those that stay. */
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
    for (size_t i = 0; i < *out_dropped_count; i++) {
        assert(!atomic_load(&out_dropped[i]->retired));
        atomic_store(&out_dropped[i]->retired, true);
    }
    for (size_t i = 0; i < count; i++)
        if (changes[i].generation != NULL)
            added[added_count++] = changes[i].generation;
    if (added_count > 1)
        qsort(added, added_count, sizeof(*added), compare_names_for_sort);
    assert(used == index->count - *out_dropped_count + added_count);
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

    if (at == index->count || !zt_text_equal(path_of(index->by_path[at]), path))
        return NULL;
    return index->by_path[at];
}

static bool same_name(const struct generation *a, const struct generation *b)
{
    return zt_text_equal(generation_name(a), generation_name(b));
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
    assert(at <= index->count && (found != NULL || at == index->count));
    *out_next = at;
    return found;
}

struct generation *catalog_index_find_name(const struct catalog_index *index, struct zt_text name)
{
    size_t at = catalog_index_lower_bound(index, name);
    size_t next;
    struct generation *found = catalog_index_model_at(index, at, &next);

    if (found == NULL || !zt_text_equal(generation_name(found), name))
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

/* --- listings --- */

bool catalog_files_add(struct catalog_files *files, const char *path,
                       const struct file_identity *identity)
{
    struct catalog_file file = {.path = strdup(path), .listed = identity != NULL};

    if (identity != NULL)
        file.identity = *identity;
    if (file.path == NULL || zt_array_reserve(&files->items, &files->capacity, files->count + 1,
                                              sizeof(file), SIZE_MAX) != ZT_OK) {
        free(file.path);
        return false;
    }
    files->items[files->count++] = file;
    return true;
}

struct listing {
    struct catalog_files files;
    bool out_of_memory;
};

static bool take_file(void *context, const char *path, const struct file_identity *identity)
{
    struct listing *listing = context;

    listing->out_of_memory = !catalog_files_add(&listing->files, path, identity);
    return !listing->out_of_memory;
}

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct catalog_file *)a)->path, ((const struct catalog_file *)b)->path);
}

enum zt_status catalog_files_list(struct store *store, struct catalog_files *out_files,
                                  struct zt_error *error)
{
    struct listing listing = {{NULL, 0, 0}, false};
    enum zt_status status = store->ops->list(store, take_file, &listing, error);

    if (status == ZT_OK && listing.out_of_memory)
        status =
            zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for the list of files");
    if (status != ZT_OK) {
        catalog_files_free(&listing.files);
        return status;
    }
    if (listing.files.count > 1)
        qsort(listing.files.items, listing.files.count, sizeof(struct catalog_file), compare_files);
    *out_files = listing.files;
    return ZT_OK;
}

bool catalog_files_compare(const struct catalog_files *files, const struct catalog_index *index,
                           struct catalog_files *out_changed)
{
    struct catalog_files changed = {NULL, 0, 0};
    size_t at = 0;
    size_t i = 0;
    bool added = true;

    while (added && (i < files->count || at < index->count)) {
        const struct catalog_file *file = i < files->count ? &files->items[i] : NULL;
        const struct generation *known = at < index->count ? index->by_path[at] : NULL;
        const bool is_gone = known != NULL && (file == NULL || strcmp(file->path, known->path) > 0);
        const bool is_known =
            known != NULL && file != NULL && !is_gone && strcmp(file->path, known->path) == 0;

        assert(is_gone || file != NULL);
        if (is_gone)
            added = catalog_files_add(&changed, known->path, NULL);
        else if (!is_known || !store_identity_equal(&file->identity, &known->identity))
            added = catalog_files_add(&changed, file->path, &file->identity);
        i += !is_gone;
        at += is_gone || is_known;
    }
    if (!added) {
        catalog_files_free(&changed);
        return false;
    }
    *out_changed = changed;
    return true;
}

void catalog_files_free(struct catalog_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->items[i].path);
    free(files->items);
    *files = (struct catalog_files){NULL, 0, 0};
}
