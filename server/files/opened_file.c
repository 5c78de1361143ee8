/* Opens files for commands, and describes failures. */
#include "files/opened_file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "client/model_source.h"
#include "files/part_files.h"
#include "files/shard_files.h"
#include "store/store.h"
#include "terminal/plain_text.h"
#include "zt/join.h"

/* Longer names are cut: nobody reads more. */
#define NAME_CHARACTERS_MAX 100

/* The model of one file, or of all parts of a split that begins with it. */
static enum zt_status open_model(const char *path, struct opened_file *file, struct zt_error *error)
{
    enum zt_status status = zt_model_open(file->source, &file->model, error);

    if (status != ZT_OK)
        return status;
    if (part_files_begin(path, file->model))
        return part_files_join_split(path, file, error);
    if (file->model->shard_count > 0) {
        file->shards = calloc(file->model->shard_count, sizeof(*file->shards));
        if (file->shards == NULL)
            return zt_fail_memory(error, "shards");
    }
    return ZT_OK;
}

/* An extension that PyTorch shares with much else promises nothing. */
static void explain_vague(const char *path, struct zt_error *error)
{
    if (model_path_is_vague(path) && error->rule != NULL &&
        strcmp(error->rule, "zt §Detection UnknownFormat") == 0)
        zt_fail(error, error->status, error->rule, error->offset,
                "%s; files with this extension are models if torch.save wrote them",
                error->message);
}

enum zt_status opened_file_adopt(const char *path, struct zt_source *source,
                                 struct opened_file *out_file, struct zt_error *error)
{
    struct opened_file file = {.source = source};
    enum zt_status status;

    status = index_extension_length(zt_text_from(path)) > 0
                 ? part_files_join_index(path, &file, error)
                 : open_model(path, &file, error);
    if (status != ZT_OK) {
        explain_vague(path, error);
        opened_file_close(&file);
        return status;
    }
    *out_file = file;
    return ZT_OK;
}

enum zt_status opened_file_open(const char *path, struct opened_file *out_file,
                                struct zt_error *error)
{
    struct zt_source *source = NULL;
    char *location = NULL;
    enum zt_status status = model_source_find(path, &source, &location, error);

    if (status == ZT_OK)
        status = opened_file_adopt(location != NULL ? location : path, source, out_file, error);
    if (status == ZT_OK)
        out_file->location = location;
    else
        free(location);
    return status;
}

static const char *location_of(const struct opened_file *file, const char *path)
{
    return file->location != NULL ? file->location : path;
}

enum zt_status opened_file_shard(struct opened_file *file, const char *path, uint32_t shard,
                                 struct zt_error *error)
{
    assert(shard < file->model->shard_count);
    if (file->shards[shard] != NULL)
        return ZT_OK;
    return shard_file_open(location_of(file, path), &file->model->shards[shard],
                           &file->shards[shard], error);
}

void opened_file_close(struct opened_file *file)
{
    for (uint32_t i = 0; file->shards != NULL && i < file->model->shard_count; i++)
        zt_source_close(file->shards[i]);
    free(file->shards);
    zt_model_free(file->model);
    zt_source_close(file->source);
    free(file->location);
}

static size_t extension_length(struct zt_text base)
{
    for (unsigned rank = 0; model_extension(rank) != NULL; rank++)
        if (model_extension_ends(base, rank))
            return strlen(model_extension(rank));
    return 0;
}

struct zt_text opened_file_name(const struct opened_file *file, const char *path)
{
    const char *location = location_of(file, path);
    const char *slash = strrchr(location, '/');
    struct zt_text name = zt_text_from(slash != NULL ? slash + 1 : location);
    const size_t index_length = index_extension_length(name);
    uint32_t number, count;

    if (index_length > 0)
        return (struct zt_text){name.bytes, name.length - index_length};
    name.length -= extension_length(name);
    if (opened_file_is_joined(file))
        zt_part_name_split(name, &name.length, &number, &count);
    return name;
}

bool opened_file_is_joined(const struct opened_file *file)
{
    return file->model->shard_count > 0 && file->model->shards[0].kind == ZT_SHARD_PART;
}

uint64_t opened_file_size(const struct opened_file *file, const char *path)
{
    const struct zt_model *model = file->model;
    const bool is_joined = opened_file_is_joined(file);
    const bool has_index = index_extension_length(zt_text_from(location_of(file, path))) > 0;
    uint64_t bytes = is_joined && has_index ? 0 : model->file_size;

    for (uint32_t i = 0; is_joined && i < model->shard_count; i++)
        bytes += model->shards[i].size_bytes;
    return bytes;
}

static int64_t modified_ns(const struct stat *info)
{
    return (int64_t)info->st_mtim.tv_sec * CLOCK_NS_PER_S + info->st_mtim.tv_nsec;
}

bool opened_file_modified_ns(const struct opened_file *file, int64_t *out_time_ns)
{
    return model_source_modified_ns(file->source, out_time_ns);
}

struct stated_file stated_file_of(const char *path)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return (struct stated_file){0, 0};
    return (struct stated_file){(uint64_t)info.st_size, modified_ns(&info)};
}

/* The text before the next item of the bracketed list. */
static const char *separator(unsigned *items)
{
    return (*items)++ == 0 ? " [" : ", ";
}

static void write_name(FILE *stream, const char *what, const char *name, size_t length)
{
    fprintf(stream, "%s \"", what);
    plain_text_write_short(stream, name, length, NAME_CHARACTERS_MAX);
    fputc('"', stream);
}

void failure_write(FILE *stream, const struct zt_error *error)
{
    unsigned items = 0;

    plain_text_write(stream, error->message, strlen(error->message));
    if (error->rule != NULL)
        fprintf(stream, "%s%s", separator(&items), error->rule);
    if (error->has_object) {
        fputs(separator(&items), stream);
        write_name(stream, "object", error->object, error->object_length);
    }
    if (error->component_length > 0) {
        fputs(separator(&items), stream);
        write_name(stream, "component", error->component, error->component_length);
    }
    if (error->offset != ZT_NO_OFFSET)
        fprintf(stream, "%soffset %" PRIu64, separator(&items), error->offset);
    if (items > 0)
        fputc(']', stream);
}

void model_kind_write(FILE *stream, const struct zt_model *model)
{
    fputs(model->format_name, stream);
    if (model->version.length > 0) {
        fputc(' ', stream);
        plain_text_write(stream, model->version.bytes, model->version.length);
    }
}
