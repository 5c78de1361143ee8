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

/* Values from the creation request that are needed later; NULL if absent. */
enum resumable_text {
    RESUMABLE_METADATA,
    RESUMABLE_IF_MATCH,
    RESUMABLE_IF_NONE_MATCH,
    RESUMABLE_IF_UNMODIFIED_SINCE,
    RESUMABLE_REPR_DIGEST,
    RESUMABLE_CONCAT, /* Upload-Concat */
    RESUMABLE_OWNER,  /* for a part: the client's name, because a part has no model name that
                       * decides which clients may use it */
    RESUMABLE_TEXTS
};

enum resumable_role { RESUMABLE_WHOLE, RESUMABLE_PART, RESUMABLE_FINAL };

/* The length of an upload whose client has not stated it yet. */
#define RESUMABLE_UNKNOWN UINT64_MAX

enum resumable_state { RESUMABLE_RECEIVING, RESUMABLE_PUBLISHED, RESUMABLE_GONE };

struct resumable {
    struct kept_upload kept; /* entry.received: bytes in the file, durable or not;
                              * entry.is_file follows from RESUMABLE_METADATA */
    _Atomic(enum resumable_state) state;
    enum resumable_role role;     /* follows from RESUMABLE_CONCAT */
    atomic_uint_fast64_t length;  /* total length; set at most once */
    atomic_bool is_length_stated; /* after creation, so it is recorded separately */
    bool is_length_durable;       /* guarded by sync_lock */
    char *texts[RESUMABLE_TEXTS];
    /* Open while the files are in use (resumable_enter) and not published; otherwise NULL. */
    struct staged_file *data;
    struct staged_file *state_file;
    pthread_mutex_t files_lock; /* guards opening and closing them, and users */
    unsigned users;
    /* A write or sync failed. Until a sync succeeds, the files stay open, because only these
     * descriptors know. */
    atomic_bool has_failed_write;
    struct claim claim;        /* never ends once the upload is gone */
    pthread_mutex_t sync_lock; /* workers only: the holder waits for the disk */
    atomic_uint_fast64_t durable;
    struct body_follower follower;
    struct byte_digests digests;
    /* remains is guarded by sync_lock. */
    bool is_hashed;             /* published.sha256 is known; set by the holder of the claim */
    struct published published; /* etag and replaced once it is published, by this process */
};

/* The kind for kept_uploads_new. */
extern const struct kept_kind resumable_kind;

/* Makes a new upload in memory, with one reference to kept. Takes over the texts, even on failure.
 * Returns NULL if out of memory. */
struct resumable *resumable_new(struct server *server, const char *id,
                                char *texts[RESUMABLE_TEXTS]);
enum resumable_state resumable_state(const struct resumable *resumable);

/* Returns true if all bytes have arrived. */
bool resumable_is_whole(const struct resumable *resumable);
/* Sets the length, if the client did not state it at creation. For the holder of the claim. */
void resumable_set_length(struct resumable *resumable, uint64_t length);

/* Opens the files, which are closed while no request uses them, so that idle uploads hold no
 * descriptors. An upload that is published or gone has no files. Each successful call needs a
 * resumable_leave. Returns false with failure set. Fast. */
bool resumable_enter(struct resumable *resumable, struct failure *failure);
/* Ends the use of the files. The last user also releases the disk space claimed for bytes that did
 * not arrive. */
void resumable_leave(struct resumable *resumable);
/* Closes the files of an upload that was just opened and that no request has entered: at once, or
 * when the worker that reads them has finished. */
void resumable_rest(struct resumable *resumable);

/* Postpones expiry because a request uses the upload. Published uploads still expire. */
void resumable_touch(struct resumable *resumable);
time_t resumable_expires(struct resumable *resumable);

/* Ends a claim, unless the upload is gone, and sets it to 0. */
void resumable_end_claim(struct resumable *resumable, uint64_t *claim);
/* Ends the upload and removes everything. For the holder of the claim, on a worker. */
void resumable_drop(struct resumable *resumable);

/* Reports that length more bytes are in the file. Starts a job to hash them if there are enough. */
void resumable_advance(struct resumable *resumable, uint64_t length);
/* Reports that a piece of a body was written at the end of the file. */
void resumable_take(struct resumable *resumable, const struct body_piece *piece);

/* Makes all received bytes and the length durable. On a worker. */
enum zt_status resumable_make_durable(struct resumable *resumable, struct zt_error *error);

/* Validates and publishes, when all bytes are durable. request is the client's. For the holder of
 * the claim, on a worker. Returns false with failure set; the upload is then gone if no further try
 * can succeed, otherwise unchanged. */
bool resumable_publish(struct resumable *resumable, const struct request *request,
                       struct failure *failure);

/* Retries the unfinished work of a published upload. On a worker. Returns false with failure
 * set. */
bool resumable_complete(struct resumable *resumable, struct failure *failure);
/* Does the same for a client that may only read: changes nothing. */
bool resumable_settle(struct resumable *resumable, struct failure *failure);
/* Only reports the unfinished work. */
bool resumable_report(struct resumable *resumable, struct failure *failure);

/* Recovers an upload whose file could not be written or synced: forgets all but its durable bytes,
 * and opens its files again, because a descriptor that has reported an error cannot be trusted. For
 * the holder of the claim, who has entered, on a worker. */
void resumable_put_down(struct resumable *resumable);

/* Ends a part whose bytes were published in a file with that digest. For the holder of the claim,
 * on a worker. */
void resumable_use_up(struct resumable *part, const uint8_t file_sha256[32]);

/* --- resumable_files.c: its files --- */

/* Opens, and closes, the files that create or an earlier process made. */
enum zt_status resumable_files_reopen(struct resumable *resumable, struct zt_error *error);
void resumable_files_close(struct resumable *resumable);

/* Makes the folder and the files, not durably yet. Returns ZT_LIMIT if there is no space. Fast. */
enum zt_status resumable_files_create(struct resumable *resumable, struct zt_error *error);
/* Makes the new files durable. On a worker. */
enum zt_status resumable_files_sync(struct resumable *resumable, struct zt_error *error);
/* Records durably how many bytes are durable. On a worker. */
enum zt_status resumable_files_note(struct resumable *resumable, uint64_t durable,
                                    struct zt_error *error);
/* Records the stated length durably. On a worker. */
enum zt_status resumable_files_note_length(struct resumable *resumable, struct zt_error *error);
/* Removes the bytes of a part. On a worker. */
enum zt_status resumable_files_remove_data(struct resumable *part, struct zt_error *error);
/* Records durably that the whole file is about to be published; its SHA-256 must be known. On a
 * worker. */
enum zt_status resumable_files_note_end(struct resumable *resumable, struct zt_error *error);
/* Opens an upload that an earlier process left (kept_kind.open). */
enum kept_opened resumable_files_open(struct server *server, const char *id,
                                      struct kept_upload **out_upload);

#endif
