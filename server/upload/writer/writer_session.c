/* A session's life, its rounds, and what makes an acknowledgement durable. */
#include "upload/writer/writer_session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "upload/writer/writer_journal.h"

/* Names, shapes and attributes of one upload; a million plain tensors take less. */
#define CONTENTS_MAX_BYTES ((uint64_t)512 << 20)
/* A journal that is longer takes no more declarations and components; commits still fit. */
#define JOURNAL_MAX_BYTES ((uint64_t)1 << 30)

/* --- failures --- */

bool writer_fail(struct writer_failure *failure, enum problem problem, const struct zt_error *error)
{
    failure->problem = problem;
    failure->error = *error;
    return false;
}

bool writer_refuse(struct writer_failure *failure, enum problem problem, const char *format, ...)
{
    char message[sizeof(failure->error.message)];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    failure->problem = problem;
    zt_fail(&failure->error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s", message);
    return false;
}

bool writer_fail_store(struct writer_failure *failure, const struct zt_error *error)
{
    return writer_fail(failure, problem_of_write(error), error);
}

/* --- life --- */

struct writer_session *writer_session_new(struct server *server, const char *id)
{
    struct writer_session *session = calloc(1, sizeof(*session));

    if (session == NULL)
        return NULL;
    atomic_init(&session->references, 1);
    session->server = server;
    session->entry.kind = UPLOAD_KIND_WRITER;
    snprintf(session->entry.id, sizeof(session->entry.id), "%s", id);
    session->entry.created = time(NULL);
    writer_session_touch(session);
    pthread_mutex_init(&session->lock, NULL);
    pthread_mutex_init(&session->journal_lock, NULL);
    pthread_rwlock_init(&session->writing, NULL);
    pthread_rwlock_init(&session->contents_lock, NULL);
    return session;
}

struct writer_session *writer_session_hold(struct writer_session *session)
{
    atomic_fetch_add(&session->references, 1);
    return session;
}

static void free_text(const char *text)
{
    free((void *)(uintptr_t)text);
}

void writer_session_release(void *thing)
{
    struct writer_session *session = thing;

    if (session == NULL || atomic_fetch_sub(&session->references, 1) > 1)
        return;
    session->server->store->ops->abandon(session->journal);
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

void writer_session_touch(struct writer_session *session)
{
    atomic_store(&session->entry.active, time(NULL));
}

static bool copy_text(const char *text, const char **out_copy)
{
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

    if (copy == NULL)
        return false;
    if (attributes.length > 0)
        memcpy(copy, attributes.bytes, attributes.length);
    session->attributes = (struct zt_text){copy, attributes.length};
    return true;
}

/* --- rounds --- */

enum writer_state writer_session_state(struct writer_session *session, uint64_t *out_round)
{
    enum writer_state state;

    pthread_mutex_lock(&session->lock);
    state = session->state;
    *out_round = atomic_load(&session->round);
    pthread_mutex_unlock(&session->lock);
    return state;
}

bool writer_round_is_over(struct writer_session *session, uint64_t round)
{
    return atomic_load(&session->round) != round;
}

bool writer_round_end(struct writer_session *session, enum writer_state state,
                      enum writer_state *out_state)
{
    bool ends;

    pthread_mutex_lock(&session->lock);
    *out_state = session->state;
    ends = session->state == WRITER_OPEN ||
           (session->state == WRITER_COMMITTED && state == WRITER_DROPPED);
    if (ends) {
        session->state = state;
        atomic_fetch_add(&session->round, 1);
    }
    pthread_mutex_unlock(&session->lock);
    if (!ends)
        return false;
    /* Whoever was inside comes out, and nobody of the old round gets in again. */
    pthread_rwlock_wrlock(&session->writing);
    pthread_rwlock_unlock(&session->writing);
    pthread_mutex_lock(&session->journal_lock);
    pthread_mutex_unlock(&session->journal_lock);
    return true;
}

void writer_round_begin(struct writer_session *session)
{
    pthread_mutex_lock(&session->lock);
    if (session->state == WRITER_COMMITTING)
        session->state = WRITER_OPEN;
    pthread_mutex_unlock(&session->lock);
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

/* --- acknowledging --- */

static bool check_round(struct writer_session *session, uint64_t round,
                        struct writer_failure *failure)
{
    return !writer_round_is_over(session, round) ||
           writer_refuse(failure, PROBLEM_CONFLICT,
                         "the upload was committed, or ended, meanwhile");
}

static bool check_room(struct writer_session *session, struct writer_failure *failure)
{
    if (session->contents.held_bytes >= CONTENTS_MAX_BYTES)
        return writer_refuse(failure, PROBLEM_TOO_LARGE,
                             "names and attributes of one upload are bounded");
    return session->journal_end < JOURNAL_MAX_BYTES ||
           writer_refuse(failure, PROBLEM_TOO_LARGE,
                         "this upload was changed so often that its journal is full: commit it, or "
                         "begin another");
}

static bool no_memory(struct writer_failure *failure)
{
    struct zt_error error;

    zt_fail(&error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for an upload's contents");
    return writer_fail(failure, PROBLEM_INTERNAL, &error);
}

static void free_declaration(struct zt_declaration *declaration)
{
    zt_declaration_free(declaration);
    free(declaration);
}

bool writer_session_declare(struct writer_session *session, uint64_t round, struct zt_text object,
                            struct zt_declaration *declaration, bool *out_new,
                            struct writer_failure *failure)
{
    struct zt_error error;
    bool done = false;
    const struct writer_object *before;

    pthread_mutex_lock(&session->journal_lock);
    if (!check_round(session, round, failure) || !check_room(session, failure))
        goto out;
    if (!writer_journal_declare(session, object, declaration, &error)) {
        writer_fail_store(failure, &error);
        goto out;
    }
    pthread_rwlock_wrlock(&session->contents_lock);
    before = writer_contents_find(&session->contents, object);
    *out_new = before == NULL || before->declared == NULL;
    done = writer_contents_declare(&session->contents, object, declaration);
    pthread_rwlock_unlock(&session->contents_lock);
    if (!done)
        no_memory(failure);
out:
    pthread_mutex_unlock(&session->journal_lock);
    if (!done)
        free_declaration(declaration);
    return done;
}

/* Not into a file that a commit may have at hand: then all of this ends with it. */
void writer_place_return(struct writer_session *session, uint64_t round, struct stored_upload *data,
                         const struct writer_place *place)
{
    if (!writer_write_begin(session, round))
        return;
    (void)session->server->store->ops->discard(data, place->offset, place->length);
    pthread_mutex_lock(&session->lock);
    writer_place_give(&session->places, place->offset, place->length);
    pthread_mutex_unlock(&session->lock);
    writer_write_end(session);
}

/* Received are the bytes of what is held. */
static void count(struct writer_session *session, const struct writer_exchange *exchange)
{
    atomic_fetch_add(&session->entry.received, exchange->component->decoded_length);
    if (exchange->replaced != NULL)
        atomic_fetch_sub(&session->entry.received, exchange->replaced->decoded_length);
}

bool writer_session_put(struct writer_session *session, uint64_t round,
                        struct writer_exchange *exchange, struct writer_failure *failure)
{
    struct zt_error error;
    bool done = false;

    pthread_mutex_lock(&session->journal_lock);
    if (!check_round(session, round, failure) || !check_room(session, failure))
        goto out;
    if (!writer_journal_put(session, exchange->object, exchange->component, &error)) {
        writer_fail_store(failure, &error);
        goto out;
    }
    pthread_rwlock_wrlock(&session->contents_lock);
    done = writer_contents_put(&session->contents, exchange->object, exchange->component,
                               &exchange->replaced);
    pthread_rwlock_unlock(&session->contents_lock);
    if (done)
        count(session, exchange);
    else
        no_memory(failure);
out:
    pthread_mutex_unlock(&session->journal_lock);
    return done;
}
