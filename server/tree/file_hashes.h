/* SHA-256 of stored files of every kind, each as a whole, by version: path and identity. What was
 * found is remembered across restarts in the state folder, and is bounded in memory: what was not
 * asked for longest is forgotten first.
 *
 * What is wanted is found by idle workers, the file with the least bytes left first, in turns that
 * give way to requests. Of files that lie elsewhere only those up to HASH_FETCHED_MAX bytes are
 * brought here for it; of larger ones the digest is found if all bytes are here. */
#ifndef TREE_FILE_HASHES_H
#define TREE_FILE_HASHES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/server.h"
#include "store/store.h"

#define FILE_SHA256_BYTES 32
#define HASH_FETCHED_MAX  ((uint64_t)64 << 20)

struct file_hashes;

/* Bytes that are made of a stored file, and hashed as a file is. */
struct hash_made {
    const struct hash_made_ops *ops;
    void *thing;
    uint32_t part; /* of it */
};

struct hash_made_ops {
    void (*hold)(void *thing);
    void (*release)(void *thing);
    /* Its bytes, for a worker; as many as the identity says that they were wanted with. ZT_STALE:
     * the file that they are made of is another by now; others as store->ops->open. */
    enum zt_status (*open)(const struct hash_made *made, struct server *server,
                           struct zt_source **out_source, struct zt_error *error);
    /* Whether that file is still as it was opened. */
    bool (*is_still)(struct zt_source *source);
};

/* NULL: no memory. */
struct file_hashes *file_hashes_new(struct server *server);
/* Saves what has not been saved yet. After the workers have ended. Takes NULL. */
void file_hashes_free(struct file_hashes *hashes);

/* False: not known (yet). From any thread, never waits. */
bool file_hashes_find(struct file_hashes *hashes, const char *path,
                      const struct file_identity *identity, uint8_t out_sha256[FILE_SHA256_BYTES]);

/* Has it found in the background, unless it is known or on its way, or too many are. From any
 * thread, never waits. */
void file_hashes_want(struct file_hashes *hashes, const char *path,
                      const struct file_identity *identity);

/* The same for what is made. path: what it is called here, which must not be the path of a file;
 * identity: that of the file that it is made of, but the size of what is made. */
void file_hashes_want_made(struct file_hashes *hashes, const char *path,
                           const struct file_identity *identity, const struct hash_made *made);

/* For who has just hashed these very bytes (an upload). From any thread, never waits. Takes NULL
 * (in tests). */
void file_hashes_keep(struct file_hashes *hashes, const char *path,
                      const struct file_identity *identity,
                      const uint8_t sha256[FILE_SHA256_BYTES]);

/* Reads and hashes one file now, unless it is known, and keeps the digest. On a worker; takes as
 * long as reading does. ZT_STALE: this version of the file is not there any more; ZT_NOT_FOUND,
 * ZT_IO, ZT_UNAVAILABLE (also when the server stops), ZT_NO_MEMORY. */
enum zt_status file_hashes_compute(struct file_hashes *hashes, const char *path,
                                   const struct file_identity *identity,
                                   uint8_t out_sha256[FILE_SHA256_BYTES], struct zt_error *error);

#endif
