/* An open stored file of any kind, for one request. */
#ifndef TREE_STORED_FILE_H
#define TREE_STORED_FILE_H

#include "base/server.h"
#include "tree/file_hashes.h"
#include "zt/text.h"

struct stored_file {
    struct store *store;
    struct zt_source *source;
    struct file_identity identity;
    char *path;
    bool has_sha256;
    uint8_t sha256[FILE_SHA256_BYTES];
};

/* On a worker. What is not known of its digest is to be found in the background. ZT_NOT_FOUND also
 * for hidden paths, folders, devices and links out of the root; ZT_STALE, ZT_UNAVAILABLE, ZT_IO,
 * ZT_NO_MEMORY. */
enum zt_status stored_file_open(struct server *server, struct zt_text path,
                                struct stored_file **out_file, struct zt_error *error);
/* Takes NULL; void * for request_hold. */
void stored_file_close(void *file);

/* Whether its bytes are still those that it was opened with, as far as can be known without reading
 * them; it may have been renamed or removed. */
bool stored_file_is_unwritten(const struct stored_file *file);

/* With quotes and NUL. */
#define STORED_FILE_ETAG_SIZE 40
/* A strong entity tag of the version: opaque, 32 hex digits. */
void stored_file_etag(const char *path, const struct file_identity *identity,
                      char out_etag[STORED_FILE_ETAG_SIZE]);

#endif
