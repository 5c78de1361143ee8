/* Hashing a body while it arrives. Workers read back what was written, which is in the page cache then; whoever holds
 * the lock hashes, so the end never waits for a job that has not begun. */
#include <stdlib.h>
#include <string.h>

#include "upload/upload_state.h"

#define PIECE_BYTES ((size_t)256 << 10)
/* Less than this is not worth a job. */
#define FOLLOW_BYTES ((uint64_t)1 << 20)
/* What one job hashes at most: others wait for the worker too. */
#define JOB_BYTES ((uint64_t)8 << 20)

static void run_follow(struct job *job);

bool upload_hash_init(struct upload *upload)
{
    struct upload_hash *hash = &upload->hash;
    hash->job.run = run_follow;
    hash->buffer = malloc(PIECE_BYTES);
    bool wants_sha512 = upload->content_digest.has_sha512 || upload->repr_digest.has_sha512;
    return hash->buffer != NULL && zt_hasher_new(ZT_DIGEST_SHA256, &hash->sha256) == ZT_OK &&
           (!wants_sha512 || zt_hasher_new(ZT_DIGEST_SHA512, &hash->sha512) == ZT_OK);
}

void upload_hash_free(struct upload *upload)
{
    zt_hasher_free(upload->hash.sha256);
    zt_hasher_free(upload->hash.sha512);
    free(upload->hash.buffer);
    pthread_mutex_destroy(&upload->hash.lock);
}

static void update(struct upload_hash *hash, size_t length)
{
    zt_hasher_update(hash->sha256, hash->buffer, length);
    if (hash->sha512 != NULL) {
        zt_hasher_update(hash->sha512, hash->buffer, length);
    }
}

/* With the lock held. */
static enum zt_status hash_to(struct upload *upload, uint64_t end, struct zt_error *error)
{
    struct upload_hash *hash = &upload->hash;
    uint64_t at = atomic_load(&hash->hashed);
    struct zt_source *source;
    if (at >= end) {
        return ZT_OK;
    }
    enum zt_status status = upload->server->store->ops->read_back(upload->publication.stored, &source, error);
    while (status == ZT_OK && at < end) {
        size_t length = end - at < PIECE_BYTES ? (size_t)(end - at) : PIECE_BYTES;
        status = zt_source_read_at(source, at, hash->buffer, length, error);
        if (status == ZT_OK) {
            update(hash, length);
            at += length;
            atomic_store(&hash->hashed, at);
        }
    }
    return status;
}

/* A failure here is met again, and told, when the rest is hashed. */
static void run_follow(struct job *job)
{
    struct upload *upload = (struct upload *)((char *)job - offsetof(struct upload, hash.job));
    struct zt_error error;
    pthread_mutex_lock(&upload->hash.lock);
    uint64_t end = atomic_load(&upload->received);
    uint64_t most = atomic_load(&upload->hash.hashed) + JOB_BYTES;
    /* Once the end was hashed there is nothing left to do here, nor anything to read from. */
    (void)hash_to(upload, end < most ? end : most, &error);
    pthread_mutex_unlock(&upload->hash.lock);
    atomic_store(&upload->hash.is_queued, false);
    upload_release(upload);
}

void upload_hash_follow(struct upload *upload)
{
    struct upload_hash *hash = &upload->hash;
    if (atomic_load(&upload->received) - atomic_load(&hash->hashed) < FOLLOW_BYTES || atomic_load(&hash->is_queued)) {
        return;
    }
    atomic_store(&hash->is_queued, true);
    upload_hold(upload);
    workers_submit(upload->server->workers, &hash->job);
}

static bool agrees(const struct digest_field *field, const uint8_t *sha256, const struct zt_digest *sha512)
{
    return (!field->has_sha256 || memcmp(field->sha256, sha256, sizeof field->sha256) == 0) &&
           (!field->has_sha512 || memcmp(field->sha512, sha512->bytes, sizeof field->sha512) == 0);
}

bool upload_hash_finish(struct upload *upload)
{
    struct upload_hash *hash = &upload->hash;
    struct zt_digest sha256;
    struct zt_digest sha512;
    struct zt_error error;
    pthread_mutex_lock(&hash->lock);
    enum zt_status status = hash_to(upload, atomic_load(&upload->received), &error);
    if (status == ZT_OK) {
        zt_hasher_finish(hash->sha256, &sha256);
    }
    if (status == ZT_OK && hash->sha512 != NULL) {
        zt_hasher_finish(hash->sha512, &sha512);
    }
    pthread_mutex_unlock(&hash->lock);
    if (status != ZT_OK) {
        return upload_fail_store(upload, &error);
    }
    memcpy(upload->publication.sha256, sha256.bytes, sizeof upload->publication.sha256);
    if (!agrees(&upload->content_digest, sha256.bytes, &sha512)) {
        return upload_refuse(upload, PROBLEM_DIGEST_MISMATCH, "the body does not have the digest of Content-Digest");
    }
    if (!agrees(&upload->repr_digest, sha256.bytes, &sha512)) {
        return upload_refuse(upload, PROBLEM_DIGEST_MISMATCH, "the body does not have the digest of Repr-Digest");
    }
    return true;
}
