/* An open stored file of any kind, for one request. */
#ifndef TREE_STORED_FILE_H
#define TREE_STORED_FILE_H

#include "base/server.h"
#include "digests/file_hashes.h"
#include "zt/text.h"

struct stored_file {
    struct store *store;
    struct zt_source *source;
    struct file_identity identity;
    char *path;
    bool has_sha256;
    uint8_t sha256[SHA256_BYTES];
};

/* Opens a stored file; call it on a worker. A missing digest is computed in the background. Fails
 * with ZT_NOT_FOUND also for hidden paths, folders, devices and links out of the root; with
 * ZT_STALE, ZT_UNAVAILABLE, ZT_IO or ZT_NO_MEMORY. */
enum zt_status stored_file_open(struct server *server, struct zt_text path,
                                struct stored_file **out_file, struct zt_error *error);
/* Waits until all bytes of the file may be passed on (zt_source_pass), so that they can be kept
 * under another name. ZT_STALE: they turned out to be wrong; ZT_UNAVAILABLE. */
enum zt_status stored_file_await(struct stored_file *file, struct zt_error *error);
/* Accepts NULL; void * for request_hold. */
void stored_file_close(void *file);

/* Returns true if its bytes have not changed since it was opened, as far as can be determined
 * without reading them; it may have been renamed or removed. */
bool stored_file_is_unwritten(const struct stored_file *file);

/* Room for the quotes and the NUL. */
#define STORED_FILE_ETAG_SIZE 40
/* Writes a strong entity tag for the version: 32 opaque hex digits. */
void stored_file_etag(const char *path, const struct file_identity *identity,
                      char out_etag[STORED_FILE_ETAG_SIZE]);

#endif
