/* A store that adds earlier commits to a folder: the files of a commit have the paths
 * REPOSITORY@COMMIT/REST, and files that are replaced or removed are kept first (history.h). */
#ifndef STORE_VERSIONS_VERSIONS_STORE_H
#define STORE_VERSIONS_VERSIONS_STORE_H

#include <stdatomic.h>

#include "store/store.h"
#include "store/versions/history.h"

struct versions_options {
    struct history *history; /* taken over on success */
    /* Finds the SHA-256 of a file of the folder: known, or computed now. On a worker. */
    enum zt_status (*sha256)(void *context, const char *path, const struct file_identity *identity,
                             uint8_t out_sha256[32], struct zt_error *error);
    /* The same if it is known. Never waits. */
    bool (*known_sha256)(void *context, const char *path, const struct file_identity *identity,
                         uint8_t out_sha256[32]);
    void *context;
};

/* Wraps a folder store, which is closed with it, but remains the caller's on failure. The store's
 * revisions find branches, tags and commits; state gives the files of commits their SHA-256;
 * refuses explains that commits cannot be written to. */
enum zt_status versions_store_open(struct store *inner, const struct versions_options *options,
                                   struct store **out_store, struct zt_error *error);

/* Makes sure that a kept file has the bytes of a commit's file: by its size and time of
 * modification, otherwise by its SHA-256. out_identity: of the kept file. Returns ZT_NOT_FOUND if
 * none is kept; ZT_IO if another program has written into it. On a worker. */
enum zt_status versions_check(struct store *store, const struct history_file *file,
                              struct file_identity *out_identity, struct zt_error *error);

/* Lets files that were replaced share extents on disk with the files that replaced them, where the
 * file system can: compares at most so many bytes of them, until `stop` is set. Returns true if
 * there may be more to share. Does nothing for other stores. Call it on one worker; takes long. */
bool versions_share(struct store *store, uint64_t most_bytes, const atomic_bool *stop);
/* Returns true if files have been replaced since. Never waits. */
bool versions_may_share(struct store *store);

#endif
