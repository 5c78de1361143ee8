/* Removes a model: its own file, and then the shards that no other model uses. Another file of the
 * name is another model, which is served from then on.
 *
 * Requests that read one of the files have it open and are not disturbed. */
#include "upload/whole/delete.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "upload/shared/model_parts.h"
#include "upload/shared/publication.h"
#include "upload/shared/write_checks.h"

/* Models that are examined in one step. */
#define PAGE 256

struct removal {
    struct server *server;
    char name[MODEL_NAME_MAX + 1];
    struct preconditions preconditions; /* texts are the request's, which waits */
    struct failure failure;
};

/* --- models that use a file as a shard --- */

static bool uses(const struct generation *generation, const char *path)
{
    for (uint32_t i = 0; i < generation->shards.count; i++) {
        const struct shard_file *shard = &generation->shards.items[i];

        if (strcmp(shard->sibling, path) == 0 ||
            (shard->path != NULL && strcmp(shard->path, path) == 0))
            return true;
    }
    return false;
}

/* Whether any model in the catalog uses a file as its shard. True if there is no memory to find
 * out. */
static bool is_used(struct server *server, const char *path)
{
    struct generation **page = malloc(PAGE * sizeof(struct generation *));
    char after[MODEL_NAME_MAX + 1] = "";
    struct catalog_page_end end = {page != NULL, NULL};
    bool used = page == NULL;

    while (end.more && !used) {
        const struct catalog_page next = {
            .prefix = {"", 0}, .after = {after, strlen(after)}, .limit = PAGE};
        size_t count = catalog_list(server->catalog, &next, page, &end);

        for (size_t i = 0; i < count; i++) {
            struct zt_text name = generation_name(page[i]);

            used = used || uses(page[i], path);
            snprintf(after, sizeof(after), "%.*s", (int)name.length, name.bytes);
            generation_release(page[i]);
        }
        end.more = end.more && count > 0;
    }
    free(page);
    return used;
}

/* --- shards --- */

/* Whether a file is the removed model's shard: it has no manifest of its own (else it is a model
 * itself, to be removed by its own name), and it is the very file that the model refers to. */
static bool belongs(const struct generation *file, const struct shard_file *shard)
{
    return file != NULL && file->error->status == ZT_DATA_SHARD &&
           file->identity.size_bytes == shard->size_bytes &&
           (shard->path == NULL || store_identity_equal(&file->identity, &shard->identity));
}

/* A failure is only logged: the model is gone already. */
static void remove_file(struct server *server, const char *path)
{
    struct zt_error error;
    enum zt_status status =
        server->store->ops->remove(server->store, path, &store_expects_anything, &error);

    if (status == ZT_OK) {
        generation_release(catalog_update(server->catalog, path));
    } else if (status != ZT_NOT_FOUND) {
        log_write(LOG_LEVEL_WARN, "%s: its model was removed, but it was not: %s", path,
                  error.message);
    }
}

static void remove_held_shard(struct server *server, const struct shard_file *shard)
{
    struct generation *file = catalog_update(server->catalog, shard->sibling);

    if (belongs(file, shard) && !is_used(server, shard->sibling))
        remove_file(server, shard->sibling);
    generation_release(file);
}

static void remove_shard(struct server *server, const struct shard_file *shard)
{
    size_t name_length;
    unsigned rank;
    char name[MODEL_NAME_MAX + 1];
    struct model_hold hold;
    struct failure failure = {.is_set = false};

    /* External data may be any file of the folder. Found elsewhere, by its content, a shard is
     * another model's. */
    if (shard->is_data || (shard->path != NULL && strcmp(shard->path, shard->sibling) != 0) ||
        !model_path_split(shard->sibling, &name_length, &rank))
        return;
    snprintf(name, sizeof(name), "%.*s", (int)name_length, shard->sibling);
    if (!model_hold_take(&hold, server, name, &failure)) {
        log_write(LOG_LEVEL_WARN, "%s: its model was removed, but it was not: %s", shard->sibling,
                  failure.error.message);
        return;
    }
    remove_held_shard(server, shard);
    model_hold_release(&hold);
}

/* A shard's name is longer than its model's, so two removals cannot deadlock. */
static void remove_shards(struct server *server, const struct generation *model)
{
    for (uint32_t i = 0; i < model->shards.count; i++)
        remove_shard(server, &model->shards.items[i]);
}

/* --- the model --- */

static bool is_no_part(struct removal *removal, const char *path)
{
    static const struct name_filter any_name = {NULL, NULL};
    char model[MODEL_NAME_MAX + 1];

    return !catalog_part_of(removal->server->catalog, path, any_name, model) ||
           failure_refuse(&removal->failure, PROBLEM_CONFLICT,
                          "this is a part of the model %s, with which it is removed", model);
}

/* A part goes with its model; removed alone, it would leave the others useless. The extension of
 * the current file may be spelled in capitals. */
static bool check_part(struct removal *removal, const struct generation *current)
{
    bool is_free = is_no_part(removal, current->path);

    for (unsigned rank = 0; is_free && model_extension(rank) != NULL; rank++) {
        char path[MODEL_PATH_SIZE];

        snprintf(path, sizeof(path), "%s%s", removal->name, model_extension(rank));
        is_free = is_no_part(removal, path);
    }
    return is_free;
}

static bool check(struct removal *removal, const struct generation *current)
{
    struct failure *failure = &removal->failure;

    if (current == NULL)
        return failure_refuse(failure, PROBLEM_MODEL_NOT_FOUND, "there is no model of this name");
    if (!check_part(removal, current))
        return false;
    if (!model_preconditions_hold(&removal->preconditions, current))
        return failure_refuse(failure, PROBLEM_PRECONDITION_FAILED,
                              "the current model does not meet the request's preconditions");
    if (current->error->status == ZT_DATA_SHARD && is_used(removal->server, current->path))
        return failure_refuse(failure, PROBLEM_CONFLICT, "a model uses this file as its shard");
    return true;
}

static bool fail_changed(struct removal *removal, const struct zt_error *error)
{
    if (preconditions_are_given(&removal->preconditions))
        return failure_refuse(&removal->failure, PROBLEM_PRECONDITION_FAILED,
                              "the model was changed meanwhile");
    (void)failure_set(&removal->failure, PROBLEM_CONFLICT, error);
    removal->failure.is_passing = true;
    return false;
}

/* Only the version that was looked at. A split GGUF has no file but its parts. */
static bool remove_own(struct removal *removal, const struct model_hold *hold,
                       const struct generation *current)
{
    struct server *server = removal->server;
    const struct store_expected expected = {STORE_EXPECTS_VERSION, current->identity};
    struct zt_error error;
    enum zt_status status;

    if (generation_is_split(current))
        return true;
    status = server->store->ops->remove(server->store, current->path, &expected, &error);
    if (status == ZT_OK) {
        atomic_fetch_add(&server->files_changed, 1);
        generation_release(catalog_update(server->catalog, current->path));
        /* What lay behind is served at once. */
        generation_release(model_find_current(server, removal->name));
    }
    if (status == ZT_ARGUMENT)
        return fail_changed(removal, &error);
    if (status == ZT_UNAVAILABLE && hold->claim != NULL && hold->claim->has_doubt)
        return failure_refuse(&removal->failure, PROBLEM_STORE_UNAVAILABLE,
                              "the object store did not answer, so it is not known whether the "
                              "model was removed");
    return status == ZT_OK || status == ZT_NOT_FOUND || failure_of_store(&removal->failure, &error);
}

/* Nothing of a split GGUF is shown while its parts go; of other joined models the index is gone. */
static void remove_parts(struct server *server, const struct generation *model)
{
    struct catalog_withheld withheld = {.path = model->path};

    if (generation_is_split(model))
        catalog_withhold(server->catalog, &withheld);
    model_parts_remove(server, model);
    if (generation_is_split(model))
        catalog_let_go(server->catalog, &withheld);
}

static void run_removal(struct request *request)
{
    struct removal *removal = request->context;
    struct model_hold hold;
    struct generation *current;
    bool removed;

    if (!model_hold_take(&hold, removal->server, removal->name, &removal->failure))
        return;
    current = model_find_current(removal->server, removal->name);
    removed = model_is_current(&hold, current, &removal->failure) && check(removal, current) &&
              remove_own(removal, &hold, current);
    if (removed && !current->is_joined)
        remove_shards(removal->server, current);
    model_hold_release(&hold);
    /* Without the name: an index may name any file beside it, so that two removals could wait for
     * each other. */
    if (removed && current->is_joined)
        remove_parts(removal->server, current);
    generation_release(current);
}

/* --- the request --- */

void model_delete_begin(struct request *request)
{
    /* Any name that can be read: what was not uploaded may be removed too. */
    if (!write_refuse_read_only(request) && !model_name_is_valid(request->names[0]))
        problem_reply(request, PROBLEM_INVALID_NAME, "no model has such a name");
}

enum outcome model_delete_handle(struct request *request)
{
    struct removal *removal = request->context;

    if (removal == NULL) {
        removal = write_context(request, sizeof(*removal));
        if (removal == NULL)
            return OUTCOME_READY;
        removal->server = request->server;
        memcpy(removal->name, request->names[0].bytes, request->names[0].length);
        removal->preconditions = write_preconditions(request);
        return store_is_elsewhere(request->server->store) ? request_work_long(request, run_removal)
                                                          : request_work(request, run_removal);
    }
    if (removal->failure.is_set)
        return failure_reply(request, &removal->failure);
    reply_empty(request, 204);
    return OUTCOME_READY;
}
