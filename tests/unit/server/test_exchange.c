/* The exchange, from header to answer: refusals, bodies, preconditions, steps. */
#include "exchange_world.h"

static void not_modified_costs_no_step(void **state)
{
    struct request *request = ask(METHOD_GET, "/corrupt");
    const struct answer *answer = answer_with(request, "If-None-Match", "\"x\", " ETAG);

    (void)state;
    assert_int_equal(answer->status, 304);
    assert_int_equal(steps_run, 0);
    assert_int_equal(answer->segment_count, 0);
    assert_true(answer->content_length == 20);
    assert_string_equal(field_of(answer, "ETag"), ETAG);
    assert_string_equal(field_of(answer, "Vary"), "Accept-Encoding");
    assert_string_equal(field_of(answer, "Cache-Control"), "no-cache");
    assert_string_equal(field_of(answer, "Content-Type"), "");
    request_free(request);
}

static void failed_preconditions_are_412_before_any_step(void **state)
{
    struct request *request = ask(METHOD_GET, "/bytes");
    const struct answer *answer = answer_with(request, "If-Match", "\"other\"");

    (void)state;
    assert_int_equal(answer->status, 412);
    assert_int_equal(steps_run, 0);
    request_free(request);
}

static void a_step_that_fails_sends_no_byte(void **state)
{
    struct request *request = ask(METHOD_GET, "/corrupt");
    const struct answer *answer = answer_with(request, "Range", "bytes=0-3");

    (void)state;
    assert_int_equal(answer->status, 500);
    assert_int_equal(steps_run, 1);
    assert_string_equal(field_of(answer, "Cache-Control"), "no-store");
    assert_string_equal(field_of(answer, "ETag"), "");
    assert_string_equal(field_of(answer, "Repr-Digest"), "");
    request_free(request);
}

static void broken_framing_closes(void **state)
{
    struct request *request = ask(METHOD_GET, "/healthz");
    const struct answer *answer;

    (void)state;
    add(request, "Content-Length", "1");
    add(request, "Content-Length", "2");
    assert_true(exchange_begin(request));
    answer = exchange_answer(request);
    assert_int_equal(answer->status, 400);
    assert_true(answer->close);
    request_free(request);
}

static void assert_refused_and_closed(struct request *request)
{
    const struct answer *answer;

    assert_true(exchange_begin(request));
    answer = exchange_answer(request);
    assert_int_equal(answer->status, 400);
    assert_true(answer->close);
    request_free(request);
}

static void a_method_that_is_no_token_closes(void **state)
{
    struct request *request = ask(METHOD_UNKNOWN, "/healthz");

    (void)state;
    request_state(request)->method_malformed = true;
    assert_refused_and_closed(request);
}

static void an_empty_target_closes(void **state)
{
    (void)state;
    assert_refused_and_closed(ask(METHOD_GET, ""));
}

static void invalid_targets_are_refused(void **state)
{
    char target[9000];
    struct request *request;

    (void)state;
    memset(target, 'a', sizeof(target));
    target[0] = '/';
    target[sizeof(target) - 1] = '\0';
    request = ask(METHOD_GET, target);
    assert_int_equal(answer_of(request)->status, 414);
    request_free(request);
    for (size_t i = 0; i < 3; i++) {
        static const char *const odd[] = {"/bytes\x01", "/bytes#a", "bytes"};

        request = ask(METHOD_GET, odd[i]);
        assert_int_equal(answer_of(request)->status, 400);
        request_free(request);
    }
}

static void assert_queried(const char *target, unsigned status, const char *value)
{
    struct request *request = ask(METHOD_GET, target);
    const struct answer *answer = answer_of(request);

    assert_int_equal(answer->status, status);
    if (value != NULL) {
        assert_int_equal(answer->content_length, strlen(value));
        assert_memory_equal(answer->segments[0].bytes, value, strlen(value));
    }
    request_free(request);
}

static void only_a_parameter_that_is_asked_for_can_be_malformed(void **state)
{
    (void)state;
    assert_queried("/query?q=%41&&slice=%zz&", 200, "A");
    assert_queried("/query?slice=%", 200, "none");
    assert_queried("/bytes?q=%zz", 200, NULL);
    assert_queried("/query?%71=a%zz", 400, NULL);
    assert_queried("/query?q=%4", 400, NULL);
    assert_queried("http://host?q=%zz", 404, NULL);
    assert_queried("http://host/query?q=http://h/?", 200, "http://h/?");
}

static void parameters_that_a_route_does_not_name_are_refused(void **state)
{
    (void)state;
    assert_queried("/query?q=A&%73lice", 200, "A");
    assert_queried("/query?Q=A", 400, NULL);
    assert_queried("/query?qs=A", 400, NULL);
    assert_queried("/query?=A", 400, NULL);
    assert_queried("/query?q=A&%zz", 400, NULL);
    assert_queried("/query?q%20slice", 400, NULL);
    assert_queried("/healthz?q=A", 400, NULL);
}

static void refusals_come_before_the_body(void **state)
{
    struct request *request = ask(METHOD_PUT, "/upload");

    (void)state;
    add(request, "Content-Length", "5");
    add(request, "X-Refuse", "1");
    assert_true(exchange_begin(request));
    assert_int_equal(exchange_answer(request)->status, 403);
    request_free(request);
    request = ask(METHOD_GET, "/bytes");
    add(request, "Content-Length", "999999999");
    assert_true(exchange_begin(request));
    assert_int_equal(exchange_answer(request)->status, 413);
    request_free(request);
}

static void refusals_within_the_body_wait_for_its_end(void **state)
{
    static const char piece[60];
    struct request *request = ask(METHOD_PUT, "/upload");

    (void)state;
    add(request, "Transfer-Encoding", "chunked");
    assert_false(exchange_begin(request));
    for (unsigned i = 0; i < 5; i++)
        assert_true(exchange_receive(request, piece, sizeof(piece)));
    assert_int_equal(received, 120);
    assert_int_equal(exchange_advance(request), OUTCOME_READY);
    assert_int_equal(exchange_answer(request)->status, 413);
    request_free(request);
}

static void unwanted_bodies_are_dropped_up_to_a_bound(void **state)
{
    static const char piece[65536];
    struct request *request = ask(METHOD_GET, "/bytes");
    unsigned taken = 0;

    (void)state;
    add(request, "Transfer-Encoding", "chunked");
    assert_false(exchange_begin(request));
    while (taken < 100 && exchange_receive(request, piece, sizeof(piece)))
        taken++;
    assert_int_equal(taken, 16);
    request_free(request);
}

static bool not_loaded(const struct catalog *catalog)
{
    (void)catalog;
    return false;
}

static void routes_that_need_models_are_unavailable_while_these_are_read(void **state)
{
    struct request *request;
    const struct answer *answer;

    (void)state;
    server.is_loaded = not_loaded;
    request = ask(METHOD_GET, "/bytes");
    answer = answer_of(request);
    assert_int_equal(answer->status, 503);
    assert_string_equal(field_of(answer, "Retry-After"), "1");
    request_free(request);
    request = ask(METHOD_GET, "/healthz?timing=0");
    assert_int_equal(answer_of(request)->status, 200);
    request_free(request);
    request = ask(METHOD_GET, "/nothing");
    assert_int_equal(answer_of(request)->status, 404);
    request_free(request);
    server.is_loaded = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_modified_costs_no_step),
        cmocka_unit_test(failed_preconditions_are_412_before_any_step),
        cmocka_unit_test(a_step_that_fails_sends_no_byte),
        cmocka_unit_test(broken_framing_closes),
        cmocka_unit_test(invalid_targets_are_refused),
        cmocka_unit_test(a_method_that_is_no_token_closes),
        cmocka_unit_test(an_empty_target_closes),
        cmocka_unit_test(only_a_parameter_that_is_asked_for_can_be_malformed),
        cmocka_unit_test(parameters_that_a_route_does_not_name_are_refused),
        cmocka_unit_test(refusals_come_before_the_body),
        cmocka_unit_test(refusals_within_the_body_wait_for_its_end),
        cmocka_unit_test(unwanted_bodies_are_dropped_up_to_a_bound),
        cmocka_unit_test(routes_that_need_models_are_unavailable_while_these_are_read),
    };

    config_defaults(&config);
    if (zt_source_from_memory(TAIL_TEXT, 10, &tail, NULL) != ZT_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
