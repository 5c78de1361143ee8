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

static const char *inside(const struct commit *commit, const struct commit_operation *operation)
{
    return operation->path + strlen(commit->repo) + 1;
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

static bool is_below(const char *path, const char *folder, size_t length)
{
    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* The removal of a folder becomes those of its files. */
static bool expand_folder(struct commit *commit, size_t at, const struct hub_version *version)
{
    const struct commit_operation folder = commit->operations[at];
    const char *path = inside(commit, &folder);
    const size_t length = strlen(path);
    bool is_there = false;

    for (size_t i = 0; version != NULL && i < version->count; i++) {
        if (version->files[i].view != NULL || !is_below(version->files[i].path, path, length))
            continue;
        is_there = true;
        if (!commit_add_removal(commit, folder.line, zt_text_from(version->files[i].path), false))
            return false;
    }
    return is_there || commit_refuse(commit, folder.line, PROBLEM_NOT_FOUND,
                                     "there is no folder %s to remove", path);
}

static bool expand_folders(struct commit *commit, const struct hub_version *version)
{
    const size_t count = commit->count;
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (commit->operations[i].is_folder && !expand_folder(commit, i, version))
            return false;
    for (size_t i = 0; i < commit->count; i++)
        if (commit->operations[i].is_folder)
            free(commit->operations[i].path);
        else if (kept++ != i)
            commit->operations[kept - 1] = commit->operations[i];
    commit->count = kept;
    return true;
}

/* A file where a folder would have to be, or the other way round. */
static bool check_place(struct commit *commit, const struct commit_operation *operation,
                        const struct hub_version *version)
{
    const char *path = inside(commit, operation);
    const size_t length = strlen(path);
    size_t at;

    if (operation->removes)
        return (version != NULL && repo_now_file(version, zt_text_from(path)) != NULL) ||
               commit_refuse(commit, operation->line, PROBLEM_NOT_FOUND,
                             "there is no file %s to remove", path);
    if (version == NULL)
        return true;
    for (size_t i = 0; i < length; i++)
        if (path[i] == '/' && repo_now_file(version, (struct zt_text){path, i}) != NULL)
            return commit_refuse(commit, operation->line, PROBLEM_CONFLICT,
                                 "%.*s is a file, and cannot be a folder", (int)i, path);
    for (at = hub_version_seek(version, zt_text_from(path));
         at < version->count && strncmp(version->files[at].path, path, length) == 0; at++)
        if (version->files[at].path[length] == '/')
            return commit_refuse(commit, operation->line, PROBLEM_CONFLICT,
                                 "%s is a folder, and cannot be a file", path);
    return true;
}

/* The same for what no version shows: empty folders, hidden files, links that lead elsewhere. */
static bool check_room(struct commit *commit, const struct commit_operation *operation)
{
    struct zt_error error;

    return operation->removes || ops_of(commit)->may_publish == NULL ||
           ops_of(commit)->may_publish(commit->server->store, operation->path, &error) == ZT_OK ||
           commit_refuse(commit, operation->line, PROBLEM_CONFLICT, "%s", error.message);
}

static int compare_paths(const void *a, const void *b)
{
    const struct commit_operation *const *one = a;
    const struct commit_operation *const *other = b;
    const int order = strcmp((*one)->path, (*other)->path);

    return order != 0 ? order : ((*one)->line > (*other)->line) - ((*one)->line < (*other)->line);
}

static int compare_prefix(const void *key, const void *element)
{
    const struct zt_text *path = key;
    const struct commit_operation *const *operation = element;

    return zt_text_compare(*path, zt_text_from((*operation)->path));
}

/* NULL: no operation makes or removes a file where this one has a folder. */
static const struct commit_operation *find_above(const struct commit *commit,
                                                 const struct commit_operation *const *sorted,
                                                 const struct commit_operation *operation)
{
    for (const char *slash = strchr(inside(commit, operation), '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        const struct zt_text folder = {operation->path, (size_t)(slash - operation->path)};
        const struct commit_operation *const *found =
            bsearch(&folder, sorted, commit->count, sizeof(sorted[0]), compare_prefix);

        if (found != NULL)
            return *found;
    }
    return NULL;
}

static bool check_twice(struct commit *commit, const struct commit_operation *const *sorted)
{
    for (size_t i = 0; i < commit->count; i++) {
        const struct commit_operation *above = find_above(commit, sorted, sorted[i]);

        if (i > 0 && strcmp(sorted[i - 1]->path, sorted[i]->path) == 0)
            return commit_refuse(commit, sorted[i]->line, PROBLEM_INVALID_REQUEST,
                                 "line %u is about %s, too", sorted[i - 1]->line,
                                 inside(commit, sorted[i]));
        if (above != NULL)
            return commit_refuse(commit, sorted[i]->line, PROBLEM_CONFLICT,
                                 "line %u makes a file of the folder of %s", above->line,
                                 inside(commit, sorted[i]));
    }
    return true;
}

static bool check_paths(struct commit *commit, const struct hub_version *version)
{
    const struct commit_operation **sorted = malloc((commit->count + 1) * sizeof(*sorted));
    bool is_right;

    if (sorted == NULL)
        return failure_no_memory(&commit->failure, "a commit");
    for (size_t i = 0; i < commit->count; i++)
        sorted[i] = &commit->operations[i];
    qsort(sorted, commit->count, sizeof(*sorted), compare_paths);
    is_right = check_twice(commit, sorted);
    free(sorted);
    for (size_t i = 0; is_right && i < commit->count; i++)
        is_right = check_place(commit, &commit->operations[i], version) &&
                   check_room(commit, &commit->operations[i]);
    return is_right;
}

static bool check_now(struct commit *commit, bool is_first)
{
    struct hub_version *version;
    bool is_right;

    if (!find_version(commit, &version))
        return false;
    is_right = check_parent(commit, version) && (!is_first || expand_folders(commit, version)) &&
               check_paths(commit, version) && (!is_first || commit_find_objects(commit, version));
    hub_version_release(version);
    return is_right;
}

/* --- the files --- */

/* The failure is about the line and its file. */
static bool fail_line(struct commit *commit, const struct commit_operation *operation)
{
    commit->failed_line = operation->line;
    snprintf(commit->failed_path, sizeof(commit->failed_path), "%s", inside(commit, operation));
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

static bool carry_out_all(struct commit *commit)
{
    for (size_t i = 0; i < commit->count; i++) {
        if (carry_out(commit, &commit->operations[i]))
            continue;
        if (i > 0)
            log_write(LOG_LEVEL_ERROR,
                      "a commit to %s ended after %zu of %zu files, since one could not be "
                      "published: %s",
                      commit->repo, i, commit->count, commit->failure.error.message);
        return false;
    }
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
