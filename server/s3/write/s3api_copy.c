/* CopyObject: copies the bytes, inside the file system if possible, hashes them if their digest is
 * not known, and publishes the copy like any other upload. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/stored_reply.h"
#include "base/server.h"
#include "http/exchange/authorize.h"
#include "http/fields/checksums.h"
#include "s3/s3api_meta.h"
#include "s3/s3api_xml.h"
#include "s3/write/handlers.h"
#include "s3/write/s3api_copy_source.h"
#include "s3/write/s3api_write_checks.h"
#include "store/staging.h"
#include "upload/shared/publication.h"
#include "upload/shared/recorded.h"
#include "upload/shared/write_checks.h"

struct object_copy {
    struct s3api_copy_source source;
    char path[MODEL_NAME_MAX + 1];
    bool replaces_fields;
    char *fields; /* of the request, or of the source (s3api_meta.h) */
    struct publication publication;
    bool was_run;
    struct failure failure; /* unless the source failed */
};

static void free_copy(void *thing)
{
    struct object_copy *copy = thing;

    s3api_copy_source_close(&copy->source);
    staged_file_close(copy->publication.stored);
    free(copy->fields);
}

/* --- before the work --- */

/* Returns false if it has replied. */
static bool read_directive(struct request *request, struct object_copy *copy)
{
    const char *directive = request_header(request, "x-amz-metadata-directive");

    copy->replaces_fields = directive != NULL && strcasecmp(directive, "REPLACE") == 0;
    if (directive != NULL && !copy->replaces_fields && strcasecmp(directive, "COPY") != 0)
        s3api_problem(request, S3API_INVALID_ARGUMENT,
                      "x-amz-metadata-directive must be COPY or REPLACE");
    else if (!copy->replaces_fields && strcmp(copy->source.path, copy->path) == 0)
        s3api_problem(request, S3API_INVALID_REQUEST,
                      "a copy of an object to itself must replace its metadata");
    return !request->replied && (!copy->replaces_fields ||
                                 s3api_meta_read(request, zt_text_from(copy->path), &copy->fields));
}

void s3api_copy_object_begin(struct request *request)
{
    struct object_copy *copy;
    struct zt_text key;

    if (s3api_refuse_key(request, &key, NULL) || s3api_refuse_unsupported(request))
        return;
    copy = request_new_context(request, sizeof(*copy));
    if (copy == NULL)
        return;
    request_hold(request, copy, free_copy);
    assert(key.length < sizeof(copy->path));
    memcpy(copy->path, key.bytes, key.length);
    copy->publication.server = request->server;
    copy->publication.name = copy->path;
    copy->publication.is_file = true;
    copy->publication.covers = authorize_filter(request);
    copy->publication.client = request->client;
    copy->publication.action = "Copy";
    copy->publication.preconditions = s3api_preconditions(request);
    if (s3api_copy_source_read(request, &copy->source) && read_directive(request, copy))
        (void)s3api_refuse_preconditions(request, copy->path, &copy->publication.preconditions);
}

/* --- the work --- */

static bool check_size(const struct object_copy *copy, struct failure *failure)
{
    const struct config *config = copy->publication.server->config;
    const uint64_t most = (uint64_t)config_number(&config->upload.max_bytes);

    return copy->source.file->identity.size_bytes <= most ||
           failure_refuse(failure, PROBLEM_TOO_LARGE,
                          "larger than this server accepts: upload.max_bytes is %llu",
                          (unsigned long long)most);
}

static bool store_copy(struct object_copy *copy)
{
    const struct stored_file *file = copy->source.file;
    struct publication *publication = &copy->publication;
    const uint64_t size = zt_source_size(file->source);
    struct zt_digest digest;
    struct zt_error error;
    enum zt_status status =
        staging_create(publication->server->store->staging, size, &publication->stored, &error);

    assert(publication->is_file && !copy->failure.is_set);
    if (status == ZT_OK)
        status = staged_file_copy_source(file->source, 0, publication->stored, 0, size, &error);
    /* Of the copy, not the source: the digest must be of the bytes that are published. */
    if (status == ZT_OK && !file->has_sha256)
        status = staged_file_digest(publication->stored, ZT_DIGEST_SHA256, NULL, &digest, &error);
    if (status != ZT_OK)
        return failure_of_store(&copy->failure, &error);
    memcpy(publication->published.sha256, file->has_sha256 ? file->sha256 : digest.bytes,
           sizeof(publication->published.sha256));
    return stored_file_is_unwritten(file) ||
           failure_refuse(&copy->failure, PROBLEM_CONFLICT,
                          "the source was written to while it was copied");
}

static void keep_fields(struct object_copy *copy)
{
    struct server *server = copy->publication.server;

    assert(copy->publication.stored == NULL && copy->source.file != NULL);
    if (!copy->replaces_fields)
        copy->fields =
            s3api_meta_find(server->s3_meta, copy->source.path, &copy->source.file->identity);
    s3api_keep_fields(server, copy->path, &copy->publication.published, copy->fields);
}

static void work(struct request *request)
{
    struct object_copy *copy = request->context;

    if (!s3api_copy_source_open(request, &copy->source) || !check_size(copy, &copy->failure) ||
        !store_copy(copy))
        return;
    if (!publication_run(&copy->publication, &copy->failure)) {
        s3api_explain_absence(request->server, copy->path, &copy->publication.preconditions,
                              &copy->failure);
        return;
    }
    keep_fields(copy);
    (void)remains_fail(&copy->publication.published.remains, "published", &copy->failure);
}

/* --- the answer --- */

static enum outcome reply_copied(struct request *request, const struct object_copy *copy)
{
    static const char root[] = "CopyObjectResult";
    const struct published *published = &copy->publication.published;
    struct zt_digest value = {.length_bytes = sizeof(published->sha256)};
    char etag[S3API_ETAG_SIZE];
    char checksum[CHECKSUM_TEXT_SIZE];
    struct xml_writer *xml = s3api_xml_new(request);

    if (xml == NULL)
        return OUTCOME_READY;
    recorded_reply(request, published->commit);
    memcpy(value.bytes, published->sha256, sizeof(published->sha256));
    checksum_write(&value, checksum);
    s3api_etag(copy->path, &published->identity, etag);
    s3api_xml_begin(xml, root);
    s3api_xml_time(xml, "LastModified", stored_modified(published->identity.modified_ns));
    xml_write_string(xml, "ETag", etag);
    xml_write_string(xml, checksum_element(CHECKSUM_SHA256), checksum);
    xml_write_string(xml, "ChecksumType", "FULL_OBJECT");
    xml_write_close(xml, root);
    return s3api_xml_reply(request, 200, xml);
}

enum outcome s3api_copy_object(struct request *request)
{
    struct object_copy *copy = request->context;

    if (!copy->was_run) {
        copy->was_run = true;
        return request_work_long(request, work);
    }
    if (copy->source.why != NULL)
        return s3api_problem(request, copy->source.error, "%s", copy->source.why);
    if (copy->failure.is_set)
        return failure_reply(request, &copy->failure);
    return reply_copied(request, copy);
}
