/* Multipart uploads: a file that arrives in numbered parts, in any order and side by side, over any
 * length of time. A kept upload (kept_uploads.h).
 *
 *   OPEN <--not completed-- COMPLETING --published--> PUBLISHED
 *     |                         |                         |
 *     +--aborted, expired-------+--refused for good-------+--expired--> GONE
 *
 * Its folder holds these files: "data", the parts that are where they belong in the final file
 * (s3api_placement.h); "part-NUMBER-VERSION", a part that is kept aside; "multipart", what the
 * client stated when it created the upload; and "parts", a line for each part (s3api_records.h),
 * written when its bytes are durable and before the part is acknowledged. The last line for a
 * number counts. A part never overwrites an acknowledged one: it is kept aside until it is
 * acknowledged itself.
 *
 * Completing publishes "data" or, if parts must be joined by copying, "whole". A line says which,
 * before publication: if that file is missing later, publication succeeded, and the rest of the
 * folder stays for a client that asks again because the answer was lost. */
#ifndef S3_WRITE_S3API_UPLOAD_H
#define S3_WRITE_S3API_UPLOAD_H

#include <pthread.h>

#include "s3/write/s3api_parts.h"
#include "s3/write/s3api_prefix.h"
#include "store/staging.h"
#include "upload/shared/kept_data.h"
#include "upload/shared/published.h"

#define S3API_DATA_NAME        "data"
#define S3API_WHOLE_NAME       "whole"
#define S3API_DESCRIPTION_NAME "multipart"
#define S3API_RECORDS_NAME     "parts"

enum s3api_upload_state {
    S3API_UPLOAD_OPEN,
    S3API_UPLOAD_COMPLETING,
    S3API_UPLOAD_PUBLISHED,
    S3API_UPLOAD_GONE
};

/* The client's requirements at creation. */
struct s3api_terms {
    char algorithm[S3API_ALGORITHM_SIZE]; /* of the checksums of parts; empty: none */
    bool is_full_object;                  /* the whole file's checksum is of its bytes */
    char *metadata;                       /* kept with the file; owned; NULL: none */
};

struct s3api_arrival; /* s3api_arrival.h */

struct s3api_upload {
    struct kept_upload kept; /* entry.model: the key; entry.received: bytes of acknowledged parts */
    struct s3api_terms terms; /* constant */
    struct kept_data data;    /* its users: parts that are written to their places */
    pthread_mutex_t lock;     /* guards the following, and never while waiting for a disk */
    pthread_cond_t quiet;     /* writing became 0 */
    _Atomic(enum s3api_upload_state) state; /* read without it too */
    struct s3api_placement placement;
    struct s3api_parts parts;
    uint32_t versions;              /* the last version of a part that was kept aside */
    struct s3api_arrival *arrivals; /* parts that arrive */
    struct s3api_arrival *ready;    /* those that wait to be recorded */
    unsigned writing;               /* threads that write to a file or hash it */
    struct waiter *waiters;         /* requests that wait until it is no longer completing */
    struct s3api_prefix prefix;
    /* Workers only: the holder waits for the disk. Taken before the other lock. */
    pthread_mutex_t record_lock;
    uint64_t records_length; /* of the lines that are durable */
    uint32_t records;        /* their number */
    bool has_end;            /* the last one says that publication was about to begin */
    /* Set once, before the state becomes PUBLISHED; remains is guarded by record_lock. */
    struct published published;
};

/* The kind for kept_uploads_new. */
extern const struct kept_kind s3api_upload_kind;

/* Begins an upload of a file, whose key was checked, and makes its folder durably. Takes over the
 * terms, even on failure. client: registry_client. Returns a reference, or NULL with failure set:
 * PROBLEM_RATE_LIMITED if the client has too many uploads. On a worker. */
struct s3api_upload *s3api_upload_begin(struct server *server, struct zt_text key,
                                        const char *client, struct s3api_terms *terms,
                                        struct failure *failure);
/* Finds and holds the unfinished or published upload of a key, or returns NULL. *out_unreadable: it
 * may exist, but cannot be read now, or another process owns it. */
struct s3api_upload *s3api_upload_find(struct server *server, struct zt_text id, struct zt_text key,
                                       bool *out_unreadable);
enum s3api_upload_state s3api_upload_state(const struct s3api_upload *upload);

/* Takes an open upload from all requests that use it: parts that are arriving fail from now on. The
 * caller must then publish it, drop it or reopen it. Returns false with failure set if it is not
 * open. On a worker. */
bool s3api_upload_seize(struct s3api_upload *upload, struct failure *failure);
/* Wakes the waiter when the upload is no longer completing. Returns false if it is not now. */
bool s3api_upload_await(struct s3api_upload *upload, struct waiter *waiter);
/* Lets parts arrive again. */
void s3api_upload_reopen(struct s3api_upload *upload);
/* Removes a seized upload. On a worker. */
void s3api_upload_drop(struct s3api_upload *upload);
/* Ends a seized upload, whose file is published. On a worker. */
void s3api_upload_finish(struct s3api_upload *upload, const struct published *published);

/* Makes an upload in memory, with one reference to kept. Takes over the terms, even on failure.
 * Returns NULL if out of memory. */
struct s3api_upload *s3api_upload_new(struct server *server, const char *id, struct zt_text key,
                                      struct s3api_terms *terms);

/* Called with the lock by a thread that has added itself to writing. */
void s3api_upload_end_writing(struct s3api_upload *upload);

/* --- s3api_upload_files.c --- */

/* Writes the description of a new upload durably. On a worker. */
enum zt_status s3api_upload_describe(const struct s3api_upload *upload, struct zt_error *error);
/* Opens an upload that an earlier process left (kept_kind.open). */
enum kept_opened s3api_upload_files_open(struct server *server, const char *id,
                                         struct kept_upload **out_upload);
/* Appends lines to the records, durably. With the record lock, on a worker. */
enum zt_status s3api_upload_record(struct s3api_upload *upload, const char *lines, size_t length,
                                   uint32_t count, struct zt_error *error);
/* Removes files that are not needed: after a restart and, when it is published, the parts. On a
 * worker, or before there are requests. May take long. */
void s3api_upload_clean(const struct s3api_upload *upload);
/* Writes the name of the file that contains a part aside. */
void s3api_part_file_name(uint32_t number, uint32_t version, char out_name[STAGING_NAME_MAX + 1]);

#endif
