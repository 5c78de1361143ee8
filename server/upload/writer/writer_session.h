/* One upload of the streaming writer: the components of a future file, in any order, over several
 * connections, each acknowledged by itself.
 *
 *   OPEN <--> COMMITTING --> COMMITTED      (a commit that fails leaves it open)
 *     |                          |
 *     +--deleted, expired--------+----------> DROPPED
 *
 * Its kept place holds two files: "data", with the components at the positions that they will have
 * in the published file, and "journal", which records everything before it is acknowledged. */
#ifndef UPLOAD_WRITER_WRITER_SESSION_H
#define UPLOAD_WRITER_WRITER_SESSION_H

#include "upload/shared/failure.h"
#include "upload/shared/kept_uploads.h"
#include "upload/shared/publication.h"
#include "upload/writer/writer_contents.h"
#include "upload/writer/writer_places.h"

#define WRITER_DATA    "data"
#define WRITER_JOURNAL "writer-journal"
/* Made by a commit if "data" has bytes that no component uses any more. */
#define WRITER_COMPACT "compact"

enum writer_state { WRITER_OPEN, WRITER_COMMITTING, WRITER_COMMITTED, WRITER_DROPPED };

struct writer_session {
    struct kept_upload kept;
    enum zt_target target;
    struct zt_text attributes; /* CBOR; owned */
    /* From the request that began the upload; checked again at commit. The texts are owned. */
    struct preconditions preconditions;

    pthread_mutex_t lock; /* guards state, places and published; never held for long */
    enum writer_state state;
    struct writer_places places;
    bool is_dirty; /* a failed commit left bytes after the components */
    struct published published;
    time_t committed;
    int64_t committed_ms; /* the same as clock_ms */
    /* Bodies belong to the round in which they began. A commit, or ending the upload, begins
     * another round, after which no body of an older round is written or acknowledged. */
    atomic_uint_fast64_t round;
    pthread_rwlock_t writing; /* read-held while a body is written into "data" */

    pthread_rwlock_t contents_lock;
    struct writer_contents contents;

    pthread_mutex_t journal_lock; /* workers only: the holder waits for the disk */
    struct staged_file *journal;  /* NULL after a failure: it must be opened again */
    uint64_t journal_end;
    bool is_publication_announced; /* in the journal, and not withdrawn */
};

/* The kind for kept_uploads_new. */
extern const struct kept_kind writer_kind;

/* Makes a session in memory, with one reference. Returns NULL if out of memory. */
struct writer_session *writer_session_new(struct server *server, const char *id);
struct writer_session *writer_session_hold(struct writer_session *session);

/* Copies texts, NULL for NULL. Returns false if out of memory. */
bool writer_session_set_preconditions(struct writer_session *session,
                                      const struct preconditions *preconditions);
bool writer_session_set_attributes(struct writer_session *session, struct zt_text attributes);

/* Returns when it expires unless it is touched. */
time_t writer_session_expires(struct writer_session *session);

/* --- states and rounds --- */

/* Returns the current state, and the round of a body that begins now. */
enum writer_state writer_session_state(struct writer_session *session, uint64_t *out_round);

/* Ends the round: OPEN (or COMMITTED, to be dropped) becomes state. When this returns, no body
 * writes into "data" any more. Returns false if the step is not legal; *out_state is the previous
 * state. On a worker. */
bool writer_round_end(struct writer_session *session, enum writer_state state,
                      enum writer_state *out_state);
/* Opens the upload again after a failed commit. */
void writer_round_reopen(struct writer_session *session);
/* Called after a successful commit. */
void writer_session_commit(struct writer_session *session, const struct published *published);

bool writer_round_is_over(struct writer_session *session, uint64_t round);
/* Records the failure of a body whose round is over; returns false. */
bool writer_round_fail(struct failure *failure);

/* Writing into "data" is safe between these two calls. Returns false if the round is over. Never
 * waits long. */
bool writer_write_begin(struct writer_session *session, uint64_t round);
void writer_write_end(struct writer_session *session);

/* --- acknowledging: durable when these return true; on a worker --- */

/* Takes over the declaration, even on failure. *out_new: the object had none before. */
bool writer_session_declare(struct writer_session *session, uint64_t round, struct zt_text object,
                            struct zt_declaration *declaration, bool *out_new,
                            struct failure *failure);

/* The component that arrived for an object, and the component that it replaced: NULL, or the caller
 * frees it and returns its position. */
struct writer_exchange {
    struct zt_text object;
    struct writer_component *component;
    struct writer_component *replaced;
};

/* Takes over the component on success. */
bool writer_session_put(struct writer_session *session, uint64_t round,
                        struct writer_exchange *exchange, struct failure *failure);

/* Returns an unused position of the round and frees its disk space. data is a descriptor of "data".
 * May take a long time for a large position. */
void writer_place_return(struct writer_session *session, uint64_t round, struct staged_file *data,
                         const struct writer_place *place);

#endif
