/* Adds SHA-256s to a listing of a repository's folder. */
#include "versions/folder_state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "catalog/catalog.h"
#include "digests/file_hashes.h"
#include "store/versions/versions_store.h"
#include "tree/tree_listing.h"
#include "zt/digest.h"

/* How often to list a folder in which files change meanwhile. */
#define LISTS_MAX 4

/* --- listing --- */

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

static bool has_name(const void *context, struct zt_text name)
{
    return zt_text_is(name, context);
}

static bool has_other_name(const void *context, struct zt_text name)
{
    return !zt_text_is(name, context);
}

/* Returns true if only the index of this model in the root names the file as a part. */
static bool is_own_part(struct server *server, const struct history_repo *repo, const char *path)
{
    char ignored[MODEL_NAME_MAX + 1];

    return catalog_part_of(server->catalog, path, (struct name_filter){has_name, repo->name},
                           ignored) &&
           !catalog_part_of(server->catalog, path, (struct name_filter){has_other_name, repo->name},
                            ignored);
}

static bool is_named_like_repo(struct server *server, const struct history_repo *repo,
                               const char *path)
{
    struct history_repo own;

    history_repo_of_path(store_history(server->store), path, &own);
    return own.is_root_model && strcmp(own.name, repo->name) == 0;
}

static bool is_of_repo(struct server *server, const struct history_repo *repo,
                       const struct tree_entry *entry)
{
    if (entry->is_folder || !repo->is_root_model)
        return !entry->is_folder;
    return is_named_like_repo(server, repo, entry->path) || is_own_part(server, repo, entry->path);
}

/* Lets the catalog see the present index of a model in the root, which names its parts. */
static void update_index(struct server *server, const struct history_repo *repo,
                         const struct tree_listing *listing)
{
    for (size_t i = 0; repo->is_root_model && i < listing->count; i++) {
        const struct tree_entry *entry = &listing->entries[i];
        size_t length;
        unsigned rank;

        if (!entry->is_folder && model_path_split(entry->path, &length, &rank) &&
            model_rank_is_index(rank) && is_named_like_repo(server, repo, entry->path))
            generation_release(catalog_update(server->catalog, entry->path));
    }
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
                                const struct tree_entry *entry, struct history_file *file,
                                struct zt_error *error)
{
    char path[MODEL_PATH_SIZE];

    *file = (struct history_file){.path = entry->path,
                                  .size_bytes = entry->identity.size_bytes,
                                  .modified_ns = entry->identity.modified_ns};
    memcpy(file->sha256, entry->sha256, sizeof(file->sha256));
    if (entry->has_sha256)
        return ZT_OK;
    if (!folder_state_path(repo, file->path, path))
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "its name is too long");
    return file_hashes_compute(server->hashes, path, &entry->identity, file->sha256, error);
}

/* Takes the repository's files, and leaves out those that cannot be read. */
static enum zt_status take_files(struct server *server, const struct history_repo *repo,
                                 struct folder_state *state, struct zt_error *error)
{
    const struct tree_listing *listing = state->listing;

    state->files = calloc(listing->count + 1, sizeof(*state->files));
    state->identities = calloc(listing->count + 1, sizeof(*state->identities));
    if (state->files == NULL || state->identities == NULL)
        return zt_fail_memory(error, "the files of a repository");
    update_index(server, repo, listing);
    for (size_t i = 0; i < listing->count; i++) {
        const struct tree_entry *entry = &listing->entries[i];
        enum zt_status status;

        if (!is_of_repo(server, repo, entry))
            continue;
        status = hash_file(server, repo, entry, &state->files[state->count], error);
        if (status == ZT_IO) {
            log_write(LOG_LEVEL_WARN, "%s/%s is left out of the repository's commits: %s",
                      repo->name, entry->path, error->message);
            continue;
        }
        if (status != ZT_OK)
            return status == ZT_NOT_FOUND ? ZT_STALE : status;
        state->identities[state->count++] = entry->identity;
    }
    return ZT_OK;
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
        status =
            tree_list_innermost(server, repo->is_root_model ? "" : repo->name,
                                is_deep(store_history(server->store), repo), &state.listing, error);
        if (status == ZT_OK)
            status = take_files(server, repo, &state, error);
        else if (status == ZT_NOT_FOUND)
            status = ZT_OK; /* there are no files */
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
    tree_listing_release(state->listing);
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
