/* Opens, parks and compares the files of a model's shards. */
#include "catalog/shard_files.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/store_folder.h"
#include "parts/joined_parts.h"
#include "parts/shard_finder.h"

static enum zt_status no_memory(struct zt_error *error)
{
    return zt_fail_memory(error, "the shards");
}

/* Closes the open files and forgets their paths. */
static void clear_places(struct shard_files *files)
{
    shard_files_park(files);
    for (uint32_t i = 0; i < files->count; i++) {
        free(files->items[i].path);
        files->items[i].path = NULL;
    }
}

static enum zt_status prepare(struct shard_files *files, const char *model_path,
                              const struct zt_model *model, struct zt_error *error)
{
    assert(files->items == NULL && files->sources == NULL && model->shard_count > 0);
    if (model->shard_count > SHARDS_MAX)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "%" PRIu32 " shards are more than the %d that are served",
                       model->shard_count, SHARDS_MAX);
    files->items = calloc(model->shard_count, sizeof(*files->items));
    if (files->items != NULL)
        files->sources = calloc(model->shard_count, sizeof(struct zt_source *));
    if (files->items == NULL || files->sources == NULL)
        return no_memory(error);
    files->count = model->shard_count;
    for (uint32_t i = 0; i < files->count; i++) {
        files->items[i].size_bytes = model->shards[i].size_bytes;
        files->items[i].is_data = model->shards[i].kind == ZT_SHARD_DATA;
        files->items[i].sibling = zt_shard_sibling(model_path, &model->shards[i]);
        if (files->items[i].sibling == NULL)
            return no_memory(error);
    }
    return ZT_OK;
}

enum zt_status shard_files_open(struct shard_files *files, const char *model_path,
                                const struct zt_model *model, struct store_folder *folder,
                                struct zt_error *error)
{
    enum zt_status status = prepare(files, model_path, model, error);

    for (uint32_t i = 0; status == ZT_OK && i < files->count; i++) {
        struct shard_file *file = &files->items[i];
        struct found_shard found;

        status =
            shard_find(&folder->base, model_path, file->sibling, &model->shards[i], &found, error);
        file->was_asked = true;
        file->identity = found.identity;
        file->path = found.path;
        files->sources[i] = found.source;
    }
    if (status != ZT_OK)
        clear_places(files);
    return status;
}

enum zt_status shard_files_take_parts(struct shard_files *files, struct joined_parts *parts,
                                      struct zt_error *error)
{
    const uint32_t count = parts->count - parts->own;

    assert(parts->own <= parts->count && files->count == 0);
    assert(parts->model == NULL || parts->model->shard_count == count);
    if (count == 0)
        return ZT_OK;
    files->items = calloc(count, sizeof(*files->items));
    files->sources = calloc(count, sizeof(struct zt_source *));
    if (files->items == NULL || files->sources == NULL)
        return no_memory(error);
    files->count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct joined_part *part = &parts->items[parts->own + i];
        struct shard_file *file = &files->items[i];

        file->size_bytes = part->size_bytes;
        file->identity = part->identity;
        file->sibling = part->path;
        part->path = NULL;
        if (parts->model == NULL)
            continue;
        assert(part->source != NULL);
        file->path = strdup(file->sibling);
        if (file->path == NULL)
            return no_memory(error);
        files->sources[i] = part->source;
        part->source = NULL;
    }
    return ZT_OK;
}

void shard_files_park(struct shard_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        zt_source_close(files->sources[i]);
        files->sources[i] = NULL;
    }
}

bool shard_files_unpark(struct shard_files *files, struct store *store, struct zt_error *error)
{
    for (uint32_t i = 0; i < files->count; i++) {
        const struct shard_file *file = &files->items[i];
        struct file_identity identity;

        assert(files->sources[i] == NULL);
        if (file->path == NULL)
            continue;
        if (store->ops->open(store, file->path, &files->sources[i], &identity, error) != ZT_OK ||
            !store_identity_equal(&identity, &file->identity)) {
            shard_files_park(files);
            return false;
        }
    }
    return true;
}

bool shard_files_are_same(const struct shard_files *files, struct store *store,
                          identity_comparison *equal)
{
    for (uint32_t i = 0; i < files->count; i++) {
        struct file_identity now;

        if (files->sources[i] != NULL && store->ops->identity_of(store, files->sources[i], &now) &&
            !equal(&now, &files->items[i].identity))
            return false;
    }
    return true;
}

static bool is_concerned(const struct shard_file *file, const char *path,
                         const struct file_identity *identity)
{
    assert(file->sibling != NULL);
    if (file->path != NULL && strcmp(file->path, path) == 0)
        return identity == NULL || !store_identity_equal(identity, &file->identity);
    if (strcmp(file->sibling, path) == 0)
        return true;
    return file->path == NULL && identity != NULL && identity->size_bytes == file->size_bytes;
}

bool shard_files_concern(const struct shard_files *files, const char *path,
                         const struct file_identity *identity)
{
    for (uint32_t i = 0; i < files->count; i++)
        if (is_concerned(&files->items[i], path, identity))
            return true;
    return false;
}

static bool has_new_data(const struct shard_file *file, struct store *store)
{
    static const struct file_identity missing;
    struct file_identity now;
    struct zt_source *source = NULL;
    const enum zt_status status = store->ops->open(store, file->sibling, &source, &now, NULL);

    assert(file->is_data && file->was_asked);
    zt_source_close(source);
    if (status == ZT_OK)
        return !store_identity_equal(&now, &file->identity);
    return status == ZT_NOT_FOUND && !store_identity_equal(&missing, &file->identity);
}

bool shard_files_have_new_data(const struct shard_files *files, struct store *store)
{
    for (uint32_t i = 0; i < files->count; i++)
        if (files->items[i].is_data && files->items[i].was_asked &&
            has_new_data(&files->items[i], store))
            return true;
    return false;
}

void shard_files_free(struct shard_files *files)
{
    clear_places(files);
    for (uint32_t i = 0; i < files->count; i++)
        free(files->items[i].sibling);
    free(files->items);
    free(files->sources);
    *files = (struct shard_files){0, NULL, NULL};
}
