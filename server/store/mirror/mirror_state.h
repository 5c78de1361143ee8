/* State of mirrored files that their sources share with the verification.
 *
 * One lock covers all files of an upstream. It is never held across a call that waits, or a call of
 * the cache. */
#ifndef STORE_MIRROR_MIRROR_STATE_H
#define STORE_MIRROR_MIRROR_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/workers.h"
#include "cache/cache.h"
#include "store/mirror/mirror_file.h"
#include "store/store.h"
#include "zt/digest.h"

enum mirror_verdict {
    MIRROR_UNKNOWN,
    MIRROR_VERIFIED,
    MIRROR_WRONG /* or other bytes than before */
};

/*   parked -> queued -> (bytes are missing) waiting -> queued
 *     ^         |  |                           |
 *     +---------+--+---------------------------+  */
enum mirror_hashing {
    MIRROR_PARKED, /* the next bytes are not here, and are not coming */
    MIRROR_QUEUED, /* a worker hashes, or will */
    MIRROR_WAITING /* the cache wakes the file when the next bytes are settled */
};

/* One version of a file, shared by its sources. */
struct mirror_file {
    struct cache_origin origin; /* first; its close frees the file */
    struct mirror_files *files;
    struct mirror_file *next; /* in the list */
    bool is_listed;
    unsigned users; /* sources */
    int64_t used_ms;
    uint8_t key[CACHE_KEY_BYTES];
    struct mirror_place place;
    char *texts; /* of the place */
    struct zt_source *cached;
    _Atomic(enum mirror_verdict) verdict;
    atomic_bool is_dropped; /* lost because its repository was removed */
    /* Blocks that a client may have had. */
    uint32_t block_count;
    uint32_t left_count; /* blocks that no client has had */
    uint8_t *had;        /* a bit for each block */
    bool is_withheld;    /* no block is passed on before the verdict */
    /* Hashing; hasher and hashed_bytes are the job's while it is queued. */
    enum mirror_hashing hashing;
    bool is_poked;   /* look again before parking */
    bool is_doubted; /* a reader found wrong bytes: all of it is fetched, to be checked */
    bool is_closed;  /* cached is closed, the file will be freed */
    struct job job;
    struct zt_source_waiter arrival;
    struct zt_hasher *hasher;
    _Atomic(uint64_t) hashed_bytes;
    struct zt_source_waiter *waiters; /* want all of it, verified */
    /* mirror_shared.c; shared is constant. */
    struct store_shared_file shared;
    atomic_bool is_shared; /* bytes are fetched from the inner store */
    bool is_offered;       /* it will be kept there; the list of offers has a user */
    bool is_kept;          /* it is there */
    int64_t offered_ms;    /* when that was last tried; 0: never */
    struct mirror_file *next_offer;
};

#define MIRROR_OTHER_BYTES "the upstream sent different bytes for the same file"
#define MIRROR_WRONG_BYTES "the upstream sent wrong bytes"
#define MIRROR_DROPPED     "the repository was removed from the mirror"

/* The last files of which something was found out, in a ring. */
#define MIRROR_NOTED_MOST 1024u

struct mirror_noted {
    struct {
        uint8_t key[CACHE_KEY_BYTES];
        int64_t at_ms; /* 0: none */
    } files[MIRROR_NOTED_MOST];
    unsigned next;
};

struct mirror_files {
    struct mirror_files_options options;
    pthread_mutex_t lock;
    pthread_cond_t parked;   /* no file is hashed */
    pthread_mutex_t opening; /* one file is opened at once; taken before lock */
    struct mirror_file *first;
    unsigned busy_count; /* files that are not parked */
    atomic_uint holders; /* the owner, and each file */
    atomic_bool is_strict;
    atomic_bool is_stopping;
    _Atomic(uint64_t) read_bytes;
    struct mirror_noted wrong;
    /* mirror_shared.c */
    struct job offering;
    struct mirror_file *offers;
    unsigned offer_count;
    bool is_offering;
    struct mirror_noted kept;       /* files in the inner store */
    _Atomic(int64_t) find_after_ms; /* 0: the inner store answers; else one open a second asks it */
    unsigned shared_reads;          /* fetches from the inner store that are on their way */
};

/* Why a lost file cannot be read. */
static inline const char *mirror_why_lost(const struct mirror_file *file)
{
    return atomic_load(&file->is_dropped) ? MIRROR_DROPPED : MIRROR_WRONG_BYTES;
}

static inline bool mirror_has_digest(const struct mirror_file *file)
{
    return file->place.file.digest_kind != UPSTREAM_NO_DIGEST;
}

/* With the lock: notes a file, finds one that was noted within an hour, and takes the note back. */
void mirror_noted_add(struct mirror_noted *noted, const uint8_t key[CACHE_KEY_BYTES]);
bool mirror_noted_has(const struct mirror_noted *noted, const uint8_t key[CACHE_KEY_BYTES]);
void mirror_noted_remove(struct mirror_noted *noted, const uint8_t key[CACHE_KEY_BYTES]);

/* With the lock: lets the verification look whether there is something to hash. */
void mirror_verify_poke(struct mirror_file *file);

/* With the lock: a waiter for all of the file; poke afterwards. */
void mirror_verify_await(struct mirror_file *file, struct zt_source_waiter *waiter);
/* With the lock: the waiter waits no more. Returns false if it is woken. */
bool mirror_verify_forget(struct mirror_file *file, struct zt_source_waiter *waiter);

/* Without the lock. The cache has lost the file because the upstream sent other bytes than before,
 * or its digest disagrees. */
void mirror_verify_wrong(struct mirror_file *file, const char *why);

/* Without the lock. The same for a file whose repository is removed: no byte was wrong. */
void mirror_verify_drop(struct mirror_file *file);

/* Without the lock: wakes all waiters of a list, with an error or, if it is NULL, without. */
void mirror_wake(struct zt_source_waiter *waiter, const struct zt_error *error);
void mirror_wake_failed(struct zt_source_waiter *waiter, enum zt_status status, const char *why);

/* With the lock; gives it up. Closes a file that nothing needs any more. */
void mirror_file_unlock(struct mirror_file *file);

/* Memory for the texts of a place, and a copy of it with its texts there. */
size_t mirror_texts_size(const struct mirror_place *place);
void mirror_place_copy(const struct mirror_place *from, char *texts,
                       struct mirror_place *out_place);

/* Without the lock. Finds or makes the file of a place, with one more user. May wait for a disk. */
enum zt_status mirror_file_acquire(struct mirror_files *files, const struct mirror_place *place,
                                   struct mirror_file **out_file, struct zt_error *error);
/* Without the lock. One user less. */
void mirror_file_release(struct mirror_file *file);

/* With the lock: notes that clients may have a block. Returns false, and notes nothing, for the
 * last one that none has had. */
bool mirror_file_mark(struct mirror_file *file, uint32_t block);

/* --- mirror_shared.c: without the lock --- */

/* Finds out whether another server has kept a file that is not here. May wait for the inner
 * store. */
bool mirror_shared_find(struct mirror_files *files, const struct mirror_place *place,
                        struct store_shared_file *out_shared);
/* Fetches from the inner store. Returns false if the file is not there; never waits. */
bool mirror_shared_fetch(struct mirror_file *file, struct cache_fetch *fetch);
/* Keeps a file for other servers, in the background, if it is verified and not there yet. Never
 * waits. */
void mirror_shared_offer(struct mirror_file *file);
/* Waits for the interrupted reads. Call it after mirror_files_interrupt and the end of the waiters,
 * and before the upstream's requests end. Takes NULL. */
void mirror_shared_end(struct mirror_files *files);

/* One holder less of what all files share. */
void mirror_files_release(struct mirror_files *files);

/* With the lock: no open finds the file any more. */
void mirror_file_unlist(struct mirror_file *file);

#endif
