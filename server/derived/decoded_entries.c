/* Adds, finds, lists and evicts the entries of the cache of decoded components. */
#include "derived/decoded_entries.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* The cost of an entry besides its bytes, so that the number of empty entries is bounded too. */
#define ENTRY_BYTES 512
/* Files that the cache keeps open. */
#define FILES_MAX 256
/* A new entry stays until the first waiting request has received it, but no longer than this. */
#define PICKUP_LIMIT_NS ((int64_t)5000000000)

struct decoded_entry **decoded_find_link(struct decoded_cache *cache, const uint64_t key[2])
{
    struct decoded_entry **link = &cache->buckets[key[0] % DECODED_BUCKETS];

    while (*link != NULL && ((*link)->key[0] != key[0] || (*link)->key[1] != key[1]))
        link = &(*link)->chain;
    return link;
}

static uint64_t charge(const struct decoded_entry *entry)
{
    return ENTRY_BYTES + entry->base.length + (entry->error != NULL ? sizeof(*entry->error) : 0);
}

static bool is_file(const struct decoded_entry *entry)
{
    return entry->base.source != NULL && zt_source_descriptor(entry->base.source) >= 0;
}

void decoded_evict(struct decoded_cache *cache, struct decoded_entry *entry,
                   struct decoded_entry **evicted)
{
    assert(*decoded_find_link(cache, entry->key) == entry);
    assert(entry->references == 0 && entry->state != ENTRY_DECODING);
    assert(cache->bytes >= charge(entry));
    *decoded_find_link(cache, entry->key) = entry->chain;
    recency_remove(&cache->entries, &entry->link);
    cache->bytes -= charge(entry);
    cache->files -= is_file(entry);
    entry->chain = *evicted;
    *evicted = entry;
}

static bool is_wanted(const struct decoded_entry *entry, int64_t now)
{
    return entry->references > 0 || (!entry->handed_out && now - entry->ended_ns < PICKUP_LIMIT_NS);
}

struct decoded_entry *decoded_shrink(struct decoded_cache *cache)
{
    uint64_t limit = (uint64_t)config_number(&cache->server->config->limits.decoded_cache_bytes);
    struct decoded_entry *evicted = NULL;
    struct recency_link *link = cache->entries.oldest;
    int64_t now = clock_ns();

    while (link != NULL && (cache->bytes > limit || cache->files > FILES_MAX)) {
        struct decoded_entry *entry = (struct decoded_entry *)link;

        link = link->newer;
        if (!is_wanted(entry, now) && (link != NULL || limit == 0))
            decoded_evict(cache, entry, &evicted);
    }
    return evicted;
}

void decoded_free_entries(struct decoded_entry *evicted)
{
    while (evicted != NULL) {
        struct decoded_entry *next = evicted->chain;

        zt_source_close(evicted->base.source);
        free(evicted->bytes);
        free(evicted->error);
        free(evicted);
        evicted = next;
    }
}

void decoded_list(struct decoded_cache *cache, struct decoded_entry *entry)
{
    assert(entry->state != ENTRY_DECODING);
    recency_add(&cache->entries, &entry->link);
    cache->bytes += charge(entry);
    cache->files += is_file(entry);
}

struct decoded_entry *decoded_add(struct decoded_cache *cache, const uint64_t key[2])
{
    struct decoded_entry *entry = calloc(1, sizeof(*entry));
    struct zt_error *error = calloc(1, sizeof(*error));
    struct decoded_entry **bucket = &cache->buckets[key[0] % DECODED_BUCKETS];

    if (entry == NULL || error == NULL) {
        free(entry);
        free(error);
        return NULL;
    }
    zt_error_clear(error);
    memcpy(entry->key, key, sizeof(entry->key));
    entry->cache = cache;
    entry->references = 1;
    entry->error = error;
    entry->chain = *bucket;
    *bucket = entry;
    return entry;
}
