/* Finders: idle jobs that read one wanted component after another for its digests, in short turns,
 * so that none of them occupies a thread for long. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/processors.h"
#include "verify/verifier_work.h"
#include "zt/digest.h"
#include "zt/shards.h"

/* After this time a finder gives its thread back and queues itself again. */
#define TURN_NS (20 * CLOCK_NS_PER_MS)
/* For so long after an answer had to wait for a disk, finders leave disk and processor to it. */
#define DISK_AWAITED_MS 100
#define NAP_NS          (5 * CLOCK_NS_PER_MS)
/* Read at a time: small enough to stay in the processor's cache for the second hash. */
#define CHUNK_BYTES 131072
/* Models that wait, each with its files open. Components of further models are not queued; they
 * must be requested again later. */
#define WAITING_MAX 256

/* A component that is being read. */
struct reading {
    struct generation *generation;
    uint32_t component;
    uint64_t piece_bytes;
    uint64_t read_bytes;
    uint8_t *block;
    struct zt_hasher *whole;
    struct zt_hasher *piece; /* NULL between pieces, and if the only piece is the whole */
    uint8_t chunk[CHUNK_BYTES];
};

static bool is_stopped(const struct verifier *verifier)
{
    return atomic_load(&verifier->stopping) || atomic_load(&verifier->server->draining);
}

/* --- the queue, with its lock held --- */

static bool list_add(struct component_list *list, uint32_t component)
{
    assert(list->next <= list->count && list->count <= list->capacity);
    if (zt_array_reserve(&list->items, &list->capacity, (size_t)list->count + 1,
                         sizeof(*list->items), UINT32_MAX) != ZT_OK)
        return false;
    list->items[list->count++] = component;
    return true;
}

static uint32_t list_take(struct component_list *list)
{
    uint32_t component;

    assert(list->next < list->count);
    component = list->items[list->next++];
    if (list->next == list->count) {
        free(list->items);
        *list = (struct component_list){.items = NULL};
    }
    return component;
}

static void enqueue(struct finder_queue *queue, struct generation *generation)
{
    struct digest_table *table = digest_table_of(generation);

    if (table->queued)
        return;
    assert(queue->waiting < WAITING_MAX);
    table->queued = true;
    table->next = NULL;
    *queue->last = generation_hold(generation);
    queue->last = &table->next;
    queue->waiting++;
}

/* The caller takes over the queue's reference. */
static struct generation *take_first(struct finder_queue *queue)
{
    struct generation *first = queue->first;
    struct digest_table *table = digest_table_of(first);

    assert(queue->waiting > 0 && table->queued);
    queue->first = table->next;
    if (queue->first == NULL)
        queue->last = &queue->first;
    table->queued = false;
    queue->waiting--;
    return first;
}

static void wake_finder(struct verifier *verifier)
{
    struct finder_queue *queue = &verifier->finders;

    for (unsigned i = 0; i < queue->finder_count; i++) {
        if (queue->finders[i].queued)
            continue;
        queue->finders[i].queued = true;
        workers_submit_idle(verifier->server->workers, &queue->finders[i].job);
        return;
    }
}

bool digest_finder_add(struct verifier *verifier, struct generation *generation, uint32_t component)
{
    struct finder_queue *queue = &verifier->finders;
    struct digest_table *table = digest_table_of(generation);
    bool added = false;

    pthread_mutex_lock(&queue->lock);
    if (!is_stopped(verifier) && (table->queued || queue->waiting < WAITING_MAX))
        added = list_add(&table->wanted, component);
    if (added) {
        enqueue(queue, generation);
        wake_finder(verifier);
    }
    pthread_mutex_unlock(&queue->lock);
    return added;
}

void digest_finder_note(struct verifier *verifier, struct generation *generation,
                        uint32_t component)
{
    pthread_mutex_lock(&verifier->finders.lock);
    /* Without memory for this the digest is known only as long as the process lives. */
    (void)list_add(&digest_table_of(generation)->unsaved, component);
    pthread_mutex_unlock(&verifier->finders.lock);
    verifier_mark_dirty(verifier, generation);
    if (blob_index_is_begun(&verifier->blobs))
        blob_index_note(&verifier->blobs, generation, component);
}

/* Takes the next wanted component. False, and the finder rests, if there is none or the server is
 * stopping. */
static bool take_wanted(struct finder *finder, struct generation **out_generation,
                        uint32_t *out_component)
{
    struct finder_queue *queue = &finder->verifier->finders;
    bool taken = false;

    pthread_mutex_lock(&queue->lock);
    assert(finder->queued);
    if (queue->first != NULL && !is_stopped(finder->verifier)) {
        struct generation *generation = queue->first;
        struct component_list *wanted = &digest_table_of(generation)->wanted;

        *out_component = list_take(wanted);
        *out_generation = wanted->items != NULL ? generation_hold(generation) : take_first(queue);
        taken = true;
    }
    finder->queued = taken;
    pthread_mutex_unlock(&queue->lock);
    return taken;
}

/* Verification of whole models comes first: somebody has asked for it. False: not now, and the
 * finder rests until digest_finder_continue. */
static bool may_work(struct finder *finder)
{
    struct finder_queue *queue = &finder->verifier->finders;
    bool works;

    pthread_mutex_lock(&queue->lock);
    works = is_stopped(finder->verifier) || atomic_load(&finder->verifier->runs_left) == 0;
    finder->queued = works;
    pthread_mutex_unlock(&queue->lock);
    /* Once it rests, another thread may queue it again. */
    return works;
}

void digest_finder_continue(struct verifier *verifier)
{
    struct finder_queue *queue = &verifier->finders;

    pthread_mutex_lock(&queue->lock);
    for (unsigned i = 0; i < queue->finder_count; i++)
        wake_finder(verifier);
    pthread_mutex_unlock(&queue->lock);
}

/* --- one reading --- */

static void reading_free(struct reading *reading)
{
    generation_release(reading->generation);
    free(reading->block);
    zt_hasher_free(reading->whole);
    zt_hasher_free(reading->piece);
    free(reading);
}

static const struct zt_component *component_of(const struct reading *reading)
{
    return &reading->generation->model->components[reading->component];
}

/* Takes over the reference. NULL when out of memory. */
static struct reading *reading_new(struct generation *generation, uint32_t component)
{
    const uint64_t piece_bytes = digest_table_of(generation)->piece_bytes;
    const uint64_t digests =
        digest_block_count(generation->model->components[component].length, piece_bytes);
    struct reading *reading = malloc(sizeof(*reading));

    if (reading == NULL) {
        digest_forget_wanted(generation, component);
        generation_release(generation);
        return NULL;
    }
    memset(reading, 0, offsetof(struct reading, chunk));
    reading->generation = generation;
    reading->piece_bytes = piece_bytes;
    reading->component = component;
    reading->block =
        digests <= SIZE_MAX / SHA256_BYTES ? malloc((size_t)digests * SHA256_BYTES) : NULL;
    if (reading->block == NULL || zt_hasher_new(ZT_DIGEST_SHA256, &reading->whole) != ZT_OK) {
        digest_forget_wanted(generation, component);
        reading_free(reading);
        return NULL;
    }
    return reading;
}

/* Puts a hasher's digest into the block, and frees the hasher. */
static void finish(struct reading *reading, struct zt_hasher **hasher, uint64_t place)
{
    struct zt_digest digest;

    zt_hasher_finish(*hasher, &digest);
    memcpy(reading->block + SHA256_BYTES * place, digest.bytes, SHA256_BYTES);
    zt_hasher_free(*hasher);
    *hasher = NULL;
}

/* Hashes the next bytes, which do not cross the end of a piece. */
static bool hash_chunk(struct reading *reading, size_t length)
{
    const uint64_t piece_bytes = reading->piece_bytes;
    const uint64_t total = component_of(reading)->length;
    const uint64_t end = reading->read_bytes + length;

    zt_hasher_update(reading->whole, reading->chunk, length);
    if (total > piece_bytes) {
        if (reading->piece == NULL && zt_hasher_new(ZT_DIGEST_SHA256, &reading->piece) != ZT_OK)
            return false;
        zt_hasher_update(reading->piece, reading->chunk, length);
        if (end % piece_bytes == 0 || end == total)
            finish(reading, &reading->piece, 1 + reading->read_bytes / piece_bytes);
    }
    reading->read_bytes = end;
    return true;
}

/* Of what is elsewhere, only what is here anyway is read: nobody has asked for these bytes. */
static bool read_if_here(struct zt_source *source, uint64_t offset, void *buffer, size_t length)
{
    struct zt_pin pin;
    enum zt_status status;

    if (!zt_source_is_elsewhere(source))
        return zt_source_read_at(source, offset, buffer, length, NULL) == ZT_OK;
    if (length == 0 || zt_source_pin(source, offset, length, false, &pin, NULL) != ZT_OK)
        return length == 0;
    status = zt_source_read_at(pin.view, offset, buffer, length, NULL);
    zt_pin_release(&pin);
    return status == ZT_OK;
}

/* Whether all of the component is here, so that reading it is not begun in vain. */
static bool is_here(struct zt_source *source, const struct zt_component *component)
{
    struct zt_pin pin;

    if (source == NULL || !zt_source_is_elsewhere(source) || component->length == 0)
        return source != NULL;
    if (zt_source_pin(source, component->offset, component->length, false, &pin, NULL) != ZT_OK)
        return false;
    zt_pin_release(&pin);
    return true;
}

static bool read_chunk(struct reading *reading)
{
    const struct zt_component *component = component_of(reading);
    const struct zt_files files = generation_files(reading->generation);
    const uint64_t piece_bytes = reading->piece_bytes;
    const uint64_t to_piece = piece_bytes - reading->read_bytes % piece_bytes;
    uint64_t length = component->length - reading->read_bytes;
    struct zt_source *source = zt_files_source(&files, component);

    length = length < to_piece ? length : to_piece;
    length = length < CHUNK_BYTES ? length : CHUNK_BYTES;
    if (reading->read_bytes == 0 && !is_here(source, component))
        return false;
    return read_if_here(source, component->offset + reading->read_bytes, reading->chunk,
                        (size_t)length) &&
           hash_chunk(reading, (size_t)length);
}

static void keep(struct finder *finder, struct reading *reading)
{
    if (!digest_block_put(reading->generation, reading->component, DIGEST_WANTED, reading->block))
        return;
    reading->block = NULL;
    digest_finder_note(finder->verifier, reading->generation, reading->component);
}

/* Everything has been read. Digests are not kept if the bytes were written to meanwhile, or if they
 * differ from those that the file states. In the latter case the verifier checks the component
 * again, since clients may have been told that it is correct. */
static void conclude(struct finder *finder, struct reading *reading)
{
    struct generation *generation = reading->generation;
    uint8_t stated[SHA256_BYTES];
    bool differs;

    finish(reading, &reading->whole, 0);
    differs = stored_digest_stated(generation, reading->component, stated) &&
              memcmp(stated, reading->block, sizeof(stated)) != 0;
    if (generation_is_unwritten(generation) && !atomic_load(&generation->retired) && !differs)
        keep(finder, reading);
    else
        digest_forget_wanted(generation, reading->component);
    if (differs)
        verifier_check_now(finder->verifier, generation, reading->component, NULL);
}

static bool must_give_way(const struct verifier *verifier)
{
    const int64_t awaited_ms =
        atomic_load_explicit(&verifier->server->disk_awaited_ms, memory_order_relaxed);

    return awaited_ms != 0 && clock_coarse_ms() - awaited_ms < DISK_AWAITED_MS;
}

/* Continues reading until the end of the component or of the turn. True: the reading has ended,
 * successfully or not. */
static bool continue_reading(struct finder *finder, int64_t until_ns)
{
    struct reading *reading = finder->reading;
    const uint64_t total = component_of(reading)->length;

    while (reading->read_bytes < total) {
        if (is_stopped(finder->verifier) || atomic_load(&reading->generation->retired) ||
            !read_chunk(reading)) {
            digest_forget_wanted(reading->generation, reading->component);
            return true;
        }
        if (must_give_way(finder->verifier))
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        if (clock_ns() > until_ns && reading->read_bytes < total)
            return false;
    }
    conclude(finder, reading);
    return true;
}

/* Makes sure that the finder has a component to read. False if there is none. */
static bool begin(struct finder *finder)
{
    struct generation *generation;
    uint32_t component;

    while (finder->reading == NULL) {
        if (!take_wanted(finder, &generation, &component))
            return false;
        /* Another replica may have found it meanwhile. */
        if (digest_block(generation, component) != NULL)
            generation_release(generation);
        else
            finder->reading = reading_new(generation, component);
    }
    return true;
}

static void work(struct job *job)
{
    struct finder *finder = (struct finder *)job;
    const int64_t until_ns = clock_ns() + TURN_NS;

    while (may_work(finder) && begin(finder)) {
        if (continue_reading(finder, until_ns)) {
            reading_free(finder->reading);
            finder->reading = NULL;
        }
        if (clock_ns() > until_ns) {
            workers_submit_idle(finder->verifier->server->workers, &finder->job);
            return;
        }
    }
}

/* --- life --- */

void digest_finder_init(struct verifier *verifier, int state_folder)
{
    struct finder_queue *queue = &verifier->finders;
    const unsigned processors = processors_count();

    state_folder_enter(&queue->folder, state_folder, "digests");
    pthread_mutex_init(&queue->lock, NULL);
    queue->last = &queue->first;
    queue->finder_count = processors < FINDERS_MAX ? processors : FINDERS_MAX;
    for (unsigned i = 0; i < queue->finder_count; i++) {
        queue->finders[i].job.run = work;
        queue->finders[i].verifier = verifier;
    }
}

void digest_finder_clear(struct verifier *verifier)
{
    struct finder_queue *queue = &verifier->finders;

    while (queue->first != NULL)
        generation_release(take_first(queue));
    state_folder_leave(&queue->folder);
    pthread_mutex_destroy(&queue->lock);
}
