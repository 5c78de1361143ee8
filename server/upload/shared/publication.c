/* Publication: validates the file, checks preconditions at the last moment, gives the file its
 * name, and removes the file that it replaces.
 *
 * Publications wait for the disk, so only those of the same name wait for each other. Of two that
 * may only create, exactly one succeeds. */
#include "upload/shared/publication.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/changes.h"
#include "base/log.h"
#include "base/server.h"
#include "http/fields/digest_fields.h"
#include "http/fields/uri.h"
#include "upload/shared/write_checks.h"
#include "verify/component_digests.h"
#include "verify/verifier.h"

/* A name, an extension, NUL. */
#define PATH_SIZE (MODEL_NAME_MAX + 16)

/* --- locks of names --- */

static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t name_released = PTHREAD_COND_INITIALIZER;
static struct name_lock *locked_names;

static bool is_locked(const char *name)
{
    const struct name_lock *lock = locked_names;

    while (lock != NULL && strcmp(lock->name, name) != 0)
        lock = lock->next;
    return lock != NULL;
}

void name_lock_take(struct name_lock *lock)
{
    pthread_mutex_lock(&names_lock);
    while (is_locked(lock->name))
        pthread_cond_wait(&name_released, &names_lock);
    lock->next = locked_names;
    locked_names = lock;
    pthread_mutex_unlock(&names_lock);
}

void name_lock_release(const struct name_lock *lock)
{
    struct name_lock **at;

    pthread_mutex_lock(&names_lock);
    at = &locked_names;
    while (*at != NULL && *at != lock)
        at = &(*at)->next;
    assert(*at == lock);
    *at = lock->next;
    assert(!is_locked(lock->name));
    pthread_cond_broadcast(&name_released);
    pthread_mutex_unlock(&names_lock);
}

/* --- preconditions --- */

/* If-Match also accepts the tags of the compressed manifest: a client that has read that has read
 * this version. */
static bool if_match_holds(const char *if_match, const struct generation *current)
{
    static const char *const codings[] = {NULL, "gzip", "zstd"};
    const struct preconditions only = {.if_match = if_match};

    if (current == NULL)
        return precondition_check(&only, NULL, 0, false) == PRECONDITION_PASS;
    for (size_t i = 0; i < sizeof(codings) / sizeof(codings[0]); i++) {
        char etag[GENERATION_ETAG_SIZE + 8];

        if (codings[i] != NULL)
            generation_etag(current, codings[i], etag, sizeof(etag));
        else
            snprintf(etag, sizeof(etag), "%s", current->etag);
        if (precondition_check(&only, etag, 0, false) == PRECONDITION_PASS)
            return true;
    }
    return false;
}

bool model_preconditions_hold(const struct preconditions *preconditions,
                              const struct generation *current)
{
    struct preconditions others = *preconditions;
    const char *etag;
    time_t modified;

    if (others.if_match != NULL) {
        if (!if_match_holds(others.if_match, current))
            return false;
        others.if_match = NULL;
        others.if_unmodified_since = NULL;
    }
    etag = current != NULL ? current->etag : NULL;
    modified = current != NULL ? generation_modified(current) : 0;
    return precondition_check(&others, etag, modified, false) == PRECONDITION_PASS;
}

struct generation *model_find_current(struct server *server, const char *name)
{
    for (unsigned rank = 0; model_extension(rank) != NULL; rank++) {
        char path[PATH_SIZE];
        struct generation *current;

        snprintf(path, sizeof(path), "%s%s", name, model_extension(rank));
        current = catalog_update(server->catalog, path);
        if (current != NULL)
            return current;
    }
    return NULL;
}

bool model_check_preconditions(struct server *server, const char *name,
                               const struct preconditions *preconditions, bool *out_exists,
                               struct failure *failure)
{
    struct generation *current;
    bool hold;

    *out_exists = false;
    if (!preconditions_are_given(preconditions))
        return true;
    current = model_find_current(server, name);
    hold = model_preconditions_hold(preconditions, current);
    *out_exists = current != NULL;
    generation_release(current);
    return hold || failure_refuse(failure, PROBLEM_PRECONDITION_FAILED,
                                  "the current model does not meet the request's preconditions");
}

/* --- the name --- */

/* First as a new file, which is atomic against any other writer; then, unless the request only
 * creates, over the old. */
static bool give_name(struct publication *publication, const char *path, bool exists,
                      struct failure *failure)
{
    const struct store_ops *ops = publication->server->store->ops;
    struct zt_error error;
    enum zt_status status = ops->publish(publication->stored, path, false, &error);

    if (status == ZT_ARGUMENT && publication->preconditions.if_none_match != NULL && !exists)
        return failure_refuse(failure, PROBLEM_PRECONDITION_FAILED, "the name was taken meanwhile");
    if (status == ZT_ARGUMENT) {
        publication->published.replaced = true;
        status = ops->publish(publication->stored, path, true, &error);
    }
    if (status == ZT_ARGUMENT)
        return failure_set(failure, PROBLEM_CONFLICT, &error);
    if (status != ZT_OK)
        return failure_of_store(failure, &error);
    publication->stored = NULL;
    return true;
}

/* A file of another format under the name would hide the new one, or appear when that is
 * removed. */
static void remove_others(struct publication *publication, const char *extension)
{
    struct server *server = publication->server;

    for (unsigned rank = 0; model_extension(rank) != NULL; rank++) {
        char path[PATH_SIZE];
        struct zt_error error;
        enum zt_status status;

        if (strcmp(model_extension(rank), extension) == 0)
            continue;
        snprintf(path, sizeof(path), "%s%s", publication->name, model_extension(rank));
        status = server->store->ops->remove(server->store, path, &error);
        if (status == ZT_OK) {
            publication->published.replaced = true;
            generation_release(catalog_update(server->catalog, path));
        } else if (status != ZT_NOT_FOUND) {
            log_write(LOG_LEVEL_WARN, "%s: replaced by %s%s, but not removed: %s", path,
                      publication->name, extension, error.message);
        }
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

    if (sha256 != NULL && compressed)
        decoded_digest_learn(generation, index, sha256);
    if (stored_digest_stated(generation, index, stated))
        return;
    if (sha256 != NULL && !compressed)
        stored_digest_learn(publication->server, generation, index, sha256);
    else
        stored_digest_want(publication->server, generation, index);
}

/* Those that the file itself does not state: clients ask for bytes by them, and answers state
 * them. */
static void share_sha256s(const struct publication *publication, struct generation *generation)
{
    const struct zt_model *model = generation->model;

    for (uint32_t i = 0; model != NULL && i < model->object_count; i++) {
        const struct zt_component *components = zt_object_components(model, &model->objects[i]);

        for (uint32_t j = 0; j < model->objects[i].component_count; j++)
            share_sha256(publication, generation, &model->objects[i], &components[j]);
    }
}

/* What was found out about the file goes to its generation, if that is the very file that was
 * checked: another may have been put in its place since. The time of change is not compared, since
 * publication changes it. */
static void share_findings(const struct publication *publication, const struct findings *findings,
                           struct generation *generation)
{
    const struct file_identity *mine = &findings->identity;
    const struct file_identity *shown = &generation->identity;

    if (!findings->has_identity || mine->device != shown->device || mine->inode != shown->inode ||
        mine->size_bytes != shown->size_bytes || mine->modified_ns != shown->modified_ns)
        return;
    if (findings->verdicts != NULL) {
        verifier_learn(publication->server->verifier, generation, findings->verdicts,
                       findings->verdict_count);
    }
    if (publication->decoded_sha256 != NULL)
        share_sha256s(publication, generation);
    memcpy(generation->file_sha256, publication->published.sha256, sizeof(generation->file_sha256));
    atomic_store(&generation->has_file_sha256, true);
    changes_note();
}

/* The model's file is there: the files it replaces go, and the catalog serves it from now on. */
static void make_visible(struct publication *publication, const struct findings *findings,
                         const char *path)
{
    struct generation *generation;

    assert(publication->stored == NULL);
    remove_others(publication, findings->extension);
    generation = catalog_update(publication->server->catalog, path);
    snprintf(publication->published.etag, sizeof(publication->published.etag), "%s",
             generation != NULL ? generation->etag : "");
    if (generation != NULL)
        share_findings(publication, findings, generation);
    generation_release(generation);
}

static bool publish(struct publication *publication, const struct findings *findings,
                    struct failure *failure)
{
    struct name_lock lock = {.name = publication->name};
    char path[PATH_SIZE];
    bool exists;
    bool published;

    snprintf(path, sizeof(path), "%s%s", publication->name, findings->extension);
    name_lock_take(&lock);
    published = model_check_preconditions(publication->server, publication->name,
                                          &publication->preconditions, &exists, failure) &&
                give_name(publication, path, exists, failure);
    if (published)
        make_visible(publication, findings, path);
    name_lock_release(&lock);
    return published;
}

bool publication_run(struct publication *publication, struct failure *failure)
{
    struct findings findings;
    bool published;

    assert(publication->stored != NULL);
    publication->published.replaced = false;
    published = publication_check(publication, &findings, failure) &&
                publish(publication, &findings, failure);
    free(findings.verdicts);
    assert(published == (publication->stored == NULL));
    return published;
}

/* --- the answer --- */

void published_reply_location(struct request *request, struct zt_text model)
{
    struct href href;

    href_init(&href);
    href_model(&href, model);
    representation_field(&request->reply, "Location",
                         href.failed ? NULL : request_print(request, "%s", href.text));
    href_free(&href);
}

void published_reply_digest(struct request *request, const struct published *published)
{
    char digest[DIGEST_FIELD_SIZE];

    digest_field_format(published->sha256, digest);
    representation_field(&request->reply, "Repr-Digest", request_print(request, "%s", digest));
    request->reply.etag =
        published->etag[0] != '\0' ? request_print(request, "%s", published->etag) : NULL;
}
