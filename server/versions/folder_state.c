/* Lists a repository in the folder. The walk only collects; files are hashed after it, because the
 * walk holds descriptors. */
#include "versions/folder_state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "digests/file_hashes.h"
#include "store/versions/versions_store.h"
#include "zt/digest.h"

/* How often to list a folder in which files change meanwhile. */
#define LISTS_MAX 4

/* --- listing --- */

struct entry {
    char *path;
    struct file_identity identity;
};

struct listing {
    struct entry *entries;
    size_t count;
    size_t capacity;
    struct history *history;
    const struct history_repo *repo;
    bool has_failed; /* without memory */
};

static bool add(struct listing *listing, const char *path, const struct file_identity *identity)
{
    struct entry entry = {.path = strdup(path), .identity = *identity};

    assert(listing->count <= listing->capacity);
    if (entry.path == NULL ||
        zt_array_reserve(&listing->entries, &listing->capacity, listing->count + 1, sizeof(entry),
                         SIZE_MAX) != ZT_OK) {
        free(entry.path);
        return false;
    }
    listing->entries[listing->count++] = entry;
    return true;
}

static bool is_of_repo(const struct listing *listing, const char *path)
{
    struct history_repo repo;

    history_repo_of_path(listing->history, path, &repo);
    return repo.is_root_model && strcmp(repo.name, listing->repo->name) == 0;
}

static bool visit(void *context, const char *path, const struct file_identity *identity)
{
    struct listing *listing = context;
    const size_t skipped = listing->repo->is_root_model ? 0 : strlen(listing->repo->name) + 1;

    assert(!listing->has_failed);
    if (identity == NULL || (listing->repo->is_root_model && !is_of_repo(listing, path)))
        return true;
    listing->has_failed = !add(listing, path + skipped, identity);
    return !listing->has_failed;
}

/* The folder of an owner has only its own files: its subfolders are other repositories. */
static bool is_deep(struct history *history, const struct history_repo *repo)
{
    char path[MODEL_PATH_SIZE];
    struct history_repo inside;

    if (repo->is_root_model)
        return false;
    if (strchr(repo->name, '/') != NULL)
        return true;
    snprintf(path, sizeof(path), "%s/folder/file", repo->name);
    history_repo_of_path(history, path, &inside);
    return strcmp(inside.name, repo->name) == 0;
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

/* Takes over the paths of the sorted list. */
static bool take_entries(struct listing *listing, struct folder_state *state)
{
    if (listing->count > 1)
        qsort(listing->entries, listing->count, sizeof(*listing->entries), compare_entries);
    state->files = calloc(listing->count + 1, sizeof(*state->files));
    state->identities = calloc(listing->count + 1, sizeof(*state->identities));
    state->paths = calloc(listing->count + 1, sizeof(*state->paths));
    if (state->files == NULL || state->identities == NULL || state->paths == NULL)
        return false;
    for (size_t i = 0; i < listing->count; i++) {
        const struct entry *entry = &listing->entries[i];

        state->files[i] = (struct history_file){.path = entry->path,
                                                .size_bytes = entry->identity.size_bytes,
                                                .modified_ns = entry->identity.modified_ns};
        state->identities[i] = entry->identity;
        state->paths[i] = entry->path;
    }
    state->count = state->path_count = listing->count;
    listing->count = 0;
    return true;
}

static enum zt_status list(struct server *server, const struct history_repo *repo,
                           struct folder_state *state, struct zt_error *error)
{
    struct store *folder = store_innermost(server->store);
    struct listing listing = {.history = store_history(server->store), .repo = repo};
    enum zt_status status =
        folder->ops->walk(folder, repo->is_root_model ? "" : repo->name,
                          is_deep(listing.history, repo), visit, &listing, error);

    if (status == ZT_NOT_FOUND)
        status = ZT_OK;
    if (listing.has_failed || (status == ZT_OK && !take_entries(&listing, state)))
        status = zt_fail_memory(error, "the files of a repository");
    for (size_t i = 0; i < listing.count; i++)
        free(listing.entries[i].path);
    free(listing.entries);
    return status;
}

/* --- hashing --- */

bool folder_state_path(const struct history_repo *repo, const char *path,
                       char out_path[MODEL_PATH_SIZE])
{
    if (repo->is_root_model)
        return snprintf(out_path, MODEL_PATH_SIZE, "%s", path) < MODEL_PATH_SIZE;
    return snprintf(out_path, MODEL_PATH_SIZE, "%s/%s", repo->name, path) < MODEL_PATH_SIZE;
}

static enum zt_status hash_file(struct server *server, const struct history_repo *repo,
                                struct history_file *file, const struct file_identity *identity,
                                struct zt_error *error)
{
    char path[MODEL_PATH_SIZE];

    if (!folder_state_path(repo, file->path, path))
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "its name is too long");
    if (file_hashes_find(server->hashes, path, identity, file->sha256))
        return ZT_OK;
    return file_hashes_compute(server->hashes, path, identity, file->sha256, error);
}

/* Hashes all files, and drops those that cannot be read. */
static enum zt_status hash_all(struct server *server, const struct history_repo *repo,
                               struct folder_state *state, struct zt_error *error)
{
    size_t used = 0;
    enum zt_status status = ZT_OK;

    for (size_t i = 0; i < state->count; i++) {
        struct history_file file = state->files[i];
        const struct file_identity identity = state->identities[i];

        if (status == ZT_OK)
            status = hash_file(server, repo, &file, &identity, error);
        if (status == ZT_IO) {
            log_write(LOG_LEVEL_WARN, "%s/%s is left out of the repository's commits: %s",
                      repo->name, file.path, error->message);
            status = ZT_OK;
            continue;
        }
        state->files[used] = file;
        state->identities[used++] = identity;
    }
    assert(used <= state->count && state->count <= state->path_count);
    state->count = used;
    return status == ZT_NOT_FOUND ? ZT_STALE : status;
}

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct history_file *)a)->path, ((const struct history_file *)b)->path);
}

enum zt_status folder_state_read(struct server *server, const struct history_repo *repo,
                                 struct folder_state *out_state, struct zt_error *error)
{
    struct folder_state state = {.count = 0};
    enum zt_status status = ZT_STALE;

    for (unsigned i = 0; i < LISTS_MAX && status == ZT_STALE; i++) {
        folder_state_free(&state);
        status = list(server, repo, &state, error);
        if (status == ZT_OK)
            status = hash_all(server, repo, &state, error);
    }
    if (status != ZT_OK) {
        folder_state_free(&state);
        return status;
    }
    *out_state = state;
    return ZT_OK;
}

void folder_state_free(struct folder_state *state)
{
    assert(state->count <= state->path_count);
    for (size_t i = 0; i < state->path_count; i++)
        free(state->paths[i]);
    free(state->paths);
    free(state->files);
    free(state->identities);
    *state = (struct folder_state){.count = 0};
}

const struct history_file *folder_state_find(const struct folder_state *state, const char *path)
{
    const struct history_file key = {.path = path};

    assert(state->count == 0 || state->files != NULL);
    return state->count > 0 ? bsearch(&key, state->files, state->count, sizeof(key), compare_files)
                            : NULL;
}
