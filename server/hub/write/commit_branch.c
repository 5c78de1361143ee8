/* Carries out a commit to a branch other than main. Its files never appear in the folder: they go
 * to the kept ones, and the history records them. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/server.h"
#include "hub/write/commit.h"
#include "hub/write/repo_current.h"
#include "store/staging.h"
#include "store/versions/versions_store.h"

#define DEFAULT_TITLE "Upload files"

/* The files of the resulting commit. */
struct files {
    struct history_file *list;
    size_t count;
};

static struct history *history_of(const struct commit *commit)
{
    return store_history(commit->server->store);
}

static struct history_repo repo_of(const struct commit *commit)
{
    struct history_repo repo = {.is_root_model = false};

    snprintf(repo.name, sizeof(repo.name), "%s", commit->repo);
    return repo;
}

static bool fail(struct commit *commit, const struct zt_error *error)
{
    return failure_of_store(&commit->failure, error);
}

bool commit_find_branch(struct commit *commit, struct hub_version **out_version)
{
    const struct history_repo repo = repo_of(commit);
    const struct zt_text branch = zt_text_from(commit->branch);
    struct history_found found;
    struct zt_error error;

    assert(commit->branch[0] != '\0');
    *out_version = NULL;
    switch (repo_current_look(commit->server, zt_text_from(commit->repo), branch, out_version,
                              &error)) {
    case HUB_FOUND:
        break;
    case HUB_NO_REPO:
        commit->is_absent = true;
        return commit_refuse(commit, 0, PROBLEM_NOT_FOUND, "there is no such repository");
    case HUB_NO_REVISION:
        hub_version_release(*out_version);
        *out_version = NULL;
        commit->lacks_branch = true;
        return commit_refuse(commit, 0, PROBLEM_NOT_FOUND, "there is no such branch");
    case HUB_FAILED:
    case HUB_BUSY:
        return fail(commit, &error);
    }
    if (history_find(history_of(commit), &repo, branch, &found, &error) == ZT_OK && found.is_branch)
        return true;
    commit->lacks_branch = true;
    return commit_refuse(commit, 0, PROBLEM_NOT_FOUND,
                         "this is not a branch, so nothing can be committed to it");
}

/* --- the files --- */

static bool keep_staged(struct commit *commit, struct commit_operation *operation)
{
    struct staged_file **stored = &operation->publication.stored;
    struct zt_error error;
    enum zt_status status;

    assert(!operation->removes && operation->shared == NULL);
    if (!commit_open_bytes(commit, operation))
        return false;
    status = staged_file_sync_whole(*stored, &error);
    if (status == ZT_OK)
        status = history_keep_staged(history_of(commit), *stored, operation->sha256, &error);
    if (status == ZT_OK)
        *stored = NULL;
    commit_close_bytes(operation);
    if (status != ZT_OK)
        return fail(commit, &error);
    if (operation->staged != NULL)
        staged_use_up(operation->staged);
    operation->staged = NULL;
    return true;
}

/* Keeps the folder's file of that path if it has the bytes. Returns ZT_NOT_FOUND otherwise. */
static enum zt_status keep_from_folder(const struct commit *commit, const char *path,
                                       const struct hub_version *version, const uint8_t sha256[32],
                                       struct zt_error *error)
{
    const struct hub_file *file =
        version != NULL ? repo_current_file(version, zt_text_from(path)) : NULL;
    char whole[HUB_REPO_SIZE + MODEL_PATH_SIZE];

    if (file == NULL || !file->has_sha256 || memcmp(file->sha256, sha256, 32) != 0)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the folder has other bytes");
    snprintf(whole, sizeof(whole), "%s/%s", version->folder, path);
    return history_keep_file(history_of(commit), whole, &file->identity, sha256, error);
}

static bool keep_shared(struct commit *commit, const struct commit_operation *operation)
{
    struct file_identity ignored;
    struct hub_version *version;
    struct zt_error error;
    enum zt_status status;

    if (!repo_current_find(commit->server, zt_text_from(commit->repo), &version, &error))
        return fail(commit, &error);
    status = keep_from_folder(commit, operation->shared, version, operation->sha256, &error);
    hub_version_release(version);
    if (status == ZT_NOT_FOUND || status == ZT_STALE)
        status = history_stat_kept(history_of(commit), operation->sha256, &ignored, &error);
    if (status == ZT_NOT_FOUND)
        return commit_refuse(commit, operation->line, PROBLEM_CONFLICT,
                             "%s: the repository's file with this oid was changed meanwhile",
                             commit_inside(commit, operation));
    return status == ZT_OK || fail(commit, &error);
}

static bool keep_file(struct commit *commit, struct commit_operation *operation)
{
    if (operation->removes)
        return true;
    return operation->shared != NULL ? keep_shared(commit, operation)
                                     : keep_staged(commit, operation);
}

static bool keep_files(struct commit *commit)
{
    for (size_t i = 0; i < commit->count; i++)
        if (!keep_file(commit, &commit->operations[i]))
            return false;
    return true;
}

/* --- the resulting commit --- */

static int compare_files(const void *a, const void *b)
{
    const struct history_file *first = a;
    const struct history_file *second = b;

    return strcmp(first->path, second->path);
}

static int compare_operations(const void *a, const void *b)
{
    const struct commit_operation *const *first = a;
    const struct commit_operation *const *second = b;

    return strcmp((*first)->path, (*second)->path);
}

static int compare_path(const void *key, const void *element)
{
    const struct commit_operation *const *operation = element;

    return strcmp(key, (*operation)->path);
}

/* Adds the files of the parent that no operation changes. Returns false without memory. */
static bool add_unchanged(const struct commit *commit, const struct history_tree *tree,
                          struct files *files)
{
    struct commit_operation **sorted = malloc((commit->count + 1) * sizeof(*sorted));

    if (sorted == NULL)
        return false;
    for (size_t i = 0; i < commit->count; i++)
        sorted[i] = &commit->operations[i];
    qsort(sorted, commit->count, sizeof(*sorted), compare_operations);
    for (size_t i = 0; i < tree->count; i++) {
        char path[HUB_REPO_SIZE + MODEL_PATH_SIZE];

        snprintf(path, sizeof(path), "%s/%s", commit->repo, tree->files[i].path);
        if (bsearch(path, sorted, commit->count, sizeof(*sorted), compare_path) == NULL)
            files->list[files->count++] = tree->files[i];
    }
    free(sorted);
    return true;
}

static void add_new(const struct commit *commit, struct files *files)
{
    for (size_t i = 0; i < commit->count; i++) {
        const struct commit_operation *operation = &commit->operations[i];
        struct history_file *file = &files->list[files->count];

        if (operation->removes)
            continue;
        *file = (struct history_file){.path = commit_inside(commit, operation),
                                      .size_bytes = operation->length,
                                      .modified_ns = clock_wall_ns()};
        memcpy(file->sha256, operation->sha256, sizeof(file->sha256));
        files->count++;
    }
}

static enum zt_status record_files(struct commit *commit, const struct history_tree *tree,
                                   struct zt_error *error)
{
    const struct history_repo repo = repo_of(commit);
    const struct history_note note = {.client = commit->request->client,
                                      .title =
                                          commit->title[0] != '\0' ? commit->title : DEFAULT_TITLE,
                                      .message = commit->message};
    struct files files = {.list = malloc((tree->count + commit->count + 1) * sizeof(*files.list))};
    struct history_commit made;
    enum zt_status status;

    if (files.list == NULL || !add_unchanged(commit, tree, &files)) {
        free(files.list);
        return zt_fail_memory(error, "a commit");
    }
    add_new(commit, &files);
    assert(files.count <= tree->count + commit->count);
    qsort(files.list, files.count, sizeof(*files.list), compare_files);
    status = history_record(history_of(commit), &repo,
                            &(struct history_head){commit->branch, files.list, files.count}, &note,
                            &made, error);
    if (status == ZT_OK)
        memcpy(commit->recorded, made.id, sizeof(commit->recorded));
    free(files.list);
    return status;
}

static bool record(struct commit *commit, const struct hub_version *version)
{
    const struct history_repo repo = repo_of(commit);
    const struct history_tree *tree;
    struct zt_error error;
    enum zt_status status =
        history_tree_get(history_of(commit), &repo, version->stored, &tree, &error);

    if (status == ZT_OK) {
        status = record_files(commit, tree, &error);
        history_tree_release(tree);
    }
    return status == ZT_OK || fail(commit, &error);
}

/* --- all of it --- */

static bool check(struct commit *commit, const struct hub_version *version, bool is_first)
{
    assert(version != NULL);
    if (commit->parent[0] != '\0' && !hub_version_is(version, zt_text_from(commit->parent)) &&
        strcmp(commit->parent, version->stored) != 0)
        return commit_refuse(commit, commit->parent_line, PROBLEM_PRECONDITION_FAILED,
                             "parentCommit is no longer the commit of the branch");
    return (!is_first || commit_expand_folders(commit, version)) &&
           commit_check_paths(commit, version) &&
           (!is_first || commit_find_objects(commit, version));
}

static bool check_now(struct commit *commit)
{
    struct hub_version *version;
    const bool is_right = commit_find_branch(commit, &version) && check(commit, version, true);

    hub_version_release(version);
    return is_right;
}

/* The repository is locked. */
static bool carry_out(struct commit *commit)
{
    struct hub_version *version;
    const bool is_done = commit_find_branch(commit, &version) && check(commit, version, false) &&
                         keep_files(commit) && record(commit, version);

    hub_version_release(version);
    return is_done;
}

static bool name_result(struct commit *commit)
{
    struct hub_version *version;
    const bool is_found = commit_find_branch(commit, &version);

    if (is_found)
        snprintf(commit->commit, sizeof(commit->commit), "%s", version->commit);
    hub_version_release(version);
    return is_found;
}

bool commit_run_on_branch(struct commit *commit)
{
    const struct history_repo repo = repo_of(commit);
    struct zt_error error;
    bool is_done;

    assert(history_of(commit) != NULL);
    if (!check_now(commit) || !commit_check_files(commit))
        return false;
    if (history_lock(history_of(commit), &repo, &error) != ZT_OK)
        return fail(commit, &error);
    is_done = carry_out(commit);
    history_unlock(history_of(commit), &repo);
    return is_done && name_result(commit);
}
