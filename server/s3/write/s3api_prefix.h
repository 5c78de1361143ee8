/* The SHA-256 of the whole file, computed while parts still arrive: a worker reads back the parts
 * in their places, from part 1 up to the first gap, usually from the page cache. The rest is hashed
 * when the upload is completed. */
#ifndef S3_WRITE_S3API_PREFIX_H
#define S3_WRITE_S3API_PREFIX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/workers.h"
#include "upload/shared/failure.h"

struct s3api_upload;
struct staged_file;
struct zt_hasher;

/* Guarded by the upload's lock, except hasher and hashed while a job runs or the upload is
 * completing. Zeroed: no byte is hashed. */
struct s3api_prefix {
    struct zt_hasher *hasher;
    uint64_t hashed; /* bytes */
    uint64_t target; /* end of the parts that may be hashed */
    bool is_running; /* a job is queued or running */
    bool is_stale;   /* a part that counts was replaced: all must be hashed again */
    struct job job;
    uint64_t client; /* request_client_key of the last part's sender */
};

/* Called with the lock when parts were recorded: starts a job if there is enough to hash. */
void s3api_prefix_advance(struct s3api_upload *upload);
/* Called with the lock when the part of a number is about to be replaced. */
void s3api_prefix_note_replaced(struct s3api_upload *upload, uint32_t number);
void s3api_prefix_free(struct s3api_prefix *prefix);

/* Hashes the rest of a file of this length. may_continue: it is the file with the parts in their
 * places, joined in order. For the caller that has seized the upload. Returns false with failure
 * set. */
bool s3api_prefix_finish(struct s3api_upload *upload, struct staged_file *file, uint64_t length,
                         bool may_continue, uint8_t out_sha256[32], struct failure *failure);

#endif
