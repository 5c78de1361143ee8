/* A source that the client may not read does not exist for it. */
#include "s3/write/s3api_copy_source.h"

#include <assert.h>
#include <string.h>

#include "api/file_access.h"
#include "http/exchange/s3api_fields.h"
#include "s3/s3api_request.h"
#include "s3/s3api_xml.h"

#define NS_PER_S 1000000000

/* --- the header --- */

/* Splits "[/]bucket/key[?versionId=…]", which is encoded. Returns false if it is of another
 * form. */
static bool split(const char *text, struct zt_text *out_bucket, struct zt_text *out_key,
                  struct zt_text *out_query)
{
    const char *slash;
    size_t length;

    text += *text == '/';
    slash = strchr(text, '/');
    if (slash == NULL)
        return false;
    length = strcspn(slash + 1, "?");
    *out_bucket = (struct zt_text){text, (size_t)(slash - text)};
    *out_key = (struct zt_text){slash + 1, length};
    *out_query = zt_text_from(slash + 1 + length);
    return length > 0;
}

static void read_conditions(struct request *request, struct preconditions *conditions)
{
    *conditions = (struct preconditions){
        .if_match = s3api_tags(request, "x-amz-copy-source-if-match"),
        .if_none_match = s3api_tags(request, "x-amz-copy-source-if-none-match"),
        .if_modified_since = request_header(request, "x-amz-copy-source-if-modified-since"),
        .if_unmodified_since = request_header(request, "x-amz-copy-source-if-unmodified-since"),
    };
}

bool s3api_copy_source_read(struct request *request, struct s3api_copy_source *source)
{
    const char *text = request_header(request, "x-amz-copy-source");
    struct zt_text bucket = {NULL, 0};
    struct zt_text key = {NULL, 0};
    struct zt_text query = {NULL, 0};

    assert(source->file == NULL && text != NULL);
    if (!split(text, &bucket, &key, &query) || !s3api_decode(request, bucket, &bucket) ||
        !s3api_decode(request, key, &key))
        s3api_problem(request, S3API_INVALID_ARGUMENT,
                      "x-amz-copy-source must be a bucket, a slash and a key, percent-encoded");
    else if (!zt_text_is(bucket, request->server->config->s3.bucket))
        s3api_problem(request, S3API_NO_SUCH_BUCKET, "the only bucket is %.64s",
                      request->server->config->s3.bucket);
    else if (query.length > 0 && !zt_text_is(query, "?versionId=null"))
        s3api_problem(request, S3API_NO_SUCH_VERSION, "the bucket has no versions");
    else if (!store_path_is_served(key) || key.length >= sizeof(source->path))
        s3api_problem(request, S3API_NO_SUCH_KEY, "no object has the key of the source");
    if (request->replied)
        return false;
    assert(key.length > 0);
    memcpy(source->path, key.bytes, key.length);
    read_conditions(request, &source->conditions);
    return true;
}

/* --- opening --- */

static bool fail(struct s3api_copy_source *source, enum s3api_error error, const char *why)
{
    source->error = error;
    source->why = why;
    return false;
}

static bool fail_open(struct s3api_copy_source *source, enum zt_status status)
{
    if (status == ZT_NOT_FOUND)
        return fail(source, S3API_NO_SUCH_KEY, "no object has the key of the source");
    if (status == ZT_UNAVAILABLE || status == ZT_STALE)
        return fail(source, S3API_SERVICE_UNAVAILABLE, "the source cannot be read now");
    return fail(source, S3API_INTERNAL_ERROR, "the source cannot be read");
}

/* Evaluated as for a read (RFC 9110 section 13.2.2), but a copy also fails instead of a 304. */
static bool conditions_hold(const struct s3api_copy_source *source)
{
    const struct file_identity *identity = &source->file->identity;
    char etag[S3API_ETAG_SIZE];

    s3api_etag(source->path, identity, etag);
    return precondition_check(&source->conditions, etag, (time_t)(identity->modified_ns / NS_PER_S),
                              true) == PRECONDITION_PASS;
}

bool s3api_copy_source_open(struct request *request, struct s3api_copy_source *source)
{
    const struct zt_text path = zt_text_from(source->path);
    struct zt_error error;
    enum zt_status status = ZT_NOT_FOUND;

    assert(source->path[0] != '\0' && source->file == NULL);
    if (client_may_read_file(request, path))
        status = stored_file_open(request->server, path, &source->file, &error);
    if (status == ZT_OK)
        status = stored_file_await(source->file, &error);
    if (status != ZT_OK)
        return fail_open(source, status);
    return conditions_hold(source) || fail(source, S3API_PRECONDITION_FAILED,
                                           "the source does not meet the request's conditions");
}

void s3api_copy_source_close(struct s3api_copy_source *source)
{
    stored_file_close(source->file);
    source->file = NULL;
}
