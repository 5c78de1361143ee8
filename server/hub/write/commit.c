/* Collects the changes of a commit. */
#include "hub/write/commit.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/server.h"
#include "http/exchange/authorize.h"
#include "store/staging.h"
#include "upload/shared/write_checks.h"

/* The name of an operation's file in the commit's folder. */
#define FILE_NAME_SIZE 32

bool commit_refuse(struct commit *commit, unsigned line, enum problem problem, const char *format,
                   ...)
{
    struct zt_error error;
    char message[sizeof(error.message)];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    if (!commit->failure.is_set)
        commit->failed_line = line;
    return failure_refuse(&commit->failure, problem, "%s", message);
}

/* --- the content of files --- */

bool commit_open_place(struct commit *commit)
{
    struct zt_error error;

    if (commit->has_place)
        return true;
    registry_make_id(commit->id);
    if (staging_folder_make(commit->server->store->staging, commit->id, &error) != ZT_OK)
        return failure_of_store(&commit->failure, &error);
    commit->has_place = true;
    return true;
}

static void print_file_name(size_t file, char out_name[FILE_NAME_SIZE])
{
    snprintf(out_name, FILE_NAME_SIZE, "f%zu", file);
}

bool commit_make_file(struct commit *commit, uint64_t length, struct staged_file **out_file)
{
    char name[FILE_NAME_SIZE];
    struct zt_error error;

    print_file_name(commit->file_count, name);
    return staging_folder_create(commit->server->store->staging, commit->id, name, length, out_file,
                                 &error) == ZT_OK ||
           failure_of_store(&commit->failure, &error);
}

void commit_give_file(struct commit *commit, struct commit_operation *operation)
{
    assert(commit->has_place && !operation->removes);
    operation->file = commit->file_count++;
}

bool commit_open_file(struct commit *commit, const struct commit_operation *operation,
                      struct staged_file **out_file)
{
    char name[FILE_NAME_SIZE];
    struct zt_error error;

    assert(operation->file < commit->file_count);
    print_file_name(operation->file, name);
    return staging_folder_open(commit->server->store->staging, commit->id, name, out_file,
                               &error) == ZT_OK ||
           failure_of_store(&commit->failure, &error);
}

bool commit_store(struct commit *commit, const uint8_t *bytes, size_t length)
{
    struct zt_error error;

    if (commit->arriving == NULL &&
        (!commit_open_place(commit) || !commit_make_file(commit, UINT64_MAX, &commit->arriving)))
        return false;
    if (staged_file_write_at(commit->arriving, commit->arriving_bytes, bytes, length, &error) !=
        ZT_OK)
        return failure_of_store(&commit->failure, &error);
    commit->arriving_bytes += length;
    return true;
}

/* Ends the content of a line. Returns its length. If no operation takes the file, the next content
 * replaces it. */
static uint64_t end_content(struct commit *commit)
{
    const uint64_t length = commit->arriving_bytes;

    staged_file_close(commit->arriving);
    commit->arriving = NULL;
    commit->arriving_bytes = 0;
    return length;
}

/* --- operations --- */

static bool refuse_path(struct commit *commit, unsigned line)
{
    return commit_refuse(commit, line, PROBLEM_INVALID_NAME,
                         "the path of a file must be UTF-8 without control characters, in parts of "
                         "1 to 255 bytes that do not begin with a dot");
}

/* Returns NULL with failure set. */
static char *whole_path(struct commit *commit, unsigned line, struct zt_text path)
{
    const size_t length = strlen(commit->repo) + 1 + path.length;
    char *whole = malloc(length + 1);

    if (whole == NULL) {
        failure_no_memory(&commit->failure, "the path of a file");
        return NULL;
    }
    snprintf(whole, length + 1, "%s/%.*s", commit->repo, (int)path.length, path.bytes);
    if (memchr(path.bytes, '\0', path.length) != NULL ||
        !file_path_is_writable(zt_text_from(whole)))
        refuse_path(commit, line);
    else if (!authorize_sees_file(commit->request, zt_text_from(whole)))
        commit_refuse(commit, line, PROBLEM_FORBIDDEN,
                      "this client may not use a file of this name");
    else
        return whole;
    free(whole);
    return NULL;
}

/* Git's own files, which some clients send even though preupload says to ignore them. The other
 * files of such a commit are still wanted. */
static bool is_left_out(const struct commit *commit, struct zt_text path)
{
    const char *slash = memrchr(path.bytes, '/', path.length);
    const size_t folder = slash != NULL ? (size_t)(slash + 1 - path.bytes) : 0;
    const struct zt_text name = {path.bytes + folder, path.length - folder};
    char whole[HUB_REPO_SIZE + MODEL_PATH_SIZE];
    int length;

    if ((!zt_text_is(name, ".gitattributes") && !zt_text_is(name, ".gitignore")) ||
        memchr(path.bytes, '\0', path.length) != NULL)
        return false;
    /* Without its dot, the path must be one that a file can have. */
    length = snprintf(whole, sizeof(whole), "%s/%.*s%.*s", commit->repo, (int)folder, path.bytes,
                      (int)name.length - 1, name.bytes + 1);
    return length >= 0 && (size_t)length < sizeof(whole) &&
           file_path_is_writable(zt_text_from(whole));
}

static struct commit_operation *add(struct commit *commit, unsigned line, struct zt_text text)
{
    char *path = whole_path(commit, line, text);
    struct commit_operation *operation;

    if (path == NULL)
        return NULL;

    if (commit->count == COMMIT_OPERATIONS_MAX) {
        commit_refuse(commit, line, PROBLEM_TOO_LARGE, "a commit changes at most %d files",
                      COMMIT_OPERATIONS_MAX);
        free(path);
        return NULL;
    }
    if (zt_array_reserve(&commit->operations, &commit->capacity, commit->count + 1,
                         sizeof(*operation), COMMIT_OPERATIONS_MAX) != ZT_OK) {
        failure_no_memory(&commit->failure, "a commit");
        free(path);
        return NULL;
    }
    operation = &commit->operations[commit->count++];
    memset(operation, 0, sizeof(*operation));
    operation->line = line;
    operation->path = path;
    return operation;
}

bool commit_add_file(struct commit *commit, unsigned line, struct zt_text path,
                     const uint8_t sha256[32])
{
    const uint64_t length = end_content(commit);
    struct commit_operation *operation;

    if (is_left_out(commit, path))
        return true;
    operation = add(commit, line, path);
    if (operation == NULL)
        return false;
    operation->length = length;
    memcpy(operation->sha256, sha256, sizeof(operation->sha256));
    commit_give_file(commit, operation);
    return true;
}

bool commit_add_object(struct commit *commit, unsigned line, struct zt_text path, uint64_t length,
                       const uint8_t sha256[32])
{
    struct commit_operation *operation;

    if (is_left_out(commit, path))
        return true;
    operation = add(commit, line, path);
    if (operation == NULL)
        return false;
    operation->is_lfs = true;
    operation->length = length;
    memcpy(operation->sha256, sha256, sizeof(operation->sha256));
    return true;
}

bool commit_add_removal(struct commit *commit, unsigned line, struct zt_text path, bool is_folder)
{
    struct commit_operation *operation;

    if (!is_folder && is_left_out(commit, path))
        return true;
    while (is_folder && path.length > 0 && path.bytes[path.length - 1] == '/')
        path.length--;
    operation = add(commit, line, path);
    if (operation == NULL)
        return false;
    operation->removes = true;
    operation->is_folder = is_folder;
    return true;
}

void commit_clear(struct commit *commit)
{
    struct zt_error ignored;

    for (size_t i = 0; i < commit->count; i++) {
        publication_clear(&commit->operations[i].publication);
        staged_put_back(commit->operations[i].staged);
        free(commit->operations[i].shared);
        free(commit->operations[i].path);
    }
    free(commit->operations);
    commit->operations = NULL;
    commit->count = 0;
    (void)end_content(commit);
    if (commit->has_place)
        staging_folder_drop(commit->server->store->staging, commit->id, &ignored);
    commit->has_place = false;
}
