/* A hash table whose entries are also linked in order of last use. */
#include "http/exchange/digest_memory.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/changes.h"
#include "base/recency.h"
#include "zt/digest.h"

/* Of target and tag together. With the number of entries it bounds the memory that clients can
 * occupy, to 4 MiB. */
#define NAME_MAX_BYTES 1024

struct entry {
    struct recency_link recency; /* first: eviction casts */
    struct entry *chain;
    uint64_t hash;
    uint8_t sha256[32];
    size_t name_length;
    char name[];
};

struct digest_memory {
    pthread_mutex_t lock;
    atomic_bool is_used;
    struct recency recency;
    struct entry *buckets[DIGEST_MEMORY_ENTRIES];
};

/* A name to look for. */
struct name {
    char bytes[NAME_MAX_BYTES];
    size_t length;
    uint64_t hash;
};

struct digest_memory *digest_memory_new(void)
{
    struct digest_memory *memory = calloc(1, sizeof(*memory));

    if (memory != NULL)
        pthread_mutex_init(&memory->lock, NULL);
    return memory;
}

void digest_memory_free(struct digest_memory *memory)
{
    if (memory == NULL)
        return;
    for (struct recency_link *link = memory->recency.newest; link != NULL;) {
        struct recency_link *older = link->older;

        free(link);
        link = older;
    }
    pthread_mutex_destroy(&memory->lock);
    free(memory);
}

/* A tag contains no line feed, so two pairs never make the same name. */
static bool make_name(const char *target, const char *etag, struct name *out_name)
{
    const size_t etag_length = strlen(etag);
    const size_t target_length = strlen(target);

    if (etag_length + 1 > NAME_MAX_BYTES || target_length > NAME_MAX_BYTES - etag_length - 1)
        return false;
    memcpy(out_name->bytes, etag, etag_length);
    out_name->bytes[etag_length] = '\n';
    memcpy(out_name->bytes + etag_length + 1, target, target_length);
    out_name->length = etag_length + 1 + target_length;
    out_name->hash = zt_xxh3(out_name->bytes, out_name->length);
    return true;
}

/* --- the lock is held --- */

static struct entry **find_link(struct digest_memory *memory, const struct name *name)
{
    struct entry **link = &memory->buckets[name->hash % DIGEST_MEMORY_ENTRIES];

    while (*link != NULL && ((*link)->hash != name->hash || (*link)->name_length != name->length ||
                             memcmp((*link)->name, name->bytes, name->length) != 0))
        link = &(*link)->chain;
    return link;
}

static struct entry *find_entry(struct digest_memory *memory, const struct name *name)
{
    struct entry *entry = *find_link(memory, name);

    if (entry != NULL)
        recency_touch(&memory->recency, &entry->recency);
    return entry;
}

static void evict_oldest(struct digest_memory *memory)
{
    struct entry *entry = (struct entry *)memory->recency.oldest;
    struct entry **link = &memory->buckets[entry->hash % DIGEST_MEMORY_ENTRIES];

    while (*link != entry)
        link = &(*link)->chain;
    *link = entry->chain;
    recency_remove(&memory->recency, &entry->recency);
    free(entry);
}

static struct entry *add_entry(struct digest_memory *memory, const struct name *name)
{
    struct entry *entry = malloc(sizeof(*entry) + name->length);
    struct entry **bucket = &memory->buckets[name->hash % DIGEST_MEMORY_ENTRIES];

    if (entry == NULL)
        return NULL;
    assert(memory->recency.count <= DIGEST_MEMORY_ENTRIES);
    if (memory->recency.count == DIGEST_MEMORY_ENTRIES)
        evict_oldest(memory);
    entry->chain = *bucket;
    entry->hash = name->hash;
    entry->name_length = name->length;
    memcpy(entry->name, name->bytes, name->length);
    *bucket = entry;
    recency_add(&memory->recency, &entry->recency);
    atomic_store_explicit(&memory->is_used, true, memory_order_relaxed);
    return entry;
}

/* --- from any thread --- */

bool digest_memory_find(struct digest_memory *memory, const char *target, const char *etag,
                        uint8_t out_sha256[32])
{
    const struct entry *entry;
    struct name name;

    /* On most servers no client wants a digest that must be computed; their requests take no
     * lock. */
    if (!atomic_load_explicit(&memory->is_used, memory_order_relaxed) ||
        !make_name(target, etag, &name))
        return false;
    pthread_mutex_lock(&memory->lock);
    entry = find_entry(memory, &name);
    if (entry != NULL)
        memcpy(out_sha256, entry->sha256, 32);
    pthread_mutex_unlock(&memory->lock);
    return entry != NULL;
}

void digest_memory_keep(struct digest_memory *memory, const char *target, const char *etag,
                        const uint8_t sha256[32])
{
    struct entry *entry;
    struct name name;

    if (!make_name(target, etag, &name))
        return;
    pthread_mutex_lock(&memory->lock);
    entry = find_entry(memory, &name);
    if (entry == NULL)
        entry = add_entry(memory, &name);
    if (entry != NULL)
        memcpy(entry->sha256, sha256, 32);
    pthread_mutex_unlock(&memory->lock);
    changes_note();
}
