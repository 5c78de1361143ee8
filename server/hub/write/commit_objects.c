/* Finds the bytes of a commit that were not sent with it, by their SHA-256: in a staged object, or
 * in a file that the repository already has. */
#include <stdlib.h>
#include <string.h>

#include "base/server.h"
#include "hub/write/commit.h"
#include "hub/write/repo_current.h"
#include "store/staging.h"
#include "tree/stored_file.h"

/* The files of a repository by SHA-256, and the operations that want them. */
struct objects {
    struct commit *commit;
    struct staged_asker asker;
    const struct hub_version *version;
    struct hub_version *later; /* replaces `version` after waiting for it */
    bool has_waited;
    struct commit_operation **wanting; /* sorted by SHA-256, then by position in the commit */
    size_t wanting_count;
    const struct hub_file **files; /* sorted by SHA-256; only if some object is not staged */
    size_t file_count;
};

static bool refuse(struct commit *commit, const struct commit_operation *operation,
                   enum problem problem, const char *why)
{
    return commit_refuse(commit, operation->line, problem, "%s: %s",
                         commit_inside(commit, operation), why);
}

/* Clients that copy a file send its oid without a size. */
static bool fits(struct commit *commit, struct commit_operation *operation, uint64_t length)
{
    if (operation->length == COMMIT_LENGTH_UNKNOWN)
        operation->length = length;
    return operation->length == length ||
           commit_refuse(commit, operation->line, PROBLEM_SIZE_MISMATCH,
                         "%s: the object with this oid has %llu bytes, not %llu",
                         commit_inside(commit, operation), (unsigned long long)length,
                         (unsigned long long)operation->length);
}

/* --- files of the repository --- */

static int compare_files(const void *a, const void *b)
{
    const struct hub_file *const *one = a;
    const struct hub_file *const *other = b;

    return memcmp((*one)->sha256, (*other)->sha256, sizeof((*one)->sha256));
}

static bool list_files(struct objects *objects)
{
    const struct commit *commit = objects->commit;
    const size_t count = objects->version != NULL ? objects->version->count : 0;

    if (objects->files != NULL)
        return true;
    objects->files = malloc((count + 1) * sizeof(*objects->files));
    if (objects->files == NULL)
        return failure_no_memory(&objects->commit->failure, "the files of a repository");
    for (size_t i = 0; i < count; i++)
        if (repo_current_may_read_bytes(commit->request, commit->repo, &objects->version->files[i]))
            objects->files[objects->file_count++] = &objects->version->files[i];
    qsort(objects->files, objects->file_count, sizeof(*objects->files), compare_files);
    return true;
}

static const struct hub_file *find_file(const struct objects *objects, const uint8_t sha256[32])
{
    struct hub_file key;
    const struct hub_file *wanted = &key;
    const struct hub_file *const *found;

    memcpy(key.sha256, sha256, sizeof(key.sha256));
    found = bsearch(&wanted, objects->files, objects->file_count, sizeof(*objects->files),
                    compare_files);
    return found != NULL ? *found : NULL;
}

/* --- copies --- */

/* The copy is hashed, so that only the bytes named by the oid are published. */
static bool copy_source(struct commit *commit, struct commit_operation *operation,
                        struct zt_source *source)
{
    struct staged_file *file;
    struct zt_digest digest;
    struct zt_error error;
    enum zt_status status;

    if (!commit_open_place(commit) || !commit_make_file(commit, operation->length, &file))
        return false;
    commit_give_file(commit, operation);
    status = staged_file_copy_source(source, 0, file, 0, zt_source_size(source), &error);
    if (status == ZT_OK)
        status = staged_file_digest(file, ZT_DIGEST_SHA256, NULL, &digest, &error);
    staged_file_close(file);
    if (status != ZT_OK)
        return failure_of_store(&commit->failure, &error);
    return memcmp(digest.bytes, operation->sha256, sizeof(operation->sha256)) == 0 ||
           refuse(commit, operation, PROBLEM_CONFLICT,
                  "the repository's file with this oid was changed meanwhile");
}

static bool copy_file(struct objects *objects, struct commit_operation *operation,
                      const struct hub_file *file)
{
    struct commit *commit = objects->commit;
    char path[HUB_REPO_SIZE + MODEL_PATH_SIZE];
    struct stored_file *stored;
    struct zt_error error;
    bool is_copied;

    if (!fits(commit, operation, file->identity.size_bytes))
        return false;
    snprintf(path, sizeof(path), "%s/%s", objects->version->folder, file->path);
    if (stored_file_open(commit->server, zt_text_from(path), &stored, &error) != ZT_OK)
        return failure_of_store(&commit->failure, &error);
    is_copied = copy_source(commit, operation, stored->source);
    stored_file_close(stored);
    return is_copied;
}

static bool copy_staged(struct commit *commit, struct commit_operation *operation,
                        const struct staged_object *object)
{
    struct staged_file *from;
    struct zt_source *source;
    struct zt_error error;
    bool is_copied;

    if (!staged_open(object, &from, &commit->failure))
        return false;
    is_copied = staged_file_read_back(from, &source, &error) == ZT_OK
                    ? copy_source(commit, operation, source)
                    : failure_of_store(&commit->failure, &error);
    staged_file_close(from);
    return is_copied;
}

/* --- finding --- */

/* Gives the object to operations with the same bytes. The last one takes the object itself, and
 * must not be published before the others have their copies. */
static bool share_staged(struct objects *objects, size_t first, size_t end,
                         struct staged_object *object)
{
    struct commit_operation **wanting = objects->wanting;

    wanting[end - 1]->staged = object;
    for (size_t i = first; i < end; i++)
        if (!fits(objects->commit, wanting[i], staged_length(object)))
            return false;
    for (size_t i = first; i + 1 < end; i++)
        if (!copy_staged(objects->commit, wanting[i], object))
            return false;
    return true;
}

/* Copies another client's object, which is left unchanged. */
static bool copy_lent(struct objects *objects, size_t first, size_t end,
                      struct staged_object *object)
{
    bool is_copied = true;

    for (size_t i = first; i < end && is_copied; i++)
        is_copied = fits(objects->commit, objects->wanting[i], staged_length(object)) &&
                    copy_staged(objects->commit, objects->wanting[i], object);
    staged_return(object);
    return is_copied;
}

/* Another commit may just have used up the object and made it a file, which `version` may not
 * contain. A branch may also share the files of main. */
static bool list_files_again(struct objects *objects)
{
    objects->has_waited = true;
    if (!commit_find_later(objects->commit, &objects->later))
        return false;
    objects->version = objects->later;
    free(objects->files);
    objects->files = NULL;
    objects->file_count = 0;
    return list_files(objects);
}

/* A branch needs no copy of bytes that the folder or the history has. */
static bool take_file(struct objects *objects, struct commit_operation *operation,
                      const struct hub_file *file)
{
    if (objects->commit->branch[0] == '\0')
        return copy_file(objects, operation, file);
    if (!fits(objects->commit, operation, file->identity.size_bytes))
        return false;
    operation->shared = strdup(file->path);
    return operation->shared != NULL || failure_no_memory(&objects->commit->failure, "a commit");
}

static bool share_file(struct objects *objects, size_t first, size_t end)
{
    const uint8_t *sha256 = objects->wanting[first]->sha256;
    const struct hub_file *file;

    if (!list_files(objects))
        return false;
    file = find_file(objects, sha256);
    if (file == NULL && !objects->has_waited) {
        if (!list_files_again(objects))
            return false;
        file = find_file(objects, sha256);
    }
    if (file == NULL)
        return refuse(objects->commit, objects->wanting[first], PROBLEM_INVALID_REQUEST,
                      "no object with this oid was sent to this server for this repository, or it "
                      "has expired");
    for (size_t i = first; i < end; i++)
        if (!take_file(objects, objects->wanting[i], file))
            return false;
    return true;
}

static bool share(struct objects *objects, size_t first, size_t end)
{
    struct commit *commit = objects->commit;
    const struct staged_wanted wanted = {commit->repo, objects->wanting[first]->sha256,
                                         &objects->asker};
    struct staged_object *object;

    switch (staged_take(commit->server, &wanted, &object)) {
    case STAGED_FOUND:
        return share_staged(objects, first, end, object);
    case STAGED_LENT:
        return copy_lent(objects, first, end, object);
    case STAGED_IN_USE:
        return refuse(commit, objects->wanting[first], PROBLEM_CONFLICT,
                      "another commit is using the object with this oid");
    case STAGED_NOT_FOUND:
        break;
    }
    return share_file(objects, first, end);
}

static bool has_same(const struct commit_operation *one, const struct commit_operation *other)
{
    return memcmp(one->sha256, other->sha256, sizeof(one->sha256)) == 0;
}

static bool share_all(struct objects *objects)
{
    size_t end;

    for (size_t first = 0; first < objects->wanting_count; first = end) {
        end = first + 1;
        while (end < objects->wanting_count &&
               has_same(objects->wanting[first], objects->wanting[end]))
            end++;
        if (!share(objects, first, end))
            return false;
    }
    return true;
}

static int compare_wanting(const void *a, const void *b)
{
    const struct commit_operation *const *one = a;
    const struct commit_operation *const *other = b;
    const int order = memcmp((*one)->sha256, (*other)->sha256, sizeof((*one)->sha256));

    return order != 0 ? order : (*one > *other) - (*one < *other);
}

static bool list_wanting(struct objects *objects)
{
    struct commit *commit = objects->commit;

    objects->wanting = malloc((commit->count + 1) * sizeof(*objects->wanting));
    if (objects->wanting == NULL)
        return failure_no_memory(&commit->failure, "a commit");
    for (size_t i = 0; i < commit->count; i++)
        if (commit->operations[i].is_lfs)
            objects->wanting[objects->wanting_count++] = &commit->operations[i];
    qsort(objects->wanting, objects->wanting_count, sizeof(*objects->wanting), compare_wanting);
    return true;
}

bool commit_find_objects(struct commit *commit, const struct hub_version *version)
{
    struct objects objects = {.commit = commit, .version = version};
    bool is_found;

    staged_asker_of(commit->request, &objects.asker);
    is_found = list_wanting(&objects) && share_all(&objects);
    free(objects.wanting);
    free(objects.files);
    hub_version_release(objects.later);
    return is_found;
}
