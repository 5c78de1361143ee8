/* Lookups in two sorted arrays, and listings. Comparing with a listing opens no files: a scan of a
 * hundred thousand unchanged files costs one stat per file. catalog_merge.c applies changes. */
#include "catalog/catalog_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static struct zt_text path_of(const struct generation *generation)
{
    return zt_text_from(generation->path);
}

/* Returns the first index whose key (a path or a name) does not sort before the given key. */
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
    assert(low == high);
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
            if (found == NULL && !generation_is_hidden(index->by_name[at]))
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

void catalog_index_free_arrays(struct catalog_index *index)
{
    free(index->by_path);
    free(index->by_name);
    free(index->sharded);
    free(index->parts);
    *index = (struct catalog_index){0};
}

void catalog_index_clear(struct catalog_index *index)
{
    for (size_t i = 0; i < index->count; i++)
        generation_release(index->by_path[i]);
    catalog_index_free_arrays(index);
}

/* --- listings --- */

bool catalog_files_add(struct catalog_files *files, const char *path,
                       const struct file_identity *identity)
{
    struct catalog_file file = {.path = strdup(path), .listed = identity != NULL};

    assert(path[0] != '\0');
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

/* Ends a listing with the store's result. */
static enum zt_status finish(struct listing *listing, enum zt_status status,
                             struct catalog_files *out_files, struct zt_error *error)
{
    if (status == ZT_OK && listing->out_of_memory)
        status =
            zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for the list of files");
    if (status != ZT_OK) {
        catalog_files_free(&listing->files);
        return status;
    }
    if (listing->files.count > 1)
        qsort(listing->files.items, listing->files.count, sizeof(struct catalog_file),
              compare_files);
    *out_files = listing->files;
    return ZT_OK;
}

/* Merges two checks of one file that disagree: the file must be opened in any case. */
static void merge_stats(struct catalog_file *kept, const struct catalog_file *other)
{
    assert(strcmp(kept->path, other->path) == 0);
    if (kept->listed && other->listed && store_identity_equal(&kept->identity, &other->identity))
        return;
    if (!kept->listed)
        kept->identity = other->identity;
    kept->listed = kept->listed || other->listed;
    /* No file has this time, so the identity equals no other. */
    kept->identity.changed_ns = INT64_MIN;
}

static void drop_repeated(struct catalog_files *files)
{
    size_t used = 0;

    for (size_t i = 0; i < files->count; i++) {
        if (used > 0 && strcmp(files->items[used - 1].path, files->items[i].path) == 0) {
            merge_stats(&files->items[used - 1], &files->items[i]);
            free(files->items[i].path);
        } else {
            files->items[used++] = files->items[i];
        }
    }
    files->count = used;
}

enum zt_status catalog_files_list(struct store *store, struct catalog_files *out_files,
                                  struct zt_error *error)
{
    struct listing listing = {{NULL, 0, 0}, false};
    enum zt_status status = store->ops->list(store, take_file, &listing, error);

    status = finish(&listing, status, out_files, error);
    /* A folder that changes while it is read may name a file twice. */
    if (status == ZT_OK)
        drop_repeated(out_files);
    return status;
}

enum zt_status catalog_files_stat(struct store *store, struct catalog_files *out_files,
                                  bool *out_whole, struct zt_error *error)
{
    struct listing listing = {{NULL, 0, 0}, false};
    enum zt_status status = store->ops->list_changes(store, take_file, &listing, out_whole, error);

    status = finish(&listing, status, out_files, error);
    if (status == ZT_OK)
        drop_repeated(out_files);
    return status;
}

static bool is_as_known(const struct catalog_file *file, const struct generation *known)
{
    if (known == NULL)
        return false;
    return file->listed && store_identity_equal(&file->identity, &known->identity);
}

void catalog_files_drop_known(struct catalog_files *files, const struct catalog_index *index)
{
    size_t used = 0;

    for (size_t i = 0; i < files->count; i++) {
        struct catalog_file *file = &files->items[i];

        if (is_as_known(file, catalog_index_find_path(index, zt_text_from(file->path))))
            free(file->path);
        else
            files->items[used++] = *file;
    }
    files->count = used;
}

/* Returns the first index from `at` whose generation has its own file; split GGUFs change with
 * their parts. */
static size_t past_splits(const struct catalog_index *index, size_t at)
{
    while (at < index->count && generation_is_split(index->by_path[at]))
        at++;
    return at;
}

/* Models of earlier commits are never listed, so only their use keeps them. */
static bool leave_if_unused(struct catalog_files *changed, struct generation *known)
{
    if (atomic_exchange(&known->used, false))
        return true;
    if (!catalog_files_add(changed, known->path, NULL))
        return false;
    changed->items[changed->count - 1].leaves = true;
    return true;
}

bool catalog_files_compare(const struct catalog_files *files, const struct catalog_index *index,
                           struct catalog_files *out_changed)
{
    struct catalog_files changed = {NULL, 0, 0};
    size_t at = past_splits(index, 0);
    size_t i = 0;
    bool added = true;

    while (added && (i < files->count || at < index->count)) {
        const struct catalog_file *file = i < files->count ? &files->items[i] : NULL;
        const struct generation *known = at < index->count ? index->by_path[at] : NULL;
        const bool is_gone = known != NULL && (file == NULL || strcmp(file->path, known->path) > 0);
        const bool is_known =
            known != NULL && file != NULL && !is_gone && strcmp(file->path, known->path) == 0;

        assert(file == NULL || i == 0 || strcmp(file[-1].path, file->path) <= 0);
        assert(is_gone || file != NULL);
        if (is_gone && known->is_of_commit)
            added = leave_if_unused(&changed, index->by_path[at]);
        else if (is_gone)
            added = catalog_files_add(&changed, known->path, NULL);
        else if (!is_known || !store_identity_equal(&file->identity, &known->identity))
            added = catalog_files_add(&changed, file->path, &file->identity);
        i += !is_gone;
        at = past_splits(index, at + (is_gone || is_known));
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
