/* The identity of a commit: the SHA-1 over each file's path and text, with NUL after both, in
 * bytewise order of the paths. The text is the file's SHA-256 in hex, so servers with the same
 * files have the same commits. */
#ifndef STORE_VERSIONS_COMMIT_ID_H
#define STORE_VERSIONS_COMMIT_ID_H

#include <assert.h>
#include <string.h>

#include "base/hex.h"
#include "zt/digest.h"

/* SHA-1 in hex, and NUL. */
#define COMMIT_ID_SIZE 41

/* hasher: of ZT_DIGEST_SHA1. */
static inline void commit_id_add(struct zt_hasher *hasher, const char *path, const char *text)
{
    zt_hasher_update(hasher, path, strlen(path) + 1);
    zt_hasher_update(hasher, text, strlen(text) + 1);
}

/* Frees the hasher. */
static inline void commit_id_finish(struct zt_hasher *hasher, char out_id[COMMIT_ID_SIZE])
{
    struct zt_digest digest;

    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    assert(digest.length_bytes * 2 == COMMIT_ID_SIZE - 1);
    zt_hex_write(out_id, digest.bytes, digest.length_bytes);
}

#endif
