/* Whoever holds the lock hashes, so the end never waits for a job that has not begun. */
#include "upload/whole/upload_hash.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES ((size_t)256 << 10)

bool upload_hash_init(struct upload_hash *hash, bool with_sha512)
{
    pthread_mutex_init(&hash->lock, NULL);
    return zt_hasher_new(ZT_DIGEST_SHA256, &hash->sha256) == ZT_OK &&
           (!with_sha512 || zt_hasher_new(ZT_DIGEST_SHA512, &hash->sha512) == ZT_OK);
}

void upload_hash_free(struct upload_hash *hash)
{
    zt_hasher_free(hash->sha256);
    zt_hasher_free(hash->sha512);
    pthread_mutex_destroy(&hash->lock);
}

static void update(struct upload_hash *hash, const uint8_t *bytes, size_t length)
{
    zt_hasher_update(hash->sha256, bytes, length);
    if (hash->sha512 != NULL)
        zt_hasher_update(hash->sha512, bytes, length);
}

/* With the lock held. */
static enum zt_status hash_source(struct upload_hash *hash, struct zt_source *source, uint64_t end,
                                  struct zt_error *error)
{
    uint64_t at = atomic_load(&hash->hashed);
    enum zt_status status = ZT_OK;
    uint8_t *buffer = malloc(PIECE_BYTES);

    if (buffer == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to hash with");
    while (status == ZT_OK && at < end) {
        size_t length = end - at < PIECE_BYTES ? (size_t)(end - at) : PIECE_BYTES;

        status = zt_source_read_at(source, at, buffer, length, error);
        if (status == ZT_OK) {
            update(hash, buffer, length);
            at += length;
            atomic_store(&hash->hashed, at);
        }
    }
    free(buffer);
    return status;
}

enum zt_status upload_hash_to(struct upload_hash *hash, struct store *store,
                              struct stored_upload *stored, uint64_t end, struct zt_error *error)
{
    enum zt_status status = ZT_OK;
    struct zt_source *source;

    pthread_mutex_lock(&hash->lock);
    /* Once the end was hashed there is nothing left to do here, nor anything to read from. */
    if (atomic_load(&hash->hashed) < end) {
        status = store->ops->read_back(stored, &source, error);
        if (status == ZT_OK)
            status = hash_source(hash, source, end, error);
    }
    pthread_mutex_unlock(&hash->lock);
    return status;
}

void upload_hash_append(struct upload_hash *hash, const void *bytes, size_t length)
{
    pthread_mutex_lock(&hash->lock);
    update(hash, bytes, length);
    atomic_fetch_add(&hash->hashed, length);
    pthread_mutex_unlock(&hash->lock);
}

static void finish(struct zt_hasher *hasher, uint8_t *out_bytes)
{
    struct zt_digest digest;

    zt_hasher_finish(hasher, &digest);
    memcpy(out_bytes, digest.bytes, digest.length_bytes);
}

void upload_hash_finish(struct upload_hash *hash, uint8_t out_sha256[32], uint8_t out_sha512[64])
{
    pthread_mutex_lock(&hash->lock);
    finish(hash->sha256, out_sha256);
    if (hash->sha512 != NULL)
        finish(hash->sha512, out_sha512);
    pthread_mutex_unlock(&hash->lock);
}
