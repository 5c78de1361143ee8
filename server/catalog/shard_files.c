/* Opening, parking and comparing the files of shards. Where to look besides the sibling is
 * shard_search.c's. */
#include "catalog/shard_files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/shard_search.h"

static enum zt_status no_memory(struct zt_error *error)
{
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for the shards");
}

/* Closes what is open, and forgets where it was. */
static void forget_places(struct shard_files *files)
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
    if (model->shard_count > SHARDS_MAX)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "%" PRIu32 " shards are more than the %d that are served",
                       model->shard_count, SHARDS_MAX);
    files->items = calloc(model->shard_count, sizeof(*files->items));
    files->sources = calloc(model->shard_count, sizeof(struct zt_source *));
    if (files->items == NULL || files->sources == NULL)
        return no_memory(error);
    files->count = model->shard_count;
    for (uint32_t i = 0; i < files->count; i++) {
        files->items[i].size_bytes = model->shards[i].size_bytes;
        files->items[i].sibling = zt_shard_sibling(model_path, &model->shards[i]);
        if (files->items[i].sibling == NULL)
            return no_memory(error);
    }
    return ZT_OK;
}

static enum zt_status open_sibling(struct shard_file *file, struct store *store,
                                   const struct zt_shard *shard, struct zt_source **out_source,
                                   struct zt_error *error)
{
    struct zt_source *source = NULL;
    enum zt_status status = store->ops->open(store, file->sibling, &source, &file->identity, error);

    if (status == ZT_NOT_FOUND)
        return zt_fail(error, status, NULL, ZT_NO_OFFSET, "shard %.*s is not there",
                       (int)shard->name_length, shard->name);
    if (status == ZT_OK)
        status = zt_shard_check(shard, source, error);
    if (status != ZT_OK) {
        zt_source_close(source);
        return status;
    }
    file->path = strdup(file->sibling);
    if (file->path == NULL) {
        zt_source_close(source);
        return no_memory(error);
    }
    *out_source = source;
    return ZT_OK;
}

/* What the sibling lacks stays said when nothing else is the shard either. */
static enum zt_status open_shard(struct shard_files *files, uint32_t index, struct store *store,
                                 const char *model_path, const struct zt_shard *shard,
                                 struct shard_search *search, struct zt_error *error)
{
    struct shard_file *file = &files->items[index];
    struct zt_source **source = &files->sources[index];
    enum zt_status status = open_sibling(file, store, shard, source, error);

    if ((status == ZT_NOT_FOUND || status == ZT_INVALID) && search != NULL &&
        shard_search_find(search, model_path, shard, source, &file->identity, &file->path))
        return ZT_OK;
    return status;
}

enum zt_status shard_files_open(struct shard_files *files, struct store *store,
                                const char *model_path, const struct zt_model *model,
                                struct shard_search *search, struct zt_error *error)
{
    enum zt_status status = prepare(files, model_path, model, error);

    for (uint32_t i = 0; status == ZT_OK && i < files->count; i++)
        status = open_shard(files, i, store, model_path, &model->shards[i], search, error);
    if (status != ZT_OK)
        forget_places(files);
    return status;
}

void shard_files_park(struct shard_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        zt_source_close(files->sources[i]);
        files->sources[i] = NULL;
    }
}

bool shard_files_unpark(struct shard_files *files, struct store *store)
{
    for (uint32_t i = 0; i < files->count; i++) {
        const struct shard_file *file = &files->items[i];
        struct file_identity identity;

        if (file->path == NULL)
            continue;
        if (store->ops->open(store, file->path, &files->sources[i], &identity, NULL) != ZT_OK ||
            !store_identity_equal(&identity, &file->identity)) {
            shard_files_park(files);
            return false;
        }
    }
    return true;
}

bool shard_files_are_same(const struct shard_files *files, identity_comparison *equal)
{
    for (uint32_t i = 0; i < files->count; i++) {
        struct file_identity now;

        if (files->sources[i] != NULL && store_identity_of(files->sources[i], &now) &&
            !equal(&now, &files->items[i].identity))
            return false;
    }
    return true;
}

static bool concerns(const struct shard_file *file, const char *path,
                     const struct file_identity *identity)
{
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
        if (concerns(&files->items[i], path, identity))
            return true;
    return false;
}

void shard_files_free(struct shard_files *files)
{
    forget_places(files);
    for (uint32_t i = 0; i < files->count; i++)
        free(files->items[i].sibling);
    free(files->items);
    free(files->sources);
    *files = (struct shard_files){0, NULL, NULL};
}
