/* Resumable uploads (http-api, section 6.3): a file that comes in pieces, one after another, over
 * any time.
 *
 * In its kept place are three files: "data", the bytes; "resumable", what was said at creation; and
 * "state", how many bytes are durable, and when publication began. What was told to the client as
 * its offset is durable before it is told. What came beyond that is there still after the process
 * was killed, as long as the system has not been started anew: then the length of "data" is to be
 * trusted, else only what "state" says. Publication takes "data" away: where it is missing after
 * publication began, that is done, and the rest stays for who asks, because the last answer was
 * lost. */
#ifndef UPLOAD_TUS_RESUMABLE_H
#define UPLOAD_TUS_RESUMABLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "catalog/generation.h"
#include "http/exchange/problem.h"
#include "http/fields/conditional.h"
#include "upload/shared/claim.h"
#include "upload/shared/registry.h"
#include "upload/whole/upload_hash.h"

/* What a client said at creation and is needed later; NULL where it said nothing. */
enum resumable_text {
    RESUMABLE_METADATA,
    RESUMABLE_IF_MATCH,
    RESUMABLE_IF_NONE_MATCH,
    RESUMABLE_IF_UNMODIFIED_SINCE,
    RESUMABLE_REPR_DIGEST,
    RESUMABLE_TEXTS
};

struct resumable {
    atomic_uint references; /* the table's one, and one a request or job */
    struct server *server;
    struct registry_entry entry; /* received: bytes that are in the file, durable or not */
    uint64_t length;             /* of the whole file */
    char *texts[RESUMABLE_TEXTS];
    struct stored_upload *data; /* NULL once it is published */
    struct stored_upload *state;
    struct claim claim; /* of what is gone it never ends */
    atomic_bool is_gone;
    pthread_mutex_t sync_lock; /* held by workers only: while it is, they wait for the disk */
    atomic_uint_fast64_t durable;
    /* Hashing behind the writer: by one worker at a time, never on a loop. */
    struct upload_hash hash;
    struct job job;
    atomic_bool is_queued;
    bool is_hashed; /* the whole file; whoever is busy with it sets it */
    uint8_t sha256[32];
    uint8_t sha512[64]; /* only where creation stated one */
    /* Published: who asks again is told for a while, of what is kept of it also by the next
     * process. */
    atomic_bool is_published;
    bool is_outcome_kept; /* counted: only so many are */
    bool replaced;
    char etag[GENERATION_ETAG_SIZE];
    struct resumable *next; /* the table's */
};

/* A new one in memory, with one reference, which takes the texts over (on failure too). NULL when
 * memory is out. */
struct resumable *resumable_new(struct server *server, const char *id,
                                char *texts[RESUMABLE_TEXTS]);
struct resumable *resumable_hold(struct resumable *resumable);
/* Takes NULL. void *, so that it fits request_hold. What is kept on disk stays. */
void resumable_release(void *resumable);

/* Somebody works with it: it does not expire for now. What is published does all the same. */
void resumable_touch(struct resumable *resumable);
time_t resumable_expires(struct resumable *resumable);

/* Ends a claim; what is gone stays claimed. */
void resumable_unclaim(struct resumable *resumable, uint64_t number);

/* On the loop: bytes up to received are in the file. Lets a worker hash when that is worth a job.
 */
void resumable_advance(struct resumable *resumable, uint64_t received);

/* Makes durable what is there. On a worker. */
enum zt_status resumable_settle(struct resumable *resumable, struct zt_error *error);

/* How publication failed. */
struct resumable_failure {
    enum problem problem;
    struct zt_error error;
};

/* All bytes are durable: validates and publishes. By whoever claimed it, on a worker. On success it
 * is published; when no further try can succeed it is gone as well; else it stays as it is. */
bool resumable_publish(struct resumable *resumable, struct resumable_failure *failure);

/* --- resumable_files.c: its files. --- */

/* Makes the place and the files, not durably yet. ZT_LIMIT when there is no room. Fast. */
enum zt_status resumable_files_create(struct resumable *resumable, struct zt_error *error);
/* Makes what create made durable. On a worker. */
enum zt_status resumable_files_sync(struct resumable *resumable, struct zt_error *error);
/* Writes down, durably, how many bytes are durable. On a worker. */
enum zt_status resumable_files_note(struct resumable *resumable, uint64_t durable,
                                    struct zt_error *error);
/* Writes down, durably, that the whole file is about to be published: sha256 is known. On a worker.
 */
enum zt_status resumable_files_note_end(struct resumable *resumable, struct zt_error *error);
/* One as an earlier process left it, published or not, with one reference; NULL when it is none, or
 * cannot be gone on with. */
struct resumable *resumable_files_open(struct server *server, const char *id);

/* --- resumables.c: the table; safe from any thread. --- */

/* NULL when memory is out. */
struct resumables *resumables_new(struct server *server);
/* What is kept on disk stays. Takes NULL. */
void resumables_free(struct resumables *resumables);

/* Held; NULL when there is none. One that another process left is taken over. */
struct resumable *resumables_find(struct resumables *resumables, struct zt_text id);

/* Registers it and takes a reference of its own. False, and nothing happened, when the client has
 * too many. */
bool resumables_add(struct resumables *resumables, struct resumable *resumable);

/* Takes it out of the table and removes its place, with all that is in it. By whoever claimed it,
 * on a worker. */
void resumables_drop(struct resumables *resumables, struct resumable *resumable);
/* It is published, and stays in the table for a while, and its place with it as long as these are
 * not too many. */
void resumables_finish(struct resumables *resumables, struct resumable *resumable);
/* Takes one out of the table that has no place. */
void resumables_forget(struct resumables *resumables, struct resumable *resumable);

/* At start: whether the kept place of that id is a resumable upload's, and has been taken over. */
bool resumables_restore(struct resumables *resumables, const char *id);

/* Removes what was idle for too long. On a worker. */
void resumables_expire(struct resumables *resumables);

#endif
