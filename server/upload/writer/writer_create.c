/* POST /v1/models/{model}/uploads: a new upload, with its own folder in the store. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "http/exchange/client.h"
#include "http/exchange/json_body.h"
#include "store/staging.h"
#include "upload/shared/current_model.h"
#include "upload/shared/write_checks.h"
#include "upload/writer/writer.h"
#include "upload/writer/writer_journal.h"

struct creation {
    struct preconditions preconditions;
    char client[CLIENT_SIZE];
    bool is_begun;
    bool is_crowded;                /* the client has too many */
    struct writer_session *session; /* NULL until others can find it */
    struct json json;
    struct failure failure;
};

static void free_creation(void *thing)
{
    struct creation *creation = thing;

    json_free(&creation->json);
    kept_upload_release(creation->session);
}

/* --- before the body --- */

void writer_create_begin(struct request *request)
{
    struct preconditions preconditions;
    struct creation *creation;

    if (write_refuse_read_only(request) || written_name_refuse(request, request->names[0], false) ||
        write_refuse_preconditions(request, request->names[0], &preconditions) ||
        write_refuse_shadowed(request, request->names[0]) || json_body_refuse(request))
        return;
    creation = request_new_context(request, sizeof(*creation));
    if (creation == NULL)
        return;
    json_init(&creation->json, false);
    registry_client(request, creation->client);
    creation->preconditions = preconditions;
    request_hold(request, creation, free_creation);
}

/* --- on a worker --- */

static bool make_files(struct writer_session *session, struct zt_error *error)
{
    struct store *store = session->kept.server->store;
    const char *id = session->kept.entry.id;
    struct staged_file *data;
    enum zt_status status;

    assert(session->journal == NULL);
    /* The journal is made last: a folder without one is not an upload. */
    if (staging_folder_create(store->staging, id, WRITER_DATA, UINT64_MAX, &data, error) != ZT_OK)
        return false;
    status = staged_file_sync(data, error);
    staged_file_close(data);
    return status == ZT_OK && writer_journal_begin(session, error);
}

static bool make_place(struct creation *creation, struct writer_session *session)
{
    struct store *store = session->kept.server->store;
    struct zt_error error;
    struct zt_error ignored;

    if (staging_folder_make(store->staging, session->kept.entry.id, &error) != ZT_OK)
        return failure_of_store(&creation->failure, &error);
    if (make_files(session, &error))
        return true;
    (void)staging_folder_drop(store->staging, session->kept.entry.id, &ignored);
    return failure_of_store(&creation->failure, &error);
}

static bool describe(struct request *request, struct writer_session *session)
{
    struct creation *creation = request->context;
    struct zt_declaration declaration;
    struct zt_error error;
    enum zt_status status = zt_declare_file(json_body_text(request), &declaration, &error);
    bool copied;

    assert(session->attributes.bytes == NULL);
    if (status != ZT_OK)
        return failure_set(&creation->failure,
                           status == ZT_ARGUMENT ? PROBLEM_INVALID_REQUEST : PROBLEM_INTERNAL,
                           &error);
    session->target = declaration.target;
    writer_places_init(&session->places, zt_target_places(session->target).data_alignment);
    copied = writer_session_set_attributes(session, declaration.attributes) &&
             writer_session_set_preconditions(session, &creation->preconditions);
    zt_declaration_free(&declaration);
    return copied || failure_no_memory(&creation->failure, "an upload");
}

/* From here on other requests can find it. */
static bool show(struct creation *creation, struct writer_session *session)
{
    assert(session->journal_end > 0);
    if (kept_uploads_add(&session->kept))
        return true;
    creation->is_crowded = true;
    return false;
}

static void work_create(struct request *request)
{
    struct creation *creation = request->context;
    struct zt_text name = request->names[0];
    char id[UPLOAD_ID_SIZE];
    struct writer_session *session;
    bool exists;

    assert(creation->session == NULL && !creation->failure.is_set);
    registry_make_id(id);
    session = writer_session_new(request->server, id);
    if (session == NULL) {
        failure_no_memory(&creation->failure, "an upload");
        return;
    }
    assert(name.length < sizeof(session->kept.entry.model));
    memcpy(session->kept.entry.model, name.bytes, name.length);
    strcpy(session->kept.entry.client, creation->client);
    if (describe(request, session) &&
        model_check_preconditions(request->server, NULL, session->kept.entry.model,
                                  &creation->preconditions, &exists, &creation->failure) &&
        make_place(creation, session) && show(creation, session)) {
        writer_status_write(session, &creation->json);
        creation->session = session;
    } else {
        kept_upload_release(session);
    }
}

enum outcome writer_create_handle(struct request *request)
{
    struct creation *creation = request->context;

    if (!creation->is_begun) {
        if (json_body_refuse_received(request))
            return OUTCOME_READY;
        creation->is_begun = true;
        return request_work(request, work_create);
    }
    if (creation->is_crowded) {
        write_reply_crowded(
            request, (unsigned)config_number(&request->server->config->upload.sessions_per_client),
            "upload.sessions_per_client");
        return OUTCOME_READY;
    }
    if (creation->failure.is_set)
        return failure_reply(request, &creation->failure);
    assert(creation->session != NULL);
    reply_json(request, 201, creation->json.text,
               creation->json.failed ? 0 : creation->json.length);
    representation_field(&request->reply, "Location",
                         request_print(request, "%s/v1/uploads/%s",
                                       request->server->config->base_path,
                                       creation->session->kept.entry.id));
    return OUTCOME_READY;
}
