/* A file is removed only while its name is locked, and only in the version that was examined. */
#include "upload/shared/removal.h"

#include <assert.h>
#include <stdio.h>

#include "base/log.h"
#include "base/server.h"
#include "upload/shared/current_model.h"

enum zt_status removal_of_version(struct server *server, const char *path,
                                  const struct file_identity *identity, struct remains *remains,
                                  struct zt_error *error)
{
    const struct store_expected expected = {.what = STORE_EXPECTS_VERSION, .identity = *identity};
    const enum zt_status status = server->store->ops->remove(server->store, path, &expected, error);

    if (status == ZT_OK) {
        remains_settle(remains, server->store, path, "removed");
        generation_release(catalog_update(server->catalog, path));
    }
    return status;
}

/* --- the file at a path --- */

static bool remove_held(struct server *server, const char *path,
                        const struct preconditions *preconditions, struct remains *remains,
                        struct failure *failure)
{
    struct store_expected expected = {.what = STORE_EXPECTS_VERSION};
    struct current_file found;
    struct zt_error error;
    enum zt_status status;

    if (!file_find_current(server, path, &found, failure))
        return false;
    if (!found.exists)
        return failure_refuse(failure, PROBLEM_NOT_FOUND, "there is no stored file at this path");
    if (!file_check_preconditions(preconditions, &found, failure))
        return false;
    expected.identity = found.identity;
    status = server->store->ops->remove(server->store, path, &expected, &error);
    if (status == ZT_ARGUMENT)
        return failure_refuse(failure,
                              preconditions_are_given(preconditions) ? PROBLEM_PRECONDITION_FAILED
                                                                     : PROBLEM_CONFLICT,
                              "the file was changed meanwhile");
    if (status == ZT_OK)
        remains_settle(remains, server->store, path, "removed");
    return status == ZT_OK || status == ZT_NOT_FOUND || failure_of_store(failure, &error);
}

bool removal_of_file(struct server *server, const char *path,
                     const struct preconditions *preconditions, struct remains *remains,
                     struct failure *failure)
{
    struct publish_lock lock;
    bool removed;

    if (!publish_lock_take_path(&lock, server, path, failure))
        return false;
    removed = remove_held(server, path, preconditions, remains, failure);
    if (removed && lock.model[0] != '\0')
        generation_release(catalog_update(server->catalog, path));
    if (removed)
        file_note_changed(server);
    publish_lock_release(&lock);
    return removed;
}

/* --- the other files of a removed model --- */

static void note_left(struct remains *remains, const char *path, const char *why)
{
    log_write(LOG_LEVEL_WARN, "%s: its model was removed, but this file was not: %s", path, why);
    remains->has_files = true;
}

static void remove_held_member(struct server *server, const struct removal_member *member,
                               struct remains *remains)
{
    const uint64_t failed_before = failed_lookups_count();
    struct generation *file = catalog_update(server->catalog, member->path);
    struct zt_error error;
    enum zt_status status;

    if (failed_lookups_count() != failed_before) {
        note_left(remains, member->path, "it cannot be opened now");
    } else if (member->may_go(server, file, member->context)) {
        assert(file != NULL);
        status = removal_of_version(server, member->path, &file->identity, remains, &error);
        if (status != ZT_OK && status != ZT_NOT_FOUND)
            note_left(remains, member->path, error.message);
    }
    generation_release(file);
}

void removal_of_member(struct server *server, const struct removal_member *member,
                       struct remains *remains)
{
    char name[MODEL_NAME_MAX + 1];
    struct failure failure = {.is_set = false};
    struct publish_lock lock;
    size_t length;
    unsigned rank;

    if (!model_path_split(member->path, &length, &rank))
        return;
    snprintf(name, sizeof(name), "%.*s", (int)length, member->path);
    if (!publish_lock_take(&lock, server, name, &failure)) {
        note_left(remains, member->path, failure.error.message);
        return;
    }
    remove_held_member(server, member, remains);
    publish_lock_release(&lock);
}

/* --- the parts of a joined model --- */

struct part {
    const char *path;
    const struct file_identity *identity; /* NULL: any version may go */
};

static bool part_may_go(struct server *server, const struct generation *file, const void *context)
{
    static const struct name_filter any_name = {NULL, NULL};
    const struct part *part = context;
    char ignored[MODEL_NAME_MAX + 1];

    return file != NULL &&
           (part->identity == NULL || store_identity_equal(&file->identity, part->identity)) &&
           !catalog_part_of(server->catalog, part->path, any_name, ignored);
}

static void remove_part(struct server *server, const char *path,
                        const struct file_identity *identity, struct remains *remains)
{
    const struct part part = {path, identity};
    const struct removal_member member = {path, part_may_go, &part};

    removal_of_member(server, &member, remains);
}

void removal_of_parts(struct server *server, const struct generation *model,
                      struct remains *remains)
{
    const bool is_whole = model->model != NULL;

    if (!is_whole && !generation_is_split(model))
        return;
    if (generation_is_split(model))
        remove_part(server, model->own_path, is_whole ? &model->identity : NULL, remains);
    for (uint32_t i = 0; i < model->shards.count; i++) {
        const struct shard_file *part = &model->shards.items[i];

        remove_part(server, part->sibling, is_whole ? &part->identity : NULL, remains);
    }
}
