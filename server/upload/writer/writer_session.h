/* One upload of the streaming writer (http-api, section 6.2): the components of a future file, in
 * any order, over several connections, acknowledged one by one.
 *
 *   OPEN <--> COMMITTING --> COMMITTED      (a commit that fails leaves it open)
 *     |                          |
 *     +--deleted, expired--------+----------> DROPPED
 *
 * In its kept place are two files: "data", where components lie as they will in the published file,
 * and "journal", which records everything before it is acknowledged. */
#ifndef UPLOAD_WRITER_WRITER_SESSION_H
#define UPLOAD_WRITER_WRITER_SESSION_H

#include "upload/shared/failure.h"
#include "upload/shared/kept_uploads.h"
#include "upload/shared/publication.h"
#include "upload/writer/writer_contents.h"
#include "upload/writer/writer_places.h"

#define WRITER_DATA    "data"
#define WRITER_JOURNAL "writer-journal"
/* Made by a commit where "data" has bytes that no component uses any more. */
#define WRITER_COMPACT "compact"

enum writer_state { WRITER_OPEN, WRITER_COMMITTING, WRITER_COMMITTED, WRITER_DROPPED };

struct writer_session {
    struct kept_upload kept;
    enum zt_target target;
    struct zt_text attributes; /* CBOR; owned */
    /* Those of the request that began it hold at commit; texts owned. */
    struct preconditions preconditions;

    pthread_mutex_t lock; /* of state, places, published; never held for long */
    enum writer_state state;
    struct writer_places places;
    bool is_dirty; /* a commit that failed left bytes behind the components */
    struct published published;
    time_t committed;
    /* Bodies belong to the round in which they began. A commit, or the end, begins another, after
     * which no body of an older round is written or acknowledged. */
    atomic_uint_fast64_t round;
    pthread_rwlock_t writing; /* read-held while a body is written into "data" */

    pthread_rwlock_t contents_lock;
    struct writer_contents contents;

    pthread_mutex_t journal_lock; /* workers only: while one holds it, it waits for the disk */
    struct stored_upload *journal;
    uint64_t journal_end;
    bool is_publication_announced; /* in the journal, and not withdrawn */
};

/* The kind for kept_uploads_new. */
extern const struct kept_kind writer_kind;

/* A session in memory, with one reference. NULL when memory is out. */
struct writer_session *writer_session_new(struct server *server, const char *id);
struct writer_session *writer_session_hold(struct writer_session *session);

/* Copies of texts, NULL for NULL. False when memory is out. */
bool writer_session_set_preconditions(struct writer_session *session,
                                      const struct preconditions *preconditions);
bool writer_session_set_attributes(struct writer_session *session, struct zt_text attributes);

/* When it expires unless it is touched. */
time_t writer_session_expires(struct writer_session *session);

/* --- states and rounds --- */

/* The state now, and the round of a body that begins now. */
enum writer_state writer_session_state(struct writer_session *session, uint64_t *out_round);

/* Ends the round: OPEN (or COMMITTED, to be dropped) becomes state, and when this returns nobody
 * writes into "data" any more. False where that is no legal step; *out_state is the state before.
 * On a worker. */
bool writer_round_end(struct writer_session *session, enum writer_state state,
                      enum writer_state *out_state);
/* After a commit that failed: the upload is open again. */
void writer_round_reopen(struct writer_session *session);
/* After a commit that succeeded. */
void writer_session_commit(struct writer_session *session, const struct published *published);

bool writer_round_is_over(struct writer_session *session, uint64_t round);
/* For a body whose round is over; false. */
bool writer_round_fail(struct failure *failure);

/* Between these two writing into "data" is safe. False when the round is over. Never waits long. */
bool writer_write_begin(struct writer_session *session, uint64_t round);
void writer_write_end(struct writer_session *session);

/* --- acknowledging: durable when these return true; on a worker --- */

/* Takes the declaration over (also on failure). *out_new: the object had none before. */
bool writer_session_declare(struct writer_session *session, uint64_t round, struct zt_text object,
                            struct zt_declaration *declaration, bool *out_new,
                            struct failure *failure);

/* What arrived for an object, and what it replaced: NULL, or to be freed, its place to be given
 * back. */
struct writer_exchange {
    struct zt_text object;
    struct writer_component *component;
    struct writer_component *replaced;
};

/* Takes the component over on success. */
bool writer_session_put(struct writer_session *session, uint64_t round,
                        struct writer_exchange *exchange, struct failure *failure);

/* Gives back a place of the round that is no longer used: its space is freed for others. data is a
 * descriptor of "data". May take long for a large one. */
void writer_place_return(struct writer_session *session, uint64_t round, struct stored_upload *data,
                         const struct writer_place *place);

#endif
