/* Keeps the queue of components whose digests are wanted, and reads them with consecutive
 * background tasks of hash_queue.h. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "verify/verifier_work.h"
#include "zt/shards.h"

/* The maximum number of waiting models, each with open files. Components of further models are not
 * queued; they must be requested again later. */
#define WAITING_MAX 256

/* A component that is being read. */
struct component_task {
    struct hash_task task; /* first: the task is the structure */
    struct verifier *verifier;
    struct generation *generation;
    uint32_t component;
};

/* --- the queue, with its lock held --- */

static void enqueue(struct wanted_digests *wanted, struct generation *generation)
{
    struct digest_table *table = digest_table_of(generation);

    assert(wanted->waiting < WAITING_MAX && !table->queued);
    table->queued = true;
    table->next = NULL;
    *wanted->last = generation_hold(generation);
    wanted->last = &table->next;
    wanted->waiting++;
}

/* The caller takes over the queue's reference. */
static struct generation *take_first(struct wanted_digests *wanted)
{
    struct generation *first = wanted->first;
    struct digest_table *table = digest_table_of(first);

    assert(wanted->waiting > 0 && table->queued);
    wanted->first = table->next;
    if (wanted->first == NULL)
        wanted->last = &wanted->first;
    table->queued = false;
    wanted->waiting--;
    return first;
}

/* --- one component --- */

/* Ends the task if another replica has found the digest, or the model has changed. */
static enum zt_status prepare(struct hash_task *task, struct server *server)
{
    const struct component_task *reading = (const struct component_task *)task;
    const struct generation *generation = reading->generation;
    const struct zt_component *component = &generation->model->components[reading->component];
    const struct zt_files files = generation_files(generation);
    const bool is_new = task->source == NULL;

    (void)server;
    assert(task->urgency == HASH_BACKGROUND && task->only_local);
    if (atomic_load(&generation->retired) || digest_block(generation, reading->component) != NULL)
        return ZT_STALE;
    task->source = zt_files_source(&files, component);
    task->offset = component->offset;
    if (task->length == 0)
        return ZT_OK;
    /* Only cached bytes of a remote file are read: no client has asked for them. */
    return task->source == NULL || (is_new && !hash_task_is_local(task)) ? ZT_UNAVAILABLE : ZT_OK;
}

/* Digests are not kept if the bytes were written to during reading, or if they differ from the
 * digest in the file. In the latter case the verifier checks the component again, since the server
 * may have reported it as correct. */
static void over(struct hash_task *task, struct server *server, enum zt_status status)
{
    struct component_task *reading = (struct component_task *)task;
    struct generation *generation = reading->generation;
    const uint32_t component = reading->component;
    uint8_t stated[SHA256_BYTES];
    const bool differs = status == ZT_OK && stored_digest_stated(generation, component, stated) &&
                         memcmp(stated, task->digests, sizeof(stated)) != 0;

    (void)server;
    if (status != ZT_OK || differs || !generation_is_unwritten(generation) ||
        atomic_load(&generation->retired)) {
        (void)digest_block_put(generation, component, DIGEST_READING, NULL);
    } else if (digest_block_put(generation, component, DIGEST_READING, task->digests)) {
        task->digests = NULL;
        digests_note(reading->verifier, generation, component);
    }
    if (differs)
        verifier_check_now(reading->verifier, generation, component);
    generation_release(generation);
    hash_task_clear(task);
    free(reading);
}

/* Returns the first generation with a wanted component, and marks the component as being read. */
static struct generation *take_component(struct wanted_digests *wanted, uint32_t *out_component)
{
    while (wanted->first != NULL) {
        struct generation *generation = wanted->first;
        struct digest_table *table = digest_table_of(generation);

        if (digest_take_wanted(generation, &table->first_wanted)) {
            *out_component = table->first_wanted++;
            return generation_hold(generation);
        }
        generation_release(take_first(wanted));
    }
    return NULL;
}

/* The feed of the hash queue, whose lock must be held. */
static struct hash_task *next_task(void *context)
{
    static const struct hash_task_ops ops = {prepare, over};
    struct verifier *verifier = context;
    struct component_task *reading = calloc(1, sizeof(*reading));

    if (reading == NULL)
        return NULL;
    pthread_mutex_lock(&verifier->wanted.lock);
    if (!atomic_load(&verifier->stopping))
        reading->generation = take_component(&verifier->wanted, &reading->component);
    pthread_mutex_unlock(&verifier->wanted.lock);
    if (reading->generation == NULL) {
        free(reading);
        return NULL;
    }
    reading->verifier = verifier;
    reading->task = (struct hash_task){
        .ops = &ops,
        .urgency = HASH_BACKGROUND,
        .only_local = true,
        .length = reading->generation->model->components[reading->component].length,
        .piece_bytes = digest_table_of(reading->generation)->piece_bytes};
    return &reading->task;
}

/* --- for others --- */

bool wanted_digests_add(struct verifier *verifier, struct generation *generation,
                        uint32_t component)
{
    struct wanted_digests *wanted = &verifier->wanted;
    struct digest_table *table = digest_table_of(generation);
    bool added = false;

    if (atomic_load(&verifier->stopping) || atomic_load(&verifier->server->draining))
        return false;
    pthread_mutex_lock(&wanted->lock);
    if (table->queued) {
        table->first_wanted = component < table->first_wanted ? component : table->first_wanted;
        added = true;
    } else if (wanted->waiting < WAITING_MAX) {
        table->first_wanted = component;
        enqueue(wanted, generation);
        added = true;
    }
    pthread_mutex_unlock(&wanted->lock);
    if (added)
        hash_queue_wake(verifier->server->hash_queue);
    return added;
}

void digests_note(struct verifier *verifier, struct generation *generation, uint32_t component)
{
    assert(digest_block(generation, component) != NULL);
    pthread_mutex_lock(&verifier->wanted.lock);
    digest_state_put(&digest_table_of(generation)->unsaved, generation, component);
    pthread_mutex_unlock(&verifier->wanted.lock);
    verifier_mark_dirty(verifier, generation);
    blob_index_note(verifier->blobs, generation, component);
}

void wanted_digests_init(struct verifier *verifier, int state_folder)
{
    struct wanted_digests *wanted = &verifier->wanted;

    ledger_folder_open(&wanted->folder, state_folder, "digests");
    pthread_mutex_init(&wanted->lock, NULL);
    wanted->last = &wanted->first;
    hash_queue_set_feed(verifier->server->hash_queue, next_task, verifier);
}

void wanted_digests_drop(struct verifier *verifier)
{
    struct wanted_digests *wanted = &verifier->wanted;

    assert(wanted->first == NULL || atomic_load(&verifier->stopping));
    while (wanted->first != NULL)
        generation_release(take_first(wanted));
}

void wanted_digests_clear(struct verifier *verifier)
{
    struct wanted_digests *wanted = &verifier->wanted;

    assert(wanted->first == NULL);
    ledger_folder_close(&wanted->folder);
    pthread_mutex_destroy(&wanted->lock);
}
