/* CreateMultipartUpload and AbortMultipartUpload. */
#include "s3/write/s3api_multipart.h"
#include "s3/s3api_query.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/server.h"
#include "http/exchange/s3api_error.h"
#include "http/fields/checksums.h"
#include "s3/s3api_meta.h"
#include "s3/s3api_xml.h"
#include "s3/write/handlers.h"
#include "s3/write/s3api_completion.h"
#include "s3/write/s3api_write_checks.h"
#include "upload/shared/write_checks.h"

/* --- shared --- */

struct s3api_upload *s3api_multipart_find(struct request *request, struct zt_text key)
{
    struct zt_text id = {NULL, 0};
    struct s3api_upload *upload = NULL;
    bool is_unreadable = false;

    if (request_query(request, "uploadId", 0, &id))
        upload = s3api_upload_find(request->server, id, key, &is_unreadable);
    if (upload != NULL)
        request_hold(request, upload, kept_upload_release);
    else if (is_unreadable)
        s3api_problem(request, S3API_SLOW_DOWN, "the upload cannot be read at the moment");
    else
        s3api_problem(request, S3API_NO_SUCH_UPLOAD,
                      "there is no such upload of this key, or it was completed or aborted");
    return upload;
}

bool s3api_query_part(struct request *request, uint32_t *out_number)
{
    uint64_t number = 0;

    if (!s3api_query_number(request, "partNumber", 1, S3API_PARTS_MAX, &number))
        return false;
    if (number == 0)
        s3api_problem(request, S3API_INVALID_ARGUMENT, "partNumber is missing");
    *out_number = (uint32_t)number;
    return number != 0;
}

/* --- creating --- */

struct create {
    struct zt_text key;
    struct s3api_terms terms;
    struct s3api_upload *upload; /* held */
    char client[CLIENT_SIZE];
    bool was_run;
    struct failure failure;
};

static void free_create(void *thing)
{
    struct create *create = thing;

    free(create->terms.metadata);
    kept_upload_release(create->upload);
}

/* Only CRCs of parts can be combined into a checksum of the whole file. */
static bool read_type(struct request *request, enum checksum checksum, struct s3api_terms *terms)
{
    const char *type = request_header(request, "x-amz-checksum-type");
    const bool is_crc =
        checksum == CHECKSUM_CRC32 || checksum == CHECKSUM_CRC32C || checksum == CHECKSUM_CRC64NVME;

    terms->is_full_object =
        type != NULL ? strcmp(type, "FULL_OBJECT") == 0 : checksum == CHECKSUM_CRC64NVME;
    if ((type == NULL || terms->is_full_object || strcmp(type, "COMPOSITE") == 0) &&
        (terms->is_full_object ? is_crc : checksum != CHECKSUM_CRC64NVME))
        return true;
    s3api_problem(request, S3API_INVALID_REQUEST,
                  "x-amz-checksum-type %s is not possible with this algorithm", type);
    return false;
}

static bool read_checksum(struct request *request, struct s3api_terms *terms)
{
    const char *name = request_header(request, "x-amz-checksum-algorithm");
    enum checksum checksum;

    if (name == NULL)
        return true;
    if (!checksum_find_name(zt_text_from(name), &checksum)) {
        s3api_problem(request, S3API_INVALID_REQUEST,
                      "x-amz-checksum-algorithm must be CRC32, CRC32C, CRC64NVME, SHA1 or SHA256");
        return false;
    }
    snprintf(terms->algorithm, sizeof(terms->algorithm), "%s", checksum_name(checksum));
    return read_type(request, checksum, terms);
}

void s3api_create_multipart_begin(struct request *request)
{
    struct zt_text key;
    struct create *create;

    if (s3api_refuse_key(request, &key, NULL) || s3api_refuse_unsupported(request))
        return;
    create = request_new_context(request, sizeof(*create));
    if (create == NULL)
        return;
    create->key = key;
    request_hold(request, create, free_create);
    registry_client(request, create->client);
    if (read_checksum(request, &create->terms))
        (void)s3api_meta_read(request, key, &create->terms.metadata);
}

static void work_create(struct request *request)
{
    struct create *create = request->context;

    assert(create->upload == NULL && create->was_run);
    create->upload = s3api_upload_begin(request->server, create->key, create->client,
                                        &create->terms, &create->failure);
}

static void add_checksum_fields(struct request *request, const struct s3api_terms *terms)
{
    if (terms->algorithm[0] == '\0')
        return;
    representation_field(&request->reply, "x-amz-checksum-algorithm", terms->algorithm);
    representation_field(&request->reply, "x-amz-checksum-type",
                         terms->is_full_object ? "FULL_OBJECT" : "COMPOSITE");
}

static enum outcome reply_created(struct request *request, const struct create *create)
{
    static const char root[] = "InitiateMultipartUploadResult";
    struct xml_writer *xml = s3api_xml_new(request);
    enum outcome outcome;

    assert(create->upload != NULL);
    if (xml == NULL)
        return OUTCOME_READY;
    s3api_xml_begin(xml, root);
    xml_write_string(xml, "Bucket", request->server->config->s3.bucket);
    xml_write_text(xml, "Key", create->key);
    xml_write_string(xml, "UploadId", create->upload->kept.entry.id);
    xml_write_close(xml, root);
    outcome = s3api_xml_reply(request, 200, xml);
    add_checksum_fields(request, &create->upload->terms);
    return outcome;
}

enum outcome s3api_create_multipart(struct request *request)
{
    struct create *create = request->context;

    if (!create->was_run) {
        create->was_run = true;
        return request_work_here(request, work_create);
    }
    return create->failure.is_set ? failure_reply(request, &create->failure)
                                  : reply_created(request, create);
}

/* --- aborting --- */

struct abort {
    struct s3api_upload *upload; /* the request holds it */
    bool was_run;
    struct failure failure;
};

void s3api_abort_multipart_begin(struct request *request)
{
    struct zt_text key;
    struct s3api_upload *upload;
    struct abort *abort;

    if (s3api_refuse_key(request, &key, NULL))
        return;
    upload = s3api_multipart_find(request, key);
    abort = upload != NULL ? request_new_context(request, sizeof(*abort)) : NULL;
    if (abort == NULL)
        return;
    abort->upload = upload;
    if (s3api_upload_state(upload) == S3API_UPLOAD_PUBLISHED)
        s3api_problem(request, S3API_NO_SUCH_UPLOAD, "this upload was completed");
}

static void work_abort(struct request *request)
{
    struct abort *abort = request->context;

    assert(abort->was_run && !abort->failure.is_set);
    (void)s3api_upload_abort(abort->upload, &abort->failure);
}

enum outcome s3api_abort_multipart(struct request *request)
{
    struct abort *abort = request->context;

    if (!abort->was_run) {
        abort->was_run = true;
        return request_work_long(request, work_abort);
    }
    if (abort->failure.is_set)
        return failure_reply(request, &abort->failure);
    reply_empty(request, 204);
    return OUTCOME_READY;
}
