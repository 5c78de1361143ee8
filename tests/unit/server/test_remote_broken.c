/* Exchanges with a service that misbehaves: nothing that was not asked for counts as an answer. */
#include "remote_world.h"

#define LENGTH 10
#define PART   "HTTP/1.1 206 P\r\nContent-Length: 10\r\nContent-Range: bytes 20-29/100\r\n\r\n"
#define GOOD   PART "0123456789"

/* Asks for bytes 20 to 29, into memory with a guard behind it. */
struct outcome {
    struct remote_exchange exchange;
    uint8_t into[LENGTH + 1];
    unsigned requests;
};

static void ask_into(const struct step *steps, unsigned count, struct outcome *out)
{
    struct service service;
    struct remote *remote;

    service_start(&service, steps, count);
    remote = start_remote(2);
    memset(out, 0, sizeof(*out));
    out->into[LENGTH] = '!';
    exchange_with(&out->exchange, &service);
    ask_range(&out->exchange, 20, 29);
    out->exchange.into = out->into;
    out->exchange.into_length = LENGTH;
    remote_run(remote, &out->exchange);
    remote_exchange_free(&out->exchange);
    remote_stop(remote);
    out->requests = service.request_count;
    service_stop(&service);
    assert_int_equal(out->into[LENGTH], '!');
}

static void assert_mended(const char *broken, enum after after)
{
    const struct step steps[] = {{broken, after, 0, 0}, {GOOD, THEN_KEEP, 0, 0}};
    struct outcome outcome;

    ask_into(steps, 2, &outcome);
    assert_ok(outcome.exchange.status);
    assert_int_equal(outcome.exchange.failure, REMOTE_FAILURE_NONE);
    assert_ok(outcome.exchange.error.status);
    assert_int_equal(outcome.requests, 2);
    assert_int_equal(outcome.exchange.tried, 2);
    assert_memory_equal(outcome.into, "0123456789", LENGTH);
}

static void assert_broken(const char *broken)
{
    const struct step steps[] = {{broken, THEN_KEEP, 0, 0}, {GOOD, THEN_KEEP, 0, 0}};
    struct outcome outcome;

    ask_into(steps, 2, &outcome);
    assert_int_equal(outcome.exchange.status, ZT_UNAVAILABLE);
    assert_int_equal(outcome.exchange.failure, REMOTE_FAILURE_BROKEN);
    assert_int_equal(outcome.exchange.error.status, ZT_UNAVAILABLE);
    assert_int_equal(outcome.requests, 1);
}

TEST(short_body_is_fetched_again)
{
    assert_mended(PART "01234", THEN_CLOSE);
    assert_mended(PART, THEN_CLOSE);
    /* It says so itself. */
    assert_mended("HTTP/1.1 206 P\r\nContent-Length: 5\r\nContent-Range: bytes 20-29/100\r\n\r\n"
                  "01234",
                  THEN_KEEP);
    /* Nothing but the end of the connection says so. */
    assert_mended("HTTP/1.1 206 P\r\nContent-Range: bytes 20-29/100\r\n\r\n01234", THEN_CLOSE);
    assert_mended("HTTP/1.1 206 P\r\nTransfer-Encoding: chunked\r\n"
                  "Content-Range: bytes 20-29/100\r\n\r\n5\r\n01234\r\n0\r\n\r\n",
                  THEN_KEEP);
}

TEST(broken_connection_is_made_again)
{
    assert_mended(NULL, THEN_CLOSE);
    assert_mended(NULL, THEN_RESET);
    assert_mended("HTTP/1.1 206 P\r\nContent-Le", THEN_RESET);
    assert_mended(PART "0123", THEN_RESET);
}

TEST(long_body_is_broken)
{
    assert_broken("HTTP/1.1 206 P\r\nContent-Length: 11\r\nContent-Range: bytes 20-29/100\r\n\r\n"
                  "01234567890");
    assert_broken("HTTP/1.1 206 P\r\nTransfer-Encoding: chunked\r\n"
                  "Content-Range: bytes 20-29/100\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n");
    /* An answer without a length that never ends. */
    assert_broken("HTTP/1.1 206 P\r\nContent-Range: bytes 20-29/100\r\n\r\n01234567890");
}

TEST(another_part_is_broken)
{
    static const char *const ranges[] = {"bytes 21-30/100",
                                         "bytes 0-9/100",
                                         "bytes 20-28/100",
                                         "bytes 20-30/100",
                                         "bytes 20-29/25",
                                         "bytes 20-24/25",
                                         "bytes 20-29/*",
                                         "bytes */100",
                                         "lines 20-29/100",
                                         "20-29/100",
                                         ""};
    char answer[256];

    for (unsigned i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        snprintf(answer, sizeof(answer),
                 "HTTP/1.1 206 P\r\nContent-Length: 10\r\nContent-Range: %s\r\n\r\n0123456789",
                 ranges[i]);
        assert_broken(answer);
    }
    assert_broken("HTTP/1.1 206 P\r\nContent-Length: 10\r\n\r\n0123456789");
}

TEST(whole_object_is_no_part_of_it)
{
    assert_broken("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789");
    assert_broken("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Range: bytes 20-29/100\r\n\r\n"
                  "0123456789");
    assert_broken("HTTP/1.1 204 No Content\r\n\r\n");
    assert_broken("HTTP/1.1 203 N\r\nContent-Length: 10\r\n\r\n0123456789");
}

TEST(malformed_header_is_asked_for_again)
{
    char *giant = malloc(200001);

    assert_mended("HTTP/1.1 206 P\r\nContent-Length: 10\r\nContent-Length: 11\r\n"
                  "Content-Range: bytes 20-29/100\r\n\r\n0123456789",
                  THEN_CLOSE);
    assert_mended("HTTP/1.1 206 P\r\nContent-Length: -10\r\nContent-Range: bytes 20-29/100\r\n\r\n"
                  "0123456789",
                  THEN_CLOSE);
    assert_mended("HTTP/1.1 206 P\r\nContent-Length: 18446744073709551626\r\n"
                  "Content-Range: bytes 20-29/100\r\n\r\n0123456789",
                  THEN_CLOSE);
    assert_mended("HTTP/1.1 206 P\r\nETag: \"a\"\r\nETag: \"b\"\r\nContent-Length: 10\r\n"
                  "Content-Range: bytes 20-29/100\r\n\r\n0123456789",
                  THEN_CLOSE);
    assert_mended("NOTHTTP 206\r\n\r\n", THEN_CLOSE);
    assert_mended("0123456789", THEN_CLOSE);
    memset(giant, 'a', 200000);
    memcpy(giant, "HTTP/1.1 206 P\r\nX-A: ", 21);
    giant[200000] = '\0';
    assert_mended(giant, THEN_CLOSE);
    for (unsigned at = 21; at + 7 < 200000; at += 7)
        memcpy(giant + at, "\r\nA: bc", 7);
    assert_mended(giant, THEN_CLOSE);
    free(giant);
}

TEST(part_of_what_was_asked_for_whole_is_broken)
{
    const struct step steps[] = {{GOOD, THEN_KEEP, 0, 0}};
    struct remote_exchange exchange;
    struct service service;
    struct remote *remote = start_remote(2);

    SERVICE_START(&service, steps);
    exchange_with(&exchange, &service);
    assert_int_equal(remote_run(remote, &exchange), ZT_UNAVAILABLE);
    assert_int_equal(exchange.failure, REMOTE_FAILURE_BROKEN);
    assert_int_equal(exchange.tried, 1);
    end_exchange(&exchange, remote, &service);
}

TEST(body_beyond_its_limit_is_broken)
{
    const struct step steps[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", THEN_KEEP, 0, 1001},
        {"HTTP/1.1 200 OK\r\n\r\n", THEN_CLOSE, 0, 1001},
        {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n", THEN_HANG, 0, 0}};
    struct remote_exchange exchange;
    struct service service;
    struct remote *remote = start_remote(2);

    SERVICE_START(&service, steps);
    for (unsigned i = 0; i < 4; i++) {
        exchange_with(&exchange, &service);
        /* The last time nobody wants the body at all. */
        exchange.body_most = i < 3 ? 1000 : 0;
        assert_int_equal(remote_run(remote, &exchange), ZT_UNAVAILABLE);
        assert_int_equal(exchange.failure, REMOTE_FAILURE_BROKEN);
        assert_int_equal(exchange.tried, 1);
        remote_exchange_free(&exchange);
    }
    remote_stop(remote);
    service_stop(&service);
}

static bool refuse(struct remote_exchange *exchange)
{
    assert_int_equal(exchange->head.status, 206);
    assert_string_equal(exchange->head.etag, "\"other\"");
    return false;
}

TEST(refused_header_ends_the_exchange)
{
    const struct step steps[] = {{"HTTP/1.1 503 S\r\nContent-Length: 0\r\n\r\n", THEN_KEEP, 0, 0},
                                 {"HTTP/1.1 206 P\r\nETag: \"other\"\r\nContent-Length: 10\r\n"
                                  "Content-Range: bytes 20-29/100\r\n\r\n0123456789",
                                  THEN_KEEP, 0, 0}};
    struct remote_exchange exchange;
    struct service service;
    struct remote *remote = start_remote(2);

    SERVICE_START(&service, steps);
    exchange_with(&exchange, &service);
    ask_range(&exchange, 20, 29);
    exchange.accept = refuse;
    assert_int_equal(remote_run(remote, &exchange), ZT_UNAVAILABLE);
    assert_int_equal(exchange.failure, REMOTE_FAILURE_REFUSED);
    assert_string_equal(exchange.head.etag, "\"other\"");
    assert_int_equal(service.request_count, 2);
    assert_null(exchange.answer);
    end_exchange(&exchange, remote, &service);
}

TEST(kept_connection_that_was_closed_is_no_failure)
{
    /* Without saying so in the header. */
    const struct step steps[] = {{GOOD, THEN_CLOSE, 0, 0}};
    struct remote_exchange exchange;
    struct service service;
    struct remote *remote = start_remote(1);

    SERVICE_START(&service, steps);
    for (unsigned i = 0; i < 10; i++) {
        exchange_with(&exchange, &service);
        ask_range(&exchange, 20, 29);
        assert_ok(remote_run(remote, &exchange));
        assert_string_equal(exchange.answer, "0123456789");
        assert_int_equal(exchange.tried, 1);
        remote_exchange_free(&exchange);
    }
    remote_stop(remote);
    service_stop(&service);
}

TEST(address_farther_inside_than_allowed_is_not_connected_to)
{
    static const struct step steps[] = {{GOOD, THEN_KEEP, 0, 0}};
    struct service service;
    struct remote *remote;
    struct remote_exchange exchange;

    SERVICE_START(&service, steps);
    remote = start_remote(2);
    exchange_with(&exchange, &service);
    ask_range(&exchange, 20, 29);
    exchange.reach_most = REACH_PRIVATE;
    assert_int_equal(remote_run(remote, &exchange), ZT_UNAVAILABLE);
    assert_int_equal(exchange.failure, REMOTE_FAILURE_REFUSED);
    assert_int_equal(service.request_count, 0);
    remote_exchange_free(&exchange);
    exchange.reach_most = REACH_LOOPBACK;
    assert_ok(remote_run(remote, &exchange));
    assert_int_equal(exchange.reached, REACH_LOOPBACK);
    end_exchange(&exchange, remote, &service);
}
