/* Opens files for commands, and describes failures. */
#include "files/opened_file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "client/model_source.h"
#include "files/path_folder.h"
#include "parts/joined_parts.h"
#include "parts/shard_finder.h"
#include "store/store.h"
#include "store/variant_index.h"
#include "terminal/plain_text.h"
#include "zt/join.h"

/* Longer names are cut. */
#define NAME_CHARACTERS_MAX 100

/* --- parts --- */

void opened_files_raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Takes over the joined model and the sources of its parts. */
static enum zt_status take_parts(struct opened_file *file, struct joined_parts *parts,
                                 enum zt_status status, struct zt_error *error)
{
    const uint32_t count = parts->count - parts->own;

    assert(file->model == NULL && file->shards == NULL);
    file->states_total_size = parts->states_total_size;
    file->total_size_bytes = parts->total_size_bytes;
    if (status == ZT_OK) {
        file->shards = calloc(count > 0 ? count : 1, sizeof(*file->shards));
        if (file->shards == NULL)
            status = zt_fail_memory(error, "the parts");
    }
    if (status == ZT_OK) {
        file->model = parts->model;
        parts->model = NULL;
        for (uint32_t i = 0; i < parts->count; i++) {
            struct zt_source **place =
                i < parts->own ? &file->source : &file->shards[i - parts->own];

            assert(*place == NULL);
            *place = parts->items[i].source;
            parts->items[i].source = NULL;
        }
    }
    joined_parts_free(parts);
    return status;
}

static enum zt_status join_index(const char *path, struct opened_file *file, struct zt_error *error)
{
    struct part_folder folder = path_folder();
    struct joined_parts parts;

    opened_files_raise_limit();
    return take_parts(
        file, &parts,
        joined_parts_open_index(&folder, path_parent(path), file->source, &parts, error), error);
}

/* Splits "<stem>-00001-of-00003.gguf"; the extension includes the query of a URL. Returns false
 * unless the model is the first part of a split GGUF and its path has that form. */
static bool begins_split(const char *path, const struct zt_model *model,
                         struct split_name *out_name)
{
    struct zt_gguf_split split;

    return zt_gguf_split_of(model, &split) && split.number == 0 &&
           split_path_read_first(path, path_last_segment(path), out_name) &&
           out_name->count == split.count;
}

static enum zt_status join_split(const struct split_name *name, struct opened_file *file,
                                 struct zt_error *error)
{
    struct part_folder folder = path_folder();
    struct zt_source *source = file->source;
    struct zt_model *model = file->model;
    struct joined_parts parts;

    if (name->count > ZT_PARTS_MAX)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "%" PRIu32 " parts, more than %d",
                       name->count, ZT_PARTS_MAX);
    opened_files_raise_limit();
    file->source = NULL;
    file->model = NULL;
    return take_parts(file, &parts,
                      joined_parts_open_split(&folder, name, source, model, &parts, error), error);
}

/* --- opening --- */

/* Opens the model of one file, or of all parts of a split that begins with it. */
static enum zt_status open_model(const char *path, struct opened_file *file, struct zt_error *error)
{
    enum zt_status status = zt_model_open(file->source, &file->model, error);
    struct split_name name;

    if (status != ZT_OK)
        return status;
    if (begins_split(path, file->model, &name))
        return join_split(&name, file, error);
    status = zt_gguf_check_name(file->model, path_last_segment(path), error);
    if (status != ZT_OK)
        return status;
    if (file->model->shard_count > 0) {
        file->shards = calloc(file->model->shard_count, sizeof(*file->shards));
        if (file->shards == NULL)
            return zt_fail_memory(error, "shards");
    }
    return ZT_OK;
}

/* Explains that PyTorch shares the extension with other programs, so the file may not be a
 * model. */
static void explain_ambiguous(const char *path, struct zt_error *error)
{
    if (model_path_needs_sniffing(path) && error->rule != NULL &&
        strcmp(error->rule, "zt §Detection UnknownFormat") == 0)
        zt_fail(error, error->status, error->rule, error->offset,
                "%s; files with this extension are models only if written by torch.save",
                error->message);
}

/* *out_name stays NULL if the path has no variant. Returns false without memory. */
static bool name_variant(const char *path, char **out_name)
{
    struct variant_index index;

    return !variant_index_read(zt_text_from(path), &index) ||
           asprintf(out_name, "%.*s.%.*s", (int)index.stem.length, index.stem.bytes,
                    (int)index.variant.length, index.variant.bytes) >= 0;
}

enum zt_status opened_file_adopt(const char *path, struct zt_source *source,
                                 struct opened_file *out_file, struct zt_error *error)
{
    struct opened_file file = {.source = source};
    enum zt_status status;

    assert(source != NULL);
    if (!model_path_is_index(zt_text_from(path)))
        status = open_model(path, &file, error);
    else if (!name_variant(path, &file.variant_name))
        status = zt_fail_memory(error, "a name");
    else
        status = join_index(path, &file, error);
    if (status != ZT_OK) {
        explain_ambiguous(path, error);
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
    struct part_folder folder = path_folder();
    const struct zt_shard *wanted = &file->model->shards[shard];
    struct found_shard found;
    char *sibling;
    enum zt_status status;

    assert(shard < file->model->shard_count && file->shards != NULL);
    if (file->shards[shard] != NULL)
        return ZT_OK;
    sibling = zt_shard_sibling(location_of(file, path), wanted);
    if (sibling == NULL)
        return zt_fail_memory(error, "a path");
    status = shard_find(&folder, location_of(file, path), sibling, wanted, &found, error);
    free(sibling);
    free(found.path);
    if (status == ZT_OK)
        file->shards[shard] = found.source;
    return status;
}

void opened_file_close(struct opened_file *file)
{
    for (uint32_t i = 0; file->shards != NULL && i < file->model->shard_count; i++)
        zt_source_close(file->shards[i]);
    free(file->shards);
    zt_model_free(file->model);
    zt_source_close(file->source);
    free(file->location);
    free(file->variant_name);
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
    const char *location =
        file->variant_name != NULL ? file->variant_name : location_of(file, path);
    const char *slash = strrchr(location, '/');
    struct zt_text name = zt_text_from(slash != NULL ? slash + 1 : location);
    uint32_t number, count;

    if (file->variant_name != NULL)
        return name;
    if (model_path_is_index(name))
        return (struct zt_text){name.bytes, name.length - extension_length(name)};
    name.length -= extension_length(name);
    if (opened_file_is_joined(file))
        zt_part_name_split(name, &name.length, &number, &count);
    return name;
}

bool opened_file_is_joined(const struct opened_file *file)
{
    assert(file->model != NULL);
    return file->model->shard_count > 0 && file->model->shards[0].kind == ZT_SHARD_PART;
}

uint64_t opened_file_size(const struct opened_file *file, const char *path)
{
    const struct zt_model *model = file->model;
    const bool is_joined = opened_file_is_joined(file);
    const bool has_index = model_path_is_index(zt_text_from(location_of(file, path)));
    uint64_t bytes = is_joined && has_index ? 0 : model->file_size;

    for (uint32_t i = 0; is_joined && i < model->shard_count; i++)
        bytes += model->shards[i].size_bytes;
    return bytes;
}

bool opened_file_modified_ns(const struct opened_file *file, int64_t *out_time_ns)
{
    return model_source_modified_ns(file->source, out_time_ns);
}

/* Returns the text before the next item of the bracketed list. */
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
