/* The entries of the cache of decoded components: a hash table, and the order of last use. */
#include "derived/decoded_entries.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Each entry costs that beside its bytes; so many empty ones are bounded too. */
#define ENTRY_BYTES 512
/* Files kept open for nobody. */
#define FILES_MAX 256
/* What was decoded stays for those who waited for it, until the first of them was there or this has
 * passed. */
#define PROMISE_NS ((int64_t)5000000000)

int64_t decoded_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

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

static void enlist(struct decoded_cache *cache, struct decoded_entry *entry)
{
    entry->newer = NULL;
    entry->older = cache->newest;
    if (cache->newest != NULL)
        cache->newest->newer = entry;
    else
        cache->oldest = entry;
    cache->newest = entry;
}

static void delist(struct decoded_cache *cache, struct decoded_entry *entry)
{
    if (entry->newer != NULL)
        entry->newer->older = entry->older;
    else
        cache->newest = entry->older;
    if (entry->older != NULL)
        entry->older->newer = entry->newer;
    else
        cache->oldest = entry->newer;
}

void decoded_evict(struct decoded_cache *cache, struct decoded_entry *entry,
                   struct decoded_entry **doomed)
{
    *decoded_find_link(cache, entry->key) = entry->chain;
    delist(cache, entry);
    cache->bytes -= charge(entry);
    cache->files -= is_file(entry);
    entry->chain = *doomed;
    *doomed = entry;
}

static bool is_wanted(const struct decoded_entry *entry, int64_t now)
{
    return entry->references > 0 || (!entry->handed_out && now - entry->ended_ns < PROMISE_NS);
}

struct decoded_entry *decoded_shrink(struct decoded_cache *cache)
{
    uint64_t limit = (uint64_t)cache->server->config->limits.decoded_cache_bytes;
    struct decoded_entry *doomed = NULL;
    struct decoded_entry *entry = cache->oldest;
    int64_t now = decoded_now_ns();

    while (entry != NULL && (cache->bytes > limit || cache->files > FILES_MAX)) {
        struct decoded_entry *newer = entry->newer;

        if (!is_wanted(entry, now) && (newer != NULL || limit == 0))
            decoded_evict(cache, entry, &doomed);
        entry = newer;
    }
    return doomed;
}

void decoded_free_entries(struct decoded_entry *doomed)
{
    while (doomed != NULL) {
        struct decoded_entry *next = doomed->chain;

        zt_source_close(doomed->base.source);
        free(doomed->bytes);
        free(doomed->error);
        free(doomed);
        doomed = next;
    }
}

void decoded_charge(struct decoded_cache *cache, struct decoded_entry *entry)
{
    enlist(cache, entry);
    cache->bytes += charge(entry);
    cache->files += is_file(entry);
}

void decoded_touch(struct decoded_cache *cache, struct decoded_entry *entry)
{
    delist(cache, entry);
    enlist(cache, entry);
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
