/* Blocks on their way. A run is a stretch of blocks of one extent that are fetched from the origin,
 * or, when they are claimed, read from the disk and compared. All readers of one of its blocks wait
 * for the same run, which continues when readers leave.
 *
 *   queued -> fetching -> arrived -> taken -> ready -> writing -> ended
 *                ^                    |                  |
 *                +-- fetched again ---+                  +-> kept (not written) -> ended
 *   (a check) -----------> arrived -> taken -> ended
 *
 * Arrived and ready runs are landed by the cache's threads; a waiting reader may do the comparing.
 * So readers never wait for a worker, because they may occupy all workers. */
#ifndef CACHE_RUNS_H
#define CACHE_RUNS_H

#include "cache/cache_state.h"

enum run_stage {
    RUN_QUEUED,   /* until so little is on the way that it may begin */
    RUN_FETCHING, /* the origin fills its buffer */
    RUN_ARRIVED,  /* nothing is known of the bytes */
    RUN_TAKEN,    /* a thread compares them */
    RUN_READY,    /* they are right; to be written */
    RUN_WRITING,
    RUN_KEPT, /* in memory only; readers may have them until the memory is needed */
    RUN_ENDED
};

struct run {
    struct cache_fetch fetch; /* first */
    struct cache_source *source;
    struct cached_file *file;
    struct run *next_of_file;
    struct run *next; /* in a queue, or of those that are kept */
    struct run *next_fetching;
    int64_t fetching_ms; /* since when it is fetched */
    uint32_t first;
    uint32_t count;
    enum run_stage stage;
    bool is_check;
    bool was_repeated;
    bool is_stored;
    unsigned holders; /* whoever lands it, and those who wait for it or copy from it */
    unsigned waiting;
    /* While it is fetched, readers may have the bytes that have arrived. Not if any of its blocks
     * has a known checksum: those are compared first. */
    bool is_early;
    bool is_void; /* bytes that readers had were found wrong: no others get any of them */
    _Atomic(uint64_t) arrived;
    uint64_t passed;       /* bytes that readers have had before all were there */
    atomic_uint listening; /* waiters, and threads that wait for the next bytes */
    struct zt_source_waiter *waiters;
    bool was_read;    /* to its end */
    int64_t ready_ms; /* since when its bytes are known to be right */
    int64_t kept_ms;
    uint64_t checksums[CACHE_RUN_BYTES / CACHE_BLOCK_BYTES];
    enum zt_status status; /* when ended; the bytes are right if ZT_OK and not a check */
    struct zt_error error;
    pthread_cond_t changed;
};

/* All with the lock. */

/* Begins runs for absent or claimed blocks of a range, as far as the limit on fetches allows.
 * is_urgent: a reader waits for the first block, which has a run then, or it is ZT_NO_MEMORY. */
enum zt_status runs_begin(struct cache_source *source, uint32_t first, uint32_t last,
                          bool is_urgent, struct zt_error *error);

/* The run that a block is of; NULL: none. */
struct run *run_find(const struct cached_file *file, uint32_t block);

/* Waits until the bytes of a run are ready (or, stored: until it was written, or cannot be, or has
 * been waiting for the disk for too long), or it failed, and does what it can for that itself.
 * Gives up the lock meanwhile. The caller holds the run. */
void run_await(struct run *run, bool until_stored);

/* Whether the byte at an offset of the file can be copied from the run, which is held. */
bool run_has(const struct run *run, uint64_t offset);
/* Waits until run_has, or until the run is over. As run_await. */
void run_await_byte(struct run *run, uint64_t offset);
/* Adds a waiter, which wakes as soon as all bytes before waiter->until can be copied
 * (is_for_checked: once the run is ready), or when the run ends. */
void run_listen(struct run *run, struct zt_source_waiter *waiter);
/* Moves waiters that have what they wait for to those that are woken; all of them if the run is
 * ready or has ended. */
void run_wake(struct run *run);

static inline void run_hold(struct run *run)
{
    run->holders++;
}

void run_release(struct run *run);

/* A run is over; its blocks are what they were set to. The landing's hold of it ends. */
void run_end(struct run *run, enum zt_status status);

/* Keeps the bytes of a run that could not be written for those who read on. */
void run_keep(struct run *run);
/* A kept run was read to its end, or its memory is needed. */
void run_drop(struct run *run);

/* Puts a run back to be fetched a second time, into the same buffer. */
void run_repeat(struct run *run);

/* The origin has filled its buffer, or cannot. */
void run_fetched(struct run *run);

/* Chooses runs that may begin now; they are begun after the lock was given up. */
void runs_choose(struct cache *cache);
/* Without the lock. */
void runs_start(struct run *first);

void run_queue_put(struct run_queue *queue, struct run *run);
struct run *run_queue_take(struct run_queue *queue);
bool run_queue_remove(struct run_queue *queue, struct run *run);

#endif
