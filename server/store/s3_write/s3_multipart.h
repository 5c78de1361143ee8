/* Multipart uploads: objects that are sent in parts, several concurrently, and appear when the
 * upload is completed. The ids of unfinished uploads are kept in a folder, so that the next start
 * can abort uploads that a crash left behind. */
#ifndef STORE_S3_WRITE_S3_MULTIPART_H
#define STORE_S3_WRITE_S3_MULTIPART_H

#include "store/s3_write/s3_write.h"

struct s3_multipart {
    struct s3_multipart *next; /* the keeper's */
    char key[S3_KEY_SIZE];
    char *id;                    /* NULL: the response that contained it was lost */
    char journal[S3_NONCE_SIZE]; /* the file's name in the journal; empty: none */
    bool is_completing;          /* a completion may be in progress */
    int64_t begun_ms;            /* monotonic clock, before the request that began it */
    int64_t abort_after_ms;      /* the keeper does not abort it earlier; same clock */
    unsigned part_count;
    char **etags; /* as received, with their quotes */
};

/* The time limit of a copy that the service makes: it may read and write all bytes meanwhile. */
#define S3_COPY_MS(length) (30000 + (length) / ((uint64_t)1 << 20) * 50)

/* The data to send: a file of at least one byte, or an object of the bucket. */
struct s3_parts {
    const char *key;
    int descriptor;
    const char *copy_source; /* bucket_copy_source; NULL: the file is sent */
    const char *copy_etag;   /* as in struct s3_copy */
    uint64_t length;
    uint64_t part_bytes; /* larger if there would be too many parts */
    const char *sha256;  /* of the whole file, hex; stored with the object */
};

/* Begins an upload, sends all parts and waits for them. Returns ZT_UNAVAILABLE, ZT_IO (also if the
 * file has another SHA-256) or ZT_NO_MEMORY; then nothing is left in the bucket, or the keeper
 * removes it. */
enum zt_status s3_multipart_send(struct s3_store *store, const struct s3_parts *parts,
                                 struct s3_multipart **out_multipart, struct zt_error *error);

enum s3_completion { S3_COMPLETE_ALWAYS, S3_COMPLETE_IF_ABSENT, S3_COMPLETE_IF_VERSION };

/* An upload whose beginning got no response, and that is still empty after this time, is not in
 * use: in any live upload, the first parts have arrived or failed by now. */
#define S3_EMPTY_MS 120000

/* A service may hang on a completion for this long and still carry it out. */
#define S3_COMPLETING_MS ((int64_t)3600 * 1000)

/* Completes the upload. etag is for S3_COMPLETE_IF_VERSION; claim may be NULL (a probe). No return
 * value shows whether the upload was completed; only the object does. Sets is_completing unless
 * exactly one request was made and got a response. */
enum zt_status s3_multipart_complete(struct s3_store *store, struct s3_claim *claim,
                                     struct s3_multipart *multipart, enum s3_completion condition,
                                     const char *etag, struct zt_error *error);

/* Aborts the upload, or calls s3_lost_upload_abort if it has no id. by_ms is as for bucket_run.
 * Returns ZT_OK also if there is no such upload, because it was completed or aborted, and removes
 * it from the journal on success. Never call it while the upload may be completing: Ceph may then
 * do both, and later remove the bytes of the completed object. */
enum zt_status s3_multipart_abort(struct s3_store *store, const struct s3_multipart *multipart,
                                  int64_t by_ms, struct zt_error *error);

/* --- s3_lost_upload.c --- */

/* Aborts uploads that a request without a response may have begun: uploads of the same key that
 * began no earlier than that request, and are empty S3_EMPTY_MS after it. Returns ZT_OK also if
 * there are none; ZT_STALE if one is too young to decide. */
enum zt_status s3_lost_upload_abort(struct s3_store *store, const struct s3_multipart *multipart,
                                    struct zt_error *error);

/* Removes a completed upload from the journal. */
void s3_multipart_drop(struct s3_store *store, const struct s3_multipart *multipart);

/* Frees the structure, not the upload. Accepts NULL. */
void s3_multipart_free(struct s3_multipart *multipart);

/* --- s3_journal.c --- */

/* Records an upload before it begins, and then its id. If recording fails, a crash leaves the parts
 * in the bucket; there is no other harm. */
void s3_journal_note(struct s3_store *store, struct s3_multipart *multipart);
void s3_journal_begun(struct s3_store *store, const struct s3_multipart *multipart);
/* Records that its completion is about to begin. */
void s3_journal_completing(struct s3_store *store, struct s3_multipart *multipart);
void s3_journal_drop(struct s3_store *store, const char *name);
/* Returns a list of the uploads to this bucket that an earlier process left. */
struct s3_multipart *s3_journal_read(struct s3_store *store);

#endif
