/* Publication: validation, preconditions at the very moment, the name, and what stood under it
 * before.
 *
 * Two that publish under one name take turns, so that of two that only create exactly one wins;
 * other names go on meanwhile, because a publication waits for the disk. */
#include "upload/shared/publication.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/server.h"
#include "upload/shared/publication_check.h"
#include "verify/component_digests.h"
#include "verify/verifier.h"

/* A name, an extension, NUL. */
#define PATH_SIZE (MODEL_NAME_MAX + 16)

/* --- failures --- */

bool publication_fail(struct publication *publication, enum problem problem,
                      const struct zt_error *error)
{
    publication->problem = problem;
    publication->error = *error;
    return false;
}

bool publication_fail_store(struct publication *publication, const struct zt_error *error)
{
    return publication_fail(publication, problem_of_write(error), error);
}

static bool refuse(struct publication *publication, enum problem problem, const char *message)
{
    struct zt_error error;

    zt_fail(&error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s", message);
    return publication_fail(publication, problem, &error);
}

/* --- turns --- */

static pthread_mutex_t turns_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_ended = PTHREAD_COND_INITIALIZER;
static struct name_turn *turns;

static bool is_taken(const char *name)
{
    const struct name_turn *turn = turns;

    while (turn != NULL && strcmp(turn->name, name) != 0)
        turn = turn->next;
    return turn != NULL;
}

void name_turn_begin(struct name_turn *turn)
{
    pthread_mutex_lock(&turns_lock);
    while (is_taken(turn->name))
        pthread_cond_wait(&turn_ended, &turns_lock);
    turn->next = turns;
    turns = turn;
    pthread_mutex_unlock(&turns_lock);
}

void name_turn_end(const struct name_turn *turn)
{
    struct name_turn **at;

    pthread_mutex_lock(&turns_lock);
    at = &turns;
    while (*at != turn)
        at = &(*at)->next;
    *at = turn->next;
    pthread_cond_broadcast(&turn_ended);
    pthread_mutex_unlock(&turns_lock);
}

/* --- preconditions --- */

/* If-Match also takes the tags of the compressed manifest: whoever read that one has read this
 * version. */
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

bool publication_preconditions_hold(const struct preconditions *preconditions,
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

static bool is_conditional(const struct preconditions *preconditions)
{
    return preconditions->if_match != NULL || preconditions->if_none_match != NULL ||
           preconditions->if_unmodified_since != NULL;
}

struct generation *publication_find_current(struct server *server, const char *name)
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

static bool check_preconditions(struct publication *publication, bool *out_exists)
{
    struct generation *current;
    bool hold;

    *out_exists = false;
    if (!is_conditional(&publication->preconditions))
        return true;
    current = publication_find_current(publication->server, publication->name);
    hold = publication_preconditions_hold(&publication->preconditions, current);
    *out_exists = current != NULL;
    generation_release(current);
    return hold || refuse(publication, PROBLEM_PRECONDITION_FAILED,
                          "what stands under the name is not what the request asks for");
}

/* --- the name --- */

/* First as a new file, which is atomic against any other writer; then, unless the request only
 * creates, over the old. */
static bool give_name(struct publication *publication, const char *path, bool exists)
{
    const struct store_ops *ops = publication->server->store->ops;
    struct zt_error error;
    enum zt_status status = ops->publish(publication->stored, path, false, &error);

    if (status == ZT_ARGUMENT && publication->preconditions.if_none_match != NULL && !exists)
        return refuse(publication, PROBLEM_PRECONDITION_FAILED, "the name was taken meanwhile");
    if (status == ZT_ARGUMENT) {
        publication->replaced = true;
        status = ops->publish(publication->stored, path, true, &error);
    }
    if (status == ZT_ARGUMENT)
        return publication_fail(publication, PROBLEM_CONFLICT, &error);
    if (status != ZT_OK)
        return publication_fail_store(publication, &error);
    publication->stored = NULL;
    return true;
}

/* Another format's file under the name would be in the way of the new one, or come back when that
 * is removed. */
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
            publication->replaced = true;
            generation_release(catalog_update(server->catalog, path));
        } else if (status != ZT_NOT_FOUND) {
            log_write(LOG_LEVEL_WARN, "%s: replaced by %s%s, but not removed: %s", path,
                      publication->name, extension, error.message);
        }
    }
}

static void hand_over_sha256(const struct publication *publication, struct generation *generation,
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

/* Those that the file itself does not state: they are how others ask for its bytes, and what
 * answers tell. */
static void hand_over_sha256s(const struct publication *publication, struct generation *generation)
{
    const struct zt_model *model = generation->model;

    for (uint32_t i = 0; model != NULL && i < model->object_count; i++) {
        const struct zt_component *components = zt_object_components(model, &model->objects[i]);

        for (uint32_t j = 0; j < model->objects[i].component_count; j++)
            hand_over_sha256(publication, generation, &model->objects[i], &components[j]);
    }
}

/* Only about the very file that was checked: somebody may have put another into its place since.
 * The time of change is that of the link. */
static void hand_over(const struct publication *publication, const struct findings *findings,
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
        hand_over_sha256s(publication, generation);
    memcpy(generation->file_sha256, publication->sha256, sizeof(generation->file_sha256));
    atomic_store(&generation->has_file_sha256, true);
}

/* The model is there: what it replaces goes, and the catalog has it from now on. */
static void settle(struct publication *publication, const struct findings *findings,
                   const char *path)
{
    struct generation *generation;

    remove_others(publication, findings->extension);
    generation = catalog_update(publication->server->catalog, path);
    snprintf(publication->etag, sizeof(publication->etag), "%s",
             generation != NULL ? generation->etag : "");
    if (generation != NULL)
        hand_over(publication, findings, generation);
    generation_release(generation);
}

static bool publish(struct publication *publication, const struct findings *findings)
{
    struct name_turn turn = {.name = publication->name};
    char path[PATH_SIZE];
    bool exists;
    bool published;

    snprintf(path, sizeof(path), "%s%s", publication->name, findings->extension);
    name_turn_begin(&turn);
    published = check_preconditions(publication, &exists) && give_name(publication, path, exists);
    if (published)
        settle(publication, findings, path);
    name_turn_end(&turn);
    return published;
}

bool publication_run(struct publication *publication)
{
    struct findings findings;
    bool published;

    publication->replaced = false;
    published = publication_check(publication, &findings) && publish(publication, &findings);
    free(findings.verdicts);
    return published;
}
