/* Opens parts one after another, and hands their files to the model that they are together. A
 * failure ends with the first part that cannot be opened. */
#include "catalog/joined_files.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog_index.h"
#include "catalog/split_path.h"
#include "zt/join.h"

/* Smaller than any file: what is missing cannot be recognised by its size (shard_files.c). */
#define NO_SIZE UINT64_MAX

static const char no_index_part[] = "index §Parts MissingPart";
static const char extra_index_part[] = "index §Parts ExtraPart";
static const char no_split_part[] = "gguf §Split MissingPart";

struct part {
    char *path;
    struct zt_source *source;
    struct file_identity identity;
    struct zt_model *model;
};

struct parts {
    struct store *store;
    const char *rule; /* that a missing part breaks */
    struct part *items;
    uint32_t count;
};

static struct zt_text file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return zt_text_from(slash != NULL ? slash + 1 : path);
}

/* --- opening --- */

static enum zt_status name_part(const struct part *part, enum zt_status status,
                                struct zt_error *error)
{
    const int os_error = error->os_error;
    const struct zt_text name = file_name(part->path);

    (void)zt_fail(error, status, error->rule, error->offset, "part %.*s: %s", (int)name.length,
                  name.bytes, error->message);
    error->os_error = os_error;
    return status;
}

static bool ignore_file(void *context, const char *path, const struct file_identity *identity)
{
    (void)context;
    (void)path;
    (void)identity;
    return true;
}

static void close_part(struct part *part)
{
    zt_model_free(part->model);
    part->model = NULL;
    zt_source_close(part->source);
    part->source = NULL;
}

static enum zt_status try_part(struct store *store, struct part *part, struct zt_error *error)
{
    enum zt_status status =
        store->ops->open(store, part->path, &part->source, &part->identity, error);

    if (status == ZT_OK)
        status = zt_model_open(part->source, &part->model, error);
    if (status != ZT_OK)
        close_part(part);
    return status;
}

/* A version that is gone from a store that is elsewhere is looked up once more. */
static enum zt_status open_part(const struct parts *parts, struct part *part,
                                struct zt_error *error)
{
    struct store *store = parts->store;
    enum zt_status status = try_part(store, part, error);
    const struct zt_text name = file_name(part->path);
    size_t length;
    unsigned rank;

    if (status == ZT_STALE && model_path_split(part->path, &length, &rank)) {
        (void)store->ops->seek(store, (struct zt_text){part->path, length}, ignore_file, NULL,
                               error);
        status = try_part(store, part, error);
    }
    if (status == ZT_NOT_FOUND)
        return zt_fail(error, ZT_NOT_FOUND, parts->rule, ZT_NO_OFFSET, "part %.*s is missing",
                       (int)name.length, name.bytes);
    return status == ZT_OK || status == ZT_NO_MEMORY ? status : name_part(part, status, error);
}

static enum zt_status no_memory(struct zt_error *error)
{
    return zt_fail_memory(error, "the parts of a model");
}

static enum zt_status make_room(struct parts *parts, uint32_t count, struct zt_error *error)
{
    parts->items = calloc(count, sizeof(*parts->items));
    if (parts->items == NULL)
        return no_memory(error);
    parts->count = count;
    return ZT_OK;
}

static enum zt_status open_parts(struct parts *parts, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    for (uint32_t i = 0; i < parts->count && status == ZT_OK; i++)
        status = open_part(parts, &parts->items[i], error);
    return status;
}

static void free_parts(struct parts *parts)
{
    for (uint32_t i = 0; i < parts->count; i++) {
        close_part(&parts->items[i]);
        free(parts->items[i].path);
    }
    free(parts->items);
}

static enum zt_status join(const struct parts *parts, const struct zt_index *index,
                           struct zt_source *own, struct zt_model **out_model,
                           struct zt_error *error)
{
    struct zt_part *joined = calloc(parts->count, sizeof(*joined));
    enum zt_status status;

    if (joined == NULL)
        return no_memory(error);
    for (uint32_t i = 0; i < parts->count; i++)
        joined[i] = (struct zt_part){file_name(parts->items[i].path), parts->items[i].model,
                                     parts->items[i].source};
    status = zt_model_join(index, own, joined, parts->count, out_model, error);
    free(joined);
    return status;
}

/* --- handing over --- */

/* Makes the files of all parts but the first `own` ones. With a model their sources are handed
 * over; without one only their places are remembered. */
static enum zt_status hand_over(struct parts *parts, uint32_t own, struct joined_files *files,
                                struct zt_error *error)
{
    struct shard_files *shards = &files->shards;
    const uint32_t count = parts->count - own;

    shards->items = calloc(count, sizeof(*shards->items));
    shards->sources = calloc(count, sizeof(struct zt_source *));
    if (shards->items == NULL || shards->sources == NULL)
        return no_memory(error);
    shards->count = count;
    assert(files->model == NULL || files->model->shard_count == count);
    for (uint32_t i = 0; i < count; i++) {
        struct part *part = &parts->items[own + i];
        struct shard_file *file = &shards->items[i];

        file->size_bytes = part->source != NULL ? zt_source_size(part->source) : NO_SIZE;
        file->identity = part->identity;
        file->sibling = part->path;
        part->path = NULL;
        if (files->model == NULL)
            continue;
        file->path = strdup(file->sibling);
        if (file->path == NULL)
            return no_memory(error);
        shards->sources[i] = part->source;
        part->source = NULL;
    }
    return ZT_OK;
}

/* Ends an opening: hands over what there is, and frees the rest. */
static enum zt_status finish(struct parts *parts, uint32_t own, struct joined_files *files,
                             enum zt_status status, struct zt_error *error)
{
    struct zt_error ignored;
    enum zt_status handed = ZT_OK;

    if (parts->count > own)
        handed = hand_over(parts, own, files, status == ZT_OK ? error : &ignored);
    free_parts(parts);
    if (status == ZT_OK)
        status = handed;
    if (handed != ZT_OK && files->shards.count > 0)
        shard_files_park(&files->shards);
    if (status != ZT_OK) {
        zt_model_free(files->model);
        files->model = NULL;
    }
    return status;
}

/* A missing part makes the model unreadable; it does not make it disappear. */
static enum zt_status keep(enum zt_status status, struct zt_error *error)
{
    if (status == ZT_NOT_FOUND)
        error->status = ZT_INVALID;
    return status == ZT_NOT_FOUND ? ZT_INVALID : status;
}

/* --- an index --- */

/* A part is a file that the catalog follows, and no index itself. */
static enum zt_status name_sibling(const char *path, struct zt_text name, char **out_path,
                                   struct zt_error *error)
{
    const size_t folder = (size_t)(file_name(path).bytes - path);
    char *sibling = malloc(folder + name.length + 1);
    size_t length;
    unsigned rank;

    if (sibling == NULL)
        return no_memory(error);
    memcpy(sibling, path, folder);
    memcpy(sibling + folder, name.bytes, name.length);
    sibling[folder + name.length] = '\0';
    *out_path = sibling;
    if (strlen(sibling) == folder + name.length && model_path_split(sibling, &length, &rank) &&
        !model_rank_is_index(rank))
        return ZT_OK;
    return zt_fail(error, ZT_INVALID, "index §Parts PartName", ZT_NO_OFFSET,
                   "part %.*s cannot be a file of a model", (int)name.length, name.bytes);
}

static enum zt_status name_parts(struct parts *parts, const char *path,
                                 const struct zt_index *index, struct zt_error *error)
{
    size_t count;
    const struct zt_text *names = zt_index_parts(index, &count);
    enum zt_status status;

    assert(count <= ZT_PARTS_MAX);
    if (count == 0)
        return zt_fail(error, ZT_INVALID, "index §Parts NoParts", ZT_NO_OFFSET,
                       "the index names no parts");
    status = make_room(parts, (uint32_t)count, error);
    for (uint32_t i = 0; status == ZT_OK && i < count; i++)
        status = name_sibling(path, names[i], &parts->items[i].path, error);
    return status;
}

/* A part of the same series that the index does not name does not belong to the model: one of both
 * is of another version. */
static enum zt_status find_extra(const struct parts *parts, const struct zt_index *index,
                                 struct zt_error *error)
{
    const char *sibling = parts->items[0].path;
    const int folder = (int)(file_name(sibling).bytes - sibling);
    const uint32_t series = zt_index_series(index);

    for (uint32_t i = 1; i <= series; i++) {
        char name[ZT_PART_NAME_SIZE];
        char path[2 * MODEL_PATH_SIZE];
        struct file_identity identity;
        struct zt_source *source;
        enum zt_status status;

        if (!zt_index_unnamed(index, i, name))
            continue;
        snprintf(path, sizeof(path), "%.*s%s", folder, sibling, name);
        status = parts->store->ops->open(parts->store, path, &source, &identity, error);
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

enum zt_status joined_files_open_index(struct store *store, const char *path, struct zt_source *own,
                                       struct joined_files *out_files, struct zt_error *error)
{
    struct parts parts = {.store = store, .rule = no_index_part};
    struct zt_index *index = NULL;
    enum zt_status status = zt_index_read(own, &index, error);

    *out_files = (struct joined_files){.model = NULL};
    if (status != ZT_OK)
        return status;
    status = name_parts(&parts, path, index, error);
    if (status != ZT_OK) {
        free_parts(&parts);
        zt_index_free(index);
        return status;
    }
    status = open_parts(&parts, error);
    if (status == ZT_OK)
        status = join(&parts, index, own, &out_files->model, error);
    if (status == ZT_OK) {
        status = find_extra(&parts, index, error);
        if (status != ZT_OK) {
            zt_model_free(out_files->model);
            out_files->model = NULL;
        }
    }
    zt_index_free(index);
    return finish(&parts, 0, out_files, keep(status, error), error);
}

/* --- a split GGUF --- */

static bool is_split(const struct zt_model *model)
{
    struct zt_gguf_split split;

    return model != NULL && zt_gguf_split_of(model, &split);
}

/* Whether the catalog has a part, other than those that could be opened. */
static bool is_known(const struct catalog_index *known, const char *path)
{
    char split[MODEL_PATH_SIZE];
    size_t stem;
    uint32_t count;

    if (known == NULL || !split_path_read(path, &stem, &count))
        return false;
    stem++; /* with the '-' behind it */
    for (size_t i = catalog_index_path_bound(known, (struct zt_text){path, stem});
         i < known->count && strncmp(known->by_path[i]->path, path, stem) == 0; i++)
        if (is_split(known->by_path[i]->model) &&
            split_path_of_part(known->by_path[i]->path, split) && strcmp(split, path) == 0)
            return true;
    return false;
}

/* Files that are only named like parts are not. */
static bool exists(const struct parts *parts, const struct catalog_index *known, const char *path)
{
    for (uint32_t i = 0; i < parts->count; i++)
        if (is_split(parts->items[i].model))
            return true;
    return is_known(known, path);
}

static enum zt_status name_split_parts(struct parts *parts, const char *path,
                                       struct zt_error *error)
{
    size_t stem;
    uint32_t count = 0;
    enum zt_status status;

    if (!split_path_read(path, &stem, &count))
        return ZT_NOT_FOUND;
    status = make_room(parts, count, error);
    for (uint32_t i = 0; status == ZT_OK && i < count; i++) {
        char part[MODEL_PATH_SIZE];

        split_path_part(path, i + 1, part);
        parts->items[i].path = strdup(part);
        if (parts->items[i].path == NULL)
            status = no_memory(error);
    }
    return status;
}

/* The first part is the model's own file. */
static void take_own(struct parts *parts, struct joined_files *files)
{
    struct part *first = &parts->items[0];

    files->own_path = first->path;
    first->path = NULL;
    files->own_identity = first->identity;
    if (files->model == NULL)
        return;
    files->own = first->source;
    first->source = NULL;
}

enum zt_status joined_files_open_split(struct store *store, const char *path,
                                       const struct catalog_index *known,
                                       struct joined_files *out_files, struct zt_error *error)
{
    struct parts parts = {.store = store, .rule = no_split_part};
    enum zt_status status = name_split_parts(&parts, path, error);

    *out_files = (struct joined_files){.model = NULL};
    if (status == ZT_OK)
        status = open_parts(&parts, error);
    if (parts.count == 0 || status == ZT_NO_MEMORY ||
        (status != ZT_UNAVAILABLE && !exists(&parts, known, path))) {
        free_parts(&parts);
        return status == ZT_NO_MEMORY ? status : ZT_NOT_FOUND;
    }
    if (status == ZT_OK)
        status = join(&parts, NULL, parts.items[0].source, &out_files->model, error);
    take_own(&parts, out_files);
    status = finish(&parts, 1, out_files, keep(status, error), error);
    if (status != ZT_OK) {
        zt_source_close(out_files->own);
        out_files->own = NULL;
    }
    return status;
}

/* --- what became of it --- */

bool joined_files_lack_a_part(const struct zt_error *error)
{
    return error->rule != NULL &&
           (strcmp(error->rule, no_index_part) == 0 || strcmp(error->rule, no_split_part) == 0);
}

bool joined_files_have_another_part(const struct zt_error *error)
{
    return error->rule != NULL && strcmp(error->rule, extra_index_part) == 0;
}

void joined_files_free(struct joined_files *files)
{
    zt_model_free(files->model);
    if (files->shards.items != NULL)
        shard_files_free(&files->shards);
    zt_source_close(files->own);
    free(files->own_path);
    *files = (struct joined_files){.model = NULL};
}
