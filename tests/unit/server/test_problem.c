/* Problem details: the table, and which parts of a failure the client sees. */
#include "tests.h"

#include <errno.h>
#include <string.h>

#include "http/exchange/problem.h"
#include "http/exchange/request_state.h"
#include "http/exchange/router.h"
#include "upstream/upstream.h"

static struct zt_error error;

static char body[2048];
static struct request *request;

static const char *body_of(void)
{
    assert_true(request->reply.length < sizeof(body));
    assert_int_equal(request->reply.segment_count, 1);
    memcpy(body, request->reply.segments[0].bytes, request->reply.length);
    body[request->reply.length] = '\0';
    return body;
}

static int make_request(void **state)
{
    (void)state;
    request = request_new(NULL, NULL, "/");
    assert_non_null(request);
    strcpy(request->id, "r1");
    return 0;
}

static int free_request(void **state)
{
    (void)state;
    request_free(request);
    return 0;
}

AROUND_EACH_TEST(make_request, free_request)

/* One code with two statuses: a conflict with what is there (409), or with a request under way
 * (423); nothing of a name (404), or of one of several names (422); an upstream that is away (503),
 * or that refuses (502). */
static bool share_a_code(int one, int other)
{
    return (one == PROBLEM_LOCKED && other == PROBLEM_CONFLICT) ||
           (one == PROBLEM_RULE_UNUSED && other == PROBLEM_OBJECT_NOT_FOUND) ||
           (one == PROBLEM_UPSTREAM_UNAVAILABLE && other == PROBLEM_UPSTREAM_REFUSED);
}

TEST(every_problem_has_a_status_and_a_code_of_its_own)
{
    for (int i = 0; i < PROBLEM_COUNT; i++) {
        unsigned status = problem_status((enum problem)i);

        assert_in_range(status, 400, 599);
        for (int j = 0; j < i; j++) {
            if (!share_a_code(i, j)) {
                assert_string_not_equal(problem_code((enum problem)i),
                                        problem_code((enum problem)j));
            }
        }
    }
    assert_string_equal(problem_code(PROBLEM_CORRUPT_COMPONENT), "corrupt-component");
    assert_int_equal(problem_status(PROBLEM_CHECKSUM_MISMATCH), 460);
    assert_int_equal(problem_status(PROBLEM_LOCKED), 423);
    assert_int_equal(problem_status(PROBLEM_RULE_UNUSED), 422);
}

TEST(a_reply_is_a_problem_document)
{
    assert_int_equal(problem_reply(request, PROBLEM_MODEL_NOT_FOUND, "no model \"%s\"", "x"),
                     OUTCOME_READY);
    assert_true(request->replied);
    assert_int_equal(request->reply.status, 404);
    assert_string_equal(request->reply.media_type, "application/problem+json");
    assert_string_equal(request->reply.cache_control, "no-store");
    assert_string_equal(
        body_of(),
        "{\"type\":\"/problems/model-not-found\",\"title\":\"No such model\",\"status\":404,"
        "\"detail\":\"no model \\\"x\\\"\",\"code\":\"model-not-found\",\"request_id\":\"r1\"}\n");
}

TEST(a_problem_replaces_what_was_there)
{
    request->reply.etag = "\"x\"";
    request->reply.ranges = true;
    representation_field(&request->reply, "ZT-Dtype", "f32");
    representation_memory(&request->reply, "abc", 3);
    problem_reply(request, PROBLEM_NOT_FOUND, "gone");
    assert_null(request->reply.etag);
    assert_false(request->reply.ranges);
    assert_int_equal(request->reply.field_count, 0);
}

TEST(a_failure_of_the_core_has_its_rule_and_place)
{
    zt_fail(&error, ZT_INVALID, "zt1 §4 BlobAlignment", 0, "offset 3");
    zt_error_at(&error, (struct zt_text){"w\n", 2}, (struct zt_text){"data", 4});
    problem_reply_error(request, &error);
    assert_int_equal(request->reply.status, 422);
    assert_non_null(strstr(
        body_of(), "\"detail\":\"offset 3\",\"code\":\"invalid-model\",\"request_id\":\"r1\","
                   "\"rule\":\"zt1 §4 BlobAlignment\",\"object\":\"w\\n\","
                   "\"component\":\"data\",\"offset\":0}"));
}

TEST(an_object_without_a_name_is_named_too)
{
    zt_fail(&error, ZT_CORRUPT, NULL, ZT_NO_OFFSET, "flipped");
    zt_error_at(&error, (struct zt_text){"", 0}, (struct zt_text){"data", 4});
    problem_reply_error(request, &error);
    assert_non_null(strstr(body_of(), "\"object\":\"\",\"component\":\"data\"}"));
}

TEST(members_that_do_not_apply_are_left_out)
{
    zt_fail(&error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "encoding \"x\" is not known");
    problem_reply_error_as(request, PROBLEM_UNSUPPORTED_ENCODING, &error);
    assert_int_equal(request->reply.status, 422);
    assert_non_null(strstr(body_of(), "\"unsupported-encoding\""));
    assert_null(strstr(body, "\"rule\""));
    assert_null(strstr(body, "\"object\""));
    assert_null(strstr(body, "\"offset\""));
}

TEST(failures_of_the_disk_are_not_disclosed)
{
    zt_fail(&error, ZT_IO, NULL, 77, "/srv/secret: Input/output error");
    problem_reply_error(request, &error);
    assert_int_equal(request->reply.status, 500);
    assert_null(strstr(body_of(), "secret"));
    assert_non_null(strstr(body, "\"internal\""));
}

static const char *field_of(const char *name)
{
    for (unsigned i = 0; i < request->reply.field_count; i++)
        if (strcmp(request->reply.fields[i].name, name) == 0)
            return request->reply.fields[i].value;
    return NULL;
}

TEST(a_store_that_is_away_is_not_named_and_may_be_asked_again)
{
    zt_fail(&error, ZT_UNAVAILABLE, NULL, 77, "http://10.0.0.7:9000: connection refused");
    problem_reply_error(request, &error);
    assert_int_equal(request->reply.status, 503);
    assert_null(strstr(body_of(), "10.0.0.7"));
    assert_non_null(strstr(body, "\"store-unavailable\""));
    assert_null(strstr(body, "just been replaced"));
    assert_string_equal(field_of("Retry-After"), "1");
    zt_fail(&error, ZT_STALE, NULL, ZT_NO_OFFSET, "412");
    problem_reply_error(request, &error);
    assert_non_null(strstr(body_of(), "just been replaced"));
    assert_int_equal(request->reply.field_count, 1);
}

TEST(temporary_problems_say_when_to_try_again)
{
    problem_reply(request, PROBLEM_OVERLOADED, "x");
    assert_string_equal(field_of("Retry-After"), "1");
    problem_reply(request, PROBLEM_RATE_LIMITED, "x");
    assert_string_equal(field_of("Retry-After"), "5");
    problem_reply(request, PROBLEM_CONFLICT, "x");
    assert_null(field_of("Retry-After"));
    problem_retry_soon(request);
    assert_string_equal(field_of("Retry-After"), "1");
    problem_reply(request, PROBLEM_OVERLOADED, "x");
    problem_retry_soon(request);
    assert_int_equal(request->reply.field_count, 1);
}

static const struct route hub_route = {.pattern = "/x", .problems = PROBLEM_FORM_HUB};

TEST(clients_of_the_hub_find_the_detail_where_they_look_for_it)
{
    request->route = &hub_route;
    problem_reply(request, PROBLEM_NOT_FOUND, "no \"a\tü日\"~");
    assert_non_null(strstr(body_of(), "\"detail\":\"no \\\"a\\tü日\\\"~\","));
    assert_non_null(strstr(body, "\"error\":\"no \\\"a\\tü日\\\"~\"}"));
    assert_string_equal(field_of("X-Error-Message"), "no \"a???\"~");
}

TEST(a_long_detail_is_cut_in_the_field_only)
{
    char detail[1501];

    memset(detail, 'x', sizeof(detail) - 1);
    detail[sizeof(detail) - 1] = '\0';
    request->route = &hub_route;
    problem_reply(request, PROBLEM_NOT_FOUND, "%s", detail);
    assert_true(request->reply.length > 2 * strlen(detail));
    assert_int_equal(strlen(field_of("X-Error-Message")), 1024);
}

TEST(problems_of_other_routes_have_no_more_than_the_document)
{
    static const struct route route = {.pattern = "/x"};

    request->route = &route;
    problem_reply(request, PROBLEM_NOT_FOUND, "no");
    assert_null(strstr(body_of(), "\"error\""));
    assert_null(field_of("X-Error-Message"));
}

TEST(each_status_has_its_problem)
{
    assert_int_equal(problem_of_status(ZT_UNAVAILABLE), PROBLEM_STORE_UNAVAILABLE);
    assert_int_equal(problem_of_status(ZT_STALE), PROBLEM_STORE_UNAVAILABLE);
    assert_int_equal(problem_of_status(ZT_INVALID), PROBLEM_INVALID_MODEL);
    assert_int_equal(problem_of_status(ZT_LIMIT), PROBLEM_INVALID_MODEL);
    assert_int_equal(problem_of_status(ZT_UNSUPPORTED), PROBLEM_INVALID_MODEL);
    assert_int_equal(problem_of_status(ZT_CORRUPT), PROBLEM_CORRUPT_COMPONENT);
    assert_int_equal(problem_of_status(ZT_NOT_FOUND), PROBLEM_NOT_FOUND);
    assert_int_equal(problem_of_status(ZT_ARGUMENT), PROBLEM_INVALID_REQUEST);
    assert_int_equal(problem_of_status(ZT_DATA_SHARD), PROBLEM_MODEL_NOT_FOUND);
    assert_int_equal(problem_of_status(ZT_NO_MEMORY), PROBLEM_INTERNAL);
    assert_int_equal(problem_of_status(ZT_IO), PROBLEM_INTERNAL);
    assert_int_equal(problem_of_status(ZT_OK), PROBLEM_INTERNAL);
}

TEST(each_failure_of_a_write_has_its_problem)
{
    static const struct {
        enum zt_status status;
        int os_error;
        enum problem problem;
    } rows[] = {
        {ZT_LIMIT, 0, PROBLEM_INSUFFICIENT_STORAGE}, {ZT_UNAVAILABLE, 0, PROBLEM_STORE_UNAVAILABLE},
        {ZT_STALE, 0, PROBLEM_STORE_UNAVAILABLE},    {ZT_IO, EROFS, PROBLEM_READ_ONLY},
        {ZT_IO, EACCES, PROBLEM_READ_ONLY},          {ZT_IO, EIO, PROBLEM_INTERNAL},
        {ZT_NO_MEMORY, EACCES, PROBLEM_INTERNAL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        zt_fail(&error, rows[i].status, NULL, ZT_NO_OFFSET, "x");
        error.os_error = rows[i].os_error;
        assert_int_equal(problem_of_write(&error), rows[i].problem);
    }
}

TEST(a_detail_too_long_is_cut_and_still_json)
{
    char detail[5000];

    memset(detail, 'x', sizeof(detail) - 1);
    detail[sizeof(detail) - 1] = '\0';
    problem_reply(request, PROBLEM_NOT_FOUND, "%s", detail);
    assert_true(request->reply.length < 3000);
    assert_memory_equal(&request->reply.segments[0].bytes[request->reply.length - 2], "}\n", 2);
}

TEST(upstreams_are_named_with_their_reason)
{
    static const struct {
        const char *rule;
        unsigned status;
        const char *retry_after_s;
    } cases[] = {{UPSTREAM_AWAY, 503, "1"}, {UPSTREAM_REFUSED, 502, "5"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        zt_fail(&error, ZT_UNAVAILABLE, cases[i].rule, ZT_NO_OFFSET, "the hub says no");
        problem_reply_error(request, &error);
        assert_int_equal(request->reply.status, cases[i].status);
        assert_non_null(strstr(body_of(), "\"upstream-unavailable\""));
        assert_non_null(strstr(body, "the hub says no"));
        assert_null(strstr(body, "\"rule\""));
        assert_string_equal(field_of("Retry-After"), cases[i].retry_after_s);
        assert_int_equal(problem_status(problem_of_write(&error)), cases[i].status);
    }
}
