/* Parts may come later, as the shards of zTensor 2 may: an index is refused only for what it says
 * itself, or for parts that are there and are not what it says. */
#include "upload/shared/index_check.h"

#include <stdio.h>
#include <string.h>

#include "access/access.h"
#include "base/server.h"
#include "catalog/joined_files.h"
#include "zt/join.h"

/* So many bytes of white space at most, where a writer puts any. */
#define LEAD_BYTES 64

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool index_is_meant(struct zt_source *source)
{
    const uint64_t size = zt_source_size(source);
    char lead[LEAD_BYTES];
    size_t length = size < sizeof(lead) ? (size_t)size : sizeof(lead);
    size_t at = 0;

    if (zt_source_read_at(source, 0, lead, length, NULL) != ZT_OK)
        return false;
    while (at < length && is_space(lead[at]))
        at++;
    if (at == length || lead[at++] != '{')
        return false;
    while (at < length && is_space(lead[at]))
        at++;
    return at == length || lead[at] == '"' || lead[at] == '}';
}

/* --- names --- */

static bool has_extension(struct zt_text name, const char *extension)
{
    const size_t length = strlen(extension);

    return name.length > length &&
           memcmp(name.bytes + name.length - length, extension, length) == 0;
}

static bool is_pytorch(struct zt_text name)
{
    return has_extension(name, ".bin") || has_extension(name, ".pt") ||
           has_extension(name, ".pth") || has_extension(name, ".ckpt");
}

static bool fail_part(struct failure *failure, struct zt_text part, const char *why)
{
    struct zt_error error;

    (void)zt_fail(&error, ZT_INVALID, "index §Parts PartName", ZT_NO_OFFSET, "part %.*s %s",
                  (int)part.length, part.bytes, why);
    return failure_set(failure, PROBLEM_INVALID_MODEL, &error);
}

static bool fail_covered(struct failure *failure, struct zt_text part)
{
    access_count_failure(ACCESS_MODEL);
    return failure_refuse(failure, PROBLEM_FORBIDDEN,
                          "part %.*s: this client may not use a file of this name",
                          (int)part.length, part.bytes);
}

/* A part's model would be named like the whole, and stand before it. */
static bool is_whole(const struct publication *publication, const char *path, size_t length)
{
    return strlen(publication->name) == length && strncmp(publication->name, path, length) == 0;
}

static bool check_part(const struct publication *publication, struct zt_text part,
                       struct failure *failure)
{
    const char *slash = strrchr(publication->name, '/');
    const int folder = slash != NULL ? (int)(slash + 1 - publication->name) : 0;
    char path[2 * MODEL_PATH_SIZE];
    const int length = snprintf(path, sizeof(path), "%.*s%.*s", folder, publication->name,
                                (int)part.length, part.bytes);
    size_t name_length;
    unsigned rank;

    if (length < 0 || (size_t)length >= sizeof(path) ||
        !model_path_split(path, &name_length, &rank) || model_rank_is_index(rank))
        return fail_part(failure, part, "cannot be a file of a model");
    if (is_whole(publication, path, name_length))
        return fail_part(failure, part, "has the name of the whole model");
    return name_filter_passes(publication->covers, (struct zt_text){path, name_length}) ||
           fail_covered(failure, part);
}

static bool check_parts(const struct publication *publication, const struct zt_index *index,
                        const char **out_extension, struct failure *failure)
{
    size_t count;
    const struct zt_text *parts = zt_index_parts(index, &count);
    size_t safetensors = 0;

    for (size_t i = 0; i < count; i++) {
        safetensors += has_extension(parts[i], ".safetensors");
        if (!has_extension(parts[i], ".safetensors") && !is_pytorch(parts[i]))
            return fail_part(failure, parts[i], "is neither of safetensors nor of PyTorch");
        if (!check_part(publication, parts[i], failure))
            return false;
    }
    if (safetensors != 0 && safetensors != count)
        return fail_part(failure, parts[0], "has another extension than other parts");
    *out_extension = safetensors > 0 ? ".safetensors.index.json" : ".bin.index.json";
    return true;
}

/* --- parts that are there --- */

/* A part that the index does not name may be one of the model that is replaced: it goes with that
 * one. */
static bool is_about_the_parts(enum zt_status status, const struct zt_error *error)
{
    return (status == ZT_INVALID || status == ZT_CORRUPT || status == ZT_UNSUPPORTED ||
            status == ZT_LIMIT) &&
           !joined_files_lack_a_part(error) && !joined_files_have_another_part(error);
}

static bool check_joined(const struct publication *publication, struct zt_source *source,
                         const char *extension, struct failure *failure)
{
    char path[MODEL_PATH_SIZE];
    struct joined_files files;
    struct zt_error error;
    enum zt_status status;

    zt_error_clear(&error);
    snprintf(path, sizeof(path), "%s%s", publication->name, extension);
    status = joined_files_open_index(publication->server->store, path, source, &files, &error);
    joined_files_free(&files);
    if (is_about_the_parts(status, &error))
        return failure_set(failure, PROBLEM_INVALID_MODEL, &error);
    return status != ZT_NO_MEMORY || failure_set(failure, PROBLEM_INTERNAL, &error);
}

bool index_check(const struct publication *publication, struct zt_source *source,
                 const char **out_extension, struct failure *failure)
{
    struct zt_index *index = NULL;
    struct zt_error error;
    const enum zt_status status = zt_index_read(source, &index, &error);
    bool valid;

    if (status != ZT_OK)
        return failure_set(failure,
                           status == ZT_IO || status == ZT_NO_MEMORY ? PROBLEM_INTERNAL
                                                                     : PROBLEM_INVALID_MODEL,
                           &error);
    valid = check_parts(publication, index, out_extension, failure);
    zt_index_free(index);
    return valid && check_joined(publication, source, *out_extension, failure);
}
