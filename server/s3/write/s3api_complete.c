/* CompleteMultipartUpload. The response is sent when the file is published: no byte precedes it,
 * because its status must be able to say that the file was refused. */
#include <assert.h>
#include <string.h>

#include "base/decimal.h"
#include "base/server.h"
#include "http/exchange/authorize.h"
#include "http/exchange/json_body.h"
#include "http/exchange/s3api_error.h"
#include "s3/s3api_meta.h"
#include "s3/s3api_xml.h"
#include "s3/write/handlers.h"
#include "s3/write/s3api_body.h"
#include "s3/write/s3api_completion.h"
#include "s3/write/s3api_multipart.h"
#include "s3/write/s3api_write_checks.h"
#include "upload/shared/current_model.h"
#include "upload/shared/recorded.h"
#include "upload/shared/write_checks.h"

struct complete {
    struct s3api_document document; /* first (s3api_body.h) */
    struct zt_text key;
    struct s3api_named_parts named;
    struct s3api_completion completion;
    bool was_run;
    bool must_run; /* once another request has ended */
    bool is_published;
    char etag[S3API_ETAG_SIZE];
};

static void free_complete(void *thing)
{
    struct complete *complete = thing;

    s3api_body_free(&complete->document.body);
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

/* In this request, the checksums in the header are of the file or of its parts' checksums, not of
 * the body. Returns false if it has replied. */
static bool begin_body(struct request *request, struct complete *complete)
{
    struct s3api_completion *completion = &complete->completion;
    struct s3api_body *body = &complete->document.body;

    body->may_have_composites = true;
    if (!s3api_document_begin(request))
        return false;
    for (enum checksum i = 0; i < CHECKSUM_MD5; i++) {
        completion->is_stated[i] = body->is_stated[i];
        completion->stated[i] = body->values[i];
        completion->part_counts[i] = body->part_counts[i];
        body->is_stated[i] = false;
    }
    return true;
}

void s3api_complete_multipart_begin(struct request *request)
{
    struct zt_text key;
    struct s3api_upload *upload;
    struct complete *complete;

    if (s3api_refuse_key(request, &key, NULL) || json_body_refuse(request))
        return;
    upload = s3api_multipart_find(request, key);
    complete = upload != NULL ? request_new_context(request, sizeof(*complete)) : NULL;
    if (complete == NULL)
        return;
    request_hold(request, complete, free_complete);
    complete->key = key;
    complete->completion.upload = upload;
    complete->completion.named = &complete->named;
    complete->completion.covers = authorize_filter(request);
    complete->completion.client = request->client;
    complete->completion.preconditions = s3api_preconditions(request);
    if (!begin_body(request, complete) || !read_size(request, &complete->completion.stated_bytes) ||
        s3api_upload_state(upload) == S3API_UPLOAD_PUBLISHED)
        return;
    (void)s3api_refuse_preconditions(request, upload->kept.entry.model,
                                     &complete->completion.preconditions);
}

/* --- the body --- */

/* Returns false if it has replied. */
static bool read_body(struct request *request, struct complete *complete)
{
    struct zt_error error;
    enum zt_status status;

    if (!s3api_document_finish(request))
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

/* Finds the version that was published; after a restart, the current file. *out_is_same: it
 * certainly has the published bytes. */
static bool find_version(struct request *request, const struct s3api_completion *completion,
                         struct file_identity *out_identity, bool *out_is_same)
{
    const struct published *published = &completion->published;
    const char *path = completion->upload->kept.entry.model;
    struct failure ignored = {.is_set = false};
    struct current_file found;

    *out_identity = published->identity;
    *out_is_same = true;
    if (published->etag[0] != '\0')
        return true;
    if (!file_find_current(request->server, path, &found, &ignored) || !found.exists)
        return false;
    *out_identity = found.identity;
    *out_is_same =
        found.has_sha256 && memcmp(found.sha256, published->sha256, sizeof(found.sha256)) == 0;
    return true;
}

/* The server may have been killed between publication and keeping the fields. */
static void show(struct request *request, struct complete *complete)
{
    const struct s3api_completion *completion = &complete->completion;
    const struct s3api_upload *upload = completion->upload;
    struct file_identity identity;
    bool is_same;

    if (!find_version(request, completion, &identity, &is_same))
        return;
    s3api_etag(upload->kept.entry.model, &identity, complete->etag);
    if (!completion->is_repeated || !is_same)
        return;
    s3api_meta_keep(request->server->s3_meta, upload->kept.entry.model, &identity,
                    upload->terms.metadata);
    file_note_changed(request->server);
}

static void work(struct request *request)
{
    struct complete *complete = request->context;

    assert(complete->named.count > 0 && !complete->is_published);
    complete->is_published = s3api_completion_run(&complete->completion);
    if (complete->is_published)
        show(request, complete);
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

/* Without checksums of the parts, states the one that is known. */
static void add_checksum(struct xml_writer *xml, const struct s3api_completion *completion)
{
    const struct s3api_terms *terms = &completion->upload->terms;
    struct zt_digest sha256 = {.algorithm = ZT_DIGEST_SHA256, .length_bytes = 32};
    char text[CHECKSUM_TEXT_SIZE];
    enum checksum checksum;

    if (completion->checksum[0] != '\0' &&
        checksum_find_name(zt_text_from(terms->algorithm), &checksum)) {
        xml_write_string(xml, checksum_element(checksum), completion->checksum);
        xml_write_string(xml, "ChecksumType", terms->is_full_object ? "FULL_OBJECT" : "COMPOSITE");
        return;
    }
    memcpy(sha256.bytes, completion->published.sha256, sizeof(completion->published.sha256));
    checksum_write(&sha256, text);
    xml_write_string(xml, checksum_element(CHECKSUM_SHA256), text);
    xml_write_string(xml, "ChecksumType", "FULL_OBJECT");
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
    assert(complete->is_published);
    recorded_reply(request, complete->completion.published.commit);
    s3api_xml_begin(xml, root);
    xml_write_string(xml, "Location", request_target(request));
    xml_write_string(xml, "Bucket", request->server->config->s3.bucket);
    xml_write_text(xml, "Key", complete->key);
    xml_write_string(xml, "ETag", complete->etag);
    add_checksum(xml, &complete->completion);
    xml_write_close(xml, root);
    return s3api_xml_reply(request, 200, xml);
}

/* A client repeats a request when it has waited too long for the response to the first. It then
 * gets the outcome of the first. */
static enum outcome run_again(struct request *request, struct complete *complete)
{
    struct s3api_completion *completion = &complete->completion;

    s3api_completion_free(completion);
    completion->refusal = S3API_REFUSAL_NONE;
    completion->failure = (struct failure){.is_set = false};
    complete->must_run = s3api_upload_await(completion->upload, request_waiter(request));
    return complete->must_run ? OUTCOME_WAITING : request_work_long(request, work);
}

enum outcome s3api_complete_multipart(struct request *request)
{
    struct complete *complete = request->context;

    if (!complete->was_run) {
        complete->was_run = true;
        return read_body(request, complete) ? request_work_long(request, work) : OUTCOME_READY;
    }
    if (complete->must_run) {
        complete->must_run = false;
        return request_work_long(request, work);
    }
    if (complete->completion.refusal == S3API_REFUSAL_BUSY)
        return run_again(request, complete);
    if (!complete->is_published)
        return reply_failed(request, &complete->completion);
    return reply_published(request, complete);
}
