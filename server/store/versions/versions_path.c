/* Paths of commits: finds the list of files that a path belongs to. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "store/versions/versions_state.h"

static bool has_commit(struct versions *versions, const struct history_repo *repo,
                       const char *commit)
{
    struct history_found found;
    struct zt_error ignored;
    const enum zt_status status =
        history_find(versions->options.history, repo, zt_text_from(commit), &found, &ignored);

    return status == ZT_OK || status == ZT_UNAVAILABLE;
}

/* --- paths --- */

static bool split(struct zt_text path, struct versions_place *out_place)
{
    struct history_path parts;
    size_t base;

    if (!history_path_split(path, &parts) || parts.repo.length > MODEL_NAME_MAX)
        return false;
    *out_place = (struct versions_place){.rest = parts.rest};
    base = parts.repo.length + 1 + HISTORY_COMMIT_SIZE - 1;
    assert(base <= path.length);
    out_place->base = (struct zt_text){path.bytes, base};
    memcpy(out_place->commit, parts.commit, sizeof(out_place->commit));
    snprintf(out_place->repo.name, sizeof(out_place->repo.name), "%.*s", (int)parts.repo.length,
             parts.repo.bytes);
    return true;
}

/* A folder and a model in the root may have the same name. */
enum zt_status versions_place_find(struct versions *versions, struct zt_text path,
                                   struct versions_place *out_place, struct zt_error *error)
{
    struct history *history = versions->options.history;
    enum zt_status status;

    if (!split(path, out_place))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "this is no path of a commit");
    status =
        history_tree_get(history, &out_place->repo, out_place->commit, &out_place->tree, error);
    if (status != ZT_NOT_FOUND)
        return status;
    out_place->repo.is_root_model = true;
    return history_tree_get(history, &out_place->repo, out_place->commit, &out_place->tree, error);
}

void versions_place_release(struct versions_place *place)
{
    assert(place->tree != NULL);
    history_tree_release(place->tree);
    place->tree = NULL;
}

bool versions_knows(struct versions *versions, struct zt_text path)
{
    struct versions_place place;

    if (!split(path, &place))
        return false;
    if (has_commit(versions, &place.repo, place.commit))
        return true;
    place.repo.is_root_model = true;
    return has_commit(versions, &place.repo, place.commit);
}

/* --- files --- */

struct file_identity versions_identity(const struct history_file *file)
{
    struct file_identity identity = {.size_bytes = file->size_bytes,
                                     .modified_ns = file->modified_ns,
                                     .changed_ns = file->modified_ns};

    memcpy(&identity.inode, file->sha256, sizeof(identity.inode));
    memcpy(&identity.device, file->sha256 + sizeof(identity.inode), sizeof(identity.device));
    return identity;
}

bool versions_current_path(const struct history_repo *repo, const struct history_file *file,
                           char out_path[MODEL_PATH_SIZE])
{
    if (repo->is_root_model)
        return snprintf(out_path, MODEL_PATH_SIZE, "%s", file->path) < MODEL_PATH_SIZE;
    return snprintf(out_path, MODEL_PATH_SIZE, "%s/%s", repo->name, file->path) < MODEL_PATH_SIZE;
}
