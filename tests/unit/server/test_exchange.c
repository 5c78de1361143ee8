/* The exchange, from header to answer: refusals, bodies, preconditions, steps. */
#include "exchange_world.h"

AROUND_ALL_TESTS(open_exchange, NULL)

AROUND_EACH_TEST(NULL, free_last)

TEST(not_modified_costs_no_step)
{
    const struct answer *answer = get("/corrupt", "If-None-Match", "\"x\", " ETAG);

    assert_int_equal(answer->status, 304);
    assert_int_equal(steps_run, 0);
    assert_int_equal(answer->segment_count, 0);
    assert_true(answer->content_length == 20);
    assert_string_equal(field_of(answer, "ETag"), ETAG);
    assert_string_equal(field_of(answer, "Vary"), "Accept-Encoding");
    assert_string_equal(field_of(answer, "Cache-Control"), "no-cache");
    assert_string_equal(field_of(answer, "Content-Type"), "");
}

TEST(failed_preconditions_are_412_before_any_step)
{
    const struct answer *answer = get("/bytes", "If-Match", "\"other\"");

    assert_int_equal(answer->status, 412);
    assert_int_equal(steps_run, 0);
}

TEST(a_step_that_fails_sends_no_byte)
{
    const struct answer *answer = get("/corrupt", "Range", "bytes=0-3");

    assert_int_equal(answer->status, 500);
    assert_int_equal(steps_run, 1);
    assert_string_equal(field_of(answer, "Cache-Control"), "no-store");
    assert_string_equal(field_of(answer, "ETag"), "");
    assert_string_equal(field_of(answer, "Repr-Digest"), "");
}

TEST(broken_framing_closes)
{
    struct request *request = ask_next(METHOD_GET, "/healthz");
    const struct answer *answer;

    add(request, "Content-Length", "1");
    add(request, "Content-Length", "2");
    assert_true(exchange_begin(request));
    answer = exchange_answer(request);
    assert_int_equal(answer->status, 400);
    assert_true(answer->close);
}

static void assert_refused_and_closed(struct request *request)
{
    const struct answer *answer;

    assert_true(exchange_begin(request));
    answer = exchange_answer(request);
    assert_int_equal(answer->status, 400);
    assert_true(answer->close);
}

TEST(a_method_that_is_no_token_closes)
{
    struct request *request = ask_next(METHOD_UNKNOWN, "/healthz");

    request_state(request)->method_malformed = true;
    assert_refused_and_closed(request);
}

TEST(an_empty_target_closes)
{
    assert_refused_and_closed(ask_next(METHOD_GET, ""));
}

TEST(invalid_targets_are_refused)
{
    char target[9000];
    struct request *request;

    memset(target, 'a', sizeof(target));
    target[0] = '/';
    target[sizeof(target) - 1] = '\0';
    request = ask_next(METHOD_GET, target);
    assert_int_equal(answer_of(request)->status, 414);
    for (size_t i = 0; i < 3; i++) {
        static const char *const invalid[] = {"/bytes\x01", "/bytes#a", "bytes"};

        request = ask_next(METHOD_GET, invalid[i]);
        assert_int_equal(answer_of(request)->status, 400);
    }
}

static void assert_queried(const char *target, unsigned status, const char *value)
{
    struct request *request = ask_next(METHOD_GET, target);
    const struct answer *answer = answer_of(request);

    assert_int_equal(answer->status, status);
    if (value != NULL) {
        assert_int_equal(answer->content_length, strlen(value));
        assert_memory_equal(answer->segments[0].bytes, value, strlen(value));
    }
}

TEST(only_a_parameter_that_is_asked_for_can_be_malformed)
{
    assert_queried("/query?q=%41&&slice=%zz&", 200, "A");
    assert_queried("/query?slice=%", 200, "none");
    assert_queried("/bytes?q=%zz", 200, NULL);
    assert_queried("/query?%71=a%zz", 400, NULL);
    assert_queried("/query?q=%4", 400, NULL);
    assert_queried("http://host?q=%zz", 404, NULL);
    assert_queried("http://host/query?q=http://h/?", 200, "http://h/?");
}

TEST(parameters_that_a_route_does_not_name_are_refused)
{
    assert_queried("/query?q=A&%73lice", 200, "A");
    assert_queried("/query?Q=A", 400, NULL);
    assert_queried("/query?qs=A", 400, NULL);
    assert_queried("/query?=A", 400, NULL);
    assert_queried("/query?q=A&%zz", 400, NULL);
    assert_queried("/query?q%20slice", 400, NULL);
    assert_queried("/healthz?q=A", 400, NULL);
}

TEST(refusals_come_before_the_body)
{
    struct request *request = ask_next(METHOD_PUT, "/upload");

    add(request, "Content-Length", "5");
    add(request, "X-Refuse", "1");
    assert_true(exchange_begin(request));
    assert_int_equal(exchange_answer(request)->status, 403);
    request = ask_next(METHOD_GET, "/bytes");
    add(request, "Content-Length", "999999999");
    assert_true(exchange_begin(request));
    assert_int_equal(exchange_answer(request)->status, 413);
}

TEST(refusals_within_the_body_wait_for_its_end)
{
    static const char piece[60];
    struct request *request = ask_next(METHOD_PUT, "/upload");

    add(request, "Transfer-Encoding", "chunked");
    assert_false(exchange_begin(request));
    for (unsigned i = 0; i < 5; i++)
        assert_true(exchange_receive(request, piece, sizeof(piece)));
    assert_int_equal(received, 120);
    assert_int_equal(exchange_advance(request), OUTCOME_READY);
    assert_int_equal(exchange_answer(request)->status, 413);
}

TEST(unwanted_bodies_are_dropped_up_to_a_bound)
{
    static const char piece[65536];
    struct request *request = ask_next(METHOD_GET, "/bytes");
    unsigned taken = 0;

    add(request, "Transfer-Encoding", "chunked");
    assert_false(exchange_begin(request));
    while (taken < 100 && exchange_receive(request, piece, sizeof(piece)))
        taken++;
    assert_int_equal(taken, 16);
}

static bool not_loaded(const struct catalog *catalog)
{
    (void)catalog;
    return false;
}

TEST(routes_that_need_models_are_unavailable_while_these_are_read)
{
    struct request *request;
    const struct answer *answer;

    server.is_loaded = not_loaded;
    request = ask_next(METHOD_GET, "/bytes");
    answer = answer_of(request);
    assert_int_equal(answer->status, 503);
    assert_string_equal(field_of(answer, "Retry-After"), "1");
    request = ask_next(METHOD_GET, "/healthz?timing=0");
    assert_int_equal(answer_of(request)->status, 200);
    request = ask_next(METHOD_GET, "/nothing");
    assert_int_equal(answer_of(request)->status, 404);
    server.is_loaded = NULL;
}
