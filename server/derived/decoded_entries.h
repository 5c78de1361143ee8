/* The entries of the cache of decoded components: a hash table, and the order of last use, by which
 * it is kept within its bounds. What those that somebody uses hold counts, but only the others are
 * taken out.
 *
 * Everything but freeing is to be called with the cache's lock held. */
#ifndef DERIVED_DECODED_ENTRIES_H
#define DERIVED_DECODED_ENTRIES_H

#include <pthread.h>
#include <stdatomic.h>

#include "derived/decoded.h"

/* A power of two; chains are short for as many entries as memory of a usual bound holds. */
#define DECODED_BUCKETS 4096

enum decoded_state { ENTRY_DECODING, ENTRY_READY, ENTRY_FAILED };

struct decoded_entry {
    struct decoded base; /* first: what is handed out is the entry */
    struct decoded_cache *cache;
    uint64_t key[2];
    enum decoded_state state;
    bool claimed; /* a thread is at it; until then its job may be forestalled */
    unsigned references;
    bool handed_out;
    int64_t ended_ns;
    uint8_t *bytes; /* under a source of memory */
    struct zt_error *error;
    struct waiter *waiters;
    struct decoded_entry *chain;
    struct decoded_entry *newer;
    struct decoded_entry *older;
};

struct decoded_cache {
    struct server *server;
    pthread_mutex_t lock;
    pthread_cond_t settled;
    struct decoded_entry *buckets[DECODED_BUCKETS];
    struct decoded_entry *newest; /* of entries that are not being decoded */
    struct decoded_entry *oldest;
    uint64_t bytes;
    size_t files;
    atomic_bool stopping;
};

int64_t decoded_now_ns(void);

/* The link that leads to the entry of a key; where one is to be put in when there is none. */
struct decoded_entry **decoded_find_link(struct decoded_cache *cache, const uint64_t key[2]);

/* An entry that is to be decoded, held by the caller. NULL when memory is out. */
struct decoded_entry *decoded_add(struct decoded_cache *cache, const uint64_t key[2]);

/* An entry is no longer being decoded: it counts from now on, as the newest. */
void decoded_charge(struct decoded_cache *cache, struct decoded_entry *entry);
/* It was used now. */
void decoded_touch(struct decoded_cache *cache, struct decoded_entry *entry);

/* Takes an entry out; *doomed gathers what is to be freed once the lock is given back. */
void decoded_evict(struct decoded_cache *cache, struct decoded_entry *entry,
                   struct decoded_entry **doomed);

/* Brings the cache back to its bound, oldest first. One entry larger than the bound may stay as the
 * newest, so that its next range does not decode it anew; with a bound of 0 nothing stays. Gives
 * what is to be freed. */
struct decoded_entry *decoded_shrink(struct decoded_cache *cache);

void decoded_free_entries(struct decoded_entry *doomed);

#endif
