/* Carrying out a commit: everything that can be refused is refused before the first file changes.
 * Commits to one repository wait for each other. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/server.h"
#include "hub/write/commit.h"
#include "hub/write/repo_now.h"

/* Repositories share these. */
#define LOCKS 16

static pthread_mutex_t locks[LOCKS] = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER,
};

static const struct preconditions no_preconditions;

static const struct store_ops *ops_of(const struct commit *commit)
{
    return commit->server->store->ops;
}

static pthread_mutex_t *lock_of(const struct commit *commit)
{
    return &locks[zt_xxh3(commit->repo, strlen(commit->repo)) % LOCKS];
}

/* What is there now; *out_version is NULL for a repository without files. */
static bool find_version(struct commit *commit, struct hub_version **out_version)
{
    struct zt_error error;

    return repo_now_find(commit->server, zt_text_from(commit->repo), out_version, &error) ||
           failure_of_store(&commit->failure, &error);
}

bool commit_find_later(struct commit *commit, struct hub_version **out_version)
{
    pthread_mutex_t *lock = lock_of(commit);
    bool is_found;

    pthread_mutex_lock(lock);
    is_found = find_version(commit, out_version);
    pthread_mutex_unlock(lock);
    return is_found;
}

/* --- against what is there --- */

/* Only files make a repository. */
static bool check_repo(struct commit *commit, const struct hub_version *version)
{
    commit->is_absent = !commit->begins && repo_now_is_absent(commit->server, version);
    return !commit->is_absent ||
           commit_refuse(commit, 0, PROBLEM_NOT_FOUND, "there is no such repository");
}

static bool check_parent(struct commit *commit, const struct hub_version *version)
{
    if (version != NULL && strcmp(version->folder, commit->repo) != 0)
        return commit_refuse(commit, 0, PROBLEM_CONFLICT,
                             "this repository is a snapshot in a cache, which is only read");
    if (commit->parent[0] == '\0' ||
        (version != NULL && hub_version_is(version, zt_text_from(commit->parent))))
        return true;
    return commit_refuse(commit, commit->parent_line, PROBLEM_PRECONDITION_FAILED,
                         "parentCommit is not the repository's commit any more");
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

/* The failure is about the line and its file. */
static bool fail_line(struct commit *commit, const struct commit_operation *operation)
{
    commit->failed_line = operation->line;
    snprintf(commit->failed_path, sizeof(commit->failed_path), "%s",
             commit_inside(commit, operation));
    return false;
}

/* Makes a file of its own of a content. */
static bool take_out(struct commit *commit, struct commit_operation *operation)
{
    struct stored_upload **stored = &operation->file.publication.stored;
    struct zt_error error;

    if (!commit_make_file(commit, operation, stored))
        return false;
    if (operation->length == 0)
        return true;
    if (ops_of(commit)->copy(commit->arrived, operation->offset, *stored, 0, operation->length,
                             &error) != ZT_OK)
        return failure_of_store(&commit->failure, &error);
    ops_of(commit)->discard(commit->arrived, operation->offset, operation->length);
    return true;
}

/* Opens a file again as it was left. */
static bool open_file(struct commit *commit, struct commit_operation *operation)
{
    struct stored_upload **stored = &operation->file.publication.stored;
    char name[COMMIT_FILE_NAME_SIZE];
    struct zt_error error;

    if (operation->staged != NULL)
        return staged_open(operation->staged, stored, &commit->failure);
    commit_file_name(commit, operation, name);
    return ops_of(commit)->kept_open(commit->server->store, commit->id, name, stored, &error) ==
               ZT_OK ||
           failure_of_store(&commit->failure, &error);
}

static void put_away(struct commit *commit, struct commit_operation *operation)
{
    if (operation->file.publication.stored != NULL)
        ops_of(commit)->abandon(operation->file.publication.stored);
    operation->file.publication.stored = NULL;
}

static bool check_file(struct commit *commit, struct commit_operation *operation)
{
    struct publication *publication = &operation->file.publication;
    bool is_right;

    publication->server = commit->server;
    publication->name = operation->path;
    publication->covers = commit->covers;
    memcpy(publication->published.sha256, operation->sha256, sizeof(operation->sha256));
    is_right = (operation->is_lfs ? open_file(commit, operation) : take_out(commit, operation)) &&
               (file_publication_check(&operation->file, &commit->failure) ||
                fail_line(commit, operation));
    put_away(commit, operation);
    return is_right;
}

static bool check_files(struct commit *commit)
{
    for (size_t i = 0; i < commit->count; i++)
        if (!commit->operations[i].removes && !check_file(commit, &commit->operations[i]))
            return false;
    return true;
}

static bool publish_file(struct commit *commit, struct commit_operation *operation)
{
    bool is_published;

    if (!open_file(commit, operation))
        return false;
    is_published = file_publication_publish(&operation->file, &commit->failure);
    put_away(commit, operation);
    if (is_published && operation->staged != NULL) {
        staged_use_up(operation->staged);
        operation->staged = NULL;
    }
    return is_published;
}

static bool carry_out(struct commit *commit, struct commit_operation *operation)
{
    return (operation->removes
                ? file_remove(commit->server, operation->path, &no_preconditions, &commit->failure)
                : publish_file(commit, operation)) ||
           fail_line(commit, operation);
}

static void report_end(const struct commit *commit, size_t done)
{
    if (done > 0)
        log_write(LOG_LEVEL_ERROR,
                  "a commit to %s ended after %zu of %zu files, since one could not be "
                  "published: %s",
                  commit->repo, done, commit->count, commit->failure.error.message);
}

/* Those that go first, or all others, in their order. */
static bool carry_out_some(struct commit *commit, bool goes_first, size_t *done)
{
    for (size_t i = 0; i < commit->count; i++) {
        if (commit->operations[i].goes_first != goes_first)
            continue;
        if (!carry_out(commit, &commit->operations[i])) {
            report_end(commit, *done);
            return false;
        }
        ++*done;
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

/* Only what is in the way is removed before anything is published: a file that gets another name
 * is nowhere between the two. */
static bool carry_out_all(struct commit *commit)
{
    size_t done = 0;

    if (!carry_out_some(commit, true, &done))
        return false;
    remove_emptied(commit, true);
    if (!carry_out_some(commit, false, &done))
        return false;
    remove_emptied(commit, false);
    return true;
}

static bool name_result(struct commit *commit)
{
    struct hub_version *version;

    hub_repos_changed(commit->server->hub);
    if (!find_version(commit, &version))
        return false;
    /* Of a repository that has lost its last file nothing is left that could have another. */
    snprintf(commit->commit, sizeof(commit->commit), "%s",
             version != NULL ? version->commit : "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    hub_version_release(version);
    return true;
}

bool commit_run(struct commit *commit)
{
    pthread_mutex_t *lock = lock_of(commit);
    bool is_done;

    if (!check_now(commit, true) || !check_files(commit))
        return false;
    pthread_mutex_lock(lock);
    is_done = check_now(commit, false) && carry_out_all(commit) && name_result(commit);
    pthread_mutex_unlock(lock);
    return is_done;
}
