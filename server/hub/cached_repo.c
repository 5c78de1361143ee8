/* Clients that asked for a commit leave no refs/main, and a copied cache may have no blobs, so the
 * snapshots alone are enough. */
#include "hub/cached_repo.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/server.h"
#include "tree/stored_file.h"

/* Room for "models--", "--", "/snapshots/" and a commit. */
#define CACHE_FOLDER_SIZE (HUB_REPO_SIZE + 64)

/* Writes "models--owner--name" and the rest of the path. */
static void cache_path(const char *name, const char *rest, char out_path[CACHE_FOLDER_SIZE])
{
    const char *slash = strchr(name, '/');
    const int owner = slash != NULL ? (int)(slash - name) : 0;

    snprintf(out_path, CACHE_FOLDER_SIZE, "models--%.*s%s%s/%s", owner, name,
             slash != NULL ? "--" : "", slash != NULL ? slash + 1 : name, rest);
}

static void snapshot_path(const char *name, const char *commit, char out_path[CACHE_FOLDER_SIZE])
{
    char rest[16 + HUB_COMMIT_SIZE];

    snprintf(rest, sizeof(rest), "snapshots/%s", commit);
    cache_path(name, rest, out_path);
}

static bool is_commit(const char *text)
{
    return hub_revision_of(zt_text_from(text)) == HUB_REVISION_COMMIT;
}

/* Returns false if there is no refs/main that names a commit. */
static bool read_main(struct server *server, const char *name, char out_commit[HUB_COMMIT_SIZE])
{
    char path[CACHE_FOLDER_SIZE];
    struct stored_file *file;
    struct zt_error error;
    bool is_read;

    cache_path(name, "refs/main", path);
    if (stored_file_open(server, zt_text_from(path), &file, &error) != ZT_OK)
        return false;
    is_read = zt_source_size(file->source) >= HUB_COMMIT_SIZE - 1 &&
              zt_source_read_at(file->source, 0, out_commit, HUB_COMMIT_SIZE - 1, &error) == ZT_OK;
    stored_file_close(file);
    out_commit[HUB_COMMIT_SIZE - 1] = '\0';
    return is_read && is_commit(out_commit);
}

/* --- the youngest snapshot --- */

struct youngest {
    size_t folder_length; /* length of ".../snapshots/" */
    char commit[HUB_COMMIT_SIZE];
    int64_t modified_ns;
};

static bool visit(void *context, const char *path, const struct file_identity *identity)
{
    struct youngest *youngest = context;
    char commit[HUB_COMMIT_SIZE];
    const char *rest = path + youngest->folder_length;

    assert(strlen(path) >= youngest->folder_length);
    if (identity == NULL || strcspn(rest, "/") != HUB_COMMIT_SIZE - 1)
        return true;
    snprintf(commit, sizeof(commit), "%s", rest);
    if (!is_commit(commit) ||
        (youngest->commit[0] != '\0' && identity->modified_ns < youngest->modified_ns))
        return true;
    /* Snapshots can share all their files, and folders are read in random order, so a tie is broken
     * by commit. */
    if (identity->modified_ns == youngest->modified_ns && strcmp(commit, youngest->commit) <= 0)
        return true;
    memcpy(youngest->commit, commit, sizeof(commit));
    youngest->modified_ns = identity->modified_ns;
    return true;
}

static bool find_youngest(struct server *server, const char *name, char out_commit[HUB_COMMIT_SIZE])
{
    char folder[CACHE_FOLDER_SIZE];
    struct youngest youngest = {.commit = ""};
    struct zt_error error;

    cache_path(name, "snapshots", folder);
    youngest.folder_length = strlen(folder) + 1;
    if (server->store->ops->walk(server->store, folder, true, visit, &youngest, &error) != ZT_OK ||
        youngest.commit[0] == '\0')
        return false;
    memcpy(out_commit, youngest.commit, HUB_COMMIT_SIZE);
    return true;
}

/* --- lookups --- */

static bool has_snapshot(struct server *server, const char *name, const char *commit)
{
    char folder[CACHE_FOLDER_SIZE];
    struct zt_error error;

    snapshot_path(name, commit, folder);
    return hub_folder_check(server, folder, &error) != ZT_NOT_FOUND;
}

bool cached_repo_main(struct server *server, const char *name, char out_commit[HUB_COMMIT_SIZE])
{
    return (read_main(server, name, out_commit) && has_snapshot(server, name, out_commit)) ||
           find_youngest(server, name, out_commit);
}

enum zt_status cached_repo_list(struct server *server, const char *name, const char *commit,
                                struct hub_version **out_version, struct zt_error *error)
{
    char folder[CACHE_FOLDER_SIZE];
    char blobs[CACHE_FOLDER_SIZE];

    snapshot_path(name, commit, folder);
    cache_path(name, "blobs", blobs);
    return hub_version_make(
        server, &(struct hub_listing){.folder = folder, .commit = commit, .blobs = blobs},
        out_version, error);
}
