/* Multipart uploads: objects that are sent in parts, several at a time, and appear when they are
 * completed. The ids of those under way are kept in a folder, so that the next start can abort what
 * a crash left behind. */
#ifndef STORE_S3_WRITE_S3_MULTIPART_H
#define STORE_S3_WRITE_S3_MULTIPART_H

#include "store/s3_write/s3_write.h"

struct s3_multipart {
    struct s3_multipart *next; /* the keeper's */
    char key[S3_KEY_SIZE];
    char *id;                    /* NULL: its beginning was not answered */
    char journal[S3_NONCE_SIZE]; /* the file's name; empty: none */
    bool is_completing;          /* a completion may be under way */
    int64_t begun_ms;            /* by the monotonic clock: before it was begun */
    int64_t abort_after_ms;      /* the keeper's: not before, by the same */
    unsigned part_count;
    char **etags; /* as sent, with their quotes */
};

/* What is sent: a file of at least one byte. */
struct s3_parts {
    const char *key;
    int descriptor;
    uint64_t length;
    uint64_t part_bytes; /* more if there would be too many */
    const char *sha256;  /* of the whole, hex: kept with the object */
};

/* Begins an upload and sends all parts; waits for them. ZT_UNAVAILABLE, ZT_IO (also if the file has
 * another SHA-256), ZT_NO_MEMORY: then nothing is left, or the keeper removes it. */
enum zt_status s3_multipart_send(struct s3_store *store, const struct s3_parts *parts,
                                 struct s3_multipart **out_multipart, struct zt_error *error);

enum s3_completion { S3_COMPLETE_ALWAYS, S3_COMPLETE_IF_ABSENT, S3_COMPLETE_IF_VERSION };

/* What was begun without an answer, and is empty after so long, is nobody's: the first parts of an
 * upload that anyone goes on with have arrived or failed by then. */
#define S3_EMPTY_MS 120000

/* A service may hang on a completion for so long, and still do it. */
#define S3_COMPLETING_MS ((int64_t)3600 * 1000)

/* Completes it. etag: of S3_COMPLETE_IF_VERSION. claim may be NULL (a probe). Whatever this
 * returns, only the object itself tells whether it was done. Sets is_completing unless the one
 * request that was made was answered. */
enum zt_status s3_multipart_complete(struct s3_store *store, struct s3_claim *claim,
                                     struct s3_multipart *multipart, enum s3_completion condition,
                                     const char *etag, struct zt_error *error);

/* Aborts it; one without an id: see s3_lost_upload_abort. by_ms as for bucket_run. ZT_OK also if
 * there is no such upload, because it was completed or aborted. Forgets it on success. Never while
 * it may be completing: Ceph then may do both, and what it removes later are the bytes of the
 * object. */
enum zt_status s3_multipart_abort(struct s3_store *store, const struct s3_multipart *multipart,
                                  int64_t by_ms, struct zt_error *error);

/* --- s3_lost_upload.c --- */

/* Aborts the uploads that may have come of a beginning whose answer was lost: those of its key that
 * are no older than it, and are empty S3_EMPTY_MS after it. ZT_OK also if there is none; ZT_STALE:
 * one is too young to tell. */
enum zt_status s3_lost_upload_abort(struct s3_store *store, const struct s3_multipart *multipart,
                                    struct zt_error *error);

/* Removes it from the journal: it was completed. */
void s3_multipart_forget(struct s3_store *store, const struct s3_multipart *multipart);

/* Takes NULL. The upload stays as it is. */
void s3_multipart_free(struct s3_multipart *multipart);

/* --- s3_journal.c --- */

/* Notes an upload that is about to be begun, and its id; failing only means that a crash leaves its
 * parts in the bucket. */
void s3_journal_note(struct s3_store *store, struct s3_multipart *multipart);
void s3_journal_begun(struct s3_store *store, const struct s3_multipart *multipart);
/* Notes that its completion is about to begin. */
void s3_journal_completing(struct s3_store *store, struct s3_multipart *multipart);
void s3_journal_forget(struct s3_store *store, const char *name);
/* The uploads to this bucket that an earlier process left, as a list. */
struct s3_multipart *s3_journal_read(struct s3_store *store);

#endif
