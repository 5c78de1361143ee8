/* Exchanges with a service that behaves: what is sent, and what is done with the answer. */
#include "remote_world.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <fcntl.h>

#define OK_HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static struct service service;
static struct remote *remote;
static struct remote_exchange exchange;

#define EXPECT_MS 60000L

/* Replaces libcurl's function: libcurl then waits for "100 Continue" longer than any test takes.
 * After its usual second it would send the body, although the service refuses it. */
CURLMcode curl_multi_add_handle(CURLM *multi, CURL *handle)
{
    CURLMcode (*add)(CURLM * multi, CURL * handle);

    *(void **)&add = dlsym(RTLD_NEXT, "curl_multi_add_handle");
    curl_easy_setopt(handle, CURLOPT_EXPECT_100_TIMEOUT_MS, EXPECT_MS);
    return add(multi, handle);
}

/* A service that gives this answer, and so many bytes behind it, to an exchange with it. */
static void begin_with(const char *answer, size_t more)
{
    static struct step step;

    step = (struct step){answer, THEN_KEEP, 0, more};
    service_start(&service, &step, 1);
    remote = start_remote(4);
    exchange_with(&exchange, &service);
}

static void begin(const char *answer)
{
    begin_with(answer, 0);
}

static void end(void)
{
    remote_exchange_free(&exchange);
    remote_stop(remote);
    service_stop(&service);
}

static void assert_done(void)
{
    assert_ok(remote_run(remote, &exchange));
}

TEST(body_is_kept_with_a_nul_behind_it)
{
    begin(OK_HELLO);
    exchange.body_most = 5;
    assert_done();
    assert_int_equal(exchange.failure, REMOTE_FAILURE_NONE);
    assert_int_equal(exchange.head.status, 200);
    assert_int_equal(exchange.head.content_length, 5);
    assert_string_equal(exchange.answer, "hello");
    assert_int_equal(exchange.answer_length, 5);
    assert_int_equal(exchange.tried, 1);
    end();
}

TEST(body_goes_into_memory_of_the_caller)
{
    uint8_t into[6] = "------";

    begin("HTTP/1.1 206 P\r\nContent-Length: 5\r\nContent-Range: bytes 2-6/9\r\n\r\nhello");
    ask_range(&exchange, 2, 6);
    exchange.into = into;
    exchange.into_length = 5;
    assert_done();
    assert_memory_equal(into, "hello-", 6);
    assert_null(exchange.answer);
    assert_non_null(strcasestr(service.requests[0], "\r\nrange: bytes=2-6\r\n"));
    end();
}

TEST(chunked_body_is_taken)
{
    begin("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
          "2\r\nhe\r\n3\r\nllo\r\n0\r\nEtag: \"of a trailer\"\r\n\r\n");
    assert_done();
    assert_string_equal(exchange.answer, "hello");
    assert_int_equal(exchange.head.content_length, UINT64_MAX);
    assert_string_equal(exchange.head.etag, "");
    end();
}

TEST(range_is_clipped_at_the_end_of_the_object)
{
    begin("HTTP/1.1 206 P\r\nContent-Length: 5\r\nContent-Range: bytes 0-4/5\r\n\r\nhello");
    ask_range(&exchange, 0, 999);
    assert_done();
    assert_string_equal(exchange.answer, "hello");
    assert_int_equal(exchange.head.range_size, 5);
    end();
}

TEST(path_query_and_fields_are_sent_as_they_are)
{
    begin(OK_HELLO);
    exchange.path = "/a/.././/b%2Fc%20(d)";
    exchange.query = "list-type=2&prefix=a%2F";
    exchange.fields[0] = (struct remote_field){"if-match", "\"e\""};
    exchange.fields[1] = (struct remote_field){"x-amz-empty", ""};
    exchange.field_count = 2;
    assert_done();
    assert_memory_equal(service.requests[0],
                        "GET /a/.././/b%2Fc%20(d)?list-type=2&prefix=a%2F HTTP/1.1\r\n", 58);
    assert_non_null(strstr(service.requests[0], "\r\nif-match: \"e\"\r\n"));
    assert_non_null(strstr(service.requests[0], "\r\nx-amz-empty:\r\n"));
    assert_null(strcasestr(service.requests[0], "accept-encoding"));
    end();
}

TEST(field_with_a_line_break_is_not_sent)
{
    begin(OK_HELLO);
    exchange.fields[0] = (struct remote_field){"if-match", "a\r\nx-amz-acl: public-read"};
    exchange.field_count = 1;
    assert_int_equal(remote_run(remote, &exchange), ZT_UNAVAILABLE);
    assert_int_equal(exchange.failure, REMOTE_FAILURE_BROKEN);
    assert_int_equal(exchange.tried, 1);
    assert_int_equal(service.request_count, 0);
    end();
}

TEST(head_request_has_a_length_and_no_body)
{
    begin("HTTP/1.1 200 OK\r\nContent-Length: 12345678901\r\nETag: \"e\"\r\n"
          "x-amz-meta-ztserve-sha256: abc\r\n\r\n");
    exchange.method = "HEAD";
    assert_done();
    assert_int_equal(exchange.head.content_length, 12345678901);
    assert_string_equal(exchange.head.etag, "\"e\"");
    assert_string_equal(exchange.head.digest, "abc");
    end();
}

TEST(body_from_memory_is_sent)
{
    begin("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    exchange.method = "PUT";
    exchange.body = REMOTE_BODY_MEMORY;
    exchange.body_bytes = "hello";
    exchange.body_length = 5;
    assert_done();
    assert_memory_equal(service.requests[0], "PUT / HTTP/1.1\r\n", 16);
    assert_non_null(strcasestr(service.requests[0], "\r\ncontent-length: 5\r\n"));
    assert_int_equal(service.body_lengths[0], 5);
    end();
}

/* libcurl sends so long a body with Expect, and after a 417 again without. */
TEST(request_is_sent_again_without_expect_after_a_417)
{
    static const struct step steps[] = {
        {"HTTP/1.1 417 E\r\nContent-Length: 7\r\n\r\nrefused", THEN_CLOSE, 0, 0},
        {OK_HELLO, THEN_KEEP, 0, 0}};
    const size_t length = 2 << 20;
    char *bytes = calloc(1, length);

    SERVICE_START(&service, steps);
    remote = start_remote(1);
    exchange_with(&exchange, &service);
    exchange.method = "PUT";
    exchange.body = REMOTE_BODY_MEMORY;
    exchange.body_bytes = bytes;
    exchange.body_length = length;
    exchange.body_most = 5;
    assert_done();
    assert_int_equal(service.request_count, 2);
    assert_int_equal(exchange.tried, 1);
    assert_int_equal(service.body_lengths[1], length);
    assert_string_equal(exchange.answer, "hello");
    end();
    free(bytes);
}

TEST(requests_without_a_body_say_so)
{
    static const char *const methods[] = {"PUT", "POST"};

    begin("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    for (unsigned i = 0; i < 2; i++) {
        exchange_with(&exchange, &service);
        exchange.method = methods[i];
        assert_done();
        assert_memory_equal(service.requests[i], methods[i], strlen(methods[i]));
        assert_non_null(strcasestr(service.requests[i], "\r\ncontent-length: 0\r\n"));
        assert_null(strcasestr(service.requests[i], "content-type"));
        assert_null(strcasestr(service.requests[i], "chunked"));
    }
    end();
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

static void put_large_file(int file)
{
    exchange.method = "PUT";
    exchange.body = REMOTE_BODY_FILE;
    exchange.body_descriptor = file;
    exchange.body_offset = 50;
    exchange.body_length = LARGE;
}

TEST(body_from_a_file_is_sent)
{
    int file = large_file();

    begin("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    put_large_file(file);
    assert_done();
    assert_int_equal(service.body_lengths[0], LARGE);
    close(file);
    end();
}

TEST(file_that_is_too_short_is_not_sent_again)
{
    int file = large_file();

    begin("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    put_large_file(file);
    exchange.body_length = LARGE + 100;
    assert_int_equal(remote_run(remote, &exchange), ZT_UNAVAILABLE);
    assert_int_equal(exchange.failure, REMOTE_FAILURE_BROKEN);
    assert_int_equal(exchange.tried, 1);
    close(file);
    end();
}

TEST(refusal_of_a_large_body_costs_no_body)
{
    int file = large_file();

    begin("HTTP/1.1 403 F\r\nContent-Length: 2\r\n\r\nno");
    put_large_file(file);
    assert_done();
    assert_int_equal(exchange.head.status, 403);
    assert_string_equal(exchange.answer, "no");
    assert_int_equal(service.body_lengths[0], 0);
    close(file);
    end();
}

TEST(connections_are_used_again)
{
    begin(OK_HELLO);
    for (unsigned i = 0; i < 20; i++) {
        exchange_with(&exchange, &service);
        assert_done();
        remote_exchange_free(&exchange);
    }
    assert_int_equal(service.served_count, 1);
    end();
}

TEST(proxy_of_the_environment_is_not_asked)
{
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    begin(OK_HELLO);
    exchange.tries = 1;
    assert_done();
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
    end();
}

TEST(redirect_is_an_answer_like_others)
{
    begin("HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n");
    assert_done();
    assert_int_equal(exchange.head.status, 307);
    assert_int_equal(service.request_count, 1);
    end();
}

TEST(unwanted_body_of_a_success_is_dropped)
{
    begin(OK_HELLO);
    exchange.body_most = 0;
    assert_done();
    assert_null(exchange.answer);
    end();
}

TEST(long_excuse_is_kept_in_part)
{
    begin_with("HTTP/1.1 404 N\r\nContent-Length: 1000000\r\n\r\n", 1000000);
    assert_done();
    assert_int_equal(exchange.head.status, 404);
    assert_int_equal(exchange.answer_length, 65536);
    end();
}
