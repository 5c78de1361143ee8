/* Creates resumable uploads. Preconditions and Repr-Digest of a part are ignored: clients send the
 * same fields with all requests of an upload, and they apply to the final one. */
#include "upload/tus/tus_creation.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/exchange/authorize.h"
#include "upload/shared/write_checks.h"
#include "upload/tus/tus_body.h"
#include "upload/tus/tus_fields.h"

/* --- refusals; true: replied --- */

/* Finds the file's name, which browser clients send instead of a model. A known extension is not
 * part of the model's name. */
static enum tus_metadata find_filename(const char *metadata, char out_model[MODEL_NAME_MAX + 1])
{
    char path[MODEL_PATH_SIZE];
    enum tus_metadata answer = tus_metadata_find(metadata, "filename", path, sizeof(path));
    size_t length;

    if (answer != TUS_METADATA_FOUND || model_path_name(path, out_model))
        return answer;
    length = strlen(path);
    if (length > MODEL_NAME_MAX)
        return TUS_METADATA_MALFORMED;
    memcpy(out_model, path, length);
    out_model[length] = '\0';
    return TUS_METADATA_FOUND;
}

static bool refuse_malformed(struct request *request, const char *metadata)
{
    char value[1];

    if (metadata == NULL ||
        tus_metadata_find(metadata, "", value, sizeof(value)) != TUS_METADATA_MALFORMED)
        return false;
    problem_reply(request, PROBLEM_INVALID_REQUEST, "Upload-Metadata is malformed");
    return true;
}

/* Finds the model's name, or the file's path. */
static enum tus_metadata find_target(const char *metadata, struct creation *creation)
{
    enum tus_metadata answer;

    creation->is_file = tus_metadata_is_of_file(metadata);
    answer = tus_metadata_find(metadata, creation->is_file ? "path" : "model", creation->model,
                               sizeof(creation->model));
    return answer == TUS_METADATA_ABSENT ? find_filename(metadata, creation->model) : answer;
}

/* Parts have no name, so their metadata is not checked. */
static bool refuse_metadata(struct request *request, struct creation *creation)
{
    const char *metadata = request_header(request, "Upload-Metadata");
    enum tus_metadata answer = TUS_METADATA_ABSENT;

    assert(creation->model[0] == '\0');
    if (creation->role == RESUMABLE_PART)
        return refuse_malformed(request, metadata);
    if (metadata != NULL)
        answer = find_target(metadata, creation);
    if (answer == TUS_METADATA_FOUND)
        return creation->is_file
                   ? write_refuse_file_path(request, zt_text_from(creation->model))
                   : written_name_refuse(request, zt_text_from(creation->model), true);
    problem_reply(request, PROBLEM_INVALID_REQUEST, "%s",
                  answer == TUS_METADATA_ABSENT
                      ? "Upload-Metadata must name the model or the file: model <base64>, path "
                        "<base64> or filename <base64>"
                      : "Upload-Metadata is malformed, or its model or path is not a valid name");
    return true;
}

/* Refuses method overrides, which only requests to an existing upload may have. */
static bool refuse_override(struct request *request)
{
    const char *method = request_header(request, "X-HTTP-Method-Override");

    if (method != NULL && strcasecmp(method, "POST") != 0) {
        problem_reply(request, PROBLEM_METHOD_NOT_ALLOWED,
                      "uploads are created by POST: X-HTTP-Method-Override is not supported");
        representation_field(&request->reply, "Allow", "POST, OPTIONS");
        return true;
    }
    return false;
}

static bool refuse_concat(struct request *request, struct creation *creation)
{
    const char *concat = request_header(request, "Upload-Concat");

    if (concat == NULL)
        return false;
    switch (tus_concat_parse(concat, &creation->parts)) {
    case TUS_CONCAT_PART:
        creation->role = RESUMABLE_PART;
        return false;
    case TUS_CONCAT_FINAL:
        creation->role = RESUMABLE_FINAL;
        return false;
    case TUS_CONCAT_MALFORMED:
        break;
    }
    problem_reply(
        request, PROBLEM_INVALID_REQUEST,
        "Upload-Concat is malformed: partial, or final; and the parts' URLs, separated by spaces");
    return true;
}

static bool refuse_defer_length(struct request *request, const char *length, const char *deferred)
{
    if (strcmp(deferred, "1") == 0 && length == NULL)
        return false;
    problem_reply(request, PROBLEM_INVALID_REQUEST,
                  "Upload-Defer-Length must be 1, instead of Upload-Length");
    return true;
}

static bool refuse_length(struct request *request, struct creation *creation)
{
    const char *length = request_header(request, "Upload-Length");
    const char *deferred = request_header(request, "Upload-Defer-Length");

    creation->length = RESUMABLE_UNKNOWN;
    if (creation->role == RESUMABLE_FINAL) {
        if (length == NULL && deferred == NULL)
            return false;
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "do not state the length of a final upload: it is the sum of its parts");
        return true;
    }
    if (deferred != NULL)
        return refuse_defer_length(request, length, deferred);
    if (length == NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "Upload-Length is required, or Upload-Defer-Length: 1");
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

static bool refuse_name(struct request *request, const struct creation *creation)
{
    return creation->role != RESUMABLE_PART && !creation->is_file &&
           authorize_refuse_model(request, zt_text_from(creation->model));
}

bool tus_creation_refuse(struct request *request, struct creation *out_creation)
{
    *out_creation = (struct creation){.role = RESUMABLE_WHOLE};
    return write_refuse_read_only(request) || tus_refuse_version(request) ||
           refuse_override(request) || refuse_concat(request, out_creation) ||
           refuse_metadata(request, out_creation) || refuse_name(request, out_creation) ||
           refuse_length(request, out_creation);
}

static bool refuse_model(struct request *request, struct creation *creation)
{
    return write_refuse_preconditions(request, zt_text_from(creation->model),
                                      &creation->preconditions) ||
           write_refuse_shadowed(request, zt_text_from(creation->model));
}

bool tus_creation_refuse_target(struct request *request, struct creation *creation)
{
    assert(creation->role != RESUMABLE_PART && creation->model[0] != '\0');
    if (refuse_digest(request))
        return true;
    if (creation->is_file
            ? write_refuse_file_preconditions(request, creation->model, &creation->preconditions)
            : refuse_model(request, creation))
        return true;
    return write_refuse_large(request, creation->length);
}

/* --- making it --- */

static const char *find_text(struct request *request, enum resumable_role role,
                             enum resumable_text which)
{
    static const char *const fields[RESUMABLE_TEXTS] = {
        [RESUMABLE_METADATA] = "Upload-Metadata",
        [RESUMABLE_IF_MATCH] = "If-Match",
        [RESUMABLE_IF_NONE_MATCH] = "If-None-Match",
        [RESUMABLE_IF_UNMODIFIED_SINCE] = "If-Unmodified-Since",
        [RESUMABLE_REPR_DIGEST] = "Repr-Digest",
        [RESUMABLE_CONCAT] = "Upload-Concat",
    };

    assert(which < RESUMABLE_TEXTS);
    if (which == RESUMABLE_OWNER)
        return role == RESUMABLE_PART ? request->client : NULL;
    return request_header(request, fields[which]);
}

static bool copy_texts(struct request *request, enum resumable_role role,
                       char *out_texts[RESUMABLE_TEXTS])
{
    bool copied = true;

    for (size_t i = 0; i < RESUMABLE_TEXTS; i++) {
        const char *text = find_text(request, role, (enum resumable_text)i);

        out_texts[i] = text != NULL ? strdup(text) : NULL;
        copied = copied && (text == NULL || out_texts[i] != NULL);
    }
    return copied;
}

struct resumable *tus_creation_make(struct request *request, const struct creation *creation)
{
    char id[UPLOAD_ID_SIZE];
    char *texts[RESUMABLE_TEXTS];
    bool copied = copy_texts(request, creation->role, texts);
    struct resumable *resumable;

    assert((creation->model[0] == '\0') == (creation->role == RESUMABLE_PART));
    registry_make_id(id);
    resumable = resumable_new(request->server, id, texts);
    if (resumable == NULL || !copied) {
        kept_upload_release(resumable);
        problem_reply_no_memory(request);
        return NULL;
    }
    strcpy(resumable->kept.entry.model, creation->model);
    atomic_store(&resumable->length, creation->length);
    if (creation->length != RESUMABLE_UNKNOWN)
        atomic_store(&resumable->kept.entry.length, creation->length);
    registry_client(request, resumable->kept.entry.client);
    assert(resumable->kept.entry.is_file == creation->is_file);
    return resumable;
}
