/* A bounded table of digests of files. The key of a version is a hash of its path and identity. The
 * caller must lock the table. */
#ifndef DIGESTS_HASH_TABLE_H
#define DIGESTS_HASH_TABLE_H

#include "base/recency.h"
#include "digests/file_hashes.h"

/* Each entry takes about 100 bytes. If there are more files, the most recently used digests are
 * kept. */
#define HASHES_MAX ((size_t)1 << 18)

struct hash_key {
    uint64_t words[2];
};

struct hash_entry {
    struct recency_link link; /* first */
    struct hash_entry *next;  /* in its bucket */
    struct hash_key key;
    bool is_known; /* false: the digest is being computed */
    bool is_saved; /* kept across restarts */
    uint8_t sha256[SHA256_BYTES];
};

/* Zeroed memory is an empty table. */
struct hash_table {
    struct hash_entry **buckets;
    size_t bucket_count; /* a power of two */
    struct recency recency;
};

/* Leaves out the device number, which may change on a restart. */
struct hash_key hash_key_of(const char *path, const struct file_identity *identity);

/* Computes the key of an answer. Clients choose targets, so the hash is one for which they cannot
 * construct collisions. Returns false if out of memory. */
bool hash_key_of_answer(const char *target, const char *etag, struct hash_key *out_key);

/* Returns NULL if there is no such entry. Counts as a use. */
struct hash_entry *hash_table_find(struct hash_table *table, const struct hash_key *key);
/* Finds or adds an entry; a new entry's digest is unknown. Evicts the oldest entry if the table is
 * full. Returns NULL if out of memory. */
struct hash_entry *hash_table_put(struct hash_table *table, const struct hash_key *key);
void hash_table_remove(struct hash_table *table, struct hash_entry *entry);
void hash_table_free(struct hash_table *table);

#endif
