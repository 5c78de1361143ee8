/* Walks the store in order and adds the known digests of files. */
#include "tree/tree_listing.h"

#include <stdlib.h>
#include <string.h>

/* Enough for the paths of a million entries of the maximum length. */
#define PATHS_BUDGET ((size_t)TREE_ENTRIES_MAX * (MODEL_NAME_MAX + 64))

struct listing {
    struct tree_listing *tree;
    size_t skipped; /* length of the folder and its slash, which begin all paths */
    enum zt_status status;
    struct zt_error *error;
};

static bool take(void *context, const char *path, const struct file_identity *identity)
{
    struct listing *listing = context;
    struct tree_listing *tree = listing->tree;
    const size_t size = strlen(path + listing->skipped) + 1;
    struct tree_entry entry = {.is_folder = identity == NULL};
    void *copy = NULL;

    listing->status = zt_array_reserve(&tree->entries, &tree->capacity, tree->count + 1,
                                       sizeof(entry), TREE_ENTRIES_MAX);
    if (listing->status == ZT_OK)
        listing->status = zt_arena_take(&tree->paths, size, &copy, NULL);
    if (listing->status != ZT_OK)
        return false;
    memcpy(copy, path + listing->skipped, size);
    entry.path = copy;
    if (identity != NULL) {
        entry.identity = *identity;
        tree->size_bytes += identity->size_bytes;
    }
    tree->entries[tree->count++] = entry;
    return true;
}

static int compare(const void *a, const void *b)
{
    const struct tree_entry *left = a;
    const struct tree_entry *right = b;
    const int order = strcmp(left->path, right->path);

    return order != 0 ? order : (int)left->is_folder - (int)right->is_folder;
}

/* The latest of several entries of a path comes first. */
static int compare_times(const void *a, const void *b)
{
    const int64_t left_ns = ((const struct tree_entry *)a)->identity.modified_ns;
    const int64_t right_ns = ((const struct tree_entry *)b)->identity.modified_ns;
    const int order = compare(a, b);

    return order != 0 ? order : (left_ns < right_ns) - (left_ns > right_ns);
}

/* Keeps the first of several entries of a path: a bucket's list may contain a key twice. */
static void drop_duplicates(struct tree_listing *tree)
{
    size_t used = 0;

    for (size_t i = 0; i < tree->count; i++)
        if (used > 0 && compare(&tree->entries[used - 1], &tree->entries[i]) == 0)
            tree->size_bytes -= tree->entries[i].identity.size_bytes;
        else
            tree->entries[used++] = tree->entries[i];
    tree->count = used;
}

static void add_hashes(struct server *server, struct tree_listing *tree, bool with_hashes)
{
    char path[MODEL_PATH_SIZE];
    const size_t before = strlen(tree->folder);

    memcpy(path, tree->folder, before);
    path[before] = '/';
    for (size_t i = 0; i < tree->count; i++) {
        struct tree_entry *entry = &tree->entries[i];

        if (entry->is_folder)
            continue;
        strcpy(path + before + (before > 0), entry->path);
        entry->has_sha256 = file_hashes_find(server->hashes, path, &entry->identity, entry->sha256);
        if (!entry->has_sha256 && with_hashes)
            file_hashes_want(server->hashes, path, &entry->identity);
    }
}

static struct tree_listing *listing_new(const char *folder)
{
    struct tree_listing *tree = calloc(1, sizeof(*tree));

    if (tree == NULL)
        return NULL;
    tree->folder = strdup(folder);
    if (tree->folder == NULL) {
        free(tree);
        return NULL;
    }
    zt_arena_init(&tree->paths, PATHS_BUDGET);
    return tree;
}

static enum zt_status walk(struct store *store, struct listing *listing, bool is_deep)
{
    const enum zt_status status =
        store->ops->walk(store, listing->tree->folder, is_deep, take, listing, listing->error);

    if (status != ZT_OK || listing->status == ZT_OK)
        return status;
    if (listing->status == ZT_LIMIT)
        return zt_fail(listing->error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "the folder has more than %d files and folders", TREE_ENTRIES_MAX);
    return zt_fail_memory(listing->error, "a list of files");
}

/* Lists without hashes. */
static enum zt_status list(struct store *store, const char *folder, bool is_deep,
                           struct tree_listing **out_listing, struct zt_error *error)
{
    struct tree_listing *tree = listing_new(folder);
    struct listing listing = {.tree = tree, .error = error};
    enum zt_status status;

    if (tree == NULL)
        return zt_fail_memory(error, "a list of files");
    listing.skipped = folder[0] == '\0' ? 0 : strlen(folder) + 1;
    status = walk(store, &listing, is_deep);
    if (status != ZT_OK) {
        tree_listing_release(tree);
        return status;
    }
    if (tree->count > 1)
        qsort(tree->entries, tree->count, sizeof(tree->entries[0]), compare_times);
    drop_duplicates(tree);
    *out_listing = tree;
    return ZT_OK;
}

enum zt_status tree_list(struct server *server, const char *folder, bool is_deep, bool with_hashes,
                         struct tree_listing **out_listing, struct zt_error *error)
{
    const enum zt_status status = list(server->store, folder, is_deep, out_listing, error);

    if (status == ZT_OK)
        add_hashes(server, *out_listing, with_hashes);
    return status;
}

enum zt_status tree_list_innermost(struct server *server, const char *folder, bool is_deep,
                                   struct tree_listing **out_listing, struct zt_error *error)
{
    const enum zt_status status =
        list(store_innermost(server->store), folder, is_deep, out_listing, error);

    if (status == ZT_OK)
        add_hashes(server, *out_listing, false);
    return status;
}

void tree_listing_release(void *thing)
{
    struct tree_listing *listing = thing;

    if (listing == NULL)
        return;
    zt_arena_free(&listing->paths);
    free(listing->entries);
    free(listing->folder);
    free(listing);
}
