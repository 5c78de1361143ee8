/* Signed exchanges: when the clock is corrected, and when other credentials are tried. */
#include "remote_world.h"

#include "remote/credentials.h"
#include "remote/sign.h"

#define OK_HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

/* --- credentials, as a test sets them --- */

struct credentials {
    atomic_bool is_available;
    atomic_bool has_others;
    atomic_uint refusals;
    atomic_uint renewed_after; /* credentials_get gives others after so many calls more; 0: never */
    atomic_uint gets;
};

bool credentials_get(struct credentials *credentials, struct credential *out_credential)
{
    const unsigned gets = atomic_fetch_add(&credentials->gets, 1);
    const unsigned renewed_after = atomic_load(&credentials->renewed_after);

    memset(out_credential, 0, sizeof(*out_credential));
    strcpy(out_credential->key, renewed_after != 0 && gets >= renewed_after ? "NEW" : "OLD");
    strcpy(out_credential->secret, "secret");
    return atomic_load(&credentials->is_available);
}

bool credentials_refused(struct credentials *credentials)
{
    atomic_fetch_add(&credentials->refusals, 1);
    return atomic_load(&credentials->has_others);
}

/* --- signatures --- */

static struct remote_exchange exchange;
static struct service service;

/* So long for all tries; 0: one try. */
static void run_for(unsigned time_ms, const struct step *steps, unsigned count,
                    struct credentials *credentials, const char *method)
{
    struct remote *remote = start_remote(2);
    struct signer *signer = signer_new(credentials, "here", "s3");

    service_start(&service, steps, count);
    exchange_with(&exchange, &service);
    exchange.method = method;
    exchange.signer = signer;
    if (time_ms != 0)
        exchange.time_ms = time_ms;
    else
        exchange.tries = 1;
    remote_run(remote, &exchange);
    remote_exchange_free(&exchange);
    remote_stop(remote);
    signer_free(signer);
}

static int stop_service(void **state)
{
    (void)state;
    service_stop(&service);
    return 0;
}

AROUND_EACH_TEST(NULL, stop_service)

static void run_signed(const struct step *steps, unsigned count, struct credentials *credentials,
                       const char *method)
{
    run_for(0, steps, count, credentials, method);
}

#define SKEWED_AT(date)                                              \
    "HTTP/1.1 403 F\r\nDate: " date "\r\nContent-Length: 57\r\n\r\n" \
    "<Error><Code>RequestTimeTooSkewed</Code><Message/></Error>"
#define SKEWED SKEWED_AT("Fri, 01 Jan 2038 00:00:00 GMT")

TEST(clock_of_the_service_is_used_once)
{
    const struct step steps[] = {{SKEWED, THEN_CLOSE, 0, 0}};
    struct credentials credentials = {.is_available = true};

    run_signed(steps, 1, &credentials, "GET");
    assert_ok(exchange.status);
    assert_int_equal(exchange.head.status, 403);
    assert_int_equal(service.request_count, 2);
    assert_non_null(strstr(service.requests[1], "\r\nx-amz-date: 20380101T0000"));
}

TEST(service_without_a_steady_clock_is_asked_once_more)
{
    const struct step steps[] = {{SKEWED, THEN_KEEP, 0, 0},
                                 {SKEWED_AT("Sat, 01 Jan 2028 00:00:00 GMT"), THEN_KEEP, 0, 0},
                                 {SKEWED, THEN_KEEP, 0, 0},
                                 {OK_HELLO, THEN_KEEP, 0, 0}};
    struct credentials credentials = {.is_available = true};

    run_signed(steps, 4, &credentials, "GET");
    assert_int_equal(exchange.head.status, 403);
    assert_int_equal(service.request_count, 2);
}

TEST(clock_is_corrected_after_head_which_cannot_say_why)
{
    const struct step steps[] = {
        {"HTTP/1.1 403 F\r\nDate: Fri, 01 Jan 2038 00:00:00 GMT\r\n\r\n", THEN_KEEP, 0, 0},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", THEN_KEEP, 0, 0}};
    struct credentials credentials = {.is_available = true};

    run_signed(steps, 2, &credentials, "HEAD");
    assert_int_equal(exchange.head.status, 200);
    assert_int_equal(service.request_count, 2);
}

TEST(refused_credentials_are_renewed_once)
{
    const struct step steps[] = {
        {"HTTP/1.1 403 F\r\nContent-Length: 2\r\n\r\nno", THEN_KEEP, 0, 0}};
    struct credentials credentials = {.is_available = true, .has_others = true, .renewed_after = 1};

    run_signed(steps, 1, &credentials, "GET");
    assert_ok(exchange.status);
    assert_int_equal(exchange.head.status, 403);
    assert_int_equal(service.request_count, 2);
    assert_int_equal(atomic_load(&credentials.refusals), 1);
    assert_non_null(strstr(service.requests[0], "Credential=OLD/"));
    assert_non_null(strstr(service.requests[1], "Credential=NEW/"));
}

TEST(renewal_that_takes_a_while_is_waited_for)
{
    const struct step steps[] = {{"HTTP/1.1 400 B\r\nContent-Length: 2\r\n\r\nno", THEN_KEEP, 0, 0},
                                 {OK_HELLO, THEN_KEEP, 0, 0}};
    struct credentials credentials = {.is_available = true, .has_others = true, .renewed_after = 4};

    run_signed(steps, 2, &credentials, "GET");
    assert_int_equal(exchange.head.status, 200);
    assert_int_equal(service.request_count, 2);
    assert_non_null(strstr(service.requests[1], "Credential=NEW/"));
}

TEST(refusal_that_no_renewal_mends_ends_in_time)
{
    const struct step steps[] = {
        {"HTTP/1.1 403 F\r\nContent-Length: 2\r\n\r\nno", THEN_KEEP, 0, 0}};
    struct credentials credentials = {.is_available = true, .has_others = true};

    run_for(1000, steps, 1, &credentials, "GET");
    assert_ok(exchange.status);
    assert_int_equal(exchange.head.status, 403);
    assert_int_equal(service.request_count, 2);
}

TEST(without_credentials_nothing_is_sent)
{
    const struct step steps[] = {{OK_HELLO, THEN_KEEP, 0, 0}};
    struct credentials credentials = {.is_available = false};

    run_signed(steps, 1, &credentials, "GET");
    assert_int_equal(exchange.status, ZT_UNAVAILABLE);
    assert_int_equal(exchange.failure, REMOTE_FAILURE_CREDENTIALS);
    assert_int_equal(service.request_count, 0);
}
