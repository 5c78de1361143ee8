/* Replicas share the digests that they compute: they are stored with the version in the bucket, so
 * that only one replica has to read the whole model. The text has the format of the state folder
 * (saved_state.c) and names the version by its ETag, which is the same on all replicas. It is
 * trusted, since a client that may write to the bucket could also replace the models in it.
 *
 * Sharing happens in jobs, one per generation at the same time. If sharing fails, the digests are
 * computed again. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/store.h"
#include "verify/verifier_work.h"

/* A longer text is not shared. */
#define FACT_MAX ((size_t)16 << 20)
/* The minimum interval between two writes of a text that has not grown by a quarter. */
#define WRITE_AGAIN_MS 10000

struct sharing {
    struct job job; /* first: the job is the structure */
    struct verifier *verifier;
    struct generation *generation;
    bool writes;
};

static bool is_stopped(const struct verifier *verifier)
{
    return atomic_load(&verifier->stopping) || atomic_load(&verifier->server->draining);
}

static unsigned known_count(const struct generation *generation)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < generation->model->component_count; i++)
        count += digest_block(generation, i) != NULL;
    return count;
}

/* Writes the name of the fact. It depends on the kind of model, since the first part of a split
 * GGUF is the own file of two models. */
static void name_kind(const struct generation *generation, char out_kind[40])
{
    snprintf(out_kind, 40, "%s-%" PRIu64, generation->is_joined ? "joined-digests" : "digests",
             digest_table_of(generation)->piece_bytes);
}

/* --- the job --- */

static void took(void *context, uint32_t component)
{
    const struct sharing *sharing = context;

    assert(digest_block(sharing->generation, component) != NULL);
    atomic_fetch_add(&digest_table_of(sharing->generation)->shared_count, 1);
    digests_note(sharing->verifier, sharing->generation, component);
}

static void read_others(struct sharing *sharing)
{
    struct store *store = sharing->verifier->server->store;
    struct zt_error error;
    char kind[40];
    size_t length = 0;
    char *text = NULL;

    name_kind(sharing->generation, kind);
    if (store->claims->read_fact(store, &sharing->generation->identity, kind, &text, &length,
                                 &error) != ZT_OK)
        return;
    if (length <= FACT_MAX)
        digest_state_decode((const uint8_t *)text, length, sharing->generation, took, sharing);
    free(text);
}

static void write_all(struct sharing *sharing)
{
    struct generation *generation = sharing->generation;
    struct digest_table *table = digest_table_of(generation);
    struct store *store = sharing->verifier->server->store;
    struct record_writer image = {.limit_bytes = FACT_MAX};
    const unsigned count = known_count(generation);
    struct zt_error error;
    char kind[40];
    enum zt_status status = ZT_LIMIT;

    name_kind(generation, kind);
    digest_state_encode(&image, generation);
    if (!image.failed)
        status = store->claims->write_fact(store, &generation->identity, kind,
                                           (const char *)image.bytes, image.length, &error);
    /* After a permanent failure, try again only once there are more digests. */
    if (status != ZT_UNAVAILABLE)
        atomic_store(&table->shared_count, count);
    if (status != ZT_OK && !image.failed)
        log_write(LOG_LEVEL_DEBUG, "digests of %s cannot be shared: %s", generation->path,
                  error.message);
    atomic_store(&table->next_fact_ms, clock_ms() + WRITE_AGAIN_MS);
    record_writer_free(&image);
}

static void share(struct job *job)
{
    struct sharing *sharing = (struct sharing *)job;
    struct digest_table *table = digest_table_of(sharing->generation);

    assert(atomic_load(&table->is_shared_now));
    if (!is_stopped(sharing->verifier) && !atomic_load(&sharing->generation->retired)) {
        read_others(sharing);
        if (sharing->writes)
            write_all(sharing);
    }
    atomic_store(&table->is_shared_now, false);
    parking_release_idle(sharing->generation);
    free(sharing);
}

/* Returns false if another job of this generation is queued or runs. */
static bool begin(struct verifier *verifier, struct generation *generation, bool writes)
{
    struct digest_table *table = digest_table_of(generation);
    struct sharing *sharing;

    if (is_stopped(verifier))
        return true;
    if (atomic_exchange(&table->is_shared_now, true))
        return false;
    sharing = calloc(1, sizeof(*sharing));
    if (sharing == NULL) {
        atomic_store(&table->is_shared_now, false);
        return true;
    }
    parking_hold_idle(generation);
    *sharing = (struct sharing){
        .job.run = share, .verifier = verifier, .generation = generation, .writes = writes};
    workers_submit_idle(server_waiters(verifier->server), &sharing->job);
    return true;
}

/* --- when --- */

void shared_digests_recall(struct verifier *verifier, struct generation *generation)
{
    if (store_needs_claims(verifier->server->store) &&
        known_count(generation) < generation->model->component_count)
        (void)begin(verifier, generation, false);
}

/* Returns false while too few digests are new, so that the text is not written after each component
 * of a model. */
static bool is_worth_writing(struct verifier *verifier, struct generation *generation)
{
    struct digest_table *table = digest_table_of(generation);
    const unsigned shared = atomic_load(&table->shared_count);
    const unsigned more = known_count(generation) - shared;
    bool is_queued;

    pthread_mutex_lock(&verifier->wanted.lock);
    is_queued = table->queued;
    pthread_mutex_unlock(&verifier->wanted.lock);
    return clock_ms() >= atomic_load(&table->next_fact_ms) || (!is_queued && more > shared / 4);
}

bool shared_digests_offer(struct verifier *verifier, struct generation *generation)
{
    const struct server *server = verifier->server;

    if (!store_needs_claims(server->store) || !server->config->writable ||
        atomic_load(&generation->retired) || is_stopped(verifier) ||
        known_count(generation) <= atomic_load(&digest_table_of(generation)->shared_count))
        return true;
    return is_worth_writing(verifier, generation) && begin(verifier, generation, true);
}
