/* Problem details: the table, and which parts of a failure the client sees. */
#include "support.h"

#include <errno.h>
#include <string.h>

#include "http/exchange/problem.h"
#include "http/exchange/request_state.h"
#include "http/exchange/router.h"

static char body[2048];

static const char *body_of(const struct request *request)
{
    assert_true(request->reply.length < sizeof(body));
    assert_int_equal(request->reply.segment_count, 1);
    memcpy(body, request->reply.segments[0].bytes, request->reply.length);
    body[request->reply.length] = '\0';
    return body;
}

static struct request *new_request(void)
{
    struct request *request = request_new(NULL, NULL, "/");

    assert_non_null(request);
    strcpy(request->id, "r1");
    return request;
}

/* One code with two statuses: a conflict with what is there (409), or with a request under way
 * (423). */
static bool are_both_conflicts(int one, int other)
{
    return one == PROBLEM_LOCKED && other == PROBLEM_CONFLICT;
}

static void every_problem_has_a_status_and_a_code_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < PROBLEM_COUNT; i++) {
        unsigned status = problem_status((enum problem)i);

        assert_in_range(status, 400, 599);
        for (int j = 0; j < i; j++) {
            if (!are_both_conflicts(i, j)) {
                assert_string_not_equal(problem_code((enum problem)i),
                                        problem_code((enum problem)j));
            }
        }
    }
    assert_string_equal(problem_code(PROBLEM_CORRUPT_COMPONENT), "corrupt-component");
    assert_int_equal(problem_status(PROBLEM_CHECKSUM_MISMATCH), 460);
    assert_int_equal(problem_status(PROBLEM_LOCKED), 423);
}

static void a_reply_is_a_problem_document(void **state)
{
    struct request *request;

    (void)state;
    request = new_request();
    assert_int_equal(problem_reply(request, PROBLEM_MODEL_NOT_FOUND, "no model \"%s\"", "x"),
                     OUTCOME_READY);
    assert_true(request->replied);
    assert_int_equal(request->reply.status, 404);
    assert_string_equal(request->reply.media_type, "application/problem+json");
    assert_string_equal(request->reply.cache_control, "no-store");
    assert_string_equal(
        body_of(request),
        "{\"type\":\"/problems/model-not-found\",\"title\":\"No such model\",\"status\":404,"
        "\"detail\":\"no model \\\"x\\\"\",\"code\":\"model-not-found\",\"request_id\":\"r1\"}\n");
    request_free(request);
}

static void a_problem_replaces_what_was_there(void **state)
{
    struct request *request;

    (void)state;
    request = new_request();
    request->reply.etag = "\"x\"";
    request->reply.ranges = true;
    representation_field(&request->reply, "ZT-Dtype", "f32");
    representation_memory(&request->reply, "abc", 3);
    problem_reply(request, PROBLEM_NOT_FOUND, "gone");
    assert_null(request->reply.etag);
    assert_false(request->reply.ranges);
    assert_int_equal(request->reply.field_count, 0);
    request_free(request);
}

static void a_failure_of_the_core_has_its_rule_and_place(void **state)
{
    struct request *request;
    struct zt_error error;

    (void)state;
    request = new_request();
    zt_fail(&error, ZT_INVALID, "zt1 §4 BlobAlignment", 0, "offset 3");
    zt_error_at(&error, (struct zt_text){"w\n", 2}, (struct zt_text){"data", 4});
    problem_reply_error(request, &error);
    assert_int_equal(request->reply.status, 422);
    assert_non_null(
        strstr(body_of(request),
               "\"detail\":\"offset 3\",\"code\":\"invalid-model\",\"request_id\":\"r1\","
               "\"rule\":\"zt1 §4 BlobAlignment\",\"object\":\"w\\n\","
               "\"component\":\"data\",\"offset\":0}"));
    request_free(request);
}

static void an_object_without_a_name_is_named_too(void **state)
{
    struct request *request;
    struct zt_error error;

    (void)state;
    request = new_request();
    zt_fail(&error, ZT_CORRUPT, NULL, ZT_NO_OFFSET, "flipped");
    zt_error_at(&error, (struct zt_text){"", 0}, (struct zt_text){"data", 4});
    problem_reply_error(request, &error);
    assert_non_null(strstr(body_of(request), "\"object\":\"\",\"component\":\"data\"}"));
    request_free(request);
}

static void members_that_do_not_apply_are_left_out(void **state)
{
    struct request *request;
    struct zt_error error;

    (void)state;
    request = new_request();
    zt_fail(&error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "encoding \"x\" is not known");
    problem_reply_error_as(request, PROBLEM_UNSUPPORTED_ENCODING, &error);
    assert_int_equal(request->reply.status, 422);
    assert_non_null(strstr(body_of(request), "\"unsupported-encoding\""));
    assert_null(strstr(body, "\"rule\""));
    assert_null(strstr(body, "\"object\""));
    assert_null(strstr(body, "\"offset\""));
    request_free(request);
}

static void failures_of_the_disk_are_not_disclosed(void **state)
{
    struct request *request;
    struct zt_error error;

    (void)state;
    request = new_request();
    zt_fail(&error, ZT_IO, NULL, 77, "/srv/secret: Input/output error");
    problem_reply_error(request, &error);
    assert_int_equal(request->reply.status, 500);
    assert_null(strstr(body_of(request), "secret"));
    assert_non_null(strstr(body, "\"internal\""));
    request_free(request);
}

static const char *field_of(const struct request *request, const char *name)
{
    for (unsigned i = 0; i < request->reply.field_count; i++)
        if (strcmp(request->reply.fields[i].name, name) == 0)
            return request->reply.fields[i].value;
    return NULL;
}

static const char *retry_after_of(const struct request *request)
{
    return field_of(request, "Retry-After");
}

static void a_store_that_is_away_is_not_named_and_may_be_asked_again(void **state)
{
    struct request *request;
    struct zt_error error;

    (void)state;
    request = new_request();
    zt_fail(&error, ZT_UNAVAILABLE, NULL, 77, "http://10.0.0.7:9000: connection refused");
    problem_reply_error(request, &error);
    assert_int_equal(request->reply.status, 503);
    assert_null(strstr(body_of(request), "10.0.0.7"));
    assert_non_null(strstr(body, "\"store-unavailable\""));
    assert_null(strstr(body, "another version"));
    assert_string_equal(retry_after_of(request), "1");
    zt_fail(&error, ZT_STALE, NULL, ZT_NO_OFFSET, "412");
    problem_reply_error(request, &error);
    assert_non_null(strstr(body_of(request), "another version"));
    assert_int_equal(request->reply.field_count, 1);
    request_free(request);
}

static const struct route hub_route = {.pattern = "/x", .is_hub = true};

static void clients_of_the_hub_find_the_detail_where_they_look_for_it(void **state)
{
    struct request *request;

    (void)state;
    request = new_request();
    request->route = &hub_route;
    problem_reply(request, PROBLEM_NOT_FOUND, "no \"a\tü日\"~");
    assert_non_null(strstr(body_of(request), "\"detail\":\"no \\\"a\\tü日\\\"~\","));
    assert_non_null(strstr(body, "\"error\":\"no \\\"a\\tü日\\\"~\"}"));
    assert_string_equal(field_of(request, "X-Error-Message"), "no \"a???\"~");
    request_free(request);
}

static void a_long_detail_is_cut_in_the_field_only(void **state)
{
    struct request *request;
    char detail[1501];

    (void)state;
    memset(detail, 'x', sizeof(detail) - 1);
    detail[sizeof(detail) - 1] = '\0';
    request = new_request();
    request->route = &hub_route;
    problem_reply(request, PROBLEM_NOT_FOUND, "%s", detail);
    assert_true(request->reply.length > 2 * strlen(detail));
    assert_int_equal(strlen(field_of(request, "X-Error-Message")), 1024);
    request_free(request);
}

static void problems_of_other_routes_have_no_more_than_the_document(void **state)
{
    static const struct route route = {.pattern = "/x"};
    struct request *request;

    (void)state;
    request = new_request();
    request->route = &route;
    problem_reply(request, PROBLEM_NOT_FOUND, "no");
    assert_null(strstr(body_of(request), "\"error\""));
    assert_null(field_of(request, "X-Error-Message"));
    request_free(request);
}

static void each_status_has_its_problem(void **state)
{
    (void)state;
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

static void each_failure_of_a_write_has_its_problem(void **state)
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

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct zt_error error;

        zt_fail(&error, rows[i].status, NULL, ZT_NO_OFFSET, "x");
        error.os_error = rows[i].os_error;
        assert_int_equal(problem_of_write(&error), rows[i].problem);
    }
}

static void a_detail_too_long_is_cut_and_still_json(void **state)
{
    struct request *request;
    char detail[5000];

    (void)state;
    request = new_request();
    memset(detail, 'x', sizeof(detail) - 1);
    detail[sizeof(detail) - 1] = '\0';
    problem_reply(request, PROBLEM_NOT_FOUND, "%s", detail);
    assert_true(request->reply.length < 3000);
    assert_memory_equal(&request->reply.segments[0].bytes[request->reply.length - 2], "}\n", 2);
    request_free(request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_problem_has_a_status_and_a_code_of_its_own),
        cmocka_unit_test(a_reply_is_a_problem_document),
        cmocka_unit_test(a_problem_replaces_what_was_there),
        cmocka_unit_test(a_failure_of_the_core_has_its_rule_and_place),
        cmocka_unit_test(an_object_without_a_name_is_named_too),
        cmocka_unit_test(members_that_do_not_apply_are_left_out),
        cmocka_unit_test(failures_of_the_disk_are_not_disclosed),
        cmocka_unit_test(a_store_that_is_away_is_not_named_and_may_be_asked_again),
        cmocka_unit_test(clients_of_the_hub_find_the_detail_where_they_look_for_it),
        cmocka_unit_test(a_long_detail_is_cut_in_the_field_only),
        cmocka_unit_test(problems_of_other_routes_have_no_more_than_the_document),
        cmocka_unit_test(each_status_has_its_problem),
        cmocka_unit_test(each_failure_of_a_write_has_its_problem),
        cmocka_unit_test(a_detail_too_long_is_cut_and_still_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
