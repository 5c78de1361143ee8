/* Removes a model: first its own file, then the shards that no other model uses. If another file
 * has the same name, it is another model, which is served from then on.
 *
 * Requests that are reading one of the files have it open and are not disturbed. */
#include "upload/whole/delete.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/parameters.h"
#include "upload/shared/current_model.h"
#include "upload/shared/recorded.h"
#include "upload/shared/removal.h"
#include "upload/shared/write_checks.h"
#include "upload/whole/purge.h"

/* Number of models examined in one step. */
#define PAGE 256

struct removal {
    struct server *server;
    char name[MODEL_NAME_MAX + 1];
    struct preconditions preconditions; /* the texts belong to the request, which waits */
    char commit[HISTORY_COMMIT_SIZE];
    struct remains remains;
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

/* Returns true if any model in the catalog uses a file as its shard. Also returns true if there is
 * no memory to find out. */
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

/* Returns true if a file is the removed model's shard: it has no manifest (with one it would be a
 * model, to be removed by its own name), and it is unchanged since the model referred to it. */
static bool belongs(const struct generation *file, const struct shard_file *shard)
{
    return file != NULL && file->error->status == ZT_DATA_SHARD &&
           file->identity.size_bytes == shard->size_bytes &&
           (shard->path == NULL || store_identity_equal(&file->identity, &shard->identity));
}

static bool shard_may_go(struct server *server, const struct generation *file, const void *context)
{
    const struct shard_file *shard = context;

    assert(shard->path == NULL || strcmp(shard->path, shard->sibling) == 0);
    return belongs(file, shard) && !is_used(server, shard->sibling);
}

static void remove_shard(struct removal *removal, const struct shard_file *shard)
{
    const struct removal_member member = {shard->sibling, shard_may_go, shard};

    /* External data may be any file of the folder. A shard that was found under another path, by
     * its content, belongs to another model. */
    if (!shard->is_data && (shard->path == NULL || strcmp(shard->path, shard->sibling) == 0))
        removal_of_member(removal->server, &member, &removal->remains);
}

/* A shard's name is longer than its model's, so two removals cannot deadlock. */
static void remove_shards(struct removal *removal, const struct generation *model)
{
    assert(!model->is_joined);
    for (uint32_t i = 0; i < model->shards.count; i++)
        remove_shard(removal, &model->shards.items[i]);
}

/* --- the model --- */

static bool is_no_part(struct removal *removal, const char *path)
{
    static const struct name_filter any_name = {NULL, NULL};
    char model[MODEL_NAME_MAX + 1];

    return !catalog_part_of(removal->server->catalog, path, any_name, model) ||
           failure_refuse(&removal->failure, PROBLEM_CONFLICT,
                          "this is a part of the model %s: delete that model to remove it", model);
}

/* Parts are removed only with their model: without one part the others would be useless. The
 * extension of the current file may be spelled in capitals. */
static bool check_part(struct removal *removal, const struct generation *current)
{
    bool is_free;

    assert(current != NULL);
    is_free = is_no_part(removal, current->path);
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

/* Removes only the version that was examined. A split GGUF has no file except its parts. */
static bool remove_own(struct removal *removal, const struct publish_lock *lock,
                       const struct generation *current)
{
    struct server *server = removal->server;
    struct zt_error error;
    enum zt_status status;

    assert(!removal->failure.is_set);
    if (generation_is_split(current))
        return true;
    status =
        removal_of_version(server, current->path, &current->identity, &removal->remains, &error);
    if (status == ZT_OK) {
        atomic_fetch_add(&server->files_changed, 1);
        /* A file that was hidden behind it is served at once. */
        generation_release(model_find_current(server, removal->name));
    }
    return status == ZT_OK || status == ZT_NOT_FOUND ||
           publish_lock_fail(lock, &removal->preconditions, &error, "removed", &removal->failure);
}

/* While its parts are removed, a split GGUF is not shown; other joined models have already lost
 * their index. */
static void remove_parts(struct removal *removal, const struct generation *model)
{
    struct server *server = removal->server;
    struct catalog_withheld withheld = {.path = model->path};

    assert(model->is_joined);
    if (generation_is_split(model))
        catalog_withhold(server->catalog, &withheld);
    removal_of_parts(server, model, &removal->remains);
    if (generation_is_split(model))
        catalog_let_go(server->catalog, &withheld);
}

/* Returns true if the model's own file was removed. */
static bool remove_model(struct removal *removal)
{
    const uint64_t failed_before = failed_lookups_count();
    struct publish_lock lock;
    struct generation *current;
    bool removed;

    assert(!removal->failure.is_set && removal->name[0] != '\0');
    if (!publish_lock_take(&lock, removal->server, removal->name, &removal->failure))
        return false;
    current = model_find_current(removal->server, removal->name);
    removed = model_reads_succeeded(failed_before, &removal->failure) &&
              model_is_current(&lock, current, &removal->failure) && check(removal, current) &&
              remove_own(removal, &lock, current);
    if (removed && !current->is_joined)
        remove_shards(removal, current);
    publish_lock_release(&lock);
    /* Called without the lock on the name: an index may name any file in its folder, so two
     * removals could wait for each other. */
    if (removed && current->is_joined)
        remove_parts(removal, current);
    generation_release(current);
    return removed;
}

static void remove_recorded(struct request *request, bool purges)
{
    struct removal *removal = request->context;
    struct recorded recorded;
    bool is_commit;

    if (!recorded_begin(&recorded, removal->server, removal->name, false, &removal->failure))
        return;
    is_commit = remove_model(removal);
    if (is_commit)
        (void)remains_fail(&removal->remains, "removed", &removal->failure);
    /* The files that are left get a new first commit. */
    if (purges && purge_run(removal->server, &recorded.recording.repo, &removal->failure))
        is_commit = true;
    recorded_end(&recorded, is_commit, request->client, purges ? "Purge" : "Delete", removal->name,
                 removal->commit);
}

static void run_removal(struct request *request)
{
    remove_recorded(request, false);
}

static void run_purge(struct request *request)
{
    struct removal *removal = request->context;

    if (purge_may_begin(request, removal->name, &removal->failure))
        remove_recorded(request, true);
}

/* --- the request --- */

static enum outcome run(struct request *request, void (*work)(struct request *request))
{
    return recorded_is_long(request->server) ? request_work_long(request, work)
                                             : request_work(request, work);
}

void model_delete_begin(struct request *request)
{
    bool purges = false;

    if (write_refuse_read_only(request))
        return;
    /* Accepts any name that can be read: models that were not uploaded may be removed too. */
    if (!model_name_is_valid(request->names[0]))
        problem_reply(request, PROBLEM_INVALID_NAME, "this cannot be the name of a model");
    else if (parameter_switch(request, "purge", &purges) && purges)
        (void)purge_refuse(request);
}

enum outcome model_delete_handle(struct request *request)
{
    struct removal *removal = request->context;
    bool purges = false;

    if (removal == NULL) {
        removal = request_new_context(request, sizeof(*removal));
        if (removal == NULL)
            return OUTCOME_READY;
        removal->server = request->server;
        memcpy(removal->name, request->names[0].bytes, request->names[0].length);
        removal->preconditions = write_preconditions(request);
        if (!parameter_switch(request, "purge", &purges))
            return OUTCOME_READY;
        if (purges)
            return request_work_long(request, run_purge);
        return run(request, run_removal);
    }
    if (removal->failure.is_set)
        return failure_reply(request, &removal->failure);
    reply_empty(request, 204);
    recorded_reply(request, removal->commit);
    return OUTCOME_READY;
}

/* --- a file at a path; models that need it as a shard or part are then incomplete --- */

struct file_removal {
    char path[MODEL_NAME_MAX + 1];
    struct preconditions preconditions; /* the texts belong to the request, which waits */
    char commit[HISTORY_COMMIT_SIZE];
    struct failure failure;
};

static void run_file_removal(struct request *request)
{
    struct file_removal *removal = request->context;
    struct remains remains = {.is_unsynced = false};
    struct recorded recorded;
    bool removed;

    assert(!removal->failure.is_set && removal->path[0] != '\0');
    if (!recorded_begin(&recorded, request->server, removal->path, true, &removal->failure))
        return;
    removed = removal_of_file(request->server, removal->path, &removal->preconditions, &remains,
                              &removal->failure);
    recorded_end(&recorded, removed, request->client, "Delete", removal->path, removal->commit);
    if (removed)
        (void)remains_fail(&remains, "removed", &removal->failure);
}

void file_delete_begin(struct request *request)
{
    if (!write_refuse_read_only(request))
        (void)write_refuse_file_path(request, request->names[0]);
}

enum outcome file_delete_handle(struct request *request)
{
    struct file_removal *removal = request->context;

    if (removal == NULL) {
        removal = request_new_context(request, sizeof(*removal));
        if (removal == NULL)
            return OUTCOME_READY;
        memcpy(removal->path, request->names[0].bytes, request->names[0].length);
        removal->preconditions = write_preconditions(request);
        return run(request, run_file_removal);
    }
    if (removal->failure.is_set)
        return failure_reply(request, &removal->failure);
    reply_empty(request, 204);
    recorded_reply(request, removal->commit);
    return OUTCOME_READY;
}
