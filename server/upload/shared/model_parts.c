/* Removes parts one after another, under the names that their own writers take. */
#include "upload/shared/model_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/server.h"
#include "upload/shared/model_hold.h"

struct generation *model_parts_of(struct server *server, const char *name)
{
    struct generation *known = catalog_peek(server->catalog, zt_text_from(name));
    struct generation *current = NULL;

    if (known != NULL && known->is_joined)
        current = catalog_update(server->catalog, known->path);
    generation_release(known);
    return current;
}

static bool take_path(struct generation *behind, char out_path[MODEL_PATH_SIZE])
{
    if (behind == NULL)
        return false;
    snprintf(out_path, MODEL_PATH_SIZE, "%s",
             generation_is_split(behind) && behind->own_path != NULL ? behind->own_path
                                                                     : behind->path);
    generation_release(behind);
    return true;
}

bool model_parts_lie_behind(struct server *server, const char *name, char out_path[MODEL_PATH_SIZE])
{
    return take_path(catalog_update_behind(server->catalog, zt_text_from(name)), out_path);
}

bool model_is_known_behind(struct server *server, struct zt_text name,
                           char out_path[MODEL_PATH_SIZE])
{
    return take_path(catalog_peek_in_way(server->catalog, name), out_path);
}

static void log_left(const char *path, const char *why)
{
    log_write(LOG_LEVEL_WARN, "%s: its model was removed, but it was not: %s", path, why);
}

/* Whether the file is still what it was, and no other model needs it. */
static bool may_go(struct server *server, const struct generation *file, const char *path,
                   const struct file_identity *identity)
{
    static const struct name_filter any_name = {NULL, NULL};
    char ignored[MODEL_NAME_MAX + 1];

    return file != NULL && (identity == NULL || store_identity_equal(&file->identity, identity)) &&
           !catalog_part_of(server->catalog, path, any_name, ignored);
}

/* identity: NULL for any. */
static void remove_held(struct server *server, const char *path,
                        const struct file_identity *identity)
{
    struct generation *file = catalog_update(server->catalog, path);
    struct store_expected expected = {.what = STORE_EXPECTS_VERSION};
    struct zt_error error;
    enum zt_status status;

    if (may_go(server, file, path, identity)) {
        expected.identity = file->identity;
        status = server->store->ops->remove(server->store, path, &expected, &error);
        if (status == ZT_OK)
            generation_release(catalog_update(server->catalog, path));
        else if (status != ZT_NOT_FOUND)
            log_left(path, error.message);
    }
    generation_release(file);
}

static void remove_part(struct server *server, const char *path,
                        const struct file_identity *identity)
{
    char name[MODEL_NAME_MAX + 1];
    struct failure failure = {.is_set = false};
    struct model_hold hold;
    size_t length;
    unsigned rank;

    if (!model_path_split(path, &length, &rank))
        return;
    snprintf(name, sizeof(name), "%.*s", (int)length, path);
    if (!model_hold_take(&hold, server, name, &failure)) {
        log_left(path, failure.error.message);
        return;
    }
    remove_held(server, path, identity);
    model_hold_release(&hold);
}

void model_parts_remove(struct server *server, const struct generation *model)
{
    const bool is_whole = model->model != NULL;

    if (!is_whole && !generation_is_split(model))
        return;
    if (generation_is_split(model))
        remove_part(server, model->own_path, is_whole ? &model->identity : NULL);
    for (uint32_t i = 0; i < model->shards.count; i++) {
        const struct shard_file *part = &model->shards.items[i];

        remove_part(server, part->sibling, is_whole ? &part->identity : NULL);
    }
}
