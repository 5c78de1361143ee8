/* Listing the store and comparing: only what differs is opened, so that a scan of a hundred
 * thousand unchanged files costs their stat and nothing more. */
#include "catalog/catalog_scan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool catalog_files_add(struct catalog_files *files, const char *path,
                       const struct file_identity *identity)
{
    struct catalog_file file = {.path = strdup(path), .listed = identity != NULL};

    if (identity != NULL)
        file.identity = *identity;
    if (files->count == files->capacity) {
        size_t capacity = files->capacity == 0 ? 64 : files->capacity * 2;
        struct catalog_file *items = realloc(files->items, capacity * sizeof(*items));

        if (items != NULL) {
            files->items = items;
            files->capacity = capacity;
        }
    }
    if (file.path == NULL || files->count == files->capacity) {
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
