/* Resumable uploads: a file that arrives in pieces, one after another, over any length of time.
 *
 *   RECEIVING --last byte, validated--> PUBLISHED
 *       |                                   |
 *       +--deleted, expired, refused--------+--> GONE
 *
 * Its kept place holds three files: "data", the bytes; "resumable", what the client stated at
 * creation; and "state", how many bytes are durable, and when publication began. An offset is
 * durable before the client learns it. Bytes beyond it survive the process, but not a restart of
 * the system: within the same boot the length of "data" counts, otherwise only "state" does.
 * Publication moves "data": if it is missing after publication began, publication succeeded, and
 * the other files stay for a client that asks again because the last answer was lost. */
#ifndef UPLOAD_TUS_RESUMABLE_H
#define UPLOAD_TUS_RESUMABLE_H

#include "upload/shared/body_follower.h"
#include "upload/shared/kept_uploads.h"
#include "upload/shared/publication.h"
#include "upload/tus/claim.h"

/* What a client stated at creation and is needed later; NULL if not stated. */
enum resumable_text {
    RESUMABLE_METADATA,
    RESUMABLE_IF_MATCH,
    RESUMABLE_IF_NONE_MATCH,
    RESUMABLE_IF_UNMODIFIED_SINCE,
    RESUMABLE_REPR_DIGEST,
    RESUMABLE_TEXTS
};

enum resumable_state { RESUMABLE_RECEIVING, RESUMABLE_PUBLISHED, RESUMABLE_GONE };

struct resumable {
    struct kept_upload kept; /* entry.received: bytes that are in the file, durable or not */
    _Atomic(enum resumable_state) state;
    uint64_t length; /* of the whole file */
    char *texts[RESUMABLE_TEXTS];
    struct stored_upload *data;       /* NULL once it is published */
    struct stored_upload *state_file; /* NULL once it is published */
    struct claim claim;               /* never ends once the upload is gone */
    pthread_mutex_t sync_lock;        /* workers only: while one holds it, it waits for the disk */
    atomic_uint_fast64_t durable;
    struct body_follower follower;
    struct byte_digests digests;
    bool is_hashed;             /* published.sha256 is known; set by the holder of the claim */
    struct published published; /* etag and replaced once it is published, by this process */
};

/* The kind for kept_uploads_new. */
extern const struct kept_kind resumable_kind;

/* A new upload in memory, with one reference to kept. Takes over the texts, even on failure. NULL
 * if out of memory. */
struct resumable *resumable_new(struct server *server, const char *id,
                                char *texts[RESUMABLE_TEXTS]);
enum resumable_state resumable_state(const struct resumable *resumable);

/* Postpones expiry, since a request uses the upload. A published one still expires. */
void resumable_touch(struct resumable *resumable);
time_t resumable_expires(struct resumable *resumable);

/* Ends a claim, unless the upload is gone, and sets it to 0. */
void resumable_end_claim(struct resumable *resumable, uint64_t *claim);
/* Ends the upload and removes everything. For the holder of the claim, on a worker. */
void resumable_drop(struct resumable *resumable);

/* Reports that length more bytes are in the file. Has a worker hash them if that is worth a job. */
void resumable_advance(struct resumable *resumable, uint64_t length);
/* The same if another worker passes the bytes themselves to the follower (body_follower_take). */
void resumable_count(struct resumable *resumable, uint64_t length);

/* Makes all received bytes durable. On a worker. */
enum zt_status resumable_make_durable(struct resumable *resumable, struct zt_error *error);

/* Validates and publishes, when all bytes are durable, for a client that may use the names that
 * covers passes. For the holder of the claim, on a worker. False with failure set; the upload is
 * then gone if no further try can succeed, else unchanged. */
bool resumable_publish(struct resumable *resumable, struct name_filter covers,
                       struct failure *failure);

/* --- resumable_files.c: its files --- */

/* Makes the place and the files, not durably yet. ZT_LIMIT if there is no space. Fast. */
enum zt_status resumable_files_create(struct resumable *resumable, struct zt_error *error);
/* Makes what create made durable. On a worker. */
enum zt_status resumable_files_sync(struct resumable *resumable, struct zt_error *error);
/* Records, durably, how many bytes are durable. On a worker. */
enum zt_status resumable_files_note(struct resumable *resumable, uint64_t durable,
                                    struct zt_error *error);
/* Records, durably, that the whole file is about to be published: its SHA-256 is known. On a
 * worker. */
enum zt_status resumable_files_note_end(struct resumable *resumable, struct zt_error *error);
/* Opens an upload as an earlier process left it (kept_kind.open). */
enum kept_opened resumable_files_open(struct server *server, const char *id,
                                      struct kept_upload **out_upload);

#endif
