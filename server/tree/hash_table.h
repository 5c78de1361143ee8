/* A bounded table of digests of files. A version of a file is known by a hash of its path and
 * identity. Without a lock of its own. */
#ifndef TREE_HASH_TABLE_H
#define TREE_HASH_TABLE_H

#include "base/recency.h"
#include "tree/file_hashes.h"

/* About 100 bytes each. A server that has more files than this has the digests of those that it was
 * asked for last. */
#define HASHES_MAX ((size_t)1 << 18)

struct hash_key {
    uint64_t words[2];
};

struct hash_entry {
    struct recency_link link; /* first */
    struct hash_entry *next;  /* of its bucket */
    struct hash_key key;
    bool is_known; /* else it is wanted */
    uint8_t sha256[FILE_SHA256_BYTES];
};

/* Zeroed memory is an empty table. */
struct hash_table {
    struct hash_entry **buckets;
    size_t bucket_count; /* a power of two */
    struct recency recency;
};

/* The device is left out, since it may have another number after a restart. */
struct hash_key hash_key_of(const char *path, const struct file_identity *identity);

/* NULL: there is none. What is found counts as used. */
struct hash_entry *hash_table_find(struct hash_table *table, const struct hash_key *key);
/* Finds or adds an entry, wanted at first; the oldest makes room. NULL without memory. */
struct hash_entry *hash_table_put(struct hash_table *table, const struct hash_key *key);
void hash_table_remove(struct hash_table *table, struct hash_entry *entry);
void hash_table_free(struct hash_table *table);

#endif
