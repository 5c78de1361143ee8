/* A hash table with chained buckets; the number of buckets grows with the number of entries. */
#include "digests/hash_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "zt/digest.h"

#define BUCKETS_MIN 256

struct hash_key hash_key_of(const char *path, const struct file_identity *identity)
{
    uint64_t inputs[6] = {identity->inode, identity->size_bytes, (uint64_t)identity->modified_ns,
                          (uint64_t)identity->changed_ns};
    struct hash_key key;

    zt_xxh3_128(path, strlen(path), inputs + 4);
    zt_xxh3_128(inputs, sizeof(inputs), key.words);
    return key;
}

bool hash_key_of_answer(const char *target, const char *etag, struct hash_key *out_key)
{
    struct zt_hasher *hasher;
    struct zt_digest digest;

    if (zt_hasher_new(ZT_DIGEST_SHA256, &hasher) != ZT_OK)
        return false;
    /* A tag contains no line feed, so two pairs never make the same text. */
    zt_hasher_update(hasher, etag, strlen(etag));
    zt_hasher_update(hasher, "\n", 1);
    zt_hasher_update(hasher, target, strlen(target));
    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    memcpy(out_key->words, digest.bytes, sizeof(out_key->words));
    return true;
}

static struct hash_entry **bucket_of(const struct hash_table *table, const struct hash_key *key)
{
    assert(table->bucket_count > 0 && (table->bucket_count & (table->bucket_count - 1)) == 0);
    return &table->buckets[key->words[1] & (table->bucket_count - 1)];
}

static struct hash_entry **place_of(const struct hash_table *table, const struct hash_key *key)
{
    struct hash_entry **place = bucket_of(table, key);

    while (*place != NULL && memcmp(&(*place)->key, key, sizeof(*key)) != 0)
        place = &(*place)->next;
    return place;
}

/* Returns false if there are no buckets and no memory for them. */
static bool grow(struct hash_table *table)
{
    const size_t count = table->bucket_count == 0 ? BUCKETS_MIN : 2 * table->bucket_count;
    struct hash_entry **buckets;
    struct hash_entry **old = table->buckets;

    if (table->recency.count < table->bucket_count)
        return true;
    buckets = calloc(count, sizeof(struct hash_entry *));
    if (buckets == NULL)
        return old != NULL;
    table->buckets = buckets;
    table->bucket_count = count;
    for (struct recency_link *link = table->recency.newest; link != NULL; link = link->older) {
        struct hash_entry *entry = (struct hash_entry *)link;
        struct hash_entry **bucket = bucket_of(table, &entry->key);

        entry->next = *bucket;
        *bucket = entry;
    }
    free(old);
    return true;
}

struct hash_entry *hash_table_find(struct hash_table *table, const struct hash_key *key)
{
    struct hash_entry *entry = table->bucket_count > 0 ? *place_of(table, key) : NULL;

    if (entry != NULL)
        recency_touch(&table->recency, &entry->link);
    return entry;
}

struct hash_entry *hash_table_put(struct hash_table *table, const struct hash_key *key)
{
    struct hash_entry *entry = hash_table_find(table, key);
    struct hash_entry **bucket;

    if (entry != NULL)
        return entry;
    if (table->recency.count >= HASHES_MAX)
        hash_table_remove(table, (struct hash_entry *)table->recency.oldest);
    assert(table->recency.count < HASHES_MAX);
    entry = grow(table) ? calloc(1, sizeof(*entry)) : NULL;
    if (entry == NULL)
        return NULL;
    entry->key = *key;
    bucket = bucket_of(table, key);
    entry->next = *bucket;
    *bucket = entry;
    recency_add(&table->recency, &entry->link);
    return entry;
}

void hash_table_remove(struct hash_table *table, struct hash_entry *entry)
{
    assert(*place_of(table, &entry->key) == entry);
    *place_of(table, &entry->key) = entry->next;
    recency_remove(&table->recency, &entry->link);
    free(entry);
}

void hash_table_free(struct hash_table *table)
{
    for (struct recency_link *link = table->recency.newest; link != NULL;) {
        struct recency_link *older = link->older;

        free(link);
        link = older;
    }
    free(table->buckets);
    *table = (struct hash_table){.buckets = NULL};
}
