/* One resumable upload in memory: its life, hashing, making durable, publication. */
#include "upload/tus/resumable.h"

#include <stdlib.h>
#include <string.h>

#include "http/fields/digest_fields.h"
#include "upload/shared/publication.h"

/* --- life --- */

static void resumable_free(struct resumable *resumable)
{
    const struct store_ops *ops = resumable->server->store->ops;

    ops->abandon(resumable->data);
    ops->abandon(resumable->state);
    upload_hash_free(&resumable->hash);
    pthread_mutex_destroy(&resumable->sync_lock);
    claim_free(&resumable->claim);
    for (size_t i = 0; i < RESUMABLE_TEXTS; i++)
        free(resumable->texts[i]);
    free(resumable);
}

static struct resumable *resumable_of_job(struct job *job)
{
    return (struct resumable *)((char *)job - offsetof(struct resumable, job));
}

/* A failure here is met again, and told, when the rest is hashed. */
static void run_follow(struct job *job)
{
    struct resumable *resumable = resumable_of_job(job);
    struct zt_error error;
    uint64_t end = atomic_load(&resumable->entry.received);
    uint64_t most = atomic_load(&resumable->hash.hashed) + UPLOAD_HASH_JOB_BYTES;

    (void)upload_hash_to(&resumable->hash, resumable->server->store, resumable->data,
                         end < most ? end : most, &error);
    atomic_store(&resumable->is_queued, false);
    resumable_release(resumable);
}

/* What creation stated of the whole file; nothing, where it did not. */
static struct digest_field stated_digest(const struct resumable *resumable)
{
    const char *text = resumable->texts[RESUMABLE_REPR_DIGEST];
    struct digest_field field = {0};

    return text != NULL && digest_field_parse(text, &field) ? field : (struct digest_field){0};
}

struct resumable *resumable_new(struct server *server, const char *id, char *texts[RESUMABLE_TEXTS])
{
    struct resumable *resumable = calloc(1, sizeof(*resumable));

    if (resumable == NULL) {
        for (size_t i = 0; i < RESUMABLE_TEXTS; i++)
            free(texts[i]);
        return NULL;
    }
    atomic_init(&resumable->references, 1);
    resumable->server = server;
    resumable->job.run = run_follow;
    memcpy(resumable->texts, texts, sizeof(resumable->texts));
    pthread_mutex_init(&resumable->sync_lock, NULL);
    claim_init(&resumable->claim);
    resumable->entry.kind = UPLOAD_KIND_RESUMABLE;
    strcpy(resumable->entry.id, id);
    resumable->entry.created = time(NULL);
    atomic_init(&resumable->entry.active, resumable->entry.created);
    if (upload_hash_init(&resumable->hash, stated_digest(resumable).has_sha512))
        return resumable;
    resumable_free(resumable);
    return NULL;
}

struct resumable *resumable_hold(struct resumable *resumable)
{
    atomic_fetch_add(&resumable->references, 1);
    return resumable;
}

void resumable_release(void *thing)
{
    struct resumable *resumable = thing;

    if (resumable != NULL && atomic_fetch_sub(&resumable->references, 1) == 1)
        resumable_free(resumable);
}

void resumable_touch(struct resumable *resumable)
{
    if (!atomic_load(&resumable->is_published))
        atomic_store(&resumable->entry.active, time(NULL));
}

time_t resumable_expires(struct resumable *resumable)
{
    return atomic_load(&resumable->entry.active) +
           (time_t)resumable->server->config->upload.expire_s;
}

void resumable_unclaim(struct resumable *resumable, uint64_t number)
{
    if (!atomic_load(&resumable->is_gone))
        claim_end(&resumable->claim, number);
}

/* --- bytes --- */

void resumable_advance(struct resumable *resumable, uint64_t received)
{
    atomic_store(&resumable->entry.received, received);
    resumable_touch(resumable);
    if (received - atomic_load(&resumable->hash.hashed) < UPLOAD_HASH_FOLLOW_BYTES ||
        atomic_exchange(&resumable->is_queued, true))
        return;
    resumable_hold(resumable);
    workers_submit(resumable->server->workers, &resumable->job);
}

/* The bytes first, then the number that vouches for them. */
static enum zt_status settle(struct resumable *resumable, struct zt_error *error)
{
    uint64_t received = atomic_load(&resumable->entry.received);
    enum zt_status status;

    if (received == atomic_load(&resumable->durable))
        return ZT_OK;
    status = resumable->server->store->ops->sync(resumable->data, error);
    if (status == ZT_OK)
        status = resumable_files_note(resumable, received, error);
    if (status == ZT_OK)
        atomic_store(&resumable->durable, received);
    return status;
}

enum zt_status resumable_settle(struct resumable *resumable, struct zt_error *error)
{
    enum zt_status status;

    pthread_mutex_lock(&resumable->sync_lock);
    status = atomic_load(&resumable->is_published) ? ZT_OK : settle(resumable, error);
    pthread_mutex_unlock(&resumable->sync_lock);
    return status;
}

/* --- publication --- */

static bool fail(struct resumable_failure *failure, enum problem problem,
                 const struct zt_error *error)
{
    failure->problem = problem;
    failure->error = *error;
    return false;
}

static bool hash_whole(struct resumable *resumable, struct resumable_failure *failure)
{
    struct zt_error error;

    if (resumable->is_hashed)
        return true;
    if (upload_hash_to(&resumable->hash, resumable->server->store, resumable->data,
                       resumable->length, &error) != ZT_OK)
        return fail(failure, PROBLEM_INTERNAL, &error);
    upload_hash_finish(&resumable->hash, resumable->sha256, resumable->sha512);
    resumable->is_hashed = true;
    return true;
}

static bool check_digest(const struct resumable *resumable, struct resumable_failure *failure)
{
    struct digest_field stated = stated_digest(resumable);
    struct zt_error error;

    if ((!stated.has_sha256 ||
         memcmp(stated.sha256, resumable->sha256, sizeof(stated.sha256)) == 0) &&
        (!stated.has_sha512 ||
         memcmp(stated.sha512, resumable->sha512, sizeof(stated.sha512)) == 0))
        return true;
    zt_fail(&error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
            "the file does not have the digest of Repr-Digest");
    return fail(failure, PROBLEM_DIGEST_MISMATCH, &error);
}

static bool note_end(struct resumable *resumable, struct resumable_failure *failure)
{
    struct zt_error error;
    enum zt_status status = resumable_files_note_end(resumable, &error);

    return status == ZT_OK || fail(failure, problem_of_write(&error), &error);
}

static bool run_publication(struct resumable *resumable, struct resumable_failure *failure)
{
    struct publication publication = {
        .server = resumable->server,
        .stored = resumable->data,
        .name = resumable->entry.model,
        .preconditions = {.if_match = resumable->texts[RESUMABLE_IF_MATCH],
                          .if_none_match = resumable->texts[RESUMABLE_IF_NONE_MATCH],
                          .if_unmodified_since = resumable->texts[RESUMABLE_IF_UNMODIFIED_SINCE]},
    };

    memcpy(publication.sha256, resumable->sha256, sizeof(publication.sha256));
    if (!publication_run(&publication))
        return fail(failure, publication.problem, &publication.error);
    resumable->replaced = publication.replaced;
    memcpy(resumable->etag, publication.etag, sizeof(resumable->etag));
    /* Nobody settles any more what is no longer there. */
    pthread_mutex_lock(&resumable->sync_lock);
    resumable->data = NULL;
    resumable->server->store->ops->abandon(resumable->state);
    resumable->state = NULL;
    atomic_store(&resumable->is_published, true);
    pthread_mutex_unlock(&resumable->sync_lock);
    return true;
}

/* Whether the same bytes under the same conditions can be published another time: the disk has room
 * again, a folder no longer is in the way. */
static bool may_succeed_later(enum problem problem)
{
    return problem == PROBLEM_INTERNAL || problem == PROBLEM_INSUFFICIENT_STORAGE ||
           problem == PROBLEM_READ_ONLY || problem == PROBLEM_CONFLICT;
}

bool resumable_publish(struct resumable *resumable, struct resumable_failure *failure)
{
    struct resumables *resumables = resumable->server->resumables;

    if (hash_whole(resumable, failure) && check_digest(resumable, failure) &&
        note_end(resumable, failure) && run_publication(resumable, failure)) {
        resumables_finish(resumables, resumable);
        return true;
    }
    if (!may_succeed_later(failure->problem))
        resumables_drop(resumables, resumable);
    return false;
}
