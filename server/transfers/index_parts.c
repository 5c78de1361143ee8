#include "transfers/index_parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "client/repository.h"
#include "zt/join.h"
#include "zt/source.h"

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

/* Returns true if the path is a part's, which is relative to the index's folder. */
static bool is_part(const char *path, const char *index, struct zt_text part)
{
    const size_t folder = folder_length(index);

    return strncmp(path, index, folder) == 0 && zt_text_is(part, path + folder);
}

static bool has_part(const struct repository_paths *paths, const char *index, struct zt_text part)
{
    for (size_t i = 0; i < paths->count; i++)
        if (is_part(paths->path_at(paths->list, i), index, part))
            return true;
    return false;
}

static bool has_other_tensors(const struct repository_paths *paths, const char *index)
{
    const size_t folder = folder_length(index);

    for (size_t i = 0; i < paths->count; i++) {
        const char *path = paths->path_at(paths->list, i);

        if (repository_stage_of(path) == STAGE_TENSORS && folder_length(path) == folder &&
            strncmp(path, index, folder) == 0)
            return true;
    }
    return false;
}

static enum zt_status check_parts(const struct zt_index *index, const char *name,
                                  const struct repository_paths *paths, struct zt_error *error)
{
    size_t count;
    const struct zt_text *parts = zt_index_parts(index, &count);
    struct zt_text missing = {NULL, 0};
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        if (has_part(paths, name, parts[i]))
            found++;
        else if (missing.bytes == NULL)
            missing = parts[i];
    assert(found <= count);
    if (missing.bytes == NULL || (found == 0 && has_other_tensors(paths, name)))
        return ZT_OK;
    return zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET, "part %.*s is missing",
                   (int)missing.length, missing.bytes);
}

enum zt_status index_parts_check(const char *local_path, const char *name,
                                 const struct repository_paths *paths, struct zt_error *error)
{
    struct zt_source *source = NULL;
    struct zt_index *index = NULL;
    enum zt_status status = zt_source_open_file(local_path, &source, error);

    assert(repository_stage_of(name) == STAGE_INDEXES);
    if (status == ZT_OK)
        status = zt_index_read(source, &index, error);
    if (status == ZT_OK)
        status = check_parts(index, name, paths, error);
    else if (status == ZT_INVALID || status == ZT_LIMIT)
        status = ZT_OK;
    zt_index_free(index);
    zt_source_close(source);
    return status;
}
