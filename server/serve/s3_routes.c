/* The table of routes of the S3 API, and its operations. The first row that fits a request
 * answers. */
#include "http/exchange/router.h"
#include "s3/handlers.h"
#include "s3/s3api_operations.h"
#include "s3/write/handlers.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* Clients add unknown parameters. Keys stay encoded: they may hold empty segments and encoded
 * slashes. */
#define S3_ROUTE .keeps_names = true, .ignores_parameters = true, .problems = PROBLEM_FORM_S3

/* An operation whose handler is named NAME, with NAME_begin. */
#define WRITES(name)                            \
    {                                           \
        .begin = name##_begin, .handle = (name) \
    }
#define READS(name)      \
    {                    \
        .handle = (name) \
    }

static const struct s3api_operation service_operations[] = {
    {.method = METHOD_GET, .operation = READS(s3api_list_buckets)},
};

static const struct s3api_operation bucket_operations[] = {
    {.method = METHOD_HEAD, .operation = READS(s3api_head_bucket)},
    {.method = METHOD_GET, .parameter = "location", .operation = READS(s3api_get_location)},
    {.method = METHOD_GET, .parameter = "uploads", .operation = READS(s3api_list_uploads)},
    {.method = METHOD_GET, .operation = READS(s3api_list_objects)},
    {.method = METHOD_PUT, .operation = WRITES(s3api_create_bucket)},
    {.method = METHOD_POST, .parameter = "delete", .operation = WRITES(s3api_delete_objects)},
    {.method = METHOD_DELETE, .operation = READS(s3api_delete_bucket)},
};

static const struct s3api_operation object_operations[] = {
    {.method = METHOD_GET, .parameter = "uploadId", .operation = READS(s3api_list_parts)},
    {.method = METHOD_GET, .operation = READS(s3api_get_object)},
    {.method = METHOD_PUT,
     .parameter = "uploadId",
     .second = "partNumber",
     .header = "x-amz-copy-source",
     .operation = WRITES(s3api_upload_part_copy)},
    {.method = METHOD_PUT,
     .parameter = "uploadId",
     .second = "partNumber",
     .operation = WRITES(s3api_upload_part)},
    {.method = METHOD_PUT, .header = "x-amz-copy-source", .operation = WRITES(s3api_copy_object)},
    {.method = METHOD_PUT, .operation = WRITES(s3api_put_object)},
    {.method = METHOD_POST, .parameter = "uploads", .operation = WRITES(s3api_create_multipart)},
    {.method = METHOD_POST, .parameter = "uploadId", .operation = WRITES(s3api_complete_multipart)},
    {.method = METHOD_DELETE, .parameter = "uploadId", .operation = WRITES(s3api_abort_multipart)},
    {.method = METHOD_DELETE, .operation = WRITES(s3api_delete_object)},
};

static const struct operation *choose_of_service(struct request *request)
{
    return s3api_choose(request, service_operations, COUNT(service_operations));
}

static const struct operation *choose_of_bucket(struct request *request)
{
    return s3api_choose(request, bucket_operations, COUNT(bucket_operations));
}

static const struct operation *choose_of_object(struct request *request)
{
    return s3api_choose(request, object_operations, COUNT(object_operations));
}

const struct route s3_routes[] = {
    {.pattern = "/", .name = "/s3", .choose = choose_of_service, S3_ROUTE},
    {.pattern = "/{bucket}", .name = "/s3/{bucket}", .choose = choose_of_bucket, S3_ROUTE},
    {.pattern = "/{bucket}/", .name = "/s3/{bucket}/", .choose = choose_of_bucket, S3_ROUTE},
    {.pattern = "/{bucket}/{key...}",
     .name = "/s3/{bucket}/{key...}",
     .choose = choose_of_object,
     .takes_empty_segments = true,
     S3_ROUTE},
};

const size_t s3_route_count = COUNT(s3_routes);
