/* POST /v1/models/{model}/uploads: another upload, with a place of its own in the store. */
#include <stdlib.h>
#include <string.h>

#include "upload/shared/json_body.h"
#include "upload/shared/publication.h"
#include "upload/shared/write_checks.h"
#include "upload/writer/writer.h"
#include "upload/writer/writer_journal.h"
#include "upload/writer/writer_status.h"
#include "upload/writer/writers.h"

struct creation {
    struct json_body body;
    struct preconditions preconditions;
    char client[CLIENT_SIZE];
    bool begun;
    bool is_crowded;                /* the client has too many */
    struct writer_session *session; /* NULL until it is there */
    struct json json;
    struct writer_failure failure;
};

static void free_creation(void *thing)
{
    struct creation *creation = thing;

    json_body_free(&creation->body);
    json_free(&creation->json);
    writer_session_release(creation->session);
}

/* --- before the body --- */

void writer_create_begin(struct request *request)
{
    struct preconditions preconditions;
    struct creation *creation;

    if (refuse_read_only(request) || refuse_name(request, request->names[0]) ||
        refuse_preconditions(request, request->names[0], &preconditions))
        return;
    if (json_body_refuse(request))
        return;
    creation = writer_context(request, sizeof(*creation));
    if (creation == NULL)
        return;
    json_init(&creation->json, false);
    request_client(request, creation->client);
    creation->preconditions = preconditions;
    request->context = creation;
    request_hold(request, creation, free_creation);
}

void writer_create_receive(struct request *request, const void *bytes, size_t length)
{
    json_body_receive(&((struct creation *)request->context)->body, bytes, length);
}

/* --- on a worker --- */

static bool check_preconditions(struct creation *creation, struct writer_session *session)
{
    const struct preconditions *preconditions = &creation->preconditions;
    struct generation *current;
    bool hold;

    if (preconditions->if_match == NULL && preconditions->if_none_match == NULL &&
        preconditions->if_unmodified_since == NULL)
        return true;
    current = publication_find_current(session->server, session->entry.model);
    hold = publication_preconditions_hold(preconditions, current);
    generation_release(current);
    return hold || writer_refuse(&creation->failure, PROBLEM_PRECONDITION_FAILED,
                                 "what stands under the name is not what the request asks for");
}

static bool make_files(struct writer_session *session, struct zt_error *error)
{
    struct store *store = session->server->store;
    const char *id = session->entry.id;
    struct stored_upload *data;
    enum zt_status status;

    /* The journal last: without one the place is nothing. */
    if (store->ops->kept_create(store, id, WRITER_DATA, 0, &data, error) != ZT_OK)
        return false;
    status = store->ops->sync(data, error);
    store->ops->abandon(data);
    return status == ZT_OK && writer_journal_begin(session, error);
}

static bool make_place(struct creation *creation, struct writer_session *session)
{
    struct store *store = session->server->store;
    struct zt_error error;
    struct zt_error ignored;

    if (store->ops->keep(store, session->entry.id, &error) != ZT_OK)
        return writer_fail_store(&creation->failure, &error);
    if (make_files(session, &error))
        return true;
    (void)store->ops->kept_drop(store, session->entry.id, &ignored);
    return writer_fail_store(&creation->failure, &error);
}

static bool describe(struct creation *creation, struct writer_session *session)
{
    struct zt_declaration declaration;
    struct zt_error error;
    enum zt_status status = zt_declare_file(json_body_text(&creation->body), &declaration, &error);
    bool copied;

    if (status != ZT_OK)
        return writer_fail(&creation->failure,
                           status == ZT_ARGUMENT ? PROBLEM_INVALID_REQUEST : PROBLEM_INTERNAL,
                           &error);
    session->target = declaration.target;
    writer_places_init(&session->places, zt_target_places(session->target).data_alignment);
    copied = writer_session_set_attributes(session, declaration.attributes) &&
             writer_session_set_preconditions(session, &creation->preconditions);
    zt_declaration_free(&declaration);
    return copied || writer_refuse(&creation->failure, PROBLEM_INTERNAL, "no memory for an upload");
}

/* Others find it from here on. */
static bool show(struct creation *creation, struct writer_session *session)
{
    struct store *store = session->server->store;
    struct zt_error ignored;

    if (writers_add(session->server->writers, writer_session_hold(session)))
        return true;
    writer_session_release(session);
    (void)store->ops->kept_drop(store, session->entry.id, &ignored);
    creation->is_crowded = true;
    return false;
}

static void work_create(struct request *request)
{
    struct creation *creation = request->context;
    struct zt_text name = request->names[0];
    char id[UPLOAD_ID_SIZE];
    struct writer_session *session;

    registry_make_id(id);
    session = writer_session_new(request->server, id);
    if (session == NULL) {
        writer_refuse(&creation->failure, PROBLEM_INTERNAL, "no memory for an upload");
        return;
    }
    memcpy(session->entry.model, name.bytes, name.length);
    strcpy(session->entry.client, creation->client);
    if (describe(creation, session) && check_preconditions(creation, session) &&
        make_place(creation, session) && show(creation, session)) {
        writer_status_write(session, &creation->json);
        creation->session = session;
    } else {
        writer_session_release(session);
    }
}

enum outcome writer_create_handle(struct request *request)
{
    struct creation *creation = request->context;

    if (!creation->begun) {
        if (json_body_refuse_received(request, &creation->body))
            return OUTCOME_READY;
        creation->begun = true;
        return request_work(request, work_create);
    }
    if (creation->is_crowded) {
        reply_crowded(request, (unsigned)request->server->config->upload.sessions_per_client,
                      "upload.sessions_per_client");
        return OUTCOME_READY;
    }
    if (creation->session == NULL)
        return problem_reply_error_as(request, creation->failure.problem, &creation->failure.error);
    reply_json(request, 201, creation->json.text,
               creation->json.failed ? 0 : creation->json.length);
    representation_field(&request->reply, "Location", writer_location(request, creation->session));
    return OUTCOME_READY;
}
