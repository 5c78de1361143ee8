/* Opens the parts of a model and joins them. Each is opened once, so that what was joined is what
 * is read later, whatever takes its name meanwhile. */
#include "files/part_files.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "client/model_source.h"
#include "store/store.h"
#include "zt/join.h"

struct parts {
    const char *path; /* of the file on the command line: the others are in its folder */
    struct zt_part *parts;
    struct zt_source **sources; /* of each part; NULL for the file's own */
    char **names;
    size_t count;
};

/* --- what is an index, and what a first part --- */

size_t index_extension_length(struct zt_text path)
{
    for (unsigned rank = 0; model_extension(rank) != NULL; rank++)
        if (model_rank_is_index(rank) && model_extension_ends(path, rank))
            return strlen(model_extension(rank));
    return 0;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* Takes "<stem>-00001-of-00003.gguf" apart; the extension is what comes after the last dot. */
static bool split_base(const char *base, size_t *out_stem_length, const char **out_extension,
                       uint32_t *out_number, uint32_t *out_count)
{
    const char *dot = strrchr(base, '.');

    *out_extension = dot != NULL ? dot : base + strlen(base);
    return zt_part_name_split((struct zt_text){base, (size_t)(*out_extension - base)},
                              out_stem_length, out_number, out_count);
}

bool part_files_begin(const char *path, const struct zt_model *model)
{
    struct zt_gguf_split split;
    const char *extension;
    uint32_t number, count;
    size_t stem;

    return zt_gguf_split_of(model, &split) && split.number == 0 &&
           split_base(base_of(path), &stem, &extension, &number, &count) && number == 1 &&
           count == split.count;
}

/* --- opening --- */

/* Each part holds a descriptor. If the limit stays, opening fails and says so. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static enum zt_status reserve(struct parts *parts, size_t count, struct zt_error *error)
{
    parts->parts = calloc(count, sizeof(*parts->parts));
    parts->sources = calloc(count, sizeof(*parts->sources));
    parts->names = calloc(count, sizeof(*parts->names));
    if (parts->parts == NULL || parts->sources == NULL || parts->names == NULL)
        return zt_fail_memory(error, "the parts");
    raise_descriptor_limit();
    return ZT_OK;
}

static enum zt_status name_part(struct zt_text name, enum zt_status status, struct zt_error *error)
{
    const int os_error = error->os_error;

    zt_fail(error, status, error->rule, error->offset, "part %.*s: %s", (int)name.length,
            name.bytes, error->message);
    error->os_error = os_error;
    return status;
}

/* Opens the part with that name in the folder of the path, and its model. */
static enum zt_status open_part(const struct parts *parts, struct zt_text name,
                                struct zt_source **out_source, struct zt_model **out_model,
                                struct zt_error *error)
{
    char *path = NULL;
    enum zt_status status;

    if (asprintf(&path, "%.*s%.*s", (int)(base_of(parts->path) - parts->path), parts->path,
                 (int)name.length, name.bytes) < 0)
        return zt_fail_memory(error, "a path");
    status = model_source_open(path, out_source, error);
    free(path);
    if (status == ZT_OK) {
        status = zt_model_open(*out_source, out_model, error);
        if (status != ZT_OK)
            zt_source_close(*out_source);
    }
    return status;
}

/* Adds a part. One that does not exist is left out: joining says which tensor it should have. */
static enum zt_status add_part(struct parts *parts, struct zt_text name, struct zt_error *error)
{
    const size_t at = parts->count;
    struct zt_source *source = NULL;
    struct zt_model *model = NULL;
    enum zt_status status = open_part(parts, name, &source, &model, error);

    if (status == ZT_IO && error->os_error == ENOENT)
        return ZT_OK;
    if (status != ZT_OK)
        return name_part(name, status, error);
    parts->parts[at] = (struct zt_part){name, model, source};
    parts->sources[at] = source;
    parts->count++;
    return ZT_OK;
}

static void free_parts(struct parts *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        if (parts->sources[i] != NULL) {
            zt_model_free((struct zt_model *)(uintptr_t)parts->parts[i].model);
            zt_source_close(parts->sources[i]);
        }
    }
    for (size_t i = 0; parts->names != NULL && i < ZT_PARTS_MAX && parts->names[i] != NULL; i++)
        free(parts->names[i]);
    free(parts->parts);
    free(parts->sources);
    free(parts->names);
}

/* --- joining --- */

/* Moves each part's source to its place among the file's shards. */
static enum zt_status keep_sources(struct parts *parts, struct opened_file *file,
                                   const struct zt_model *model, struct zt_error *error)
{
    file->shards = calloc(model->shard_count, sizeof(*file->shards));
    if (file->shards == NULL)
        return zt_fail_memory(error, "the parts");
    for (size_t i = 0; i < parts->count; i++) {
        uint32_t shard = 0;

        if (parts->sources[i] == NULL)
            continue;
        while (!zt_text_equal(
            parts->parts[i].name,
            (struct zt_text){model->shards[shard].name, model->shards[shard].name_length}))
            shard++;
        file->shards[shard] = parts->sources[i];
        zt_model_free((struct zt_model *)(uintptr_t)parts->parts[i].model);
        parts->sources[i] = NULL;
    }
    return ZT_OK;
}

static enum zt_status join(struct parts *parts, const struct zt_index *index,
                           struct opened_file *file, struct zt_error *error)
{
    struct zt_model *model = NULL;
    enum zt_status status =
        zt_model_join(index, file->source, parts->parts, parts->count, &model, error);

    if (status != ZT_OK)
        return status;
    status = keep_sources(parts, file, model, error);
    if (status != ZT_OK) {
        zt_model_free(model);
        return status;
    }
    zt_model_free(file->model);
    file->model = model;
    return ZT_OK;
}

/* Parts of the same series that are there though the index does not name them: joining refuses
 * them. */
static enum zt_status add_unnamed(struct parts *parts, const struct zt_index *index,
                                  struct zt_error *error)
{
    const uint32_t series = zt_index_series(index);
    enum zt_status status = ZT_OK;
    size_t used = 0;

    for (uint32_t i = 1; i <= series && status == ZT_OK; i++) {
        char name[ZT_PART_NAME_SIZE];

        if (!zt_index_unnamed(index, i, name))
            continue;
        parts->names[used] = strdup(name);
        if (parts->names[used] == NULL)
            return zt_fail_memory(error, "a path");
        status = add_part(parts, zt_text_from(parts->names[used++]), error);
    }
    return status;
}

enum zt_status part_files_join_index(const char *path, struct opened_file *file,
                                     struct zt_error *error)
{
    struct parts parts = {.path = path};
    struct zt_index *index = NULL;
    const struct zt_text *names;
    size_t count;
    enum zt_status status = zt_index_read(file->source, &index, error);

    if (status != ZT_OK)
        return status;
    names = zt_index_parts(index, &count);
    status = reserve(&parts, count + zt_index_series(index), error);
    for (size_t i = 0; i < count && status == ZT_OK; i++)
        status = add_part(&parts, names[i], error);
    if (status == ZT_OK)
        status = add_unnamed(&parts, index, error);
    if (status == ZT_OK)
        status = join(&parts, index, file, error);
    file->stated_size.is_stated = zt_index_total_size(index, &file->stated_size.bytes);
    free_parts(&parts);
    zt_index_free(index);
    return status;
}

/* The parts after the first: their names differ in the number only. */
static enum zt_status add_numbered(struct parts *parts, struct zt_error *error)
{
    const char *base = base_of(parts->path);
    enum zt_status status = ZT_OK;
    const char *extension;
    uint32_t number, count;
    size_t stem;

    if (!split_base(base, &stem, &extension, &number, &count))
        assert(!"the file begins a split");
    for (uint32_t i = 2; i <= count && status == ZT_OK; i++) {
        char **name = &parts->names[i - 2];

        if (asprintf(name, "%.*s-%05u-of-%05u%s", (int)stem, base, i, count, extension) < 0) {
            *name = NULL;
            return zt_fail_memory(error, "a path");
        }
        status = add_part(parts, zt_text_from(*name), error);
    }
    return status;
}

enum zt_status part_files_join_split(const char *path, struct opened_file *file,
                                     struct zt_error *error)
{
    struct parts parts = {.path = path};
    struct zt_gguf_split split = {0};
    enum zt_status status;

    if (!zt_gguf_split_of(file->model, &split))
        assert(!"the file begins a split");
    if (split.count > ZT_PARTS_MAX)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "%u parts, more than %d", split.count,
                       ZT_PARTS_MAX);
    status = reserve(&parts, (size_t)split.count + 1, error);
    if (status == ZT_OK) {
        parts.parts[0] = (struct zt_part){zt_text_from(base_of(path)), file->model, file->source};
        parts.count = 1;
        status = add_numbered(&parts, error);
    }
    if (status == ZT_OK)
        status = join(&parts, NULL, file, error);
    free_parts(&parts);
    return status;
}
