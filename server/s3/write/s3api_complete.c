/* CompleteMultipartUpload. The response is sent when the file is published: no byte precedes it,
 * because its status must be able to say that the file was refused. */
#include <assert.h>
#include <string.h>

#include "base/decimal.h"
#include "base/server.h"
#include "http/exchange/authorize.h"
#include "http/exchange/json_body.h"
#include "http/exchange/s3api_error.h"
#include "s3/s3api_xml.h"
#include "s3/write/handlers.h"
#include "s3/write/s3api_completion.h"
#include "s3/write/s3api_multipart.h"
#include "upload/shared/current_model.h"
#include "upload/shared/write_checks.h"

struct complete {
    struct zt_text key;
    struct s3api_named_parts named;
    struct s3api_completion completion;
    bool was_run;
    bool is_published;
    char etag[S3API_ETAG_SIZE];
};

static void free_complete(void *thing)
{
    struct complete *complete = thing;

    s3api_named_parts_free(&complete->named);
    s3api_completion_free(&complete->completion);
}

/* Returns false if it has replied. */
static bool read_size(struct request *request, uint64_t *out_bytes)
{
    const char *value = request_header(request, "x-amz-mp-object-size");

    *out_bytes = UINT64_MAX;
    if (value == NULL || zt_decimal_read(zt_text_from(value), INT64_MAX, out_bytes))
        return true;
    s3api_problem(request, S3API_INVALID_REQUEST, "x-amz-mp-object-size must be a number of bytes");
    return false;
}

void s3api_complete_multipart_begin(struct request *request)
{
    struct zt_text key;
    struct s3api_upload *upload;
    struct complete *complete;

    if (!s3api_multipart_key(request, &key) || json_body_refuse(request))
        return;
    upload = s3api_multipart_find(request, key);
    complete = upload != NULL ? write_context(request, sizeof(*complete)) : NULL;
    if (complete == NULL)
        return;
    request_hold(request, complete, free_complete);
    complete->key = key;
    complete->completion.upload = upload;
    complete->completion.named = &complete->named;
    complete->completion.covers = authorize_filter(request);
    complete->completion.preconditions = write_preconditions(request);
    (void)read_size(request, &complete->completion.stated_bytes);
}

/* --- the body --- */

/* Returns false if it has replied. */
static bool read_body(struct request *request, struct complete *complete)
{
    struct zt_error error;
    enum zt_status status;

    if (json_body_refuse_received(request))
        return false;
    status = s3api_complete_xml_read(json_body_text(request), &complete->named, &error);
    if (status == ZT_OK)
        return true;
    if (status == ZT_NO_MEMORY)
        problem_reply_no_memory(request);
    else
        s3api_problem(request,
                      status == ZT_ARGUMENT ? S3API_INVALID_PART_ORDER : S3API_MALFORMED_XML, "%s",
                      error.message);
    return false;
}

/* --- the end --- */

/* Finds the tag of the current file, which another client may have replaced since. */
static void find_etag(struct request *request, struct complete *complete)
{
    struct failure ignored = {.is_set = false};
    const char *path = complete->completion.upload->kept.entry.model;
    struct current_file found;

    if (file_find_current(request->server, path, &found, &ignored) && found.exists)
        s3api_etag(path, &found.identity, complete->etag);
}

static void work(struct request *request)
{
    struct complete *complete = request->context;

    assert(complete->named.count > 0 && !complete->is_published);
    complete->is_published = s3api_completion_run(&complete->completion);
    if (complete->is_published)
        find_etag(request, complete);
}

static enum outcome reply_failed(struct request *request, const struct s3api_completion *completion)
{
    static const enum s3api_error errors[] = {
        [S3API_REFUSAL_PART] = S3API_INVALID_PART,
        [S3API_REFUSAL_SMALL] = S3API_ENTITY_TOO_SMALL,
    };

    assert(completion->failure.is_set);
    if (completion->refusal == S3API_REFUSAL_NONE)
        return failure_reply(request, &completion->failure);
    return s3api_problem(request, errors[completion->refusal], "%s",
                         completion->failure.error.message);
}

static enum outcome reply_published(struct request *request, const struct complete *complete)
{
    static const char root[] = "CompleteMultipartUploadResult";
    struct xml_writer *xml;

    if (published_refuse(request, &complete->completion.published))
        return OUTCOME_READY;
    xml = s3api_xml_new(request);
    if (xml == NULL)
        return OUTCOME_READY;
    s3api_xml_begin(xml, root);
    xml_write_string(xml, "Location", request_target(request));
    xml_write_string(xml, "Bucket", request->server->config->s3.bucket);
    xml_write_text(xml, "Key", complete->key);
    xml_write_string(xml, "ETag", complete->etag);
    xml_write_close(xml, root);
    return s3api_xml_reply(request, 200, xml);
}

enum outcome s3api_complete_multipart(struct request *request)
{
    struct complete *complete = request->context;

    if (!complete->was_run) {
        complete->was_run = true;
        return read_body(request, complete) ? request_work_long(request, work) : OUTCOME_READY;
    }
    if (!complete->is_published)
        return reply_failed(request, &complete->completion);
    return reply_published(request, complete);
}
