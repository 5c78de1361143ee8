/* POST /v1/resumable: a new upload, with its first bytes if the client sends some. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/exchange/authorize.h"
#include "upload/shared/write_checks.h"
#include "upload/shared/written_name.h"
#include "upload/tus/tus.h"
#include "upload/tus/tus_body.h"
#include "upload/tus/tus_fields.h"

struct creation {
    char model[MODEL_NAME_MAX + 1];
    uint64_t length;
    struct preconditions preconditions;
};

/* --- refusals, in the order in which clients see them; true: replied --- */

/* What browsers' clients send in place of a model: the file's name, whose known extension is not
 * part of the model's. */
static enum tus_metadata find_filename(const char *metadata, char out_model[MODEL_NAME_MAX + 1])
{
    char path[MODEL_PATH_SIZE];
    enum tus_metadata answer = tus_metadata_find(metadata, "filename", path, sizeof(path));
    size_t length;
    unsigned rank;

    if (answer != TUS_METADATA_FOUND)
        return answer;
    length = strlen(path);
    (void)model_path_split(path, &length, &rank);
    if (length > MODEL_NAME_MAX)
        return TUS_METADATA_MALFORMED;
    memcpy(out_model, path, length);
    out_model[length] = '\0';
    return TUS_METADATA_FOUND;
}

static bool refuse_metadata(struct request *request, struct creation *creation)
{
    const char *metadata = request_header(request, "Upload-Metadata");
    enum tus_metadata answer = TUS_METADATA_ABSENT;

    if (metadata != NULL)
        answer = tus_metadata_find(metadata, "model", creation->model, sizeof(creation->model));
    if (metadata != NULL && answer == TUS_METADATA_ABSENT)
        answer = find_filename(metadata, creation->model);
    if (answer == TUS_METADATA_FOUND)
        return written_name_refuse(request, zt_text_from(creation->model), true);
    problem_reply(request, PROBLEM_INVALID_REQUEST, "%s",
                  answer == TUS_METADATA_ABSENT
                      ? "Upload-Metadata must name the model: model <base64>, or filename <base64>"
                      : "Upload-Metadata is malformed, or its model is not a valid name");
    return true;
}

/* Refuses extensions that are not supported, and method overrides, which only requests to an
 * existing upload may have. */
static bool refuse_unknown_kind(struct request *request)
{
    const char *method = request_header(request, "X-HTTP-Method-Override");

    if (method != NULL && strcasecmp(method, "POST") != 0) {
        problem_reply(request, PROBLEM_METHOD_NOT_ALLOWED,
                      "uploads are created by POST: X-HTTP-Method-Override is not supported");
        representation_field(&request->reply, "Allow", "POST, OPTIONS");
        return true;
    }
    if (request_header(request, "Upload-Concat") != NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "Upload-Concat: concatenation is not supported");
        return true;
    }
    return false;
}

static bool refuse_length(struct request *request, struct creation *creation)
{
    const char *length = request_header(request, "Upload-Length");

    if (request_header(request, "Upload-Defer-Length") != NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "Upload-Length is required: creation-defer-length is not supported");
        return true;
    }
    if (length == NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "Upload-Length is required");
        return true;
    }
    if (!tus_number_parse(length, &creation->length)) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "Upload-Length is not a number of bytes");
        return true;
    }
    return false;
}

static bool refuse_digest(struct request *request)
{
    const char *text = request_header(request, "Repr-Digest");
    struct digest_field field = {0};

    if (text == NULL || digest_field_parse(text, &field))
        return false;
    problem_reply(request, PROBLEM_INVALID_REQUEST, "Repr-Digest is malformed");
    return true;
}

static bool refuse_creation(struct request *request, struct creation *creation)
{
    struct zt_text name;

    if (write_refuse_read_only(request) || tus_refuse_version(request) ||
        refuse_unknown_kind(request) || refuse_metadata(request, creation))
        return true;
    name = (struct zt_text){creation->model, strlen(creation->model)};
    return authorize_refuse_model(request, name) || refuse_length(request, creation) ||
           refuse_digest(request) ||
           write_refuse_preconditions(request, name, &creation->preconditions) ||
           write_refuse_large(request, creation->length);
}

/* --- making it --- */

static bool copy_texts(struct request *request, char *out_texts[RESUMABLE_TEXTS])
{
    static const char *const names[RESUMABLE_TEXTS] = {
        [RESUMABLE_METADATA] = "Upload-Metadata",
        [RESUMABLE_IF_MATCH] = "If-Match",
        [RESUMABLE_IF_NONE_MATCH] = "If-None-Match",
        [RESUMABLE_IF_UNMODIFIED_SINCE] = "If-Unmodified-Since",
        [RESUMABLE_REPR_DIGEST] = "Repr-Digest",
    };
    bool copied = true;

    for (size_t i = 0; i < RESUMABLE_TEXTS; i++) {
        const char *text = request_header(request, names[i]);

        out_texts[i] = text != NULL ? strdup(text) : NULL;
        copied = copied && (text == NULL || out_texts[i] != NULL);
    }
    return copied;
}

static struct resumable *new_resumable(struct request *request, const struct creation *creation)
{
    char id[UPLOAD_ID_SIZE];
    char *texts[RESUMABLE_TEXTS];
    bool copied = copy_texts(request, texts);
    struct resumable *resumable;

    registry_make_id(id);
    resumable = resumable_new(request->server, id, texts);
    if (resumable == NULL || !copied) {
        kept_upload_release(resumable);
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
        return NULL;
    }
    strcpy(resumable->kept.entry.model, creation->model);
    resumable->length = resumable->kept.entry.length = creation->length;
    registry_client(request, resumable->kept.entry.client);
    return resumable;
}

/* Adds the upload to the table and makes its files. */
static bool refuse_making(struct request *request, struct resumable *resumable)
{
    struct failure failure = {.is_set = false};
    struct zt_error error;

    if (!kept_uploads_add(&resumable->kept)) {
        write_reply_crowded(
            request, (unsigned)config_number(&request->server->config->upload.sessions_per_client),
            "upload.sessions_per_client");
        return true;
    }
    if (resumable_files_create(resumable, &error) != ZT_OK) {
        kept_uploads_forget(&resumable->kept);
        failure_of_store(&failure, &error);
        failure_reply(request, &failure);
        return true;
    }
    return false;
}

void tus_create_begin(struct request *request)
{
    struct creation creation;
    struct tus_body *body;
    struct resumable *resumable;

    if (refuse_creation(request, &creation))
        return;
    body = tus_body_new(request);
    if (body == NULL)
        return;
    body->is_creation = true;
    if (request_body_length(request) > 0 && tus_body_refuse_fields(request, body))
        return;
    resumable = new_resumable(request, &creation);
    if (resumable == NULL)
        return;
    if (refuse_making(request, resumable)) {
        kept_upload_release(resumable);
        return;
    }
    body->resumable = resumable;
    body->claim = claim_take_for_body(&resumable->claim);
    tus_body_refuse_start(request, body);
}

/* --- the body, the answer --- */

void tus_create_receive(struct request *request, const void *bytes, size_t length)
{
    tus_body_receive(request->context, bytes, length);
}

void tus_create_store(struct request *request, const struct body_piece *piece)
{
    tus_body_store(request->context, piece);
}

void tus_create_digest(struct request *request, const struct body_piece *piece)
{
    tus_body_digest(request->context, piece);
}

enum outcome tus_create_handle(struct request *request)
{
    struct tus_body *body = request->context;

    if (!body->is_finished)
        return request_work(request, tus_body_work);
    if (body->failure.is_set)
        return failure_reply(request, &body->failure);
    reply_empty(request, 201);
    representation_field(&request->reply, "Location",
                         request_print(request, "%s/v1/resumable/%s",
                                       request->server->config->base_path,
                                       body->resumable->kept.entry.id));
    tus_reply_progress(request, body->resumable, body->offset);
    if (resumable_state(body->resumable) == RESUMABLE_PUBLISHED)
        tus_reply_published(request, body->resumable);
    return OUTCOME_READY;
}
