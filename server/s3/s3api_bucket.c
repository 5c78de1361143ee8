/* The one bucket, which always exists. */
#include <assert.h>

#include "base/server.h"
#include "config/config.h"
#include "http/exchange/s3api_error.h"
#include "s3/handlers.h"
#include "s3/s3api_request.h"
#include "s3/s3api_xml.h"

/* Clients expect a date, and the folder's own changes with its files. */
#define CREATED "2000-01-01T00:00:00.000Z"
/* The region of buckets without a location constraint. Signatures may name any region. */
#define REGION "us-east-1"

enum outcome s3api_list_buckets(struct request *request)
{
    static const char root[] = "ListAllMyBucketsResult";
    struct xml_writer *xml = s3api_xml_new(request);

    if (xml == NULL)
        return OUTCOME_READY;
    s3api_xml_begin(xml, root);
    s3api_xml_owner(xml, "Owner");
    xml_write_open(xml, "Buckets", NULL);
    xml_write_open(xml, "Bucket", NULL);
    xml_write_string(xml, "Name", request->server->config->s3.bucket);
    xml_write_string(xml, "CreationDate", CREATED);
    xml_write_close(xml, "Bucket");
    xml_write_close(xml, "Buckets");
    xml_write_close(xml, root);
    return s3api_xml_reply(request, 200, xml);
}

enum outcome s3api_head_bucket(struct request *request)
{
    if (!s3api_finds_bucket(request))
        return OUTCOME_READY;
    reply_empty(request, 200);
    representation_field(&request->reply, "x-amz-bucket-region", REGION);
    return OUTCOME_READY;
}

enum outcome s3api_get_location(struct request *request)
{
    static const char root[] = "LocationConstraint";
    struct xml_writer *xml;

    if (!s3api_finds_bucket(request))
        return OUTCOME_READY;
    xml = s3api_xml_new(request);
    if (xml == NULL)
        return OUTCOME_READY;
    s3api_xml_begin(xml, root);
    xml_write_close(xml, root);
    return s3api_xml_reply(request, 200, xml);
}

/* Some clients create the bucket before each upload. */
void s3api_create_bucket_begin(struct request *request)
{
    if (!request->server->config->writable)
        problem_reply(request, PROBLEM_READ_ONLY, "this server is read-only");
    else
        (void)s3api_finds_bucket(request);
}

enum outcome s3api_create_bucket(struct request *request)
{
    assert(!request->replied);
    reply_empty(request, 200);
    representation_field(&request->reply, "Location",
                         request_print(request, "/%s", request->server->config->s3.bucket));
    return OUTCOME_READY;
}

enum outcome s3api_delete_bucket(struct request *request)
{
    if (!s3api_finds_bucket(request))
        return OUTCOME_READY;
    return s3api_problem(request, S3API_ACCESS_DENIED, "the bucket cannot be deleted");
}
