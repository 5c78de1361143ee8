/* Publication: validates the file, checks preconditions at the last moment, gives the file its
 * name, and removes the file that it replaces.
 *
 * Publications wait for the disk, so only those of the same name wait for each other. Of two that
 * may only create, exactly one succeeds. */
#include "upload/shared/publication.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/changes.h"
#include "base/log.h"
#include "base/server.h"
#include "http/fields/digest_fields.h"
#include "http/fields/uri.h"
#include "tree/file_hashes.h"
#include "upload/shared/model_hold.h"
#include "upload/shared/model_parts.h"
#include "upload/shared/write_checks.h"
#include "verify/component_digests.h"
#include "verify/verifier.h"

/* Changes by writers that do not ask for claims, while one writer tries to publish. */
#define CHANGES_MOST 3

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

bool model_file_is_foreign(struct server *server, const char *path)
{
    struct generation *file =
        model_path_is_vague(path) ? catalog_update(server->catalog, path) : NULL;
    const bool is_foreign = file != NULL && generation_is_foreign(file);

    generation_release(file);
    return is_foreign;
}

/* A model whose file has its extension in other letters ("a.NPY"); NULL if there is none. */
static struct generation *find_odd(struct server *server, const char *name)
{
    struct generation *odd = catalog_update_odd(server->catalog, zt_text_from(name));

    if (odd == NULL || !generation_is_foreign(odd))
        return odd;
    generation_release(odd);
    return NULL;
}

static bool is_of_rank(const struct generation *odd, unsigned rank)
{
    size_t length;
    unsigned found;

    return odd != NULL && model_path_split(odd->path, &length, &found) && found == rank;
}

struct generation *model_find_current(struct server *server, const char *name)
{
    struct generation *odd = find_odd(server, name);

    for (unsigned rank = 0; model_extension(rank) != NULL; rank++) {
        char path[MODEL_PATH_SIZE];
        struct generation *current;

        snprintf(path, sizeof(path), "%s%s", name, model_extension(rank));
        current = catalog_update(server->catalog, path);
        if (current != NULL && !generation_is_foreign(current)) {
            generation_release(odd);
            return current;
        }
        generation_release(current);
        if (is_of_rank(odd, rank))
            return odd;
    }
    generation_release(odd);
    return catalog_update_split(server->catalog, zt_text_from(name));
}

/* Whether the store has exactly this under a path: a version, or nothing. */
static bool is_there(const struct model_hold *hold, const char *path,
                     const struct file_identity *identity, struct failure *failure)
{
    struct store_expected found;

    if (!model_hold_look(hold, path, &found, failure))
        return false;
    if (identity == NULL ? found.what == STORE_EXPECTS_NOTHING
                         : found.what == STORE_EXPECTS_VERSION &&
                               store_identity_equal(identity, &found.identity))
        return true;
    return failure_refuse(failure, PROBLEM_STORE_UNAVAILABLE,
                          "the current model cannot be read from the object store");
}

bool model_is_current(const struct model_hold *hold, const struct generation *current,
                      struct failure *failure)
{
    if (hold->claim == NULL)
        return true;
    /* A split GGUF's files have other names, and other claims. */
    if (current != NULL && generation_is_split(current))
        return true;
    if (current != NULL)
        return is_there(hold, current->path, &current->identity, failure);
    for (unsigned rank = 0; model_extension(rank) != NULL; rank++) {
        char path[MODEL_PATH_SIZE];

        snprintf(path, sizeof(path), "%s%s", hold->lock.name, model_extension(rank));
        if (!is_there(hold, path, NULL, failure))
            return false;
    }
    return true;
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
static bool give_name_in_folder(struct publication *publication, const char *path, bool exists,
                                struct failure *failure)
{
    const struct store_ops *ops = publication->server->store->ops;
    struct zt_error error;
    enum zt_status status = ops->publish(publication->stored, path, &store_expects_nothing, &error);

    if (status == ZT_ARGUMENT && publication->preconditions.if_none_match != NULL && !exists)
        return failure_refuse(failure, PROBLEM_PRECONDITION_FAILED, "the name was taken meanwhile");
    if (status == ZT_ARGUMENT) {
        publication->published.replaced = true;
        status = ops->publish(publication->stored, path, &store_expects_anything, &error);
    }
    if (status == ZT_ARGUMENT)
        return failure_set(failure, PROBLEM_CONFLICT, &error);
    if (status != ZT_OK)
        return failure_of_store(failure, &error);
    publication->stored = NULL;
    return true;
}

static bool fail_changed(struct publication *publication, struct failure *failure,
                         const struct zt_error *error)
{
    if (preconditions_are_given(&publication->preconditions))
        return failure_refuse(failure, PROBLEM_PRECONDITION_FAILED,
                              "the model was changed meanwhile");
    (void)failure_set(failure, PROBLEM_CONFLICT, error);
    failure->is_passing = true;
    return false;
}

/* Over what is there, and nothing else: so a writer that was too slow does no harm, nor do those
 * that ask for no claim. A request without preconditions is for whatever is there. */
static bool give_name_in_bucket(struct publication *publication, const struct model_hold *hold,
                                const char *path, struct failure *failure)
{
    const struct store_ops *ops = publication->server->store->ops;
    enum zt_status status = ZT_ARGUMENT;
    struct zt_error error;

    for (unsigned i = 0; i < CHANGES_MOST && status == ZT_ARGUMENT; i++) {
        struct store_expected expected;

        if (!model_hold_look(hold, path, &expected, failure))
            return false;
        publication->published.replaced = expected.what == STORE_EXPECTS_VERSION;
        status = ops->publish(publication->stored, path, &expected, &error);
        if (preconditions_are_given(&publication->preconditions))
            break;
    }
    if (status == ZT_ARGUMENT)
        return fail_changed(publication, failure, &error);
    if (status == ZT_UNAVAILABLE && hold->claim->has_doubt)
        return failure_refuse(failure, PROBLEM_STORE_UNAVAILABLE,
                              "the object store did not answer, so it is not known whether the "
                              "model was published");
    if (status != ZT_OK)
        return failure_of_store(failure, &error);
    publication->stored = NULL;
    return true;
}

bool publication_give_name(struct publication *publication, const struct model_hold *hold,
                           const char *path, bool exists, struct failure *failure)
{
    return hold->claim != NULL ? give_name_in_bucket(publication, hold, path, failure)
                               : give_name_in_folder(publication, path, exists, failure);
}

/* The file of the model that is replaced would hide the new one, or appear when that is removed. It
 * goes only if it is still the one that was looked at. */
static void remove_replaced(struct publication *publication, const struct generation *replaced,
                            const char *path)
{
    struct server *server = publication->server;
    const struct store_expected expected = {STORE_EXPECTS_VERSION, replaced->identity};
    struct zt_error error;
    enum zt_status status;

    if (strcmp(replaced->path, path) == 0)
        return;
    status = server->store->ops->remove(server->store, replaced->path, &expected, &error);
    if (status == ZT_OK) {
        publication->published.replaced = true;
        generation_release(catalog_update(server->catalog, replaced->path));
    } else if (status != ZT_NOT_FOUND) {
        log_write(LOG_LEVEL_WARN, "%s: replaced by %s, but not removed: %s", replaced->path, path,
                  error.message);
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

bool publication_is_shown(const struct findings *findings, const struct store_claim *claim,
                          const struct file_identity *shown)
{
    const struct file_identity *mine = &findings->identity;

    if (claim != NULL)
        return claim->has_published && store_identity_equal(&claim->published, shown);
    return findings->has_identity && mine->device == shown->device && mine->inode == shown->inode &&
           mine->size_bytes == shown->size_bytes && mine->modified_ns == shown->modified_ns;
}

/* What was found out about the file goes to its generation. */
static void share_findings(const struct publication *publication, const struct findings *findings,
                           struct generation *generation)
{
    memcpy(generation->file_sha256, publication->published.sha256, sizeof(generation->file_sha256));
    atomic_store(&generation->has_file_sha256, true);
    /* Saves the file's own digest too. */
    if (findings->verdicts != NULL) {
        verifier_learn(publication->server->verifier, generation, findings->verdicts,
                       findings->verdict_count);
    }
    if (publication->decoded_sha256 != NULL)
        share_sha256s(publication, generation);
    file_hashes_keep(publication->server->hashes, generation->path, &generation->identity,
                     generation->file_sha256);
    changes_note();
}

void publication_show(struct publication *publication, const struct findings *findings,
                      const struct model_hold *hold, const char *path)
{
    struct generation *generation;
    bool is_mine;

    assert(publication->stored == NULL);
    generation = catalog_update(publication->server->catalog, path);
    is_mine =
        generation != NULL && publication_is_shown(findings, hold->claim, &generation->identity);
    /* What a bucket has now may not be known yet, and the catalog still have what was replaced. */
    snprintf(publication->published.etag, sizeof(publication->published.etag), "%s",
             is_mine || (generation != NULL && hold->claim == NULL) ? generation->etag : "");
    if (is_mine)
        share_findings(publication, findings, generation);
    atomic_fetch_add(&publication->server->files_changed, 1);
    generation_release(generation);
}

/* The model's file is there: the one that it replaces goes. */
static void make_visible(struct publication *publication, const struct findings *findings,
                         const struct model_hold *hold, const char *path,
                         const struct generation *replaced)
{
    if (replaced != NULL)
        remove_replaced(publication, replaced, path);
    publication_show(publication, findings, hold, path);
}

static bool check_held(const struct publication *publication, const struct model_hold *hold,
                       bool *out_exists, struct failure *failure)
{
    struct server *server = publication->server;
    struct generation *current;
    bool is_sure;

    if (hold->claim != NULL && preconditions_are_given(&publication->preconditions)) {
        current = model_find_current(server, publication->name);
        is_sure = model_is_current(hold, current, failure);
        generation_release(current);
        if (!is_sure)
            return false;
    }
    return model_check_preconditions(server, publication->name, &publication->preconditions,
                                     out_exists, failure);
}

static bool refuse_foreign(const struct publication *publication, const char *path,
                           struct failure *failure)
{
    return model_file_is_foreign(publication->server, path) &&
           !failure_refuse(failure, PROBLEM_CONFLICT,
                           "the file %s is no model, so it is not replaced", path);
}

static bool fail_behind(const char *path, struct failure *failure)
{
    return failure_refuse(failure, PROBLEM_CONFLICT, MODEL_BEHIND, path);
}

/* Finds the file that the name stands for, which is replaced; NULL if there is none. False if yet
 * another one has the name: it would be lost, or hidden by what is published. */
static bool find_replaced(const struct publication *publication, struct generation **out_replaced,
                          struct failure *failure)
{
    bool is_alone = true;

    *out_replaced = find_odd(publication->server, publication->name);
    for (unsigned rank = 0; is_alone && model_extension(rank) != NULL; rank++) {
        char path[MODEL_PATH_SIZE];
        struct generation *file;

        snprintf(path, sizeof(path), "%s%s", publication->name, model_extension(rank));
        file = catalog_update(publication->server->catalog, path);
        if (file == NULL || generation_is_foreign(file)) {
            generation_release(file);
            continue;
        }
        is_alone = *out_replaced == NULL || fail_behind(path, failure);
        generation_release(*out_replaced);
        *out_replaced = file;
    }
    return is_alone;
}

static bool refuse_behind(const struct publication *publication, struct failure *failure)
{
    char path[MODEL_PATH_SIZE];

    return model_parts_lie_behind(publication->server, publication->name, path) &&
           !fail_behind(path, failure);
}

static bool publish(struct publication *publication, const struct findings *findings,
                    const char *path, struct failure *failure)
{
    struct generation *before;
    struct generation *replaced = NULL;
    struct model_hold hold;
    bool exists;
    bool published;

    if (!model_hold_take(&hold, publication->server, publication->name, failure))
        return false;
    before = model_parts_of(publication->server, publication->name);
    published = check_held(publication, &hold, &exists, failure) &&
                !refuse_foreign(publication, path, failure) &&
                !refuse_behind(publication, failure) &&
                find_replaced(publication, &replaced, failure) &&
                publication_give_name(publication, &hold, path, exists, failure);
    if (published)
        make_visible(publication, findings, &hold, path, replaced);
    model_hold_release(&hold);
    generation_release(replaced);
    if (published && before != NULL) {
        publication->published.replaced = true;
        model_parts_remove(publication->server, before);
    }
    generation_release(before);
    return published;
}

bool publication_prepare(struct publication *publication, const char *path, struct failure *failure)
{
    struct store *store = publication->server->store;
    struct zt_error error;

    return !store_is_elsewhere(store) ||
           store->ops->prepare(publication->stored, path, publication->published.sha256, &error) ==
               ZT_OK ||
           failure_of_store(failure, &error);
}

static bool check_and_publish(struct publication *publication, struct findings *findings,
                              struct failure *failure)
{
    char path[MODEL_PATH_SIZE];

    if (!publication_check(publication, findings, failure))
        return false;
    snprintf(path, sizeof(path), "%s%s", publication->name, findings->extension);
    return publication_prepare(publication, path, failure) &&
           publish(publication, findings, path, failure);
}

bool publication_run(struct publication *publication, struct failure *failure)
{
    struct findings findings;
    bool published;

    assert(publication->stored != NULL);
    publication->published.replaced = false;
    published = check_and_publish(publication, &findings, failure);
    free(findings.verdicts);
    assert(published == (publication->stored == NULL));
    return published;
}

/* --- the answer --- */

void published_reply_location(struct request *request, struct zt_text model)
{
    struct href href;

    href_begin(&href, request->server->config->base_path);
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
