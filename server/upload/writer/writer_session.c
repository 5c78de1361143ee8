/* A session's lifetime, states and rounds, and durable acknowledgement. */
#include "upload/writer/writer_session.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/staging.h"
#include "upload/writer/writer_journal.h"

/* Names, shapes and attributes of one upload; a million plain tensors take less. */
#define CONTENTS_MAX_BYTES ((uint64_t)512 << 20)
/* A longer journal accepts no more declarations and components; commits still fit. */
#define JOURNAL_MAX_BYTES ((uint64_t)1 << 30)

/* A bit mask of the states that may follow each state. */
static const unsigned next_states[] = {
    [WRITER_OPEN] = 1U << WRITER_COMMITTING | 1U << WRITER_DROPPED,
    [WRITER_COMMITTING] = 1U << WRITER_OPEN | 1U << WRITER_COMMITTED,
    [WRITER_COMMITTED] = 1U << WRITER_DROPPED,
    [WRITER_DROPPED] = 0,
};

static bool may_become(const struct writer_session *session, enum writer_state state)
{
    assert(session->state <= WRITER_DROPPED);
    return next_states[session->state] >> state & 1;
}

/* The lock must be held. */
static void set_state(struct writer_session *session, enum writer_state state)
{
    assert(may_become(session, state));
    session->state = state;
}

/* --- life --- */

struct writer_session *writer_session_new(struct server *server, const char *id)
{
    struct writer_session *session = calloc(1, sizeof(*session));

    if (session == NULL)
        return NULL;
    kept_upload_init(&session->kept, &writer_kind, server, id);
    pthread_mutex_init(&session->lock, NULL);
    pthread_mutex_init(&session->journal_lock, NULL);
    pthread_rwlock_init(&session->writing, NULL);
    pthread_rwlock_init(&session->contents_lock, NULL);
    return session;
}

struct writer_session *writer_session_hold(struct writer_session *session)
{
    kept_upload_hold(&session->kept);
    return session;
}

static void free_text(const char *text)
{
    free((void *)(uintptr_t)text);
}

static void free_session(struct kept_upload *upload)
{
    struct writer_session *session = (struct writer_session *)upload;

    assert(atomic_load(&upload->references) == 0 && !upload->is_listed);
    staged_file_close(session->journal);
    writer_contents_free(&session->contents);
    writer_places_free(&session->places);
    free_text(session->attributes.bytes);
    free_text(session->preconditions.if_match);
    free_text(session->preconditions.if_none_match);
    free_text(session->preconditions.if_unmodified_since);
    pthread_mutex_destroy(&session->lock);
    pthread_mutex_destroy(&session->journal_lock);
    pthread_rwlock_destroy(&session->writing);
    pthread_rwlock_destroy(&session->contents_lock);
    free(session);
}

static bool copy_text(const char *text, const char **out_copy)
{
    assert(*out_copy == NULL);
    *out_copy = text != NULL ? strdup(text) : NULL;
    return text == NULL || *out_copy != NULL;
}

bool writer_session_set_preconditions(struct writer_session *session,
                                      const struct preconditions *preconditions)
{
    struct preconditions *own = &session->preconditions;

    return copy_text(preconditions->if_match, &own->if_match) &&
           copy_text(preconditions->if_none_match, &own->if_none_match) &&
           copy_text(preconditions->if_unmodified_since, &own->if_unmodified_since);
}

bool writer_session_set_attributes(struct writer_session *session, struct zt_text attributes)
{
    char *copy = malloc(attributes.length + 1);

    assert(session->attributes.bytes == NULL);
    if (copy == NULL)
        return false;
    if (attributes.length > 0)
        memcpy(copy, attributes.bytes, attributes.length);
    session->attributes = (struct zt_text){copy, attributes.length};
    return true;
}

/* --- expiry --- */

static int64_t left_ms(struct kept_upload *upload)
{
    struct writer_session *session = (struct writer_session *)upload;
    const int64_t expire_s = config_number(&upload->server->config->upload.expire_s);
    const int64_t outcome_s = expire_s < KEPT_OUTCOME_S ? expire_s : KEPT_OUTCOME_S;
    int64_t left = kept_upload_left_ms(upload, expire_s);

    pthread_mutex_lock(&session->lock);
    if (session->state == WRITER_COMMITTED)
        left = session->committed_ms + outcome_s * 1000 - clock_ms();
    pthread_mutex_unlock(&session->lock);
    return left;
}

time_t writer_session_expires(struct writer_session *session)
{
    return kept_upload_time_in(left_ms(&session->kept));
}

static bool end(struct kept_upload *upload)
{
    enum writer_state state;

    if (!writer_round_end((struct writer_session *)upload, WRITER_DROPPED, &state))
        return false;
    if (state == WRITER_OPEN)
        log_write(LOG_LEVEL_INFO, "upload %s: removed, it was idle for too long", upload->entry.id);
    return true;
}

const struct kept_kind writer_kind = {
    .kind = UPLOAD_KIND_WRITER,
    .limit_offset = offsetof(struct config, upload.sessions_per_client),
    .open = writer_journal_open,
    .left_ms = left_ms,
    .end = end,
    .free = free_session,
};

/* --- states and rounds --- */

enum writer_state writer_session_state(struct writer_session *session, uint64_t *out_round)
{
    enum writer_state state;

    pthread_mutex_lock(&session->lock);
    state = session->state;
    *out_round = atomic_load(&session->round);
    pthread_mutex_unlock(&session->lock);
    return state;
}

/* Waits for bodies that are being written; afterwards no body of the old round can write again. */
static void wait_for_writers(struct writer_session *session)
{
    pthread_rwlock_wrlock(&session->writing);
    pthread_rwlock_unlock(&session->writing);
    pthread_mutex_lock(&session->journal_lock);
    pthread_mutex_unlock(&session->journal_lock);
}

bool writer_round_end(struct writer_session *session, enum writer_state state,
                      enum writer_state *out_state)
{
    bool ends;

    assert(state == WRITER_COMMITTING || state == WRITER_DROPPED);
    pthread_mutex_lock(&session->lock);
    *out_state = session->state;
    ends = may_become(session, state);
    if (ends) {
        set_state(session, state);
        atomic_fetch_add(&session->round, 1);
    }
    pthread_mutex_unlock(&session->lock);
    if (ends)
        wait_for_writers(session);
    return ends;
}

void writer_round_reopen(struct writer_session *session)
{
    pthread_mutex_lock(&session->lock);
    set_state(session, WRITER_OPEN);
    pthread_mutex_unlock(&session->lock);
}

void writer_session_commit(struct writer_session *session, const struct published *published)
{
    pthread_mutex_lock(&session->lock);
    set_state(session, WRITER_COMMITTED);
    session->published = *published;
    session->committed = time(NULL);
    session->committed_ms = clock_ms();
    pthread_mutex_unlock(&session->lock);
}

bool writer_round_is_over(struct writer_session *session, uint64_t round)
{
    assert(round <= atomic_load(&session->round));
    return atomic_load(&session->round) != round;
}

bool writer_round_fail(struct failure *failure)
{
    return failure_refuse(failure, PROBLEM_CONFLICT,
                          "the upload was committed, or ended, meanwhile");
}

bool writer_write_begin(struct writer_session *session, uint64_t round)
{
    pthread_rwlock_rdlock(&session->writing);
    if (!writer_round_is_over(session, round))
        return true;
    pthread_rwlock_unlock(&session->writing);
    return false;
}

void writer_write_end(struct writer_session *session)
{
    pthread_rwlock_unlock(&session->writing);
}

/* --- acknowledging, with journal_lock held --- */

static bool check_round(struct writer_session *session, uint64_t round, struct failure *failure)
{
    return !writer_round_is_over(session, round) || writer_round_fail(failure);
}

static bool check_room(const struct writer_session *session, struct failure *failure)
{
    if (session->contents.held_bytes >= CONTENTS_MAX_BYTES)
        return failure_refuse(failure, PROBLEM_TOO_LARGE,
                              "the names and attributes of this upload are too long in total");
    return session->journal_end < JOURNAL_MAX_BYTES ||
           failure_refuse(failure, PROBLEM_TOO_LARGE,
                          "this upload was changed so often that its journal is full: commit it, "
                          "or begin another");
}

static void free_declaration(struct zt_declaration *declaration)
{
    zt_declaration_free(declaration);
    free(declaration);
}

bool writer_session_declare(struct writer_session *session, uint64_t round, struct zt_text object,
                            struct zt_declaration *declaration, bool *out_new,
                            struct failure *failure)
{
    struct zt_error error;
    bool done = false;
    const struct writer_object *before;

    assert(declaration != NULL);
    pthread_mutex_lock(&session->journal_lock);
    if (!check_round(session, round, failure) || !check_room(session, failure))
        goto out;
    if (!writer_journal_declare(session, object, declaration, &error)) {
        failure_of_store(failure, &error);
        goto out;
    }
    pthread_rwlock_wrlock(&session->contents_lock);
    before = writer_contents_find(&session->contents, object);
    *out_new = before == NULL || before->declared == NULL;
    done = writer_contents_declare(&session->contents, object, declaration);
    pthread_rwlock_unlock(&session->contents_lock);
    if (!done)
        failure_no_memory(failure, "an upload's contents");
out:
    pthread_mutex_unlock(&session->journal_lock);
    if (!done)
        free_declaration(declaration);
    return done;
}

/* Returns the position only during its round: later a commit may be using the file, and handles
 * holes itself. */
void writer_place_return(struct writer_session *session, uint64_t round, struct staged_file *data,
                         const struct writer_place *place)
{
    assert(place->length == 0 || place->offset % session->places.alignment == 0);
    if (!writer_write_begin(session, round))
        return;
    (void)staged_file_discard(data, place->offset, place->length);
    pthread_mutex_lock(&session->lock);
    writer_place_give(&session->places, place->offset, place->length);
    pthread_mutex_unlock(&session->lock);
    writer_write_end(session);
}

/* Counts the bytes of the session's components as received. */
static void count_received(struct writer_session *session, const struct writer_exchange *exchange)
{
    atomic_uint_fast64_t *received = &session->kept.entry.received;

    assert(exchange->component != exchange->replaced);
    atomic_fetch_add(received, exchange->component->decoded_length);
    if (exchange->replaced != NULL) {
        uint64_t before = atomic_fetch_sub(received, exchange->replaced->decoded_length);

        assert(before >= exchange->replaced->decoded_length);
        (void)before;
    }
}

bool writer_session_put(struct writer_session *session, uint64_t round,
                        struct writer_exchange *exchange, struct failure *failure)
{
    struct zt_error error;
    bool done = false;

    assert(exchange->component != NULL && exchange->replaced == NULL);
    pthread_mutex_lock(&session->journal_lock);
    if (!check_round(session, round, failure) || !check_room(session, failure))
        goto out;
    if (!writer_journal_put(session, exchange->object, exchange->component, &error)) {
        failure_of_store(failure, &error);
        goto out;
    }
    pthread_rwlock_wrlock(&session->contents_lock);
    done = writer_contents_put(&session->contents, exchange->object, exchange->component,
                               &exchange->replaced);
    pthread_rwlock_unlock(&session->contents_lock);
    if (done)
        count_received(session, exchange);
    else
        failure_no_memory(failure, "an upload's contents");
out:
    pthread_mutex_unlock(&session->journal_lock);
    return done;
}
