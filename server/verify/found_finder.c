/* Finders: idle jobs that read one wanted component after the other, in turns, so that none keeps a
 * thread for long. */
#include "verify/found_work.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/processors.h"
#include "catalog/catalog.h"
#include "verify/found_digests.h"
#include "verify/verifier_runs.h"
#include "zt/digest.h"
#include "zt/shards.h"

/* A finder gives its thread back after that long, and queues itself again. */
#define TURN_NS ((int64_t)20000000)
/* Read at a time: small enough to stay in the processor's cache for the second hash. */
#define CHUNK_BYTES 131072
/* Models that wait, each with its files open; what is wanted of more is passed over until it is
 * asked for again. */
#define WAITING_MAX 256

struct finding {
    struct generation *generation;
    uint32_t component;
    uint64_t read_bytes;
    uint8_t *block;
    struct zt_hasher *whole;
    struct zt_hasher *piece; /* NULL between pieces, and where the only piece is the whole */
    uint8_t chunk[CHUNK_BYTES];
};

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool is_stopped(const struct verifier *verifier)
{
    return atomic_load(&verifier->stopping) || atomic_load(&verifier->server->draining);
}

/* --- the queue; its lock is held in what follows --- */

static bool list_add(struct component_list *list, uint32_t component)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity == 0 ? 16 : list->capacity * 2;
        uint32_t *grown =
            capacity > list->capacity ? realloc(list->items, capacity * sizeof(*grown)) : NULL;

        if (grown == NULL)
            return false;
        list->items = grown;
        list->capacity = capacity;
    }
    list->items[list->count++] = component;
    return true;
}

static uint32_t list_take(struct component_list *list)
{
    uint32_t component = list->items[list->next++];

    if (list->next == list->count) {
        free(list->items);
        *list = (struct component_list){NULL, 0, 0, 0};
    }
    return component;
}

static void let_wait(struct found_queue *queue, struct generation *generation)
{
    if (generation->found->queued)
        return;
    generation->found->queued = true;
    generation->found->next = NULL;
    *queue->last = generation_hold(generation);
    queue->last = &generation->found->next;
    queue->waiting++;
}

/* The reference is the caller's from then on. */
static struct generation *take_first(struct found_queue *queue)
{
    struct generation *first = queue->first;

    queue->first = first->found->next;
    if (queue->first == NULL)
        queue->last = &queue->first;
    first->found->queued = false;
    queue->waiting--;
    return first;
}

static void wake_finder(struct verifier *verifier)
{
    struct found_queue *queue = &verifier->found;

    for (unsigned i = 0; i < queue->finder_count; i++) {
        if (queue->finders[i].queued)
            continue;
        queue->finders[i].queued = true;
        workers_submit_idle(verifier->server->workers, &queue->finders[i].job);
        return;
    }
}

bool found_queue_add(struct verifier *verifier, struct generation *generation, uint32_t component)
{
    struct found_queue *queue = &verifier->found;
    bool added = false;

    pthread_mutex_lock(&queue->lock);
    if (!is_stopped(verifier) && (generation->found->queued || queue->waiting < WAITING_MAX))
        added = list_add(&generation->found->wanted, component);
    if (added) {
        let_wait(queue, generation);
        wake_finder(verifier);
    }
    pthread_mutex_unlock(&queue->lock);
    return added;
}

struct component_list found_queue_take_unsaved(struct verifier *verifier,
                                               struct generation *generation)
{
    struct component_list taken;

    pthread_mutex_lock(&verifier->found.lock);
    taken = generation->found->unsaved;
    generation->found->unsaved = (struct component_list){NULL, 0, 0, 0};
    pthread_mutex_unlock(&verifier->found.lock);
    return taken;
}

/* Takes what is wanted next; false, and the finder rests, when there is nothing or it is the end.
 */
static bool take_wanted(struct finder *finder, struct generation **out_generation,
                        uint32_t *out_component)
{
    struct found_queue *queue = &finder->verifier->found;
    bool taken = false;

    pthread_mutex_lock(&queue->lock);
    if (queue->first != NULL && !is_stopped(finder->verifier)) {
        struct generation *generation = queue->first;

        *out_component = list_take(&generation->found->wanted);
        *out_generation = generation->found->wanted.items != NULL ? generation_hold(generation)
                                                                  : take_first(queue);
        taken = true;
    }
    finder->queued = taken;
    pthread_mutex_unlock(&queue->lock);
    return taken;
}

/* --- one finding --- */

static void finding_free(struct finding *finding)
{
    generation_release(finding->generation);
    free(finding->block);
    zt_hasher_free(finding->whole);
    zt_hasher_free(finding->piece);
    free(finding);
}

static const struct zt_component *component_of(const struct finding *finding)
{
    return &finding->generation->model->components[finding->component];
}

/* Takes the reference over. NULL when memory is out. */
static struct finding *finding_new(struct generation *generation, uint32_t component)
{
    uint64_t digests = found_block_count(generation->model->components[component].length,
                                         generation->found->piece_bytes);
    struct finding *finding = malloc(sizeof(*finding));

    if (finding == NULL) {
        found_forget_wanted(generation, component);
        generation_release(generation);
        return NULL;
    }
    memset(finding, 0, offsetof(struct finding, chunk));
    finding->generation = generation;
    finding->component = component;
    finding->block = digests <= SIZE_MAX / FOUND_DIGEST_SIZE
                         ? malloc((size_t)digests * FOUND_DIGEST_SIZE)
                         : NULL;
    if (finding->block == NULL || zt_hasher_new(ZT_DIGEST_SHA256, &finding->whole) != ZT_OK) {
        found_forget_wanted(generation, component);
        finding_free(finding);
        return NULL;
    }
    return finding;
}

/* Puts a hasher's digest into the block, and frees the hasher. */
static void finish(struct finding *finding, struct zt_hasher **hasher, uint64_t place)
{
    struct zt_digest digest;

    zt_hasher_finish(*hasher, &digest);
    memcpy(finding->block + FOUND_DIGEST_SIZE * place, digest.bytes, FOUND_DIGEST_SIZE);
    zt_hasher_free(*hasher);
    *hasher = NULL;
}

/* Hashes the next bytes, which do not go over the end of a piece. */
static bool hash_chunk(struct finding *finding, size_t length)
{
    const uint64_t piece_bytes = finding->generation->found->piece_bytes;
    const uint64_t total = component_of(finding)->length;
    const uint64_t end = finding->read_bytes + length;

    zt_hasher_update(finding->whole, finding->chunk, length);
    if (total > piece_bytes) {
        if (finding->piece == NULL && zt_hasher_new(ZT_DIGEST_SHA256, &finding->piece) != ZT_OK)
            return false;
        zt_hasher_update(finding->piece, finding->chunk, length);
        if (end % piece_bytes == 0 || end == total)
            finish(finding, &finding->piece, 1 + finding->read_bytes / piece_bytes);
    }
    finding->read_bytes = end;
    return true;
}

static bool read_chunk(struct finding *finding)
{
    const struct zt_component *component = component_of(finding);
    const struct zt_files files = generation_files(finding->generation);
    const uint64_t piece_bytes = finding->generation->found->piece_bytes;
    const uint64_t to_piece = piece_bytes - finding->read_bytes % piece_bytes;
    uint64_t length = component->length - finding->read_bytes;
    struct zt_source *source = zt_files_source(&files, component);
    struct zt_error error;

    length = length < to_piece ? length : to_piece;
    length = length < CHUNK_BYTES ? length : CHUNK_BYTES;
    return source != NULL &&
           zt_source_read_at(source, component->offset + finding->read_bytes, finding->chunk,
                             (size_t)length, &error) == ZT_OK &&
           hash_chunk(finding, (size_t)length);
}

void found_queue_note(struct verifier *verifier, struct generation *generation, uint32_t component)
{
    pthread_mutex_lock(&verifier->found.lock);
    /* Without memory for the note it is known all the same, for as long as the process lives. */
    (void)list_add(&generation->found->unsaved, component);
    pthread_mutex_unlock(&verifier->found.lock);
    verifier_mark_dirty(verifier, generation);
    if (verifier->server->catalog != NULL)
        catalog_note_digest(verifier->server->catalog, generation, component);
}

static void keep(struct finder *finder, struct finding *finding)
{
    if (!found_block_put(finding->generation, finding->component, FOUND_WANTED, finding->block))
        return;
    finding->block = NULL;
    found_queue_note(finder->verifier, finding->generation, finding->component);
}

/* Everything is read. Bytes that were written to meanwhile, or that are not what the file states,
 * are not remembered; of the latter the verifier makes a verdict, since whoever asked for them was
 * told that they are right. */
static void settle(struct finder *finder, struct finding *finding)
{
    struct generation *generation = finding->generation;
    uint8_t stated[FOUND_DIGEST_SIZE];
    bool differs;

    finish(finding, &finding->whole, 0);
    differs = found_digest_stated(generation, finding->component, stated) &&
              memcmp(stated, finding->block, sizeof(stated)) != 0;
    if (generation_is_unwritten(generation) && !atomic_load(&generation->retired) && !differs)
        keep(finder, finding);
    else
        found_forget_wanted(generation, finding->component);
    if (differs)
        verifier_check_now(finder->verifier, generation, finding->component, NULL);
}

/* Goes on until the end of the finding or of the turn. True: it has ended, well or not. */
static bool advance(struct finder *finder, int64_t until_ns)
{
    struct finding *finding = finder->finding;
    const uint64_t total = component_of(finding)->length;

    while (finding->read_bytes < total) {
        if (is_stopped(finder->verifier) || atomic_load(&finding->generation->retired) ||
            !read_chunk(finding)) {
            found_forget_wanted(finding->generation, finding->component);
            return true;
        }
        if (now_ns() > until_ns && finding->read_bytes < total)
            return false;
    }
    settle(finder, finding);
    return true;
}

/* False: nothing is left to be found. */
static bool begin(struct finder *finder)
{
    struct generation *generation;
    uint32_t component;

    while (finder->finding == NULL) {
        if (!take_wanted(finder, &generation, &component))
            return false;
        finder->finding = finding_new(generation, component);
    }
    return true;
}

static void work(struct job *job)
{
    struct finder *finder = (struct finder *)job;
    const int64_t until_ns = now_ns() + TURN_NS;

    while (begin(finder)) {
        if (advance(finder, until_ns)) {
            finding_free(finder->finding);
            finder->finding = NULL;
        }
        if (now_ns() > until_ns) {
            workers_submit_idle(finder->verifier->server->workers, &finder->job);
            return;
        }
    }
}

/* --- life --- */

void found_queue_init(struct verifier *verifier, int state_folder)
{
    struct found_queue *queue = &verifier->found;
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

void found_queue_clear(struct verifier *verifier)
{
    struct found_queue *queue = &verifier->found;

    while (queue->first != NULL)
        generation_release(take_first(queue));
    state_folder_leave(&queue->folder);
    pthread_mutex_destroy(&queue->lock);
}
