/* SHA-256 digests of stored files of all kinds, by version (path and identity), and of answers. The
 * digests of files are kept across restarts in the state folder. Memory is limited: the least
 * recently used digests are evicted first.
 *
 * * Missing digests are computed in the background (hash_queue.h). From a remote store, files of up
 * to HASH_FETCHED_MAX bytes are fetched for that; larger files are hashed only if they are cached.
 * Mirrored files are not hashed here before they are verified. Once their bytes agree with the
 * digest that the upstream states, that digest is used. */
#ifndef DIGESTS_FILE_HASHES_H
#define DIGESTS_FILE_HASHES_H

#include "digests/hash_queue.h"
#include "store/store.h"

#define HASH_FETCHED_MAX ((uint64_t)64 << 20)

struct file_hashes;

/* Bytes that are made from a stored file and hashed like a file. */
struct hash_made {
    const struct hash_made_ops *ops;
    void *thing;
    uint32_t part; /* index of the part of thing */
};

struct hash_made_ops {
    void (*hold)(void *thing);
    void (*release)(void *thing);
    /* Opens the bytes on a worker; their number must be the size given to file_hashes_want_made.
     * Fails with ZT_STALE if the file has changed; otherwise fails like store->ops->open. */
    enum zt_status (*open)(const struct hash_made *made, struct server *server,
                           struct zt_source **out_source, struct zt_error *error);
    /* Returns true if the file is unchanged since open. */
    bool (*is_still)(struct zt_source *source);
};

/* Returns NULL if out of memory. */
struct file_hashes *file_hashes_new(struct server *server);
/* Saves new digests. Call it after the workers have ended and the queue is freed. Accepts NULL. */
void file_hashes_free(struct file_hashes *hashes);

/* Returns false if the digest is not known yet. Never waits; may be called on any thread. */
bool file_hashes_find(struct file_hashes *hashes, const char *path,
                      const struct file_identity *identity, uint8_t out_sha256[SHA256_BYTES]);

/* Starts computing the digest in the background, unless it is known or queued, or too many are
 * queued. Never waits; may be called on any thread. */
void file_hashes_want(struct file_hashes *hashes, const char *path,
                      const struct file_identity *identity);

/* Does the same for bytes made from a file. path identifies them, and must not be the path of a
 * file; identity is the file's, but with the size of the made bytes. If made is NULL, this is
 * file_hashes_want. */
void file_hashes_want_made(struct file_hashes *hashes, const char *path,
                           const struct file_identity *identity, const struct hash_made *made);

/* Keeps a digest that the caller has just computed (an upload). Never waits; may be called on any
 * thread. Accepts NULL (in tests). */
void file_hashes_keep(struct file_hashes *hashes, const char *path,
                      const struct file_identity *identity, const uint8_t sha256[SHA256_BYTES]);

/* Forgets the digest of a version, of which the store has given other bytes since. Never waits; may
 * be called on any thread. */
void file_hashes_forget(struct file_hashes *hashes, const char *path,
                        const struct file_identity *identity);

/* The SHA-256 of an answer that was computed because a client wanted it. The key is the target and
 * the strong ETag, since a tag is unique only among the representations of one resource. Not kept
 * across restarts. These functions never wait and may be called on any thread. */
bool answer_hashes_find(struct file_hashes *hashes, const char *target, const char *etag,
                        uint8_t out_sha256[SHA256_BYTES]);
void answer_hashes_keep(struct file_hashes *hashes, const char *target, const char *etag,
                        const uint8_t sha256[SHA256_BYTES]);

/* Hashes a stored file on this worker, unless its digest is known, or was stored with it in a
 * bucket, and keeps the digest. Fails with ZT_STALE if this version of the file no longer exists,
 * ZT_NOT_FOUND, ZT_IO, ZT_UNAVAILABLE (also if the server is draining) or ZT_NO_MEMORY. */
enum zt_status file_hashes_compute(struct file_hashes *hashes, const char *path,
                                   const struct file_identity *identity,
                                   uint8_t out_sha256[SHA256_BYTES], struct zt_error *error);

#endif
