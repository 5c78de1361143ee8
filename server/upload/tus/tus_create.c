/* POST /v1/resumable: a new upload, with its first bytes if the client sends some. */
#include <assert.h>
#include <string.h>

#include "store/staging.h"
#include "upload/shared/write_checks.h"
#include "upload/tus/tus.h"
#include "upload/tus/tus_body.h"
#include "upload/tus/tus_concat.h"
#include "upload/tus/tus_creation.h"
#include "upload/tus/tus_fields.h"

/* Makes the upload's files before adding it to the table, where other requests and expiry find
 * it. */
static bool refuse_making(struct request *request, struct resumable *resumable)
{
    struct failure failure = {.is_set = false};
    struct zt_error error;

    if (resumable_files_create(resumable, &error) != ZT_OK) {
        failure_of_store(&failure, &error);
        failure_reply(request, &failure);
        return true;
    }
    if (!kept_uploads_add(&resumable->kept)) {
        write_reply_crowded(
            request, (unsigned)config_number(&request->server->config->upload.sessions_per_client),
            "upload.sessions_per_client");
        return true;
    }
    return false;
}

static void begin_upload(struct request *request, const struct creation *creation)
{
    struct tus_body *body = tus_body_new(request);
    struct resumable *resumable;
    uint64_t claim;

    if (body == NULL)
        return;
    body->is_creation = true;
    if (request_body_length(request) > 0 && tus_body_refuse_fields(request, body))
        return;
    resumable = tus_creation_make(request, creation);
    if (resumable == NULL)
        return;
    /* Before another request can find the upload. */
    claim = claim_take_for_body(&resumable->claim);
    assert(claim != 0);
    if (refuse_making(request, resumable)) {
        claim_end(&resumable->claim, claim);
        kept_upload_release(resumable);
        return;
    }
    body->resumable = resumable;
    body->claim = claim;
    tus_body_refuse_start(request, body);
}

void tus_create_begin(struct request *request)
{
    struct creation creation;

    if (tus_creation_refuse(request, &creation))
        return;
    if (creation.role == RESUMABLE_FINAL)
        tus_concat_begin(request, &creation);
    else if (creation.role == RESUMABLE_PART ? !write_refuse_large(request, creation.length)
                                             : !tus_creation_refuse_target(request, &creation))
        begin_upload(request, &creation);
}

/* --- the answer --- */

void tus_reply_created(struct request *request, struct resumable *resumable, uint64_t offset)
{
    assert(offset <= atomic_load(&resumable->length));
    reply_empty(request, 201);
    representation_field(&request->reply, "Location",
                         request_print(request, "%s/v1/resumable/%s",
                                       request->server->config->base_path,
                                       resumable->kept.entry.id));
    tus_reply_progress(request, resumable, offset);
    if (resumable_state(resumable) == RESUMABLE_PUBLISHED)
        tus_reply_published(request, resumable);
}

/* Returns true if the request creates a final upload and was not refused so far. */
static bool is_final(struct request *request)
{
    const char *concat = request_header(request, "Upload-Concat");
    const char *parts;

    return concat != NULL && tus_concat_parse(concat, &parts) == TUS_CONCAT_FINAL;
}

enum outcome tus_create_handle(struct request *request)
{
    struct tus_body *body = request->context;

    if (is_final(request))
        return tus_concat_handle(request);
    if (!body->is_finished)
        return request_work(request, tus_body_work);
    if (body->failure.is_set)
        return failure_reply(request, &body->failure);
    tus_reply_created(request, body->resumable, body->offset);
    return OUTCOME_READY;
}
