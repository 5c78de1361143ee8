/* The checks of upload/shared/write_checks.h, for keys and entity tags of S3; and the fields that
 * objects keep. */
#include "s3/write/s3api_write_checks.h"

#include <assert.h>

#include "base/server.h"
#include "http/exchange/s3api_error.h"
#include "http/exchange/s3api_fields.h"
#include "s3/s3api_meta.h"
#include "s3/s3api_request.h"
#include "s3/s3api_xml.h"
#include "upload/shared/current_model.h"
#include "upload/shared/write_checks.h"

bool s3api_refuse_key(struct request *request, struct zt_text *out_key, bool *out_is_folder)
{
    if (write_refuse_read_only(request))
        return true;
    if (!(out_is_folder != NULL ? s3api_find_key_or_folder(request, out_key, out_is_folder)
                                : s3api_find_key(request, out_key)))
        return true;
    return write_refuse_file_path(request, *out_key);
}

bool s3api_refuse_unsupported(struct request *request)
{
    static const char *const fields[] = {
        "x-amz-server-side-encryption-customer-algorithm",
        "x-amz-copy-source-server-side-encryption-customer-algorithm",
        "x-amz-object-lock-mode",
        "x-amz-object-lock-legal-hold",
        "x-amz-website-redirect-location",
        "x-amz-write-offset-bytes",
        /* Conditions must not be ignored. */
        "x-amz-if-match-last-modified-time",
        "x-amz-if-match-size",
        "x-amz-tagging",
    };

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (request_header(request, fields[i]) != NULL) {
            s3api_problem(request, S3API_NOT_IMPLEMENTED, "this server does not support %s",
                          fields[i]);
            return true;
        }
    return false;
}

struct preconditions s3api_preconditions(struct request *request)
{
    return (struct preconditions){
        .if_match = s3api_tags(request, "If-Match"),
        .if_none_match = s3api_tags(request, "If-None-Match"),
        .write_etag = s3api_etag,
    };
}

bool s3api_refuse_preconditions(struct request *request, const char *path,
                                const struct preconditions *preconditions)
{
    struct failure failure = {.is_set = false};
    struct current_file found;

    if (write_refuse_tags(request, preconditions->if_none_match))
        return true;
    if (!preconditions_are_given(preconditions) || store_needs_claims(request->server->store))
        return false;
    if (!file_find_current(request->server, path, &found, &failure))
        failure_reply(request, &failure);
    else if (file_preconditions_hold(preconditions, &found))
        return false;
    else if (!found.exists && preconditions->if_match != NULL)
        s3api_problem(request, S3API_NO_SUCH_KEY, "no object has this key");
    else
        s3api_problem(request, S3API_PRECONDITION_FAILED,
                      "the current object does not meet the request's preconditions");
    return true;
}

void s3api_explain_absence(struct server *server, const char *path,
                           const struct preconditions *preconditions, struct failure *failure)
{
    struct failure ignored = {.is_set = false};
    struct current_file found;

    assert(failure->is_set);
    if (failure->problem == PROBLEM_PRECONDITION_FAILED && preconditions->if_match != NULL &&
        file_find_current(server, path, &found, &ignored) && !found.exists)
        failure->problem = PROBLEM_NOT_FOUND;
}

/* Responses that were sent meanwhile lack the fields, so they must not be used again. */
void s3api_keep_fields(struct server *server, const char *path, const struct published *published,
                       const char *fields)
{
    /* Without a tag, another client has replaced or removed the object. */
    if (published->etag[0] == '\0')
        return;
    s3api_meta_keep(server->s3_meta, path, &published->identity, fields);
    file_note_changed(server);
}
