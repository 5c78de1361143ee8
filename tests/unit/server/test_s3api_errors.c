/* The errors of the S3 API: every problem has one, and the document is S3's. */
#include "tests.h"

#include <string.h>

#include "http/exchange/request_state.h"
#include "http/exchange/s3api_error.h"

static struct config config = {.s3.path = "/s3"};
static struct server server = {.config = &config};
static const struct route route = {.pattern = "/{bucket}/{key...}", .problems = PROBLEM_FORM_S3};

TEST(every_error_has_a_status_and_its_own_code)
{
    for (int i = 0; i < S3API_ERROR_COUNT; i++) {
        assert_in_range(s3api_error_status((enum s3api_error)i), 400, 599);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(s3api_error_code((enum s3api_error)i),
                                    s3api_error_code((enum s3api_error)j));
    }
}

/* Clients retry errors of 5xx: a problem keeps its class, and temporary ones stay temporary. */
TEST(every_problem_becomes_an_error_of_its_class)
{
    for (int i = 0; i < PROBLEM_COUNT; i++) {
        const unsigned status = problem_status((enum problem)i);
        const unsigned sent = s3api_error_status(s3api_error_of((enum problem)i));

        if (i == PROBLEM_RATE_LIMITED)
            assert_int_equal(sent, 503);
        else
            assert_int_equal(sent / 100, status / 100);
        if (status == 503 || status == 404 || status == 412 || status == 416)
            assert_int_equal(sent, status);
    }
    assert_int_equal(s3api_error_of(PROBLEM_UNAUTHORIZED), S3API_ACCESS_DENIED);
    assert_int_equal(s3api_error_of(PROBLEM_INVALID_MODEL), S3API_INVALID_REQUEST);
    assert_int_equal(s3api_error_of(PROBLEM_MODEL_NOT_FOUND), S3API_NO_SUCH_KEY);
    assert_int_equal(s3api_error_of(PROBLEM_DIGEST_MISMATCH), S3API_BAD_DIGEST);
}

static struct request *refused(void (*refuse)(struct request *request), char *out_body, size_t size)
{
    struct request *request = request_new(&server, NULL, "/s3/models/a%3Cb?x=1");

    assert_non_null(request);
    strcpy(request->id, "r1");
    request->route = &route;
    refuse(request);
    assert_true(request->replied && request->reply.length < size);
    memcpy(out_body, request->reply.segments[0].bytes, request->reply.length);
    out_body[request->reply.length] = '\0';
    return request;
}

static void refuse_by_code(struct request *request)
{
    s3api_problem(request, S3API_INVALID_PART, "part %d & \"more\"", 3);
}

static void refuse_by_problem(struct request *request)
{
    struct zt_error error;

    zt_fail(&error, ZT_INVALID, "zt1.2 §3 bounds", 7, "the manifest is too long");
    problem_reply_error(request, &error);
}

TEST(the_document_is_that_of_s3)
{
    char body[1024];
    struct request *request = refused(refuse_by_code, body, sizeof(body));

    assert_int_equal(request->reply.status, 400);
    assert_string_equal(request->reply.media_type, "application/xml");
    assert_string_equal(body, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                              "<Error><Code>InvalidPart</Code><Message>part 3 &amp; "
                              "&quot;more&quot;</Message><Resource>/models/a%3Cb</Resource>"
                              "<RequestId>r1</RequestId></Error>");
    request_free(request);
}

TEST(a_broken_rule_is_named_in_the_message)
{
    char body[1024];
    struct request *request = refused(refuse_by_problem, body, sizeof(body));

    assert_int_equal(request->reply.status, 400);
    assert_non_null(strstr(body, "<Code>InvalidRequest</Code><Message>the manifest is too long "
                                 "(zt1.2 §3 bounds)</Message>"));
    request_free(request);
}
