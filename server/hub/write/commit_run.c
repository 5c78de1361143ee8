/* Carries out a commit. Everything that can be refused is refused before the first file changes.
 * Commits to one repository wait for each other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/server.h"
#include "hub/write/commit.h"
#include "hub/write/repo_current.h"
#include "store/staging.h"
#include "store/versions/versions_store.h"
#include "upload/shared/publish_lock.h"
#include "upload/shared/removal.h"
#include "versions/recording.h"

/* Prepended to a repository's name. No path begins with a dot. */
#define COMMITS_OF ".commits of "
/* A name with it, and NUL. */
#define LOCK_NAME_SIZE (sizeof(COMMITS_OF) + HUB_REPO_SIZE)

static const struct preconditions no_preconditions;

static const struct store_ops *ops_of(const struct commit *commit)
{
    return commit->server->store->ops;
}

/* Makes other commits to the repository on this server wait. The lock borrows the name. */
static void lock_repo(const struct commit *commit, char name[LOCK_NAME_SIZE],
                      struct publish_lock *lock)
{
    snprintf(name, LOCK_NAME_SIZE, COMMITS_OF "%s", commit->repo);
    publish_lock_take_here(lock, commit->server->store, name);
}

/* Finds the current version; *out_version is NULL for a repository without files. */
static bool find_version(struct commit *commit, struct hub_version **out_version)
{
    struct zt_error error;

    return repo_current_find(commit->server, zt_text_from(commit->repo), out_version, &error) ||
           failure_of_store(&commit->failure, &error);
}

bool commit_find_later(struct commit *commit, struct hub_version **out_version)
{
    char name[LOCK_NAME_SIZE];
    struct publish_lock lock;
    bool is_found;

    lock_repo(commit, name, &lock);
    is_found = find_version(commit, out_version);
    publish_lock_release(&lock);
    return is_found;
}

/* --- against the current version --- */

/* Only files make a repository exist. */
static bool check_repo(struct commit *commit, const struct hub_version *version)
{
    commit->is_absent = !commit->begins && repo_current_is_absent(commit->server, version);
    return !commit->is_absent ||
           commit_refuse(commit, 0, PROBLEM_NOT_FOUND, "there is no such repository");
}

static bool check_parent(struct commit *commit, const struct hub_version *version)
{
    if (version != NULL && strcmp(version->folder, commit->repo) != 0)
        return commit_refuse(commit, 0, PROBLEM_CONFLICT,
                             "this repository is a snapshot in a cache, which is read-only");
    if (commit->parent[0] == '\0' ||
        (version != NULL && hub_version_is(version, zt_text_from(commit->parent))))
        return true;
    return commit_refuse(commit, commit->parent_line, PROBLEM_PRECONDITION_FAILED,
                         "parentCommit is no longer the repository's commit");
}

static bool check_now(struct commit *commit, bool is_first)
{
    struct hub_version *version;
    bool is_right;

    if (!find_version(commit, &version))
        return false;
    is_right = check_repo(commit, version) && check_parent(commit, version) &&
               (!is_first || commit_expand_folders(commit, version)) &&
               commit_check_paths(commit, version) &&
               (!is_first || commit_find_objects(commit, version));
    hub_version_release(version);
    return is_right;
}

/* --- the files --- */

/* Records that the failure is about the line and its file. */
static bool fail_line(struct commit *commit, const struct commit_operation *operation)
{
    commit->failed_line = operation->line;
    snprintf(commit->failed_path, sizeof(commit->failed_path), "%s",
             commit_inside(commit, operation));
    return false;
}

bool commit_open_bytes(struct commit *commit, struct commit_operation *operation)
{
    struct staged_file **stored = &operation->publication.stored;

    return operation->staged != NULL ? staged_open(operation->staged, stored, &commit->failure)
                                     : commit_open_file(commit, operation, stored);
}

void commit_close_bytes(struct commit_operation *operation)
{
    staged_file_close(operation->publication.stored);
    operation->publication.stored = NULL;
}

static bool check_file(struct commit *commit, struct commit_operation *operation)
{
    struct publication *publication = &operation->publication;
    bool is_right;

    publication->server = commit->server;
    publication->name = operation->path;
    publication->is_file = true;
    publication->is_apart = commit->branch[0] != '\0';
    publication->covers = commit->covers;
    memcpy(publication->published.sha256, operation->sha256, sizeof(operation->sha256));
    is_right = commit_open_bytes(commit, operation) &&
               (publication_check(&operation->publication, &commit->failure) ||
                fail_line(commit, operation));
    commit_close_bytes(operation);
    return is_right;
}

bool commit_check_files(struct commit *commit)
{
    for (size_t i = 0; i < commit->count; i++) {
        struct commit_operation *operation = &commit->operations[i];

        if (!operation->removes && operation->shared == NULL && !check_file(commit, operation))
            return false;
    }
    return true;
}

static bool publish_file(struct commit *commit, struct commit_operation *operation)
{
    bool is_published;

    if (!commit_open_bytes(commit, operation))
        return false;
    is_published = publication_publish(&operation->publication, &commit->failure);
    commit_close_bytes(operation);
    if (is_published && operation->publication.published.remains.is_unsynced)
        commit->remains.is_unsynced = true;
    if (is_published && operation->staged != NULL) {
        staged_use_up(operation->staged);
        operation->staged = NULL;
    }
    return is_published;
}

static bool carry_out(struct commit *commit, struct commit_operation *operation)
{
    return (operation->removes ? removal_of_file(commit->server, operation->path, &no_preconditions,
                                                 &commit->remains, &commit->failure)
                               : publish_file(commit, operation)) ||
           fail_line(commit, operation);
}

static void report_end(const struct commit *commit)
{
    if (commit->done > 0)
        log_write(LOG_LEVEL_ERROR,
                  "a commit to %s stopped after %zu of %zu files, because one could not be "
                  "changed: %s",
                  commit->repo, commit->done, commit->count, commit->failure.error.message);
}

/* Removals that make room for other files; all new files; all other removals. */
enum stage { STAGE_MAKE_ROOM, STAGE_PUBLISH, STAGE_REMOVE };

static enum stage stage_of(const struct commit_operation *operation)
{
    if (!operation->removes)
        return STAGE_PUBLISH;
    return operation->goes_first ? STAGE_MAKE_ROOM : STAGE_REMOVE;
}

/* Carries out the operations of a stage in their order. */
static bool carry_out_stage(struct commit *commit, enum stage stage)
{
    for (size_t i = 0; i < commit->count; i++) {
        if (stage_of(&commit->operations[i]) != stage)
            continue;
        if (!carry_out(commit, &commit->operations[i])) {
            report_end(commit);
            return false;
        }
        commit->done++;
    }
    return true;
}

static void remove_emptied(struct commit *commit, bool went_first)
{
    if (ops_of(commit)->remove_emptied == NULL)
        return;
    for (size_t i = 0; i < commit->count; i++)
        if (commit->operations[i].removes && commit->operations[i].goes_first == went_first)
            ops_of(commit)->remove_emptied(commit->server->store, commit->operations[i].path,
                                           strlen(commit->repo));
}

/* Only removals that make room happen before anything is published. So a file that is renamed never
 * disappears in between, and a client can repeat the commit if a file could not be published. */
static bool carry_out_all(struct commit *commit)
{
    if (!carry_out_stage(commit, STAGE_MAKE_ROOM))
        return false;
    remove_emptied(commit, true);
    if (!carry_out_stage(commit, STAGE_PUBLISH) || !carry_out_stage(commit, STAGE_REMOVE))
        return false;
    remove_emptied(commit, false);
    return true;
}

static bool is_repo(const struct history_repo *a, const struct history_repo *b)
{
    return a->is_root_model == b->is_root_model && strcmp(a->name, b->name) == 0;
}

/* A commit may change files of other repositories in the history: without a config.json, the files
 * in the folders of "tiny" belong to repositories below it. Records their present state: before the
 * change, so that a file that is replaced stays in a commit, and after it. */
static bool record_other_repos(struct commit *commit, const struct history_repo *own)
{
    struct history *history = store_history(commit->server->store);
    struct history_repo last = *own;
    struct recording recording;
    struct history_commit ignored;
    struct zt_error error;

    for (size_t i = 0; history != NULL && i < commit->count; i++) {
        struct history_repo repo;

        history_repo_of_path(history, commit->operations[i].path, &repo);
        if (is_repo(&repo, own) || is_repo(&repo, &last))
            continue;
        last = repo;
        recording_prepare(commit->server, &repo);
        if (recording_begin(&recording, commit->server, &repo, &error) != ZT_OK)
            return failure_of_store(&commit->failure, &error);
        (void)recording_end(&recording, NULL, &ignored, &error);
    }
    return true;
}

/* Records what was done as one commit of the history, also if the rest could not be. */
static bool carry_out_recorded(struct commit *commit)
{
    struct history_repo repo = {.is_root_model = false};
    const struct history_note note = {
        .client = commit->request != NULL ? commit->request->client : NULL,
        .title = commit->title[0] != '\0' ? commit->title : "Commit",
        .message = commit->message[0] != '\0' ? commit->message : NULL};
    struct recording recording;
    struct history_commit recorded;
    struct zt_error error;
    bool is_done;

    snprintf(repo.name, sizeof(repo.name), "%s", commit->repo);
    if (!record_other_repos(commit, &repo))
        return false;
    if (recording_begin(&recording, commit->server, &repo, &error) != ZT_OK)
        return failure_of_store(&commit->failure, &error);
    is_done = carry_out_all(commit);
    if (recording_end(&recording, commit->done > 0 ? &note : NULL, &recorded, &error) == ZT_OK)
        memcpy(commit->recorded, recorded.id, sizeof(recorded.id));
    return record_other_repos(commit, &repo) && is_done;
}

static bool name_result(struct commit *commit)
{
    struct hub_version *version;

    hub_repos_changed(commit->server->hub);
    if (!find_version(commit, &version)) {
        commit->failure = (struct failure){.is_set = false};
        return failure_refuse(
            &commit->failure, PROBLEM_INCOMPLETE,
            "the commit was applied, but the repository could not be read afterwards: try again");
    }
    /* A repository that has lost its last file has the commit of an empty one. */
    snprintf(commit->commit, sizeof(commit->commit), "%s",
             version != NULL ? version->commit : "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    hub_version_release(version);
    return true;
}

/* Makes commits on other servers of this folder wait, and takes their results into account. */
static bool exclude_others(struct commit *commit, struct publish_lock *lock)
{
    if (!publish_lock_exclude(lock, &commit->failure))
        return false;
    if (lock->folder_lock >= 0)
        hub_repos_changed(commit->server->hub);
    return true;
}

/* Before the lock, so that other commits do not wait for it. */
static void hash_unknown_files(const struct commit *commit)
{
    struct history_repo repo = {.is_root_model = false};

    snprintf(repo.name, sizeof(repo.name), "%s", commit->repo);
    recording_prepare(commit->server, &repo);
}

bool commit_run(struct commit *commit)
{
    char name[LOCK_NAME_SIZE];
    struct publish_lock lock;
    bool is_done;

    if (commit->branch[0] != '\0')
        return commit_run_on_branch(commit);
    if (!check_now(commit, true) || !commit_check_files(commit))
        return false;
    hash_unknown_files(commit);
    lock_repo(commit, name, &lock);
    is_done = exclude_others(commit, &lock) && check_now(commit, false) &&
              carry_out_recorded(commit) && name_result(commit) &&
              remains_fail(&commit->remains, "committed", &commit->failure);
    publish_lock_release(&lock);
    return is_done;
}
