/* Turns the parts of a multipart upload into a visible file. */
#ifndef S3_WRITE_S3API_COMPLETION_H
#define S3_WRITE_S3API_COMPLETION_H

#include "http/fields/conditional.h"
#include "s3/write/s3api_complete_xml.h"
#include "s3/write/s3api_upload.h"
#include "s3/write/s3api_whole_checksum.h"

/* Why a list of parts is refused. */
enum s3api_refusal {
    S3API_REFUSAL_NONE,  /* only failure is set */
    S3API_REFUSAL_PART,  /* a part is unknown, or has another tag or checksum */
    S3API_REFUSAL_SMALL, /* a part that is not the last one is too short */
    S3API_REFUSAL_BUSY   /* another request is completing or removing the upload */
};

struct s3api_completion {
    /* Set by the caller, and borrowed. */
    struct s3api_upload *upload;
    const struct s3api_named_parts *named;
    struct preconditions preconditions;
    struct name_filter covers;
    const char *client;        /* name of the token, or NULL */
    uint64_t stated_bytes;     /* total length; UINT64_MAX: not stated */
    bool is_stated[CHECKSUMS]; /* checksums of the whole file, which are verified */
    struct zt_digest stated[CHECKSUMS];
    uint32_t part_counts[CHECKSUMS]; /* not 0: it is of the checksums of that many parts */

    /* Set by the run. */
    struct s3api_part *list; /* owned */
    size_t count;
    uint64_t bytes;
    bool is_repeated; /* it was published by an earlier request */
    struct published published;
    /* Of the parts, in the form that the upload's creation asked for; empty: unknown. */
    char checksum[S3API_WHOLE_CHECKSUM_SIZE];
    enum s3api_refusal refusal;
    struct failure failure;
};

/* Publishes the file, or finds that it was published before. Returns false with failure set; the
 * upload is then gone if no further try can succeed, otherwise open. On a worker; may take long. */
bool s3api_completion_run(struct s3api_completion *completion);
/* Accepts a cleared structure. */
void s3api_completion_free(struct s3api_completion *completion);

/* Removes an upload that is not completed, with its parts. Returns false with failure set. On a
 * worker. */
bool s3api_upload_abort(struct s3api_upload *upload, struct failure *failure);

#endif
