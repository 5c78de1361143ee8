/* Opens parts one after another and joins their models. Opening stops at the first part that cannot
 * be opened. */
#include "parts/joined_parts.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zt/join.h"

static const char no_index_part[] = "index §Parts MissingPart";
static const char extra_index_part[] = "index §Parts ExtraPart";
static const char no_split_part[] = "gguf §Split MissingPart";

struct opening {
    struct part_folder *folder;
    size_t folder_length;         /* length of the parts' common folder, including its '/' */
    const struct zt_index *index; /* NULL for a split GGUF */
    struct joined_parts *parts;
};

static struct zt_text part_name(const struct opening *opening, const struct joined_part *part)
{
    assert(strlen(part->path) > opening->folder_length);
    return zt_text_from(part->path + opening->folder_length);
}

static enum zt_status make_room(struct joined_parts *parts, uint32_t count, struct zt_error *error)
{
    assert(count > 0 && count <= ZT_PARTS_MAX && parts->items == NULL);
    parts->items = calloc(count, sizeof(*parts->items));
    if (parts->items == NULL)
        return zt_fail_memory(error, "the parts of a model");
    parts->count = count;
    for (uint32_t i = 0; i < count; i++)
        parts->items[i].size_bytes = UINT64_MAX;
    return ZT_OK;
}

/* --- opening --- */

static void close_part(struct joined_part *part)
{
    zt_model_free(part->model);
    part->model = NULL;
    zt_source_close(part->source);
    part->source = NULL;
}

static enum zt_status try_part(struct part_folder *folder, struct joined_part *part,
                               struct zt_error *error)
{
    enum zt_status status =
        folder->ops->open(folder, part->path, &part->source, &part->identity, error);

    if (status == ZT_OK) {
        part->size_bytes = zt_source_size(part->source);
        status = zt_model_open(part->source, &part->model, error);
    }
    if (status != ZT_OK) {
        close_part(part);
        part->size_bytes = UINT64_MAX;
    }
    return status;
}

static enum zt_status open_part(const struct opening *opening, struct joined_part *part,
                                struct zt_error *error)
{
    struct part_folder *folder = opening->folder;
    const struct zt_text name = part_name(opening, part);
    enum zt_status status = try_part(folder, part, error);
    struct zt_gguf_split split;
    int os_error;

    if (status == ZT_STALE && folder->ops->refresh != NULL) {
        folder->ops->refresh(folder, part->path);
        status = try_part(folder, part, error);
    }
    if (status == ZT_OK && zt_gguf_split_of(part->model, &split))
        opening->parts->has_split_part = true;
    if (status == ZT_OK || status == ZT_NO_MEMORY)
        return status;
    if (status == ZT_NOT_FOUND)
        return folder->skips_missing_parts
                   ? ZT_OK
                   : zt_fail(error, ZT_INVALID,
                             opening->index != NULL ? no_index_part : no_split_part, ZT_NO_OFFSET,
                             "part %.*s is missing", (int)name.length, name.bytes);
    os_error = error->os_error;
    (void)zt_fail(error, status, error->rule, error->offset, "part %.*s: %s", (int)name.length,
                  name.bytes, error->message);
    error->os_error = os_error;
    return status;
}

static enum zt_status join(const struct opening *opening, struct zt_source *own,
                           struct zt_error *error)
{
    struct joined_parts *parts = opening->parts;
    struct zt_part *joined;
    size_t count = 0;
    enum zt_status status;

    assert(parts->count > 0);
    joined = calloc(parts->count, sizeof(*joined));
    if (joined == NULL)
        return zt_fail_memory(error, "the parts of a model");
    for (uint32_t i = 0; i < parts->count; i++) {
        const struct joined_part *part = &parts->items[i];

        if (part->model != NULL)
            joined[count++] = (struct zt_part){part_name(opening, part), part->model, part->source};
    }
    status = zt_model_join(opening->index, own, joined, count, &parts->model, error);
    free(joined);
    assert(status != ZT_OK || parts->model->shard_count == parts->count - parts->own);
    return status;
}

static enum zt_status open_and_join(const struct opening *opening, struct zt_source *index,
                                    struct zt_error *error)
{
    struct joined_parts *parts = opening->parts;
    enum zt_status status = ZT_OK;

    assert((opening->index != NULL) == (index != NULL) && parts->own == (index == NULL));
    for (uint32_t i = 0; i < parts->count && status == ZT_OK; i++)
        if (parts->items[i].source == NULL)
            status = open_part(opening, &parts->items[i], error);
    if (status == ZT_OK)
        status = join(opening, index != NULL ? index : parts->items[0].source, error);
    return status;
}

/* Frees the parts' models, which the joined model replaces. After a failure it also closes the
 * files. */
static enum zt_status finish(struct joined_parts *parts, enum zt_status status)
{
    if (status != ZT_OK) {
        zt_model_free(parts->model);
        parts->model = NULL;
    }
    for (uint32_t i = 0; i < parts->count; i++) {
        zt_model_free(parts->items[i].model);
        parts->items[i].model = NULL;
        if (status != ZT_OK)
            close_part(&parts->items[i]);
    }
    return status;
}

/* --- an index --- */

static enum zt_status name_part(const struct opening *opening, struct zt_text folder_path,
                                struct zt_text name, char **out_path, struct zt_error *error)
{
    const struct part_folder_ops *ops = opening->folder->ops;
    char *path = malloc(folder_path.length + name.length + 1);

    if (path == NULL)
        return zt_fail_memory(error, "a path");
    memcpy(path, folder_path.bytes, folder_path.length);
    memcpy(path + folder_path.length, name.bytes, name.length);
    path[folder_path.length + name.length] = '\0';
    *out_path = path;
    if (strlen(path) == folder_path.length + name.length &&
        (ops->may_be_part == NULL || ops->may_be_part(path)))
        return ZT_OK;
    return zt_fail(error, ZT_INVALID, "index §Parts PartName", ZT_NO_OFFSET,
                   "part %.*s cannot be a file of a model", (int)name.length, name.bytes);
}

/* Rejects a part of the same series that the index does not name: one of the two must be from
 * another version. */
static enum zt_status check_extra(const struct opening *opening, struct zt_error *error)
{
    struct part_folder *folder = opening->folder;
    const uint32_t series = zt_index_series(opening->index);

    for (uint32_t i = 1; i <= series; i++) {
        char name[ZT_PART_NAME_SIZE];
        struct file_identity identity;
        struct zt_source *source = NULL;
        char *path = NULL;
        enum zt_status status;

        if (!zt_index_unnamed(opening->index, i, name))
            continue;
        if (asprintf(&path, "%.*s%s", (int)opening->folder_length, opening->parts->items[0].path,
                     name) < 0)
            return zt_fail_memory(error, "a path");
        status = folder->ops->open(folder, path, &source, &identity, error);
        free(path);
        if (status == ZT_UNAVAILABLE || status == ZT_NO_MEMORY)
            return status;
        if (status != ZT_OK)
            continue;
        zt_source_close(source);
        return zt_fail(error, ZT_INVALID, extra_index_part, ZT_NO_OFFSET,
                       "part %s is not named by the index", name);
    }
    return ZT_OK;
}

enum zt_status joined_parts_open_index(struct part_folder *folder, struct zt_text folder_path,
                                       struct zt_source *source, struct joined_parts *out_parts,
                                       struct zt_error *error)
{
    struct opening opening = {
        .folder = folder, .folder_length = folder_path.length, .parts = out_parts};
    struct zt_index *index = NULL;
    const struct zt_text *names;
    size_t count;
    enum zt_status status;

    assert(folder_path.length == 0 || folder_path.bytes[folder_path.length - 1] == '/');
    *out_parts = (struct joined_parts){.model = NULL};
    status = zt_index_read(source, &index, error);
    if (status != ZT_OK)
        return status;
    opening.index = index;
    out_parts->states_total_size = zt_index_total_size(index, &out_parts->total_size_bytes);
    names = zt_index_parts(index, &count);
    status = make_room(out_parts, (uint32_t)count, error);
    for (size_t i = 0; i < count && status == ZT_OK; i++)
        status = name_part(&opening, folder_path, names[i], &out_parts->items[i].path, error);
    if (status == ZT_OK) {
        status = open_and_join(&opening, source, error);
        if (status == ZT_OK)
            status = check_extra(&opening, error);
        status = finish(out_parts, status);
    } else {
        joined_parts_free(out_parts);
    }
    zt_index_free(index);
    return status;
}

/* --- a split GGUF --- */

static size_t folder_length_of(struct zt_text path)
{
    const char *slash = memrchr(path.bytes, '/', path.length);

    return slash != NULL ? (size_t)(slash + 1 - path.bytes) : 0;
}

enum zt_status joined_parts_open_split(struct part_folder *folder, const struct split_name *name,
                                       struct zt_source *source, struct zt_model *model,
                                       struct joined_parts *out_parts, struct zt_error *error)
{
    const struct opening opening = {
        .folder = folder, .folder_length = folder_length_of(name->stem), .parts = out_parts};
    enum zt_status status;

    assert((source != NULL) == (model != NULL));
    *out_parts = (struct joined_parts){.own = 1};
    status = make_room(out_parts, name->count, error);
    if (status != ZT_OK) {
        zt_model_free(model);
        zt_source_close(source);
        return status;
    }
    out_parts->items[0].source = source;
    out_parts->items[0].model = model;
    if (source != NULL)
        out_parts->items[0].size_bytes = zt_source_size(source);
    for (uint32_t i = 0; i < name->count && status == ZT_OK; i++) {
        out_parts->items[i].path = split_part_path(name, i + 1);
        if (out_parts->items[i].path == NULL)
            status = zt_fail_memory(error, "a path");
    }
    if (status == ZT_OK)
        status = open_and_join(&opening, NULL, error);
    status = finish(out_parts, status);
    if (status == ZT_NO_MEMORY)
        joined_parts_free(out_parts);
    return status;
}

/* --- the outcome --- */

bool joined_parts_lack_a_part(const struct zt_error *error)
{
    return error->rule != NULL &&
           (strcmp(error->rule, no_index_part) == 0 || strcmp(error->rule, no_split_part) == 0);
}

bool joined_parts_have_another_part(const struct zt_error *error)
{
    return error->rule != NULL && strcmp(error->rule, extra_index_part) == 0;
}

void joined_parts_free(struct joined_parts *parts)
{
    zt_model_free(parts->model);
    for (uint32_t i = 0; i < parts->count; i++) {
        close_part(&parts->items[i]);
        free(parts->items[i].path);
    }
    free(parts->items);
    *parts = (struct joined_parts){.model = NULL};
}
