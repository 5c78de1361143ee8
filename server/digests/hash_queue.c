/* Hashes ranges in turns. It has a queue, which is a heap of tasks, and idle jobs that take turns
 * at them. */
#include "digests/hash_queue.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/job_queue.h"
#include "base/memory.h"
#include "base/processors.h"

/* After this time a job gives up its thread and queues itself again. */
#define TURN_NS (20 * CLOCK_NS_PER_MS)
/* After an answer had to wait for a disk, hashing leaves disk and processor to it for this long. */
#define DISK_AWAITED_MS 100
#define NAP_NS          (5 * CLOCK_NS_PER_MS)
/* The read size: small enough to stay in the processor's cache for the second hash. */
#define CHUNK_BYTES 131072
/* How much of an awaited task is hashed per turn: some milliseconds of a worker. */
#define AWAITED_BYTES ((uint64_t)4 << 20)
/* The maximum number of concurrent jobs; on most machines the pool has fewer threads for them. */
#define SLOTS_MAX 64
/* The maximum number of waiting tasks; further tasks must be added again later. */
#define TASKS_MAX ((size_t)1 << 17)

struct slot {
    struct job job; /* first: the job is the structure */
    struct hash_queue *queue;
    bool is_queued; /* under the lock */
};

struct hash_queue {
    struct server *server;
    pthread_mutex_t lock;     /* protects the members below */
    struct hash_task **tasks; /* a heap */
    size_t count;
    size_t capacity;
    unsigned holds;
    struct job_queue awaited;
    unsigned awaited_running;
    unsigned awaited_most;
    bool takes_no_awaited;
    struct hash_task *(*next)(void *context); /* NULL: no feed */
    void *context;
    unsigned slot_count;
    struct slot slots[SLOTS_MAX];
};

/* --- one range --- */

uint64_t hash_digest_count(uint64_t length_bytes, uint64_t piece_bytes)
{
    return piece_bytes == 0 || length_bytes <= piece_bytes ? 1
                                                           : 2 + (length_bytes - 1) / piece_bytes;
}

void hash_task_clear(struct hash_task *task)
{
    free(task->digests);
    zt_hasher_free(task->whole);
    zt_hasher_free(task->piece);
    task->digests = NULL;
    task->whole = NULL;
    task->piece = NULL;
}

static uint64_t bytes_left(const struct hash_task *task)
{
    assert(task->done_bytes <= task->length);
    return task->length - task->done_bytes;
}

bool hash_task_is_local(const struct hash_task *task)
{
    struct zt_pin pin;

    assert(task->source != NULL);
    if (!zt_source_is_remote(task->source) || task->length == 0)
        return true;
    if (zt_source_pin(task->source, task->offset, task->length, false, &pin, NULL) != ZT_OK)
        return false;
    zt_pin_release(&pin);
    return true;
}

/* Stores a hasher's digest, and frees the hasher. */
static void finish(struct hash_task *task, struct zt_hasher **hasher, uint64_t index)
{
    struct zt_digest digest;

    assert(index < hash_digest_count(task->length, task->piece_bytes));
    zt_hasher_finish(*hasher, &digest);
    memcpy(task->digests + SHA256_BYTES * index, digest.bytes, SHA256_BYTES);
    zt_hasher_free(*hasher);
    *hasher = NULL;
}

/* Called at the beginning of each turn. */
static enum zt_status prepare(struct hash_task *task, struct server *server)
{
    const uint64_t count = hash_digest_count(task->length, task->piece_bytes);
    const enum zt_status status = task->ops->prepare(task, server);

    if (status != ZT_OK || task->digests != NULL)
        return status;
    assert(task->done_bytes == 0 && task->whole == NULL);
    task->digests = count <= SIZE_MAX / SHA256_BYTES ? malloc((size_t)count * SHA256_BYTES) : NULL;
    if (task->digests == NULL || zt_hasher_new(ZT_DIGEST_SHA256, &task->whole) != ZT_OK)
        return zt_fail_memory(task->error, "a digest");
    return ZT_OK;
}

static enum zt_status read_next(struct hash_task *task, uint8_t *chunk, size_t length)
{
    const uint64_t offset = task->offset + task->done_bytes;
    struct zt_pin pin;
    enum zt_status status;

    if (!task->only_local || !zt_source_is_remote(task->source)) {
        zt_source_read_on(task->source, offset, bytes_left(task), 0);
        return zt_source_read_at(task->source, offset, chunk, length, task->error);
    }
    status = zt_source_pin(task->source, offset, length, false, &pin, task->error);
    if (status != ZT_OK)
        return status;
    status = zt_source_read_at(pin.view, offset, chunk, length, task->error);
    zt_pin_release(&pin);
    return status;
}

/* Hashes the next bytes. */
static enum zt_status advance(struct hash_task *task, uint8_t chunk[CHUNK_BYTES])
{
    const bool has_pieces = hash_digest_count(task->length, task->piece_bytes) > 1;
    const uint64_t piece_left =
        has_pieces ? task->piece_bytes - task->done_bytes % task->piece_bytes : UINT64_MAX;
    uint64_t length = bytes_left(task);
    enum zt_status status;

    assert(length > 0 && task->source != NULL && task->whole != NULL);
    length = length < piece_left ? length : piece_left;
    length = length < CHUNK_BYTES ? length : CHUNK_BYTES;
    status = read_next(task, chunk, (size_t)length);
    if (status != ZT_OK)
        return status;
    if (!has_pieces)
        zt_hasher_update(task->whole, chunk, (size_t)length);
    else if (task->piece != NULL || zt_hasher_new(ZT_DIGEST_SHA256, &task->piece) == ZT_OK)
        zt_hasher_update_pair(task->whole, chunk, (size_t)length, task->piece, chunk,
                              (size_t)length);
    else
        return zt_fail_memory(task->error, "a digest");
    if (has_pieces && (length == piece_left || length == bytes_left(task)))
        finish(task, &task->piece, 1 + task->done_bytes / task->piece_bytes);
    task->done_bytes += length;
    return ZT_OK;
}

static void finish_whole(struct hash_task *task)
{
    assert(bytes_left(task) == 0 && task->piece == NULL);
    finish(task, &task->whole, 0);
}

bool hash_task_is_done(const struct hash_task *task)
{
    return task->digests != NULL && task->whole == NULL;
}

/* Hashes up to the position end. */
static enum zt_status hash_until(struct hash_task *task, struct server *server, uint64_t end)
{
    uint8_t *chunk = malloc(CHUNK_BYTES);
    enum zt_status status =
        chunk != NULL ? prepare(task, server) : zt_fail_memory(task->error, "a digest");

    assert(end <= task->length);
    while (status == ZT_OK && task->done_bytes < end)
        status =
            task->urgency != HASH_AWAITED && atomic_load(&server->draining)
                ? zt_fail(task->error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the server is stopping")
                : advance(task, chunk);
    if (status == ZT_OK && bytes_left(task) == 0)
        finish_whole(task);
    free(chunk);
    return status;
}

enum zt_status hash_task_run(struct hash_task *task, struct server *server)
{
    return hash_until(task, server, task->length);
}

/* --- tasks that requests wait for --- */

static bool may_always_run(const void *context, uint64_t client)
{
    (void)context;
    (void)client;
    return true;
}

static void run_awaited(struct job *job)
{
    struct hash_task *task = (struct hash_task *)job;
    struct hash_queue *queue = task->queue;
    const uint64_t left = bytes_left(task);
    const uint64_t end = task->done_bytes + (left < AWAITED_BYTES ? left : AWAITED_BYTES);
    struct job *next;

    task->ops->over(task, queue->server, hash_until(task, queue->server, end));
    /* Do not use the task any more: it may have been freed. */
    pthread_mutex_lock(&queue->lock);
    assert(queue->awaited_running > 0);
    next = job_queue_take(&queue->awaited, may_always_run, NULL);
    queue->awaited_running -= next == NULL;
    pthread_mutex_unlock(&queue->lock);
    if (next != NULL)
        workers_submit(server_waiters(queue->server), next);
}

bool hash_queue_await(struct hash_queue *queue, struct hash_task *task)
{
    bool takes;
    bool runs;

    assert(task->urgency == HASH_AWAITED && !hash_task_is_done(task));
    task->job = (struct job){.run = run_awaited, .client = task->job.client};
    task->queue = queue;
    pthread_mutex_lock(&queue->lock);
    assert(queue->awaited_running == queue->awaited_most || queue->awaited.length == 0);
    takes = !queue->takes_no_awaited;
    runs = takes && queue->awaited_running < queue->awaited_most;
    queue->awaited_running += runs;
    if (takes && !runs)
        job_queue_put(&queue->awaited, &task->job);
    pthread_mutex_unlock(&queue->lock);
    if (runs)
        workers_submit(server_waiters(queue->server), &task->job);
    return takes;
}

void hash_queue_stop(struct hash_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->takes_no_awaited = true;
    pthread_mutex_unlock(&queue->lock);
}

/* --- the heap, with the lock held --- */

static bool is_stopped(const struct hash_queue *queue)
{
    return atomic_load(&queue->server->draining);
}

static bool is_before(const struct hash_task *a, const struct hash_task *b)
{
    return a->urgency != b->urgency ? a->urgency < b->urgency : bytes_left(a) < bytes_left(b);
}

static void swap(struct hash_queue *queue, size_t a, size_t b)
{
    struct hash_task *task = queue->tasks[a];

    queue->tasks[a] = queue->tasks[b];
    queue->tasks[b] = task;
}

static bool push(struct hash_queue *queue, struct hash_task *task)
{
    size_t at = queue->count;

    if (zt_array_reserve(&queue->tasks, &queue->capacity, at + 1, sizeof(struct hash_task *),
                         TASKS_MAX + SLOTS_MAX) != ZT_OK)
        return false;
    queue->tasks[queue->count++] = task;
    for (; at > 0 && is_before(queue->tasks[at], queue->tasks[(at - 1) / 2]); at = (at - 1) / 2)
        swap(queue, at, (at - 1) / 2);
    return true;
}

static struct hash_task *pop(struct hash_queue *queue)
{
    struct hash_task *first = queue->tasks[0];
    size_t at = 0;

    assert(queue->count > 0);
    queue->tasks[0] = queue->tasks[--queue->count];
    for (;;) {
        size_t least = at;

        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < queue->count; child++)
            if (is_before(queue->tasks[child], queue->tasks[least]))
                least = child;
        if (least == at)
            return first;
        swap(queue, at, least);
        at = least;
    }
}

static void wake_slots(struct hash_queue *queue, unsigned most)
{
    if (is_stopped(queue))
        return;
    for (unsigned i = 0; i < queue->slot_count && most > 0; i++) {
        if (queue->slots[i].is_queued)
            continue;
        queue->slots[i].is_queued = true;
        workers_submit_idle(server_waiters(queue->server), &queue->slots[i].job);
        most--;
    }
}

/* --- a turn --- */

/* Returns the next task. Returns NULL, and the slot becomes idle, if there is none or the server is
 * draining. */
static struct hash_task *take(struct slot *slot)
{
    struct hash_queue *queue = slot->queue;
    struct hash_task *task = NULL;

    pthread_mutex_lock(&queue->lock);
    assert(slot->is_queued);
    if (!is_stopped(queue)) {
        if (queue->count > 0 && (queue->tasks[0]->urgency == HASH_ASKED || queue->holds == 0))
            task = pop(queue);
        else if (queue->holds == 0 && queue->next != NULL)
            task = queue->next(queue->context);
    }
    slot->is_queued = task != NULL;
    pthread_mutex_unlock(&queue->lock);
    return task;
}

/* Puts a task back into the queue after its turn. */
static enum zt_status put_back(struct hash_queue *queue, struct hash_task *task)
{
    bool is_back;

    pthread_mutex_lock(&queue->lock);
    is_back = push(queue, task);
    pthread_mutex_unlock(&queue->lock);
    return is_back ? ZT_OK : ZT_NO_MEMORY;
}

static bool must_give_way(const struct hash_queue *queue)
{
    const int64_t awaited_ms =
        atomic_load_explicit(&queue->server->disk_awaited_ms, memory_order_relaxed);

    return awaited_ms != 0 && clock_coarse_ms() - awaited_ms < DISK_AWAITED_MS;
}

/* Works on a task until it is complete or the turn ends, and then puts it back or ends it. Hashes
 * at least one chunk, even if preparing has taken the whole turn. */
static void work_on(struct hash_queue *queue, struct hash_task *task, uint8_t *chunk,
                    int64_t until_ns)
{
    enum zt_status status = chunk != NULL ? prepare(task, queue->server) : ZT_NO_MEMORY;
    const uint64_t begun_at = task->done_bytes;

    while (status == ZT_OK && bytes_left(task) > 0) {
        if (task->done_bytes > begun_at && clock_ns() > until_ns &&
            (status = put_back(queue, task)) == ZT_OK)
            return;
        if (status == ZT_OK)
            status = is_stopped(queue) ? ZT_UNAVAILABLE : advance(task, chunk);
        if (must_give_way(queue))
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
    if (status == ZT_OK)
        finish_whole(task);
    task->ops->over(task, queue->server, status);
}

static void work(struct job *job)
{
    struct slot *slot = (struct slot *)job;
    const int64_t until_ns = clock_ns() + TURN_NS;
    uint8_t *chunk = malloc(CHUNK_BYTES);
    struct hash_task *task;

    while ((task = take(slot)) != NULL) {
        work_on(slot->queue, task, chunk, until_ns);
        if (clock_ns() > until_ns) {
            workers_submit_idle(server_waiters(slot->queue->server), &slot->job);
            break;
        }
    }
    /* The slot may already be running on another thread. */
    free(chunk);
}

/* --- for others --- */

struct hash_queue *hash_queue_new(struct server *server, unsigned awaited_most)
{
    struct hash_queue *queue = calloc(1, sizeof(*queue));
    const unsigned processors = processors_count();

    if (queue == NULL)
        return NULL;
    assert(processors > 0);
    queue->server = server;
    queue->awaited_most = awaited_most > 0 ? awaited_most : 1;
    job_queue_init(&queue->awaited);
    pthread_mutex_init(&queue->lock, NULL);
    queue->slot_count = processors < SLOTS_MAX ? processors : SLOTS_MAX;
    for (unsigned i = 0; i < queue->slot_count; i++) {
        queue->slots[i].job.run = work;
        queue->slots[i].queue = queue;
    }
    return queue;
}

void hash_queue_free(struct hash_queue *queue)
{
    if (queue == NULL)
        return;
    assert(queue->awaited.length == 0 && queue->awaited_running == 0);
    while (queue->count > 0) {
        struct hash_task *task = pop(queue);

        task->ops->over(task, queue->server, ZT_UNAVAILABLE);
    }
    free(queue->tasks);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

bool hash_queue_add(struct hash_queue *queue, struct hash_task *task)
{
    bool is_added;

    assert(task->ops != NULL && task->urgency != HASH_AWAITED);
    assert(task->done_bytes == 0 && task->digests == NULL);
    pthread_mutex_lock(&queue->lock);
    is_added = !is_stopped(queue) && queue->count < TASKS_MAX && push(queue, task);
    if (is_added)
        wake_slots(queue, 1);
    pthread_mutex_unlock(&queue->lock);
    return is_added;
}

void hash_queue_set_feed(struct hash_queue *queue, struct hash_task *(*next)(void *context),
                         void *context)
{
    pthread_mutex_lock(&queue->lock);
    queue->next = next;
    queue->context = context;
    pthread_mutex_unlock(&queue->lock);
}

void hash_queue_wake(struct hash_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    wake_slots(queue, 1);
    pthread_mutex_unlock(&queue->lock);
}

void hash_queue_hold(struct hash_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->holds++;
    pthread_mutex_unlock(&queue->lock);
}

void hash_queue_release(struct hash_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    assert(queue->holds > 0);
    queue->holds--;
    if (queue->holds == 0)
        wake_slots(queue, queue->slot_count);
    pthread_mutex_unlock(&queue->lock);
}
