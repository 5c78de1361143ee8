/* Checks that all operations of a commit can be carried out together, and with the repository's
 * current files. Files that are being removed do not conflict with new ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/server.h"
#include "http/exchange/authorize.h"
#include "hub/write/commit.h"
#include "hub/write/repo_current.h"

const char *commit_inside(const struct commit *commit, const struct commit_operation *operation)
{
    return operation->path + strlen(commit->repo) + 1;
}

/* --- links --- */

/* Always returns false. */
static bool refuse_link(struct commit *commit, const struct commit_operation *operation,
                        const struct store_links *links, const char *why)
{
    commit->has_no_place = true;
    return commit_refuse(commit, operation->line, PROBLEM_CONFLICT, "%s is a link %s",
                         links->last + strlen(commit->repo) + 1, why);
}

/* Finds where the files of a folder really are. Returns false if the path contains no link. */
static bool is_linked(const struct commit *commit, struct zt_text folder,
                      struct store_links *out_links)
{
    struct store *store = commit->server->store;
    char path[MODEL_PATH_SIZE];

    if (store->ops->find_links == NULL || folder.length >= sizeof(path))
        return false;
    snprintf(path, sizeof(path), "%.*s", (int)folder.length, folder.bytes);
    store->ops->find_links(store, path, out_links);
    return strlen(out_links->last) > strlen(commit->repo);
}

/* Returns the folder that contains a file. */
static struct zt_text folder_of(const char *path)
{
    return (struct zt_text){path, (size_t)(strrchr(path, '/') - path)};
}

/* Checks the real path of a file. A path within the repository is checked under the repository's
 * name, even if the repository itself is a link, because the client's token covers that name. */
static bool sees_real(const struct commit *commit, const struct store_links *links,
                      const char *base)
{
    struct store *store = commit->server->store;
    char path[2 * MODEL_PATH_SIZE];
    struct store_links repo;
    size_t length;
    int printed;

    store->ops->find_links(store, commit->repo, &repo);
    length = strlen(repo.real);
    if (repo.is_known && strncmp(links->real, repo.real, length) == 0 &&
        (links->real[length] == '/' || links->real[length] == '\0'))
        printed = snprintf(path, sizeof(path), "%s%s%s", commit->repo, links->real + length, base);
    else
        printed = snprintf(path, sizeof(path), "%s%s", links->real, base);
    return printed > 0 && (size_t)printed < sizeof(path) &&
           authorize_sees_file(commit->request, zt_text_from(path + (path[0] == '/')));
}

/* The client may write at the path, but links could lead to other clients' files. */
static bool check_links(struct commit *commit, const struct commit_operation *operation)
{
    struct store_links links;

    if (commit->covers.passes == NULL || !is_linked(commit, folder_of(operation->path), &links) ||
        (links.is_known && sees_real(commit, &links, strrchr(operation->path, '/'))))
        return true;
    return refuse_link(commit, operation, &links, "to a place where this client may not write");
}

/* --- folders --- */

static bool is_below(const char *path, const char *folder, size_t length)
{
    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* Returns true if the file that was just added is in the folder, and is not reached through a
 * link. */
static bool check_within(struct commit *commit, const struct commit_operation *folder)
{
    const char *path = commit->operations[commit->count - 1].path;
    struct store_links links;

    return commit->branch[0] != '\0' || !is_linked(commit, folder_of(path), &links) ||
           strlen(links.last) < strlen(folder->path) ||
           refuse_link(commit, folder, &links, "to a folder: delete its files by name");
}

/* Replaces the removal of a folder by the removal of its files. Files that the client may not see
 * are treated as missing. */
static bool expand_folder(struct commit *commit, size_t at, const struct hub_version *version)
{
    const struct commit_operation folder = commit->operations[at];
    const char *path = commit_inside(commit, &folder);
    const size_t length = strlen(path);
    const size_t count = commit->count;

    for (size_t i = 0; version != NULL && i < version->count; i++) {
        if (version->files[i].view != NULL || !is_below(version->files[i].path, path, length) ||
            !hub_sees_file(commit->request, zt_text_from(commit->repo), &version->files[i]))
            continue;
        if (!commit_add_removal(commit, folder.line, zt_text_from(version->files[i].path), false) ||
            !check_within(commit, &folder))
            return false;
    }
    return commit->count > count || commit_refuse(commit, folder.line, PROBLEM_NOT_FOUND,
                                                  "there is no folder %s to remove", path);
}

bool commit_expand_folders(struct commit *commit, const struct hub_version *version)
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

/* --- by path --- */

/* The operations sorted by path, then by line. */
struct sorted {
    struct commit *commit;
    struct commit_operation **operations;
};

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

/* Returns NULL without memory. */
static struct commit_operation **sort(struct commit *commit)
{
    struct commit_operation **operations = malloc((commit->count + 1) * sizeof(*operations));

    if (operations == NULL)
        return NULL;
    for (size_t i = 0; i < commit->count; i++)
        operations[i] = &commit->operations[i];
    qsort(operations, commit->count, sizeof(*operations), compare_paths);
    return operations;
}

/* path is relative to the root. Returns NULL if no operation has it. */
static struct commit_operation *find(const struct sorted *sorted, struct zt_text path)
{
    struct commit_operation *const *found =
        bsearch(&path, sorted->operations, sorted->commit->count, sizeof(sorted->operations[0]),
                compare_prefix);

    return found != NULL ? *found : NULL;
}

static bool leaves(const void *context, const char *path)
{
    const struct commit_operation *operation = find(context, zt_text_from(path));

    return operation != NULL && operation->removes;
}

/* --- against each other --- */

/* If one operation makes or removes a file at a path that another needs as a folder, one of them
 * must be a removal, and that is done first. */
static bool check_above(const struct sorted *sorted, struct commit_operation *operation)
{
    struct commit *commit = sorted->commit;

    for (const char *slash = strchr(commit_inside(commit, operation), '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        const struct zt_text folder = {operation->path, (size_t)(slash - operation->path)};
        struct commit_operation *above = find(sorted, folder);

        if (above == NULL)
            continue;
        if (!above->removes && !operation->removes)
            return commit_refuse(commit, operation->line, PROBLEM_CONFLICT,
                                 "line %u adds a file where %s needs a folder", above->line,
                                 commit_inside(commit, operation));
        if (above->removes)
            above->goes_first = true;
        if (operation->removes)
            operation->goes_first = true;
    }
    return true;
}

static bool check_twice(const struct sorted *sorted)
{
    struct commit_operation **operations = sorted->operations;

    for (size_t i = 0; i < sorted->commit->count; i++) {
        if (i > 0 && strcmp(operations[i - 1]->path, operations[i]->path) == 0)
            return commit_refuse(sorted->commit, operations[i]->line, PROBLEM_INVALID_REQUEST,
                                 "line %u already changes %s", operations[i - 1]->line,
                                 commit_inside(sorted->commit, operations[i]));
        if (!check_above(sorted, operations[i]))
            return false;
    }
    return true;
}

/* --- against the existing files --- */

static bool check_removal(struct commit *commit, const struct commit_operation *operation,
                          const struct hub_version *version)
{
    const char *path = commit_inside(commit, operation);

    return (version != NULL && repo_current_file(version, zt_text_from(path)) != NULL) ||
           commit_refuse(commit, operation->line, PROBLEM_NOT_FOUND,
                         "there is no file %s to remove", path);
}

/* Refuses a path below an existing file. */
static bool check_folders(const struct sorted *sorted, const struct commit_operation *operation,
                          const struct hub_version *version)
{
    const char *path = commit_inside(sorted->commit, operation);

    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        const struct zt_text folder = {path, (size_t)(slash - path)};
        const struct commit_operation *above =
            find(sorted, (struct zt_text){operation->path, (size_t)(slash - operation->path)});

        if (repo_current_file(version, folder) != NULL && (above == NULL || !above->removes))
            return commit_refuse(sorted->commit, operation->line, PROBLEM_CONFLICT,
                                 "%.*s is a file, and cannot be a folder", (int)folder.length,
                                 path);
    }
    return true;
}

/* Refuses a path that is an existing folder. Views do not count: they disappear with their models,
 * which are in the same folder. */
static bool check_files_below(const struct sorted *sorted, const struct commit_operation *operation,
                              const struct hub_version *version)
{
    const char *path = commit_inside(sorted->commit, operation);
    const size_t length = strlen(path);

    for (size_t at = hub_version_lower_bound(version, zt_text_from(path));
         at < version->count && strncmp(version->files[at].path, path, length) == 0; at++) {
        char below[HUB_REPO_SIZE + MODEL_PATH_SIZE];

        if (version->files[at].path[length] != '/' || version->files[at].view != NULL)
            continue;
        snprintf(below, sizeof(below), "%s/%s", sorted->commit->repo, version->files[at].path);
        if (!leaves(sorted, below))
            return commit_refuse(sorted->commit, operation->line, PROBLEM_CONFLICT,
                                 "%s is a folder, and cannot be a file", path);
    }
    return true;
}

/* Checks for obstacles that no version shows: empty folders, hidden files, links that lead
 * outside. */
static bool check_room(const struct sorted *sorted, const struct commit_operation *operation)
{
    struct store *store = sorted->commit->server->store;
    const struct store_leaving leaving = {leaves, sorted};
    struct zt_error error;
    enum zt_status status = ZT_OK;

    if (store->ops->may_publish != NULL)
        status = store->ops->may_publish(store, operation->path, &leaving, &error);
    if (status == ZT_OK)
        return true;
    sorted->commit->has_no_place = status == ZT_NOT_FOUND;
    return commit_refuse(sorted->commit, operation->line, PROBLEM_CONFLICT, "%s", error.message);
}

static bool check_place(const struct sorted *sorted, const struct commit_operation *operation,
                        const struct hub_version *version)
{
    const bool is_in_folder = sorted->commit->branch[0] == '\0';

    if (is_in_folder && !check_links(sorted->commit, operation))
        return false;
    if (operation->removes)
        return check_removal(sorted->commit, operation, version);
    return (version == NULL || (check_folders(sorted, operation, version) &&
                                check_files_below(sorted, operation, version))) &&
           (!is_in_folder || check_room(sorted, operation));
}

bool commit_check_paths(struct commit *commit, const struct hub_version *version)
{
    const struct sorted sorted = {commit, sort(commit)};
    bool is_right;

    if (sorted.operations == NULL)
        return failure_no_memory(&commit->failure, "a commit");
    is_right = check_twice(&sorted);
    for (size_t i = 0; is_right && i < commit->count; i++)
        is_right = check_place(&sorted, &commit->operations[i], version);
    free(sorted.operations);
    return is_right;
}
