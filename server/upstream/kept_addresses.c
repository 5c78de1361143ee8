/* A table with a fixed number of entries: a file has a few that it may be in. Losing one costs a
 * request. */
#include "upstream/kept_addresses.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "zt/digest.h"

/* Files that are read at the same time; 4 KiB each. */
#define ENTRIES 256
#define TRIED   4
/* Services sign for a quarter of an hour and longer. */
#define KEPT_MS 240000

struct kept_address {
    uint64_t key[2];
    int64_t until_ms; /* 0: empty */
    struct upstream_address *address;
};

struct kept_addresses {
    pthread_mutex_t lock;
    struct kept_address entries[ENTRIES];
};

struct kept_addresses *kept_addresses_new(void)
{
    struct kept_addresses *kept = calloc(1, sizeof(*kept));

    if (kept != NULL)
        pthread_mutex_init(&kept->lock, NULL);
    return kept;
}

void kept_addresses_free(struct kept_addresses *kept)
{
    if (kept == NULL)
        return;
    for (size_t i = 0; i < ENTRIES; i++)
        free(kept->entries[i].address);
    pthread_mutex_destroy(&kept->lock);
    free(kept);
}

static void make_key(const struct upstream_place *place, uint64_t out_key[2])
{
    uint64_t words[6];

    zt_xxh3_128(place->repository, strlen(place->repository), words);
    zt_xxh3_128(place->commit, strlen(place->commit), words + 2);
    zt_xxh3_128(place->path, strlen(place->path), words + 4);
    zt_xxh3_128(words, sizeof(words), out_key);
}

/* Under the lock. NULL: not kept. */
static struct kept_address *find(struct kept_addresses *kept, const uint64_t key[2])
{
    for (size_t i = 0; i < TRIED; i++) {
        struct kept_address *entry = &kept->entries[(key[0] + i) % ENTRIES];

        if (entry->address != NULL && memcmp(entry->key, key, sizeof(entry->key)) == 0)
            return entry;
    }
    return NULL;
}

/* Under the lock. Returns the entry with this key, or the entry that expires first. */
static struct kept_address *choose(struct kept_addresses *kept, const uint64_t key[2])
{
    struct kept_address *chosen = find(kept, key);

    if (chosen != NULL)
        return chosen;
    chosen = &kept->entries[key[0] % ENTRIES];
    for (size_t i = 1; i < TRIED; i++) {
        struct kept_address *entry = &kept->entries[(key[0] + i) % ENTRIES];

        if (entry->until_ms < chosen->until_ms)
            chosen = entry;
    }
    return chosen;
}

bool kept_addresses_find(struct kept_addresses *kept, const struct upstream_place *place,
                         struct upstream_address *out_address)
{
    struct kept_address *entry;
    uint64_t key[2];
    bool found;

    make_key(place, key);
    pthread_mutex_lock(&kept->lock);
    entry = find(kept, key);
    found = entry != NULL && entry->until_ms > clock_ms();
    if (found)
        *out_address = *entry->address;
    pthread_mutex_unlock(&kept->lock);
    return found;
}

void kept_addresses_keep(struct kept_addresses *kept, const struct upstream_place *place,
                         const struct upstream_address *address)
{
    struct kept_address *entry;
    uint64_t key[2];

    make_key(place, key);
    pthread_mutex_lock(&kept->lock);
    entry = choose(kept, key);
    if (entry->address == NULL)
        entry->address = malloc(sizeof(*entry->address));
    if (entry->address != NULL) {
        *entry->address = *address;
        memcpy(entry->key, key, sizeof(entry->key));
        entry->until_ms = clock_ms() + KEPT_MS;
    }
    pthread_mutex_unlock(&kept->lock);
}

void kept_addresses_forget(struct kept_addresses *kept, const struct upstream_place *place,
                           const struct upstream_address *address)
{
    struct kept_address *entry;
    uint64_t key[2];

    make_key(place, key);
    pthread_mutex_lock(&kept->lock);
    entry = find(kept, key);
    if (entry != NULL && address_is_same_origin(entry->address, address) &&
        strcmp(entry->address->target, address->target) == 0) {
        free(entry->address);
        *entry = (struct kept_address){.until_ms = 0};
    }
    pthread_mutex_unlock(&kept->lock);
}
