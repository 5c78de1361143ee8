/* One upload of the streaming writer (http-api, section 6.2): components of a file to be, in any
 * order, from several connections, acknowledged one by one.
 *
 *   OPEN <--> COMMITTING --> COMMITTED      (a commit that fails leaves it open)
 *     |                          |
 *     +--deleted, expired--------+----------> DROPPED
 *
 * In its kept place are two files: "data", where components lie as they will in the published file,
 * and "journal", in which everything that was acknowledged stands before the acknowledgement. */
#ifndef UPLOAD_WRITER_WRITER_SESSION_H
#define UPLOAD_WRITER_WRITER_SESSION_H

#include <pthread.h>
#include <stdatomic.h>

#include "catalog/generation.h"
#include "http/exchange/problem.h"
#include "http/fields/conditional.h"
#include "upload/shared/registry.h"
#include "upload/writer/writer_contents.h"
#include "upload/writer/writer_places.h"
#include "upload/writer/writer_record.h"

#define WRITER_DATA    "data"
#define WRITER_JOURNAL "writer-journal"
/* Made by a commit where "data" has bytes that nobody wants any more. */
#define WRITER_COMPACT "compact"

enum writer_state { WRITER_OPEN, WRITER_COMMITTING, WRITER_COMMITTED, WRITER_DROPPED };

/* How a request failed, for its answer. */
struct writer_failure {
    enum problem problem;
    struct zt_error error;
    bool is_passing; /* another request is at it: worth asking again in a moment */
};

/* What commit achieved, for those who ask again. */
struct writer_outcome {
    uint8_t sha256[32];
    char etag[GENERATION_ETAG_SIZE];
    time_t when;
};

struct writer_session {
    atomic_uint references; /* the table's one, and one a request or job */
    struct server *server;
    struct registry_entry entry;
    enum zt_target target;
    struct zt_text attributes; /* CBOR; held */
    /* Those of the request that began it hold at commit; texts held. */
    struct preconditions preconditions;

    pthread_mutex_t lock; /* of state, places, outcome: never held for long */
    enum writer_state state;
    struct writer_places places;
    bool is_dirty; /* a commit that failed left bytes behind the components */
    struct writer_outcome outcome;
    /* Bodies belong to the round in which they began: a commit, or the end, begins another, after
     * which none of them is written or acknowledged. */
    atomic_uint_fast64_t round;
    pthread_rwlock_t writing; /* read-held by whoever writes into "data" */

    pthread_rwlock_t contents_lock;
    struct writer_contents contents;

    pthread_mutex_t journal_lock; /* held by workers only: while it is, they wait for the disk */
    struct stored_upload *journal;
    uint64_t journal_end;
    bool is_publication_announced; /* in the journal, and not withdrawn */

    struct writer_session *next; /* writers.c's */
};

/* A session in memory, with one reference. NULL when memory is out. */
struct writer_session *writer_session_new(struct server *server, const char *id);
struct writer_session *writer_session_hold(struct writer_session *session);
/* Takes NULL. void *, so that it fits request_hold. What is kept on disk stays. */
void writer_session_release(void *session);

/* Somebody works with it: it does not expire for now. */
void writer_session_touch(struct writer_session *session);

/* Copies of texts, NULL for NULL. False when memory is out. */
bool writer_session_set_preconditions(struct writer_session *session,
                                      const struct preconditions *preconditions);
bool writer_session_set_attributes(struct writer_session *session, struct zt_text attributes);

/* Always false, so that a step can end with them. */
bool writer_fail(struct writer_failure *failure, enum problem problem,
                 const struct zt_error *error);
bool writer_refuse(struct writer_failure *failure, enum problem problem, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Failures of storing: no room, or anything else. */
bool writer_fail_store(struct writer_failure *failure, const struct zt_error *error);

/* --- rounds --- */

/* The state now; and the round that a body which begins now belongs to. */
enum writer_state writer_session_state(struct writer_session *session, uint64_t *out_round);
bool writer_round_is_over(struct writer_session *session, uint64_t round);

/* Ends the round: OPEN becomes state, and when this returns nobody writes into "data" any more.
 * False when it is not open; *out_state is what it is. On a worker. */
bool writer_round_end(struct writer_session *session, enum writer_state state,
                      enum writer_state *out_state);
/* After a commit that failed. */
void writer_round_begin(struct writer_session *session);

/* Writing into "data" between these two is safe. False when the round is over. Never waits long. */
bool writer_write_begin(struct writer_session *session, uint64_t round);
void writer_write_end(struct writer_session *session);

/* --- acknowledging: durable when these return true; on a worker --- */

/* Takes the declaration over (also on failure). *out_new: the object had none before. */
bool writer_session_declare(struct writer_session *session, uint64_t round, struct zt_text object,
                            struct zt_declaration *declaration, bool *out_new,
                            struct writer_failure *failure);
/* What arrived for an object, and what it replaced: NULL, or to be freed, its place to be given
 * back. */
struct writer_exchange {
    struct zt_text object;
    struct writer_component *component;
    struct writer_component *replaced;
};

/* Takes the component over on success. */
bool writer_session_put(struct writer_session *session, uint64_t round,
                        struct writer_exchange *exchange, struct writer_failure *failure);

/* A place of the round that nobody needs any more: its space is freed, and others may have it. data
 * is a descriptor of "data". May take long for a large one. */
void writer_place_return(struct writer_session *session, uint64_t round, struct stored_upload *data,
                         const struct writer_place *place);

#endif
