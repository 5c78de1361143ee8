/* Exchanges with a service that behaves: what is sent, and what is done with the answer. */
#include "remote_world.h"

#include <fcntl.h>

#define OK_HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static struct service service;
static struct remote *remote;

static void begin(const struct step *steps, unsigned count)
{
    service_start(&service, steps, count);
    remote = start_remote(4);
}

#define BEGIN(steps) begin(steps, sizeof(steps) / sizeof((steps)[0]))

static void end(struct remote_exchange *exchange)
{
    remote_exchange_free(exchange);
    remote_stop(remote);
    service_stop(&service);
}

static void body_is_kept_with_a_nul_behind_it(void **state)
{
    const struct step steps[] = {{OK_HELLO, THEN_KEEP, 0, 0}};
    struct remote_exchange exchange;

    (void)state;
    BEGIN(steps);
    exchange_with(&exchange, &service);
    exchange.body_most = 5;
    assert_int_equal(remote_run(remote, &exchange), ZT_OK);
    assert_int_equal(exchange.failure, REMOTE_FAILURE_NONE);
    assert_int_equal(exchange.head.status, 200);
    assert_int_equal(exchange.head.content_length, 5);
    assert_string_equal(exchange.answer, "hello");
    assert_int_equal(exchange.answer_length, 5);
    assert_int_equal(exchange.tried, 1);
    end(&exchange);
}

static void body_goes_into_memory_of_the_caller(void **state)
{
    const struct step steps[] = {
        {"HTTP/1.1 206 P\r\nContent-Length: 5\r\nContent-Range: bytes 2-6/9\r\n\r\nhello",
         THEN_KEEP, 0, 0}};
    uint8_t into[6] = "------";
    struct remote_exchange exchange;

    (void)state;
    BEGIN(steps);
    exchange_with(&exchange, &service);
    ask_range(&exchange, 2, 6);
    exchange.into = into;
    exchange.into_length = 5;
    assert_int_equal(remote_run(remote, &exchange), ZT_OK);
    assert_memory_equal(into, "hello-", 6);
    assert_null(exchange.answer);
    assert_non_null(strcasestr(service.requests[0], "\r\nrange: bytes=2-6\r\n"));
    end(&exchange);
}

static void chunked_body_is_taken(void **state)
{
    const struct step steps[] = {{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                  "2\r\nhe\r\n3\r\nllo\r\n0\r\nEtag: \"of a trailer\"\r\n\r\n",
                                  THEN_KEEP, 0, 0}};
    struct remote_exchange exchange;

    (void)state;
    BEGIN(steps);
    exchange_with(&exchange, &service);
    assert_int_equal(remote_run(remote, &exchange), ZT_OK);
    assert_string_equal(exchange.answer, "hello");
    assert_int_equal(exchange.head.content_length, UINT64_MAX);
    assert_string_equal(exchange.head.etag, "");
    end(&exchange);
}

static void range_is_clipped_at_the_end_of_the_object(void **state)
{
    const struct step steps[] = {
        {"HTTP/1.1 206 P\r\nContent-Length: 5\r\nContent-Range: bytes 0-4/5\r\n\r\nhello",
         THEN_KEEP, 0, 0}};
    struct remote_exchange exchange;

    (void)state;
    BEGIN(steps);
    exchange_with(&exchange, &service);
    ask_range(&exchange, 0, 999);
    assert_int_equal(remote_run(remote, &exchange), ZT_OK);
    assert_string_equal(exchange.answer, "hello");
    assert_int_equal(exchange.head.range_size, 5);
    end(&exchange);
}

static void path_query_and_fields_are_sent_as_they_are(void **state)
{
    const struct step steps[] = {{OK_HELLO, THEN_KEEP, 0, 0}};
    struct remote_exchange exchange;

    (void)state;
    BEGIN(steps);
    exchange_with(&exchange, &service);
    exchange.path = "/a/.././/b%2Fc%20(d)";
    exchange.query = "list-type=2&prefix=a%2F";
    exchange.fields[0] = (struct remote_field){"if-match", "\"e\""};
    exchange.fields[1] = (struct remote_field){"x-amz-empty", ""};
    exchange.field_count = 2;
    assert_int_equal(remote_run(remote, &exchange), ZT_OK);
    assert_memory_equal(service.requests[0],
                        "GET /a/.././/b%2Fc%20(d)?list-type=2&prefix=a%2F HTTP/1.1\r\n", 58);
    assert_non_null(strstr(service.requests[0], "\r\nif-match: \"e\"\r\n"));
    assert_non_null(strstr(service.requests[0], "\r\nx-amz-empty:\r\n"));
    assert_null(strcasestr(service.requests[0], "accept-encoding"));
    end(&exchange);
}

static void field_with_a_line_break_is_not_sent(void **state)
{
    const struct step steps[] = {{OK_HELLO, THEN_KEEP, 0, 0}};
    struct remote_exchange exchange;

    (void)state;
    BEGIN(steps);
    exchange_with(&exchange, &service);
    exchange.fields[0] = (struct remote_field){"if-match", "a\r\nx-amz-acl: public-read"};
    exchange.field_count = 1;
    assert_int_equal(remote_run(remote, &exchange), ZT_UNAVAILABLE);
    assert_int_equal(exchange.failure, REMOTE_FAILURE_BROKEN);
    assert_int_equal(exchange.tried, 1);
    assert_int_equal(service.request_count, 0);
    end(&exchange);
}

static void head_request_has_a_length_and_no_body(void **state)
{
    const struct step steps[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 12345678901\r\nETag: \"e\"\r\n"
         "x-amz-meta-ztserve-sha256: abc\r\n\r\n",
         THEN_KEEP, 0, 0}};
    struct remote_exchange exchange;

    (void)state;
    BEGIN(steps);
    exchange_with(&exchange, &service);
    exchange.method = "HEAD";
    assert_int_equal(remote_run(remote, &exchange), ZT_OK);
    assert_int_equal(exchange.head.content_length, 12345678901);
    assert_string_equal(exchange.head.etag, "\"e\"");
    assert_string_equal(exchange.head.digest, "abc");
    end(&exchange);
}

static void body_from_memory_is_sent(void **state)
{
    const struct step steps[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", THEN_KEEP, 0, 0}};
    struct remote_exchange exchange;

    (void)state;
    BEGIN(steps);
    exchange_with(&exchange, &service);
    exchange.method = "PUT";
    exchange.body = REMOTE_BODY_MEMORY;
    exchange.body_bytes = "hello";
    exchange.body_length = 5;
    assert_int_equal(remote_run(remote, &exchange), ZT_OK);
    assert_memory_equal(service.requests[0], "PUT / HTTP/1.1\r\n", 16);
    assert_non_null(strcasestr(service.requests[0], "\r\ncontent-length: 5\r\n"));
    assert_int_equal(service.body_lengths[0], 5);
    end(&exchange);
}

static void requests_without_a_body_say_so(void **state)
{
    static const char *const methods[] = {"PUT", "POST"};
    const struct step steps[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", THEN_KEEP, 0, 0}};
    struct remote_exchange exchange;

    (void)state;
    BEGIN(steps);
    for (unsigned i = 0; i < 2; i++) {
        exchange_with(&exchange, &service);
        exchange.method = methods[i];
        assert_int_equal(remote_run(remote, &exchange), ZT_OK);
        assert_memory_equal(service.requests[i], methods[i], strlen(methods[i]));
        assert_non_null(strcasestr(service.requests[i], "\r\ncontent-length: 0\r\n"));
        assert_null(strcasestr(service.requests[i], "content-type"));
        assert_null(strcasestr(service.requests[i], "chunked"));
    }
    end(&exchange);
}

#define LARGE (5u << 20)

static int large_file(void)
{
    char name[] = "/tmp/zt-remote-XXXXXX";
    int file = mkstemp(name);

    assert_true(file >= 0);
    unlink(name);
    assert_int_equal(ftruncate(file, LARGE + 100), 0);
    return file;
}

static void put_large_file(struct remote_exchange *exchange, int file)
{
    exchange_with(exchange, &service);
    exchange->method = "PUT";
    exchange->body = REMOTE_BODY_FILE;
    exchange->body_descriptor = file;
    exchange->body_offset = 50;
    exchange->body_length = LARGE;
}

static void body_from_a_file_is_sent(void **state)
{
    const struct step steps[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", THEN_KEEP, 0, 0}};
    struct remote_exchange exchange;
    int file = large_file();

    (void)state;
    BEGIN(steps);
    put_large_file(&exchange, file);
    assert_int_equal(remote_run(remote, &exchange), ZT_OK);
    assert_int_equal(service.body_lengths[0], LARGE);
    close(file);
    end(&exchange);
}

static void file_that_is_too_short_is_not_sent_again(void **state)
{
    const struct step steps[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", THEN_KEEP, 0, 0}};
    struct remote_exchange exchange;
    int file = large_file();

    (void)state;
    BEGIN(steps);
    put_large_file(&exchange, file);
    exchange.body_length = LARGE + 100;
    assert_int_equal(remote_run(remote, &exchange), ZT_UNAVAILABLE);
    assert_int_equal(exchange.failure, REMOTE_FAILURE_BROKEN);
    assert_int_equal(exchange.tried, 1);
    close(file);
    end(&exchange);
}

static void refusal_of_a_large_body_costs_no_body(void **state)
{
    const struct step steps[] = {
        {"HTTP/1.1 403 F\r\nContent-Length: 2\r\n\r\nno", THEN_KEEP, 0, 0}};
    struct remote_exchange exchange;
    int file = large_file();

    (void)state;
    BEGIN(steps);
    put_large_file(&exchange, file);
    assert_int_equal(remote_run(remote, &exchange), ZT_OK);
    assert_int_equal(exchange.head.status, 403);
    assert_string_equal(exchange.answer, "no");
    assert_int_equal(service.body_lengths[0], 0);
    close(file);
    end(&exchange);
}

static void connections_are_used_again(void **state)
{
    const struct step steps[] = {{OK_HELLO, THEN_KEEP, 0, 0}};
    struct remote_exchange exchange;

    (void)state;
    BEGIN(steps);
    for (unsigned i = 0; i < 20; i++) {
        exchange_with(&exchange, &service);
        assert_int_equal(remote_run(remote, &exchange), ZT_OK);
        remote_exchange_free(&exchange);
    }
    assert_int_equal(service.served_count, 1);
    end(&exchange);
}

static void proxy_of_the_environment_is_not_asked(void **state)
{
    const struct step steps[] = {{OK_HELLO, THEN_KEEP, 0, 0}};
    struct remote_exchange exchange;

    (void)state;
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    BEGIN(steps);
    exchange_with(&exchange, &service);
    exchange.tries = 1;
    assert_int_equal(remote_run(remote, &exchange), ZT_OK);
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
    end(&exchange);
}

static void redirect_is_an_answer_like_others(void **state)
{
    const struct step steps[] = {
        {"HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", THEN_KEEP,
         0, 0}};
    struct remote_exchange exchange;

    (void)state;
    BEGIN(steps);
    exchange_with(&exchange, &service);
    assert_int_equal(remote_run(remote, &exchange), ZT_OK);
    assert_int_equal(exchange.head.status, 307);
    assert_int_equal(service.request_count, 1);
    end(&exchange);
}

static void unwanted_body_of_a_success_is_dropped(void **state)
{
    const struct step steps[] = {{OK_HELLO, THEN_KEEP, 0, 0}};
    struct remote_exchange exchange;

    (void)state;
    BEGIN(steps);
    exchange_with(&exchange, &service);
    exchange.body_most = 0;
    assert_int_equal(remote_run(remote, &exchange), ZT_OK);
    assert_null(exchange.answer);
    end(&exchange);
}

static void long_excuse_is_kept_in_part(void **state)
{
    const struct step steps[] = {
        {"HTTP/1.1 404 N\r\nContent-Length: 1000000\r\n\r\n", THEN_KEEP, 0, 1000000}};
    struct remote_exchange exchange;

    (void)state;
    BEGIN(steps);
    exchange_with(&exchange, &service);
    assert_int_equal(remote_run(remote, &exchange), ZT_OK);
    assert_int_equal(exchange.head.status, 404);
    assert_int_equal(exchange.answer_length, 65536);
    end(&exchange);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(body_is_kept_with_a_nul_behind_it),
        cmocka_unit_test(body_goes_into_memory_of_the_caller),
        cmocka_unit_test(chunked_body_is_taken),
        cmocka_unit_test(range_is_clipped_at_the_end_of_the_object),
        cmocka_unit_test(path_query_and_fields_are_sent_as_they_are),
        cmocka_unit_test(field_with_a_line_break_is_not_sent),
        cmocka_unit_test(head_request_has_a_length_and_no_body),
        cmocka_unit_test(body_from_memory_is_sent),
        cmocka_unit_test(requests_without_a_body_say_so),
        cmocka_unit_test(body_from_a_file_is_sent),
        cmocka_unit_test(file_that_is_too_short_is_not_sent_again),
        cmocka_unit_test(refusal_of_a_large_body_costs_no_body),
        cmocka_unit_test(connections_are_used_again),
        cmocka_unit_test(proxy_of_the_environment_is_not_asked),
        cmocka_unit_test(redirect_is_an_answer_like_others),
        cmocka_unit_test(unwanted_body_of_a_success_is_dropped),
        cmocka_unit_test(long_excuse_is_kept_in_part),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
