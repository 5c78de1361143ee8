/* Resumable uploads: a file that arrives in pieces, one after another, over any length of time.
 *
 *   RECEIVING --last byte, validated--> PUBLISHED
 *       |                                   |
 *       +--deleted, expired, refused--------+--> GONE
 *
 * Its kept place holds these files: "data", the bytes; "resumable", what the client stated at
 * creation; "length", what it stated later, if it did; and "state", how many bytes are durable, and
 * when publication began. An offset is durable before the client learns it. Bytes beyond it survive
 * the process, but not a restart of the system: within the same boot the length of "data" counts,
 * otherwise only "state" does. Publication moves "data": if it is missing after publication began,
 * publication succeeded, and the other files stay for a client that asks again because the last
 * answer was lost.
 *
 * A file may also arrive as several parts, which are uploads without a name that are never
 * published themselves: a final upload is made of their bytes, and published, while it is created.
 * The parts are then PUBLISHED as well, and their data removed. */
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
    RESUMABLE_CONCAT, /* Upload-Concat */
    RESUMABLE_OWNER,  /* of a part: the client's name, since no model's name tells who may use it */
    RESUMABLE_TEXTS
};

enum resumable_role { RESUMABLE_WHOLE, RESUMABLE_PART, RESUMABLE_FINAL };

/* The length of an upload whose client has not stated it yet. */
#define RESUMABLE_UNKNOWN UINT64_MAX

enum resumable_state { RESUMABLE_RECEIVING, RESUMABLE_PUBLISHED, RESUMABLE_GONE };

struct resumable {
    struct kept_upload kept; /* entry.received: bytes that are in the file, durable or not */
    _Atomic(enum resumable_state) state;
    enum resumable_role role;     /* follows from RESUMABLE_CONCAT */
    atomic_uint_fast64_t length;  /* at the end; set at most once */
    atomic_bool is_length_stated; /* after creation, so that it is recorded apart */
    bool is_length_durable;       /* with sync_lock */
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

/* Whether all bytes are there. */
bool resumable_is_whole(const struct resumable *resumable);
/* The length that the client states after creation: it did not state one before. For the holder of
 * the claim. */
void resumable_set_length(struct resumable *resumable, uint64_t length);

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

/* Makes all received bytes durable, and the length. On a worker. */
enum zt_status resumable_make_durable(struct resumable *resumable, struct zt_error *error);

/* Validates and publishes, when all bytes are durable, for a client that may use the names that
 * covers passes. For the holder of the claim, on a worker. False with failure set; the upload is
 * then gone if no further try can succeed, else unchanged. */
bool resumable_publish(struct resumable *resumable, struct name_filter covers,
                       struct failure *failure);

/* Ends a part whose bytes were published as part of a file of that digest. For the holder of the
 * claim, on a worker. */
void resumable_use_up(struct resumable *part, const uint8_t file_sha256[32]);

/* --- resumable_files.c: its files --- */

/* Makes the place and the files, not durably yet. ZT_LIMIT if there is no space. Fast. */
enum zt_status resumable_files_create(struct resumable *resumable, struct zt_error *error);
/* Makes what create made durable. On a worker. */
enum zt_status resumable_files_sync(struct resumable *resumable, struct zt_error *error);
/* Records, durably, how many bytes are durable. On a worker. */
enum zt_status resumable_files_note(struct resumable *resumable, uint64_t durable,
                                    struct zt_error *error);
/* Records, durably, the length that the client has stated. On a worker. */
enum zt_status resumable_files_note_length(struct resumable *resumable, struct zt_error *error);
/* Removes the bytes of a part. On a worker. */
enum zt_status resumable_files_remove_data(struct resumable *part, struct zt_error *error);
/* Records, durably, that the whole file is about to be published: its SHA-256 is known. On a
 * worker. */
enum zt_status resumable_files_note_end(struct resumable *resumable, struct zt_error *error);
/* Opens an upload as an earlier process left it (kept_kind.open). */
enum kept_opened resumable_files_open(struct server *server, const char *id,
                                      struct kept_upload **out_upload);

#endif
