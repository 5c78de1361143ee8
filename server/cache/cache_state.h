/* The structures that the files of the cache share, and its lock.
 *
 * One lock covers everything but what a pin and a read of blocks that are here need: the states of
 * blocks and the pins of extents are atomic. It is never held across a call that waits for a disk
 * or for a store.
 *
 *   source (source.c, pins.c)     what the server reads from; knows its origin
 *   file   (files.c)              one version: blocks, extents, the sparse file; shared by sources
 *   run    (runs.c, landing.c)    blocks on their way: fetched or checked, then written
 *   extent (extents.c)            64 blocks, pinned and evicted together
 *   folder (folder.c, index_file.c)  names and bytes on the disk */
#ifndef CACHE_CACHE_STATE_H
#define CACHE_CACHE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "cache/buffers.h"
#include "cache/cache.h"
#include "cache/folder.h"
#include "disk/disk_space.h"

#define CACHE_EXTENT_BLOCKS ((uint32_t)(CACHE_EXTENT_BYTES / CACHE_BLOCK_BYTES))
#define CACHE_RUN_BLOCKS    ((uint32_t)(CACHE_RUN_BYTES / CACHE_BLOCK_BYTES))

/* A block is, of these, in exactly one state. */
enum block_state {
    BLOCK_ABSENT,
    BLOCK_COMING,  /* of a run */
    BLOCK_CLAIMED, /* the index says that it is in the file; not compared yet */
    BLOCK_HERE     /* in the file, and right */
};
#define BLOCK_STATE_BITS 3u
/* Its checksum is known, whether it is here or not. */
#define BLOCK_KNOWN 4u

struct extent {
    atomic_uint pins;
    bool is_used;     /* something of it may be on the disk */
    bool is_punching; /* not to be written to now */
    _Atomic(int64_t) used_ms;
};

enum file_phase {
    FILE_CLOSED, /* only its extents are known */
    FILE_BUSY,   /* one thread opens, closes or removes it; others wait for cache.settled */
    FILE_OPEN
};

/* The beginning of a block that readers have had before its fetch failed. The next fetch must
 * begin with the same bytes. */
struct cached_prefix {
    struct cached_prefix *next;
    uint64_t offset;
    uint64_t length;
    uint64_t checksum;
};

/* One version. */
struct cached_file {
    struct cached_file *next; /* in its bucket of the table */
    struct cached_file *next_leaving;
    struct cache *cache;
    uint8_t key[CACHE_KEY_BYTES];
    uint64_t size_bytes;
    uint32_t block_count;
    uint32_t extent_count;
    struct extent *extents;
    uint64_t disk_bytes;
    enum file_phase phase;
    unsigned users; /* sources, jobs, evictions; 0 and open: it is to be closed */
    bool is_leaving;
    atomic_bool is_lost; /* the store has other bytes now: nothing is read from here any more */
    bool was_asked;      /* a run was begun, or there are blocks */
    atomic_bool is_cut;  /* somebody has cut it short: nothing is written to it, or here */
    bool is_mending;     /* it is being made as long again */
    _Atomic(int64_t) checked_ms; /* when its length was looked at */
    unsigned
        checks_left; /* how often the disk is still asked whether it has kept what was written */
    /* While open. */
    struct zt_source *view; /* NULL: nothing can be kept */
    int descriptor;         /* the view's, or -1 */
    _Atomic(uint8_t) *states;
    uint64_t *checksums;
    struct cached_prefix *prefixes;
    struct run *runs;
};

struct cache_source {
    struct zt_source base;
    struct cache *cache;
    struct cached_file *file;
    struct cache_origin *origin;
    unsigned holders; /* the caller, and each run */
    struct cache_source *next_ended;
};

struct run;

struct run_queue {
    struct run *first;
    struct run *last;
};

#define CACHE_TABLE_SIZE 16384u
/* One of them compares, and never touches the disk. */
#define CACHE_LANDERS 3u

struct cache {
    pthread_mutex_t lock;
    pthread_cond_t settled; /* a file is not busy any more, an extent was punched, a run ended */
    pthread_cond_t work;    /* for the landers */
    pthread_cond_t fetched; /* for the thread that compares */
    pthread_condattr_t monotonic;
    struct folder folder;
    struct workers *workers;
    struct cached_file *table[CACHE_TABLE_SIZE];
    struct cached_file *leaving;
    struct cache_source *ended;
    struct zt_source_waiter *woken; /* to be called by whoever unlocks; oldest first */
    struct zt_source_waiter **woken_end;
    size_t file_count;
    size_t source_count;
    size_t job_count;
    /* Runs. */
    struct run_queue urgent; /* wait for their turn */
    struct run_queue ready;  /* chosen to begin, by whoever unlocks */
    struct run_queue landed; /* for the landers: arrived, or right and to be written */
    struct run *fetching;    /* by their origins; latest first */
    struct run *kept;        /* could not be written; oldest first */
    struct buffer_pool buffers;
    size_t run_count;
    size_t fetching_count;
    uint64_t on_the_way_bytes;
    /* Room. */
    uint64_t max_bytes; /* 0: no bound but the reserve */
    uint64_t used_bytes;
    uint64_t reserved_bytes; /* about to be written */
    uint64_t free_bytes;     /* of the file system, as of the last look */
    uint64_t reserve_bytes;
    int64_t broken_until_ms; /* not to be written to before */
    bool is_broken;
    atomic_bool cannot_punch;
    bool is_to_trim; /* the limit was lowered */
    struct disk_saver saver;
    int64_t next_tick_ms;
    atomic_bool is_stopping; /* work that nobody waits for ends */
    bool has_ended;          /* so do the landers */
    pthread_t landers[CACHE_LANDERS];
    unsigned lander_count;
};

void cache_lock(struct cache *cache);
/* Also begins the runs whose turn it is, closes the origins of sources that ended, and wakes
 * waiters. */
void cache_unlock(struct cache *cache);
/* Waits, with the lock; may return without cause. */
void cache_wait(struct cache *cache, pthread_cond_t *condition);
/* The same until a time by the monotonic clock, for conditions of runs, cache.settled, .work. */
void cache_wait_until(struct cache *cache, pthread_cond_t *condition, int64_t until_ms);

static inline uint32_t block_of(uint64_t offset)
{
    return (uint32_t)(offset / CACHE_BLOCK_BYTES);
}

static inline uint32_t extent_of_block(uint32_t block)
{
    return block / CACHE_EXTENT_BLOCKS;
}

static inline enum block_state block_state(const struct cached_file *file, uint32_t block)
{
    return (enum block_state)(atomic_load(&file->states[block]) & BLOCK_STATE_BITS);
}

/* With the lock. */
static inline void block_set(struct cached_file *file, uint32_t block, enum block_state state)
{
    uint8_t known = atomic_load(&file->states[block]) & BLOCK_KNOWN;

    atomic_store(&file->states[block], (uint8_t)(known | (uint8_t)state));
}

/* The file's last block may be shorter. */
static inline uint64_t block_length(const struct cached_file *file, uint32_t block)
{
    uint64_t offset = block * CACHE_BLOCK_BYTES;
    uint64_t left = file->size_bytes - offset;

    return left < CACHE_BLOCK_BYTES ? left : CACHE_BLOCK_BYTES;
}

#endif
