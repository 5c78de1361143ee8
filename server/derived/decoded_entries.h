/* The entries of the cache of decoded components: a hash table, and a list in order of last use.
 * All entries count toward the bounds, but those in use are never evicted.
 *
 * All functions except decoded_free_entries need the cache's lock. */
#ifndef DERIVED_DECODED_ENTRIES_H
#define DERIVED_DECODED_ENTRIES_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/recency.h"
#include "derived/decoded.h"

/* Keeps chains short for the number of entries that usual bounds allow. */
#define DECODED_BUCKETS 4096

enum decoded_state { ENTRY_DECODING, ENTRY_READY, ENTRY_FAILED };

struct decoded_entry {
    struct recency_link link; /* first: the list's entry is the entry */
    struct decoded base;
    struct decoded_cache *cache;
    uint64_t key[2];
    enum decoded_state state;
    struct job *job; /* of the worker that will decode it, until that begins */
    bool claimed;    /* a thread decodes it; until then any thread may claim it */
    unsigned references;
    bool handed_out; /* a request has received the result */
    int64_t ended_ns;
    uint64_t limit_bytes; /* limits.decoded_bytes when it was decoded */
    uint8_t *bytes;       /* the memory that base.source reads; NULL for a file */
    struct zt_error *error;
    struct waiter *waiters;
    struct decoded_entry *chain; /* of its bucket, and of evicted entries */
};

struct decoded_cache {
    struct server *server;
    pthread_mutex_t lock;
    pthread_cond_t decoded; /* some entry is no longer being decoded */
    struct decoded_entry *buckets[DECODED_BUCKETS];
    struct recency entries; /* those that are not being decoded */
    uint64_t bytes;         /* charged for these entries */
    size_t files;           /* that these entries keep open */
    atomic_bool stopping;
};

/* The pointer to the entry of a key, or, if there is none, to the end of its bucket. */
struct decoded_entry **decoded_find_link(struct decoded_cache *cache, const uint64_t key[2]);

/* Adds an entry in state DECODING, held by the caller. NULL if out of memory. */
struct decoded_entry *decoded_add(struct decoded_cache *cache, const uint64_t key[2]);

/* Lists an entry that has been decoded, as the newest: from now on it counts. */
void decoded_list(struct decoded_cache *cache, struct decoded_entry *entry);

/* Removes an entry and adds it to *evicted, to be freed without the lock. */
void decoded_evict(struct decoded_cache *cache, struct decoded_entry *entry,
                   struct decoded_entry **evicted);

/* Evicts entries, oldest first, until the cache is within its bounds, and returns them, to be freed
 * without the lock. The newest entry stays even if it exceeds the bound by itself, so that the next
 * range does not decode it again; with a bound of 0, nothing stays. */
struct decoded_entry *decoded_shrink(struct decoded_cache *cache);

void decoded_free_entries(struct decoded_entry *evicted);

#endif
