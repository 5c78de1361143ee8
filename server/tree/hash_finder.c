/* Finders: idle jobs that hash one wanted file after another, in short turns, so that none of them
 * occupies a thread for long. The file with the least bytes left comes first, so that a huge one
 * does not hold up the many small ones beside it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/processors.h"
#include "tree/hash_work.h"

/* As finders of components' digests (verify/digest_finder.c). */
#define TURN_NS         (20 * CLOCK_NS_PER_MS)
#define DISK_AWAITED_MS 100
#define NAP_NS          (5 * CLOCK_NS_PER_MS)

static bool is_stopped(const struct file_hashes *hashes)
{
    return atomic_load(&hashes->server->draining);
}

/* --- the heap, with the lock held --- */

static bool is_before(const struct hash_task *a, const struct hash_task *b)
{
    return hash_task_left(a) < hash_task_left(b);
}

static void swap(struct file_hashes *hashes, size_t a, size_t b)
{
    struct hash_task *task = hashes->wanted[a];

    hashes->wanted[a] = hashes->wanted[b];
    hashes->wanted[b] = task;
}

static bool push(struct file_hashes *hashes, struct hash_task *task)
{
    size_t at = hashes->wanted_count;

    if (zt_array_reserve(&hashes->wanted, &hashes->wanted_capacity, at + 1,
                         sizeof(struct hash_task *), HASH_WANTED_MAX) != ZT_OK)
        return false;
    hashes->wanted[hashes->wanted_count++] = task;
    for (; at > 0 && is_before(hashes->wanted[at], hashes->wanted[(at - 1) / 2]); at = (at - 1) / 2)
        swap(hashes, at, (at - 1) / 2);
    return true;
}

static struct hash_task *pop(struct file_hashes *hashes)
{
    struct hash_task *first = hashes->wanted[0];
    size_t at = 0;

    assert(hashes->wanted_count > 0);
    hashes->wanted[0] = hashes->wanted[--hashes->wanted_count];
    for (;;) {
        size_t least = at;

        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < hashes->wanted_count;
             child++)
            if (is_before(hashes->wanted[child], hashes->wanted[least]))
                least = child;
        if (least == at)
            return first;
        swap(hashes, at, least);
        at = least;
    }
}

bool hash_finder_add(struct file_hashes *hashes, struct hash_task *task)
{
    return push(hashes, task);
}

/* --- what a finder does --- */

static struct workers *workers_of(const struct file_hashes *hashes)
{
    return server_waiters(hashes->server);
}

void hash_finder_wake(struct file_hashes *hashes)
{
    if (is_stopped(hashes))
        return;
    for (unsigned i = 0; i < hashes->finder_count; i++) {
        if (hashes->finders[i].is_queued)
            continue;
        hashes->finders[i].is_queued = true;
        workers_submit_idle(workers_of(hashes), &hashes->finders[i].job);
        return;
    }
}

/* The next task. NULL, and the finder rests, if there is none or the server stops. */
static struct hash_task *take(struct hash_finder *finder)
{
    struct file_hashes *hashes = finder->hashes;
    struct hash_task *task = NULL;

    pthread_mutex_lock(&hashes->lock);
    assert(finder->is_queued);
    if (hashes->wanted_count > 0 && !is_stopped(hashes))
        task = pop(hashes);
    finder->is_queued = task != NULL;
    pthread_mutex_unlock(&hashes->lock);
    return task;
}

/* The file must be wanted again. */
static void give_up(struct file_hashes *hashes, struct hash_task *task)
{
    struct hash_entry *entry;

    pthread_mutex_lock(&hashes->lock);
    entry = hash_table_find(&hashes->table, &task->key);
    if (entry != NULL && !entry->is_known)
        hash_table_remove(&hashes->table, entry);
    pthread_mutex_unlock(&hashes->lock);
    hash_task_free(task);
}

/* Puts a task that is not at its end back among the others. */
static void put_back(struct file_hashes *hashes, struct hash_task *task)
{
    bool is_back;

    pthread_mutex_lock(&hashes->lock);
    is_back = push(hashes, task);
    pthread_mutex_unlock(&hashes->lock);
    if (!is_back)
        give_up(hashes, task);
}

static bool must_give_way(const struct file_hashes *hashes)
{
    const int64_t awaited_ms =
        atomic_load_explicit(&hashes->server->disk_awaited_ms, memory_order_relaxed);

    return awaited_ms != 0 && clock_coarse_ms() - awaited_ms < DISK_AWAITED_MS;
}

/* Of what is elsewhere, little is brought here for this. */
static bool may_read(const struct hash_task *task)
{
    const uint64_t size = task->identity.size_bytes;
    struct zt_pin pin;

    if (!zt_source_is_elsewhere(task->source) || size <= HASH_FETCHED_MAX)
        return true;
    if (zt_source_pin(task->source, 0, size, false, &pin, NULL) != ZT_OK)
        return false;
    zt_pin_release(&pin);
    return true;
}

static void conclude(struct file_hashes *hashes, struct hash_task *task)
{
    uint8_t sha256[FILE_SHA256_BYTES];

    if (hash_task_finish(task, hashes->server->store, sha256, NULL) != ZT_OK) {
        give_up(hashes, task);
        return;
    }
    file_hashes_keep(hashes, task->path, &task->identity, sha256);
    hash_task_free(task);
}

/* Works on a task until its end or that of the turn, and disposes of it. */
static void work_on(struct hash_finder *finder, struct hash_task *task, int64_t until_ns)
{
    struct file_hashes *hashes = finder->hashes;

    if (task->source == NULL &&
        (hash_task_begin(task, hashes->server, NULL) != ZT_OK || !may_read(task))) {
        give_up(hashes, task);
        return;
    }
    while (hash_task_left(task) > 0) {
        if (is_stopped(hashes) || hash_task_read(task, finder->chunk, NULL) != ZT_OK) {
            give_up(hashes, task);
            return;
        }
        if (must_give_way(hashes))
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        if (clock_ns() > until_ns && hash_task_left(task) > 0) {
            put_back(hashes, task);
            return;
        }
    }
    conclude(hashes, task);
}

static void work(struct job *job)
{
    struct hash_finder *finder = (struct hash_finder *)job;
    const int64_t until_ns = clock_ns() + TURN_NS;
    struct hash_task *task;

    saved_hashes_write(finder->hashes);
    if (finder->chunk == NULL)
        finder->chunk = malloc(HASH_CHUNK_BYTES);
    while ((task = take(finder)) != NULL) {
        if (finder->chunk != NULL)
            work_on(finder, task, until_ns);
        else
            give_up(finder->hashes, task);
        if (clock_ns() > until_ns) {
            workers_submit_idle(workers_of(finder->hashes), &finder->job);
            return;
        }
    }
}

void hash_finders_init(struct file_hashes *hashes)
{
    const unsigned processors = processors_count();

    hashes->finder_count = processors < HASH_FINDERS_MAX ? processors : HASH_FINDERS_MAX;
    for (unsigned i = 0; i < hashes->finder_count; i++) {
        hashes->finders[i].job.run = work;
        hashes->finders[i].hashes = hashes;
    }
}

void hash_finders_clear(struct file_hashes *hashes)
{
    while (hashes->wanted_count > 0)
        hash_task_free(pop(hashes));
    free(hashes->wanted);
    for (unsigned i = 0; i < hashes->finder_count; i++)
        free(hashes->finders[i].chunk);
}
