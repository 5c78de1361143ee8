/* The streaming writer's requests but for the bodies of components: each is read on the loop and
 * done by a worker. */
#include "upload/writer/writer.h"

#include <stdlib.h>
#include <string.h>

#include "http/fields/digest_fields.h"
#include "http/fields/href.h"
#include "upload/shared/json_body.h"
#include "upload/shared/write_checks.h"
#include "upload/writer/writer_commit.h"
#include "upload/writer/writers.h"

/* Said while a commit is under way. */
#define RETRY_AFTER_S "1"

/* What every one of them is while it is done. */
struct writing {
    struct writer_session *session; /* the request's; what creates one has none before */
    struct json_body body;
    bool begun; /* a worker has it, or had */
    bool done;
    bool is_new;
    struct writer_failure failure;
};

/* --- shared --- */

struct writer_session *writer_resolve(struct request *request, bool is_write)
{
    struct writer_session *session;

    if (is_write && refuse_read_only(request))
        return NULL;
    session = writers_find(request->server->writers, request->names[0]);
    if (session == NULL) {
        problem_reply(request, PROBLEM_UPLOAD_NOT_FOUND, "there is no such upload");
        return NULL;
    }
    request_hold(request, session, writer_session_release);
    if (is_write)
        writer_session_touch(session);
    return session;
}

void *writer_context(struct request *request, size_t size)
{
    void *context = request_allocate(request, size);

    if (context == NULL)
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
    else
        memset(context, 0, size);
    return context;
}

const char *writer_location(struct request *request, const struct writer_session *session)
{
    return request_print(request, "/v1/uploads/%s", session->entry.id);
}

static void free_body(void *thing)
{
    json_body_free(&((struct writing *)thing)->body);
}

/* False: replied. */
static bool begin(struct request *request, struct writer_session *session)
{
    struct writing *writing = writer_context(request, sizeof(*writing));

    if (writing == NULL)
        return false;
    writing->session = session;
    request->context = writing;
    request_hold(request, writing, free_body);
    return true;
}

static void begin_on_session(struct request *request, bool is_write)
{
    struct writer_session *session = writer_resolve(request, is_write);

    if (session != NULL)
        begin(request, session);
}

static void receive(struct request *request, const void *bytes, size_t length)
{
    json_body_receive(&((struct writing *)request->context)->body, bytes, length);
}

static enum outcome reply_failure(struct request *request, const struct writer_failure *failure)
{
    problem_reply_error_as(request, failure->problem, &failure->error);
    if (failure->is_passing)
        representation_field(&request->reply, "Retry-After", RETRY_AFTER_S);
    return OUTCOME_READY;
}

/* --- DELETE --- */

void writer_delete_begin(struct request *request)
{
    begin_on_session(request, true);
}

static void work_delete(struct request *request)
{
    struct writing *writing = request->context;
    enum writer_state state;

    writing->done = writer_round_end(writing->session, WRITER_DROPPED, &state);
    writing->failure.is_passing = state == WRITER_COMMITTING;
    if (writing->done)
        writers_drop(request->server->writers, writing->session);
    else if (writing->failure.is_passing)
        writer_refuse(&writing->failure, PROBLEM_CONFLICT, "the upload is being committed");
    else
        writer_refuse(&writing->failure, PROBLEM_UPLOAD_NOT_FOUND,
                      "there is no such upload any more");
}

enum outcome writer_delete_handle(struct request *request)
{
    struct writing *writing = request->context;

    if (!writing->begun) {
        writing->begun = true;
        return request_work(request, work_delete);
    }
    if (!writing->done)
        return reply_failure(request, &writing->failure);
    reply_empty(request, 204);
    return OUTCOME_READY;
}

/* --- PUT of an object --- */

void writer_object_begin(struct request *request)
{
    struct writer_session *session = writer_resolve(request, true);

    if (session == NULL || json_body_refuse(request))
        return;
    if (session->target == ZT_TARGET_ZT2 && request->names[1].length > 1024) {
        problem_reply(request, PROBLEM_INVALID_NAME, "a name has at most 1024 bytes in zTensor 2");
        return;
    }
    begin(request, session);
}

void writer_object_receive(struct request *request, const void *bytes, size_t length)
{
    receive(request, bytes, length);
}

static bool declare(struct request *request, struct writing *writing)
{
    struct writer_session *session = writing->session;
    struct zt_error error;
    uint64_t round;
    struct zt_declaration *declaration;
    enum zt_status status;

    if (writer_session_state(session, &round) != WRITER_OPEN)
        return writer_refuse(&writing->failure, PROBLEM_CONFLICT,
                             "the upload is being committed, or was");
    declaration = calloc(1, sizeof(*declaration));
    if (declaration == NULL)
        return writer_refuse(&writing->failure, PROBLEM_INTERNAL, "no memory for an object");
    status =
        zt_declare_object(session->target, json_body_text(&writing->body), declaration, &error);
    if (status != ZT_OK) {
        free(declaration);
        return writer_fail(&writing->failure,
                           status == ZT_ARGUMENT ? PROBLEM_INVALID_REQUEST : PROBLEM_INTERNAL,
                           &error);
    }
    return writer_session_declare(session, round, request->names[1], declaration, &writing->is_new,
                                  &writing->failure);
}

static void work_declare(struct request *request)
{
    struct writing *writing = request->context;

    writing->done = declare(request, writing);
}

enum outcome writer_object_handle(struct request *request)
{
    struct writing *writing = request->context;

    if (!writing->begun) {
        if (json_body_refuse_received(request, &writing->body))
            return OUTCOME_READY;
        writing->begun = true;
        return request_work(request, work_declare);
    }
    if (!writing->done)
        return reply_failure(request, &writing->failure);
    reply_empty(request, writing->is_new ? 201 : 204);
    return OUTCOME_READY;
}

/* --- commit --- */

void writer_commit_begin(struct request *request)
{
    begin_on_session(request, true);
}

static void work_commit(struct request *request)
{
    struct writing *writing = request->context;
    const struct preconditions preconditions = preconditions_of_write(request);

    writing->done = writer_commit(writing->session, &preconditions, &writing->failure);
}

static enum outcome reply_committed(struct request *request, struct writer_session *session)
{
    char digest[DIGEST_FIELD_SIZE];
    struct writer_outcome outcome;
    struct href href;
    struct representation *reply;

    pthread_mutex_lock(&session->lock);
    outcome = session->outcome;
    pthread_mutex_unlock(&session->lock);
    href_init(&href);
    href_model(&href, (struct zt_text){session->entry.model, strlen(session->entry.model)});
    digest_field_format(outcome.sha256, digest);
    reply_empty(request, 201);
    reply = &request->reply;
    representation_field(reply, "Location",
                         href.failed ? NULL : request_print(request, "%s", href.text));
    representation_field(reply, "Repr-Digest", request_print(request, "%s", digest));
    reply->etag = outcome.etag[0] != '\0' ? request_print(request, "%s", outcome.etag) : NULL;
    href_free(&href);
    return OUTCOME_READY;
}

enum outcome writer_commit_handle(struct request *request)
{
    struct writing *writing = request->context;

    if (!writing->begun) {
        writing->begun = true;
        return request_work(request, work_commit);
    }
    return writing->done ? reply_committed(request, writing->session)
                         : reply_failure(request, &writing->failure);
}
