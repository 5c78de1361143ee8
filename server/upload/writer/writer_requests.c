/* The streaming writer's requests, except creation, status and the bodies of components. Each is
 * read on the loop and executed by a worker. */
#include "upload/writer/writer.h"

#include <assert.h>
#include <stdlib.h>

#include "http/exchange/authorize.h"
#include "http/exchange/json_body.h"
#include "upload/shared/write_checks.h"
#include "upload/writer/writer_commit.h"
#include "upload/writer/writer_session.h"

/* A request in progress. */
struct writing {
    struct writer_session *session; /* held by the request */
    bool is_begun;                  /* a worker has the request */
    bool is_new;
    struct failure failure;
};

/* --- shared --- */

struct writer_session *writer_resolve(struct request *request, bool is_write)
{
    struct kept_upload *upload;
    uint64_t round;

    if (is_write && write_refuse_read_only(request))
        return NULL;
    upload = kept_uploads_find(request->server->kept, UPLOAD_KIND_WRITER, request->names[0]);
    if (upload == NULL || !authorize_sees(request, zt_text_from(upload->entry.model)) ||
        writer_session_state((struct writer_session *)upload, &round) == WRITER_DROPPED) {
        kept_upload_release(upload);
        problem_reply(request, PROBLEM_UPLOAD_NOT_FOUND, "there is no such upload");
        return NULL;
    }
    request_hold(request, upload, kept_upload_release);
    if (is_write)
        kept_upload_touch(upload);
    return (struct writer_session *)upload;
}

static void begin(struct request *request, struct writer_session *session)
{
    struct writing *writing = request_new_context(request, sizeof(*writing));

    if (writing == NULL)
        return;
    writing->session = session;
}

static void begin_on_session(struct request *request)
{
    struct writer_session *session = writer_resolve(request, true);

    if (session != NULL)
        begin(request, session);
}

/* Runs work on a worker, once. Returns true while the request waits for it. */
static bool begin_work(struct request *request, void (*work)(struct request *request),
                       enum outcome *out_outcome)
{
    struct writing *writing = request->context;

    if (writing->is_begun)
        return false;
    writing->is_begun = true;
    *out_outcome = request_work(request, work);
    return true;
}

static bool refuse_while_committing(struct failure *failure)
{
    failure->is_passing = true;
    return failure_refuse(failure, PROBLEM_CONFLICT, "the upload is being committed");
}

/* --- DELETE --- */

void writer_delete_begin(struct request *request)
{
    begin_on_session(request);
}

static void work_delete(struct request *request)
{
    struct writing *writing = request->context;
    enum writer_state before;

    if (writer_round_end(writing->session, WRITER_DROPPED, &before))
        kept_uploads_drop(&writing->session->kept);
    else if (before == WRITER_COMMITTING)
        refuse_while_committing(&writing->failure);
    else
        failure_refuse(&writing->failure, PROBLEM_UPLOAD_NOT_FOUND, "the upload no longer exists");
}

enum outcome writer_delete_handle(struct request *request)
{
    const struct writing *writing = request->context;
    enum outcome outcome;

    if (begin_work(request, work_delete, &outcome))
        return outcome;
    if (writing->failure.is_set)
        return failure_reply(request, &writing->failure);
    reply_empty(request, 204);
    return OUTCOME_READY;
}

/* --- PUT of an object --- */

void writer_object_begin(struct request *request)
{
    struct writer_session *session = writer_resolve(request, true);

    if (session == NULL || json_body_refuse(request))
        return;
    if (session->target == ZT_TARGET_ZT2 && request->names[1].length > WRITER_ZT2_NAME_MAX_BYTES) {
        problem_reply(request, PROBLEM_INVALID_NAME, "a name has at most %d bytes in zTensor 2",
                      WRITER_ZT2_NAME_MAX_BYTES);
        return;
    }
    begin(request, session);
}

static bool parse_declaration(struct request *request, struct zt_declaration **out_declaration)
{
    struct writing *writing = request->context;
    struct zt_declaration *declaration = calloc(1, sizeof(*declaration));
    struct zt_error error;
    enum zt_status status;

    if (declaration == NULL)
        return failure_no_memory(&writing->failure, "an object");
    status =
        zt_declare_object(writing->session->target, json_body_text(request), declaration, &error);
    if (status != ZT_OK) {
        free(declaration);
        return failure_set(&writing->failure,
                           status == ZT_ARGUMENT ? PROBLEM_INVALID_REQUEST : PROBLEM_INTERNAL,
                           &error);
    }
    *out_declaration = declaration;
    return true;
}

static void work_declare(struct request *request)
{
    struct writing *writing = request->context;
    struct zt_declaration *declaration = NULL;
    uint64_t round;

    if (writer_session_state(writing->session, &round) != WRITER_OPEN)
        failure_refuse(&writing->failure, PROBLEM_CONFLICT,
                       "the upload has been committed, or is being committed");
    else if (parse_declaration(request, &declaration))
        (void)writer_session_declare(writing->session, round, request->names[1], declaration,
                                     &writing->is_new, &writing->failure);
}

enum outcome writer_object_handle(struct request *request)
{
    const struct writing *writing = request->context;
    enum outcome outcome;

    if (!writing->is_begun && json_body_refuse_received(request))
        return OUTCOME_READY;
    if (begin_work(request, work_declare, &outcome))
        return outcome;
    if (writing->failure.is_set)
        return failure_reply(request, &writing->failure);
    reply_empty(request, writing->is_new ? 201 : 204);
    return OUTCOME_READY;
}

/* --- commit --- */

void writer_commit_begin(struct request *request)
{
    begin_on_session(request);
}

static void work_commit(struct request *request)
{
    struct writing *writing = request->context;
    const struct preconditions preconditions = write_preconditions(request);
    enum writer_state before;

    if (writer_round_end(writing->session, WRITER_COMMITTING, &before))
        (void)writer_commit(writing->session, &preconditions, request, &writing->failure);
    else if (before == WRITER_COMMITTING)
        refuse_while_committing(&writing->failure);
    else if (before == WRITER_DROPPED)
        failure_refuse(&writing->failure, PROBLEM_UPLOAD_NOT_FOUND, "the upload no longer exists");
    else
        writer_commit_complete(writing->session, &writing->failure);
}

static enum outcome reply_committed(struct request *request, struct writer_session *session)
{
    struct published published;

    pthread_mutex_lock(&session->lock);
    assert(session->state == WRITER_COMMITTED || session->state == WRITER_DROPPED);
    published = session->published;
    pthread_mutex_unlock(&session->lock);
    published_reply(request, 201,
                    (struct published_name){zt_text_from(session->kept.entry.model), false},
                    &published);
    return OUTCOME_READY;
}

enum outcome writer_commit_handle(struct request *request)
{
    const struct writing *writing = request->context;
    enum outcome outcome;

    if (begin_work(request, work_commit, &outcome))
        return outcome;
    return writing->failure.is_set ? failure_reply(request, &writing->failure)
                                   : reply_committed(request, writing->session);
}
