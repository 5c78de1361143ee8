/* Publication: preconditions at the very moment, the name, and what stood under it before.
 *
 * Two that publish under one name take turns, so that of two that only create exactly one wins; other names go on
 * meanwhile, because a publication waits for the disk. */
#include <stdio.h>
#include <string.h>

#include "model/verifier.h"
#include "runtime/log.h"
#include "upload/upload_state.h"

/* A name, an extension, NUL. */
#define PATH_SIZE (MODEL_NAME_MAX + 16)

/* --- turns --- */

struct turn {
    const char *name;
    struct turn *next;
};

static pthread_mutex_t turns_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_ended = PTHREAD_COND_INITIALIZER;
static struct turn *turns;

static bool is_taken(const char *name)
{
    const struct turn *turn = turns;
    while (turn != NULL && strcmp(turn->name, name) != 0) {
        turn = turn->next;
    }
    return turn != NULL;
}

static void turn_begin(struct turn *turn)
{
    pthread_mutex_lock(&turns_lock);
    while (is_taken(turn->name)) {
        pthread_cond_wait(&turn_ended, &turns_lock);
    }
    turn->next = turns;
    turns = turn;
    pthread_mutex_unlock(&turns_lock);
}

static void turn_end(const struct turn *turn)
{
    pthread_mutex_lock(&turns_lock);
    struct turn **at = &turns;
    while (*at != turn) {
        at = &(*at)->next;
    }
    *at = turn->next;
    pthread_cond_broadcast(&turn_ended);
    pthread_mutex_unlock(&turns_lock);
}

/* --- preconditions --- */

/* If-Match also takes the tags of the compressed manifest: whoever read that one has read this version. */
static bool if_match_holds(const char *if_match, const struct generation *current)
{
    static const char *const codings[] = {NULL, "gzip", "zstd"};
    const struct preconditions only = {.if_match = if_match};
    if (current == NULL) {
        return precondition_check(&only, NULL, 0, false) == PRECONDITION_PASS;
    }
    for (size_t i = 0; i < sizeof codings / sizeof codings[0]; i++) {
        char etag[GENERATION_ETAG_SIZE + 8];
        if (codings[i] != NULL) {
            generation_etag(current, codings[i], etag, sizeof etag);
        } else {
            snprintf(etag, sizeof etag, "%s", current->etag);
        }
        if (precondition_check(&only, etag, 0, false) == PRECONDITION_PASS) {
            return true;
        }
    }
    return false;
}

bool upload_preconditions_hold(const struct preconditions *preconditions, const struct generation *current)
{
    struct preconditions others = *preconditions;
    if (others.if_match != NULL) {
        if (!if_match_holds(others.if_match, current)) {
            return false;
        }
        others.if_match = NULL;
        others.if_unmodified_since = NULL;
    }
    const char *etag = current != NULL ? current->etag : NULL;
    time_t modified = current != NULL ? generation_modified(current) : 0;
    return precondition_check(&others, etag, modified, false) == PRECONDITION_PASS;
}

static bool is_conditional(const struct preconditions *preconditions)
{
    return preconditions->if_match != NULL || preconditions->if_none_match != NULL ||
           preconditions->if_unmodified_since != NULL;
}

/* What stands under the name at this moment, whatever its format; looked at on the disk, not in what a scan last saw.
 */
static struct generation *find_current(struct upload *upload)
{
    for (unsigned rank = 0; model_extension(rank) != NULL; rank++) {
        char path[PATH_SIZE];
        snprintf(path, sizeof path, "%s%s", upload->name, model_extension(rank));
        struct generation *current = catalog_update(upload->server->catalog, path);
        if (current != NULL) {
            return current;
        }
    }
    return NULL;
}

static bool check_preconditions(struct upload *upload, bool *out_exists)
{
    *out_exists = false;
    if (!is_conditional(&upload->preconditions)) {
        return true;
    }
    struct generation *current = find_current(upload);
    bool hold = upload_preconditions_hold(&upload->preconditions, current);
    *out_exists = current != NULL;
    generation_release(current);
    return hold || upload_refuse(upload, PROBLEM_PRECONDITION_FAILED,
                                 "what stands under the name is not what the request asks for");
}

/* --- the name --- */

/* First as a new file, which is atomic against any other writer; then, unless the request only creates, over the old.
 */
static bool give_name(struct upload *upload, const char *path, bool exists)
{
    const struct store_ops *ops = upload->server->store->ops;
    struct zt_error error;
    enum zt_status status = ops->publish(upload->stored, path, false, &error);
    if (status == ZT_ARGUMENT && upload->preconditions.if_none_match != NULL && !exists) {
        return upload_refuse(upload, PROBLEM_PRECONDITION_FAILED, "the name was taken meanwhile");
    }
    if (status == ZT_ARGUMENT) {
        upload->replaced = true;
        status = ops->publish(upload->stored, path, true, &error);
    }
    if (status == ZT_ARGUMENT) {
        return upload_fail(upload, PROBLEM_CONFLICT, &error);
    }
    if (status != ZT_OK) {
        return upload_fail_store(upload, &error);
    }
    upload->stored = NULL;
    return true;
}

/* Another format's file under the name would be in the way of the new one, or come back when that is removed. */
static void remove_others(struct upload *upload, const char *extension)
{
    struct server *server = upload->server;
    for (unsigned rank = 0; model_extension(rank) != NULL; rank++) {
        char path[PATH_SIZE];
        struct zt_error error;
        if (strcmp(model_extension(rank), extension) == 0) {
            continue;
        }
        snprintf(path, sizeof path, "%s%s", upload->name, model_extension(rank));
        enum zt_status status = server->store->ops->remove(server->store, path, &error);
        if (status == ZT_OK) {
            upload->replaced = true;
            generation_release(catalog_update(server->catalog, path));
        } else if (status != ZT_NOT_FOUND) {
            log_write(LOG_LEVEL_WARN, "%s: replaced by %s%s, but not removed: %s", path, upload->name, extension,
                      error.message);
        }
    }
}

/* Only about the very file that was checked: somebody may have put another into its place since. The time of change is
 * that of the link. */
static void hand_over(const struct upload *upload, struct generation *generation)
{
    const struct file_identity *mine = &upload->identity;
    const struct file_identity *shown = &generation->identity;
    if (!upload->has_identity || mine->device != shown->device || mine->inode != shown->inode ||
        mine->size_bytes != shown->size_bytes || mine->modified_ns != shown->modified_ns) {
        return;
    }
    if (upload->verdicts != NULL) {
        verifier_learn(upload->server->verifier, generation, upload->verdicts, upload->verdict_count);
    }
    memcpy(generation->file_sha256, upload->sha256, sizeof generation->file_sha256);
    atomic_store(&generation->has_file_sha256, true);
}

bool upload_publish(struct upload *upload, const char *extension)
{
    struct turn turn = {.name = upload->name};
    char path[PATH_SIZE];
    bool exists;
    snprintf(path, sizeof path, "%s%s", upload->name, extension);
    turn_begin(&turn);
    bool published = check_preconditions(upload, &exists) && give_name(upload, path, exists);
    if (published) {
        remove_others(upload, extension);
        struct generation *generation = catalog_update(upload->server->catalog, path);
        snprintf(upload->etag, sizeof upload->etag, "%s", generation != NULL ? generation->etag : "");
        if (generation != NULL) {
            hand_over(upload, generation);
        }
        generation_release(generation);
    }
    turn_end(&turn);
    return published;
}
