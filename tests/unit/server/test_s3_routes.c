/* Which operation of the S3 API a request is, by path, method, query and header. */
#include "tests.h"

#include <string.h>

#include "http/exchange/request_state.h"
#include "http/exchange/s3api_error.h"
#include "s3/handlers.h"
#include "s3/write/handlers.h"

static struct config config = {.s3 = {.path = "/s3", .bucket = "models"}, .base_path = "/base"};
static struct server server = {.config = &config};

static const struct {
    enum method method;
    const char *target;
    enum outcome (*handle)(struct request *request); /* NULL: refused */
    unsigned status;
} rows[] = {
    {METHOD_GET, "/s3", s3api_list_buckets, 0},
    {METHOD_GET, "/s3/", s3api_list_buckets, 0},
    {METHOD_GET, "/base/s3/?x-id=ListBuckets", s3api_list_buckets, 0},
    {METHOD_POST, "/s3/", NULL, 405},
    {METHOD_HEAD, "/s3/models", s3api_head_bucket, 0},
    {METHOD_GET, "/s3/models", s3api_list_objects, 0},
    {METHOD_GET, "/s3/models/?list-type=2&prefix=acl", s3api_list_objects, 0},
    {METHOD_GET, "/s3/models?location", s3api_get_location, 0},
    {METHOD_GET, "/s3/models?location=", s3api_get_location, 0},
    {METHOD_GET, "/s3/models?uploads", s3api_list_uploads, 0},
    {METHOD_GET, "/s3/models?ac%6C", NULL, 501},
    {METHOD_GET, "/s3/models?prefix=a&versions", NULL, 501},
    {METHOD_PUT, "/s3/models", s3api_create_bucket, 0},
    {METHOD_PUT, "/s3/models?versioning", NULL, 501},
    {METHOD_POST, "/s3/models?delete", s3api_delete_objects, 0},
    {METHOD_POST, "/s3/models", NULL, 405},
    {METHOD_DELETE, "/s3/models/", s3api_delete_bucket, 0},
    {METHOD_DELETE, "/s3/models?lifecycle", NULL, 501},
    {METHOD_GET, "/s3/models/k", s3api_get_object, 0},
    {METHOD_HEAD, "/s3/models/k?partNumber=1", s3api_get_object, 0},
    {METHOD_GET, "/s3/models/a//b/", s3api_get_object, 0},
    {METHOD_GET, "/s3/models/k?uploadId=7&max-parts=1", s3api_list_parts, 0},
    {METHOD_GET, "/s3/models/k?uploads", NULL, 501},
    {METHOD_GET, "/s3/models/k?torrent", NULL, 501},
    {METHOD_PUT, "/s3/models/k?x-id=PutObject", s3api_put_object, 0},
    {METHOD_PUT, "/s3/models/k?partNumber=1&uploadId=7", s3api_upload_part, 0},
    {METHOD_PUT, "/s3/models/k?uploadId=7", NULL, 501},
    {METHOD_PUT, "/s3/models/k?tagging", NULL, 501},
    {METHOD_POST, "/s3/models/k?uploads", s3api_create_multipart, 0},
    {METHOD_POST, "/s3/models/k?uploads=", s3api_create_multipart, 0},
    {METHOD_POST, "/s3/models/k?uploadId=7", s3api_complete_multipart, 0},
    {METHOD_POST, "/s3/models/k?restore", NULL, 501},
    {METHOD_POST, "/s3/models/k", NULL, 405},
    {METHOD_DELETE, "/s3/models/k", s3api_delete_object, 0},
    {METHOD_DELETE, "/s3/models/k?uploadId=7", s3api_abort_multipart, 0},
    {METHOD_DELETE, "/s3/models/k?tagging", NULL, 501},
    {METHOD_PATCH, "/s3/models/k", NULL, 405},
};

static const struct operation *routed(enum method method, const char *target, bool is_copy,
                                      struct request **out_request)
{
    struct request *request = request_new(&server, NULL, target);

    assert_non_null(request);
    *out_request = request;
    request->method = method;
    if (is_copy)
        assert_true(request_add_header(
            request, (struct header_field){"X-Amz-Copy-Source", "models/k", 17, 8}));
    return router_match(request);
}

TEST(query_and_method_decide_the_operation)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct request *request;
        const struct operation *operation = routed(rows[i].method, rows[i].target, false, &request);

        assert_true(request_is_s3(request));
        if (operation == NULL ? rows[i].handle != NULL : operation->handle != rows[i].handle)
            fail_msg("%s %s", method_name(rows[i].method), rows[i].target);
        if (operation == NULL)
            assert_int_equal(request->reply.status, rows[i].status);
        request_free(request);
    }
}

TEST(a_copy_has_its_source_in_the_header)
{
    struct request *request;

    assert_ptr_equal(routed(METHOD_PUT, "/s3/models/k", true, &request)->handle, s3api_copy_object);
    request_free(request);
    assert_ptr_equal(
        routed(METHOD_PUT, "/s3/models/k?partNumber=2&uploadId=7", true, &request)->handle,
        s3api_upload_part_copy);
    request_free(request);
}

TEST(other_paths_are_not_of_s3)
{
    static const char *const targets[] = {"/s3x", "/s3x/models", "/S3/models", "/base/files/s3",
                                          "*"};

    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        struct request *request = request_new(&server, NULL, targets[i]);

        assert_non_null(request);
        router_find(request);
        assert_false(request_is_s3(request));
        request_free(request);
    }
}

TEST(requests_of_the_second_address_have_no_prefix)
{
    struct request *request = request_new(&server, NULL, "/files/k");

    assert_non_null(request);
    request_state(request)->is_of_s3_listener = true;
    assert_ptr_equal(router_match(request)->handle, s3api_get_object);
    assert_true(zt_text_is(request->names[0], "files"));
    request_free(request);
}
