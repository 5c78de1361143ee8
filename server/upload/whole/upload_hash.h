/* Hashing a file while it arrives: what was written is read back, being in the page cache then.
 * When to do so, and on which worker, is the owner's affair. */
#ifndef UPLOAD_WHOLE_UPLOAD_HASH_H
#define UPLOAD_WHOLE_UPLOAD_HASH_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/store.h"
#include "zt/digest.h"

/* Less than this is not worth a job. */
#define UPLOAD_HASH_FOLLOW_BYTES ((uint64_t)1 << 20)
/* What one job is to hash at most: others wait for the worker too. */
#define UPLOAD_HASH_JOB_BYTES ((uint64_t)8 << 20)

/* All zero: to be freed, nothing else. */
struct upload_hash {
    pthread_mutex_t lock; /* whoever holds it hashes */
    atomic_uint_fast64_t hashed;
    struct zt_hasher *sha256;
    struct zt_hasher *sha512; /* only where the request states one */
};

/* False when memory is out; to be freed then, too. */
bool upload_hash_init(struct upload_hash *hash, bool with_sha512);
void upload_hash_free(struct upload_hash *hash);

/* Hashes on, up to end; nothing when that was done before. Whoever comes while another hashes
 * waits. */
enum zt_status upload_hash_to(struct upload_hash *hash, struct store *store,
                              struct stored_upload *stored, uint64_t end, struct zt_error *error);
/* Hashes what comes next, from memory; everything before it is hashed, and nobody else hashes
 * meanwhile. */
void upload_hash_append(struct upload_hash *hash, const void *bytes, size_t length);
/* Once, after the end was hashed. out_sha512 is left alone where there is none. */
void upload_hash_finish(struct upload_hash *hash, uint8_t out_sha256[32], uint8_t out_sha512[64]);

#endif
