/* Publishes: checks the preconditions at the last moment, gives the file its name, and removes the
 * file that it replaces.
 *
 * Publications wait for the disk, so only publications under the same name wait for each other. If
 * two requests may only create the same model, exactly one succeeds. */
#include "upload/shared/publication.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/changes.h"
#include "base/log.h"
#include "base/server.h"
#include "digests/file_hashes.h"
#include "upload/shared/current_model.h"
#include "upload/shared/publish_lock.h"
#include "upload/shared/recorded.h"
#include "upload/shared/removal.h"
#include "upload/shared/write_checks.h"
#include "verify/component_digests.h"
#include "verify/verifier.h"

/* How many changes by writers without a claim are tolerated during one publication. */
#define CHANGES_MOST 3

/* --- the name --- */

/* Tries to create a new file first, which is atomic against any other writer. Then replaces the old
 * file, unless the request may only create. */
static bool give_name_in_folder(struct publication *publication, const char *path, bool exists,
                                struct failure *failure)
{
    const struct store_ops *ops = publication->server->store->ops;
    const struct store_expected anything = {.what = STORE_EXPECTS_ANYTHING,
                                            .sha256 = publication->published.sha256};
    struct zt_error error;
    enum zt_status status = ops->publish(publication->server->store, publication->stored, path,
                                         &store_expects_nothing, &error);

    assert(!store_needs_claims(publication->server->store));
    if (status == ZT_ARGUMENT && publication->preconditions.if_none_match != NULL && !exists)
        return failure_refuse(failure, PROBLEM_PRECONDITION_FAILED, "the name was taken meanwhile");
    if (status == ZT_ARGUMENT) {
        publication->published.replaced = true;
        status =
            ops->publish(publication->server->store, publication->stored, path, &anything, &error);
    }
    if (status == ZT_ARGUMENT)
        return failure_set(failure, PROBLEM_CONFLICT, &error);
    return status == ZT_OK || failure_of_store(failure, &error);
}

/* Replaces exactly the version that was just found, so that a late writer, or one that takes no
 * claim, does not overwrite a newer file. Without preconditions, the request accepts any version
 * and is retried. */
static bool give_name_in_bucket(struct publication *publication, const struct publish_lock *lock,
                                const char *path, struct failure *failure)
{
    const struct store_ops *ops = publication->server->store->ops;
    enum zt_status status = ZT_ARGUMENT;
    struct zt_error error;

    assert(store_needs_claims(publication->server->store) && lock->claim != NULL);
    for (unsigned i = 0; i < CHANGES_MOST && status == ZT_ARGUMENT; i++) {
        struct store_expected expected;

        if (!publish_lock_find(lock, path, &expected, failure))
            return false;
        expected.sha256 = publication->published.sha256;
        publication->published.replaced = expected.what == STORE_EXPECTS_VERSION;
        status =
            ops->publish(publication->server->store, publication->stored, path, &expected, &error);
        if (preconditions_are_given(&publication->preconditions))
            break;
    }
    return status == ZT_OK ||
           publish_lock_fail(lock, &publication->preconditions, &error, "published", failure);
}

/* exists: whether the preconditions were checked against an existing model. Sets stored to NULL on
 * success. */
static bool give_name(struct publication *publication, const struct publish_lock *lock,
                      const char *path, bool exists, struct failure *failure)
{
    struct published *published = &publication->published;

    assert(publication->stored != NULL && lock->store == publication->server->store);
    if (!(lock->claim != NULL ? give_name_in_bucket(publication, lock, path, failure)
                              : give_name_in_folder(publication, path, exists, failure)))
        return false;
    publication->stored = NULL;
    remains_settle(&published->remains, publication->server->store, path, "published");
    return true;
}

static void note_replaced(struct remains *remains, const struct generation *replaced,
                          const char *name)
{
    snprintf(remains->replaced, sizeof(remains->replaced), "%s", replaced->path + strlen(name));
    remains->replaced_identity = replaced->identity;
    remains_note();
}

/* Removes the old model's file if it has another extension: it would hide the new model, or
 * reappear when that is removed. It is only removed if it is unchanged. */
static void remove_replaced(struct publication *publication, const struct generation *replaced,
                            const char *path)
{
    struct remains *remains = &publication->published.remains;
    struct zt_error error;
    enum zt_status status;

    assert(publication->stored == NULL);
    if (strcmp(replaced->path, path) == 0)
        return;
    status = removal_of_version(publication->server, replaced->path, &replaced->identity, remains,
                                &error);
    if (status == ZT_OK) {
        publication->published.replaced = true;
    } else if (status != ZT_NOT_FOUND) {
        log_write(LOG_LEVEL_WARN, "%s: replaced by %s, but not removed: %s", replaced->path, path,
                  error.message);
        note_replaced(remains, replaced, publication->name);
    }
}

static void share_sha256(const struct publication *publication, struct generation *generation,
                         const struct zt_object *object, const struct zt_component *component)
{
    uint32_t index = zt_component_index(generation->model, component);
    uint8_t stated[32];
    bool compressed;
    const uint8_t *sha256 = publication->decoded_sha256(
        publication->context, zt_object_name(object), zt_component_name(component), &compressed);

    assert(publication->decoded_sha256 != NULL && index < generation->model->component_count);
    if (sha256 != NULL && compressed)
        decoded_digest_learn(generation, index, sha256);
    if (stored_digest_stated(generation, index, stated))
        return;
    if (sha256 != NULL && !compressed)
        stored_digest_learn(publication->server, generation, index, sha256);
    else
        stored_digest_want(publication->server, generation, index);
}

/* Records SHA-256 digests that the file does not contain; clients request bytes by them, and
 * responses contain them. */
static void share_sha256s(const struct publication *publication, struct generation *generation)
{
    const struct zt_model *model = generation->model;

    for (uint32_t i = 0; model != NULL && i < model->object_count; i++) {
        const struct zt_component *components = zt_object_components(model, &model->objects[i]);

        for (uint32_t j = 0; j < model->objects[i].component_count; j++)
            share_sha256(publication, generation, &model->objects[i], &components[j]);
    }
}

/* Returns true if the file found under the name is the checked one; another writer may have
 * replaced it since. In a folder the change time is not compared, because publication changes
 * it. */
static bool is_shown(const struct publication *publication, const struct publish_lock *lock,
                     const struct file_identity *shown)
{
    const struct file_identity *mine = &publication->identity;

    if (lock->claim != NULL)
        return lock->claim->has_published && store_identity_equal(&lock->claim->published, shown);
    return publication->has_identity && mine->device == shown->device &&
           mine->inode == shown->inode && mine->size_bytes == shown->size_bytes &&
           mine->modified_ns == shown->modified_ns;
}

/* Gives the results of the check to the file's generation. */
static void share_statistics(const struct publication *publication, struct generation *generation)
{
    file_hashes_keep(publication->server->hashes, generation->path, &generation->identity,
                     publication->published.sha256);
    /* This also saves the file's digest. */
    if (publication->verdicts != NULL) {
        verifier_learn(publication->server->verifier, generation, publication->verdicts,
                       publication->verdict_count);
    }
    if (publication->decoded_sha256 != NULL)
        share_sha256s(publication, generation);
    changes_note();
}

/* Updates the catalog, so that the model is served, and shares the results of the check. The name
 * must be locked. */
static void show_model(struct publication *publication, const struct publish_lock *lock,
                       const char *path)
{
    struct generation *generation;
    bool is_mine;

    assert(publication->stored == NULL);
    generation = catalog_update(publication->server->catalog, path);
    is_mine = generation != NULL && is_shown(publication, lock, &generation->identity);
    /* The catalog may still have the bucket's previous version. */
    snprintf(publication->published.etag, sizeof(publication->published.etag), "%s",
             is_mine || (generation != NULL && lock->claim == NULL) ? generation->etag : "");
    if (is_mine)
        share_statistics(publication, generation);
    atomic_fetch_add(&publication->server->files_changed, 1);
    generation_release(generation);
}

static bool refuse_other_format(const struct publication *publication, const char *path,
                                struct failure *failure)
{
    return model_file_is_not_a_model(publication->server, path) &&
           !failure_refuse(failure, PROBLEM_CONFLICT,
                           "the file %s is not a model, so it is not replaced", path);
}

static bool fail_shadowed(const char *path, struct failure *failure)
{
    return failure_refuse(failure, PROBLEM_CONFLICT, MODEL_SHADOWED, path);
}

/* Returns true if an earlier attempt has already published this file, but could not remove the file
 * that it replaces. */
static bool is_from_before(const struct publication *publication, const struct generation *file,
                           const char *own_path)
{
    uint8_t sha256[32];

    return remains_were_noted() && strcmp(file->path, own_path) == 0 &&
           write_file_sha256(publication->server, file, sha256) &&
           memcmp(sha256, publication->published.sha256, sizeof(sha256)) == 0;
}

/* Finds the file that currently has the name and will be replaced; NULL if there is none. Returns
 * false if a second file has the name: it would be lost, or hidden by the new one. */
static bool find_replaced(const struct publication *publication, const char *own_path,
                          struct generation **out_replaced, struct failure *failure)
{
    char path[MODEL_PATH_SIZE];
    bool is_alone = true;

    *out_replaced = model_find_uppercase(publication->server, publication->name);
    for (unsigned rank = 0; is_alone && model_file_path(publication->name, rank, path); rank++) {
        struct generation *file;

        file = catalog_update(publication->server->catalog, path);
        if (file == NULL || generation_is_not_a_model(file) ||
            is_from_before(publication, file, own_path)) {
            generation_release(file);
            continue;
        }
        is_alone = *out_replaced == NULL || fail_shadowed(path, failure);
        generation_release(*out_replaced);
        *out_replaced = file;
    }
    return is_alone;
}

/* Returns true if an earlier attempt has already published this file. The file that it could not
 * remove may then be hidden behind it. */
static bool is_repeated(const struct publication *publication, const char *own_path)
{
    struct generation *own = catalog_update(publication->server->catalog, own_path);
    const bool is_same = own != NULL && is_from_before(publication, own, own_path);

    generation_release(own);
    return is_same;
}

static bool refuse_shadowed(const struct publication *publication, const char *own_path,
                            struct failure *failure)
{
    char path[MODEL_PATH_SIZE];

    return !is_repeated(publication, own_path) &&
           model_find_shadowed(publication->server, publication->name, path) &&
           !fail_shadowed(path, failure);
}

/* Checks the preconditions for the second time: before the body, only the catalog was asked, and
 * another writer may have published since. */
static bool publish_model(struct publication *publication, const char *path,
                          struct failure *failure)
{
    const uint64_t failed_before = failed_lookups_count();
    struct generation *before;
    struct generation *replaced = NULL;
    struct publish_lock lock;
    bool exists;
    bool published;

    assert(!publication->is_file);
    if (!publish_lock_take(&lock, publication->server, publication->name, failure))
        return false;
    before = model_parts_of(publication->server, publication->name);
    published = model_check_preconditions(publication->server, &lock, publication->name,
                                          &publication->preconditions, &exists, failure) &&
                !refuse_other_format(publication, path, failure) &&
                !refuse_shadowed(publication, path, failure) &&
                find_replaced(publication, path, &replaced, failure) &&
                model_reads_succeeded(failed_before, failure) &&
                give_name(publication, &lock, path, exists, failure);
    if (published && replaced != NULL)
        remove_replaced(publication, replaced, path);
    if (published)
        show_model(publication, &lock, path);
    publish_lock_release(&lock);
    generation_release(replaced);
    if (published && before != NULL) {
        publication->published.replaced = true;
        removal_of_parts(publication->server, before, &publication->published.remains);
    }
    generation_release(before);
    return published;
}

/* --- files at paths --- */

static void show_file(struct publication *publication, const struct publish_lock *lock)
{
    struct server *server = publication->server;
    struct current_file found;
    struct failure ignored = {.is_set = false};

    assert(publication->is_file && publication->stored == NULL);
    if (publication->model[0] != '\0')
        show_model(publication, lock, publication->name);
    file_note_changed(server);
    publication->published.etag[0] = '\0';
    if (!file_find_current(server, publication->name, &found, &ignored) || !found.exists)
        return;
    /* Another writer may have replaced the file. */
    if (!is_shown(publication, lock, &found.identity))
        return;
    snprintf(publication->published.etag, sizeof(publication->published.etag), "%s", found.etag);
    publication->published.identity = found.identity;
    file_hashes_keep(server->hashes, publication->name, &found.identity,
                     publication->published.sha256);
}

static bool publish_file(struct publication *publication, struct failure *failure)
{
    struct server *server = publication->server;
    const char *path = publication->name;
    struct current_file found;
    struct publish_lock lock;
    bool published;

    assert(publication->is_file);
    if (!publish_lock_take_path(&lock, server, path, failure))
        return false;
    published = file_find_current(server, path, &found, failure) &&
                file_check_preconditions(&publication->preconditions, &found, failure) &&
                give_name(publication, &lock, path, found.exists, failure);
    if (published)
        show_file(publication, &lock);
    publish_lock_release(&lock);
    return published;
}

/* --- models and files --- */

/* Does the slow part while other writers may still use the name. */
static bool prepare(const struct publication *publication, const char *path,
                    struct failure *failure)
{
    struct store *store = publication->server->store;
    struct zt_error error;

    assert(publication->stored != NULL);
    return !store_needs_claims(store) ||
           store->claims->prepare(store, publication->stored, path, publication->published.sha256,
                                  &error) == ZT_OK ||
           failure_of_store(failure, &error);
}

bool publication_publish(struct publication *publication, struct failure *failure)
{
    char path[MODEL_PATH_SIZE];

    assert(publication->stored != NULL && (publication->is_file || publication->extension != NULL));
    publication->published.replaced = false;
    publication->published.remains = (struct remains){.is_unsynced = false};
    if (publication->is_file)
        return prepare(publication, publication->name, failure) &&
               publish_file(publication, failure);
    snprintf(path, sizeof(path), "%s%s", publication->name, publication->extension);
    return prepare(publication, path, failure) && publish_model(publication, path, failure);
}

/* Publishes as one commit of the repository. */
static bool publish_recorded(struct publication *publication, struct failure *failure)
{
    const char *action = publication->action != NULL ? publication->action : "Upload";
    char path[MODEL_PATH_SIZE];
    struct recorded recorded;
    bool published;

    snprintf(path, sizeof(path), "%s%s", publication->name,
             publication->is_file ? "" : publication->extension);
    /* Other servers wait for the repository, so the slow part comes first. */
    if (!prepare(publication, path, failure) ||
        !recorded_begin(&recorded, publication->server, publication->name, publication->is_file,
                        failure))
        return false;
    published = publication_publish(publication, failure);
    recorded_end(&recorded, published, publication->client, action, path,
                 publication->published.commit);
    return published;
}

bool publication_run(struct publication *publication, struct failure *failure)
{
    const bool published =
        publication_check(publication, failure) && publish_recorded(publication, failure);

    publication_clear(publication);
    assert(published == (publication->stored == NULL));
    return published;
}

/* --- unfinished work of a publication --- */

/* Removes the replaced file if it is still the same. */
static void remove_remaining(struct server *server, const char *name, struct remains *remains)
{
    struct store_expected found;
    struct zt_error error;
    struct failure failure = {.is_set = false};
    struct publish_lock lock;
    char path[MODEL_PATH_SIZE];
    enum zt_status status = ZT_NOT_FOUND;

    snprintf(path, sizeof(path), "%s%s", name, remains->replaced);
    if (!publish_lock_take(&lock, server, name, &failure))
        return;
    if (publish_lock_find(&lock, path, &found, &failure)) {
        if (found.what == STORE_EXPECTS_VERSION &&
            store_identity_equal(&found.identity, &remains->replaced_identity))
            status = server->store->ops->remove(server->store, path, &found, &error);
        if (status == ZT_OK || status == ZT_NOT_FOUND) {
            remains->replaced[0] = '\0';
            generation_release(catalog_update(server->catalog, path));
        }
    }
    publish_lock_release(&lock);
}

static void complete_removal(struct server *server, const char *name, struct remains *remains)
{
    struct failure failure = {.is_set = false};
    char commit[HISTORY_COMMIT_SIZE];
    char path[MODEL_PATH_SIZE];
    struct recorded recorded;

    if (!recorded_begin(&recorded, server, name, false, &failure))
        return;
    snprintf(path, sizeof(path), "%s%s", name, remains->replaced);
    remove_remaining(server, name, remains);
    recorded_end(&recorded, remains->replaced[0] == '\0', NULL, "Delete", path, commit);
}

void publication_settle(struct server *server, const char *name, struct published *published)
{
    struct remains *remains = &published->remains;

    if (!remains->is_unsynced)
        return;
    remains->is_unsynced = false;
    remains_settle(remains, server->store, name, "published");
}

void publication_complete(struct server *server, const char *name, struct published *published)
{
    struct remains *remains = &published->remains;

    /* These files have other names, so no retry would find them. */
    remains->has_files = false;
    if (remains->replaced[0] != '\0') {
        remains->is_unsynced = true;
        complete_removal(server, name, remains);
    }
    publication_settle(server, name, published);
}
