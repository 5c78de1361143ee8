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

static void run_signed(const struct step *steps, unsigned count, struct credentials *credentials,
                       struct service *service, struct remote_exchange *exchange,
                       const char *method)
{
    struct remote *remote = start_remote(2);
    struct signer *signer = signer_new(credentials, "here", "s3");

    service_start(service, steps, count);
    exchange_with(exchange, service);
    exchange->method = method;
    exchange->signer = signer;
    exchange->tries = 1;
    remote_run(remote, exchange);
    remote_exchange_free(exchange);
    remote_stop(remote);
    signer_free(signer);
}

#define SKEWED_AT(date)                                              \
    "HTTP/1.1 403 F\r\nDate: " date "\r\nContent-Length: 57\r\n\r\n" \
    "<Error><Code>RequestTimeTooSkewed</Code><Message/></Error>"
#define SKEWED SKEWED_AT("Fri, 01 Jan 2038 00:00:00 GMT")

static void clock_of_the_service_is_used_once(void **state)
{
    const struct step steps[] = {{SKEWED, THEN_CLOSE, 0, 0}};
    struct credentials credentials = {.is_available = true};
    struct remote_exchange exchange;
    struct service service;

    (void)state;
    run_signed(steps, 1, &credentials, &service, &exchange, "GET");
    assert_int_equal(exchange.status, ZT_OK);
    assert_int_equal(exchange.head.status, 403);
    assert_int_equal(service.request_count, 2);
    assert_non_null(strstr(service.requests[1], "\r\nx-amz-date: 20380101T0000"));
    service_stop(&service);
}

static void service_without_a_steady_clock_is_asked_once_more(void **state)
{
    const struct step steps[] = {{SKEWED, THEN_KEEP, 0, 0},
                                 {SKEWED_AT("Sat, 01 Jan 2028 00:00:00 GMT"), THEN_KEEP, 0, 0},
                                 {SKEWED, THEN_KEEP, 0, 0},
                                 {OK_HELLO, THEN_KEEP, 0, 0}};
    struct credentials credentials = {.is_available = true};
    struct remote_exchange exchange;
    struct service service;

    (void)state;
    run_signed(steps, 4, &credentials, &service, &exchange, "GET");
    assert_int_equal(exchange.head.status, 403);
    assert_int_equal(service.request_count, 2);
    service_stop(&service);
}

static void clock_is_corrected_after_head_which_cannot_say_why(void **state)
{
    const struct step steps[] = {
        {"HTTP/1.1 403 F\r\nDate: Fri, 01 Jan 2038 00:00:00 GMT\r\n\r\n", THEN_KEEP, 0, 0},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", THEN_KEEP, 0, 0}};
    struct credentials credentials = {.is_available = true};
    struct remote_exchange exchange;
    struct service service;

    (void)state;
    run_signed(steps, 2, &credentials, &service, &exchange, "HEAD");
    assert_int_equal(exchange.head.status, 200);
    assert_int_equal(service.request_count, 2);
    service_stop(&service);
}

static void refused_credentials_are_renewed_once(void **state)
{
    const struct step steps[] = {
        {"HTTP/1.1 403 F\r\nContent-Length: 2\r\n\r\nno", THEN_KEEP, 0, 0}};
    struct credentials credentials = {.is_available = true, .has_others = true, .renewed_after = 1};
    struct remote_exchange exchange;
    struct service service;

    (void)state;
    run_signed(steps, 1, &credentials, &service, &exchange, "GET");
    assert_int_equal(exchange.status, ZT_OK);
    assert_int_equal(exchange.head.status, 403);
    assert_int_equal(service.request_count, 2);
    assert_int_equal(atomic_load(&credentials.refusals), 1);
    assert_non_null(strstr(service.requests[0], "Credential=OLD/"));
    assert_non_null(strstr(service.requests[1], "Credential=NEW/"));
    service_stop(&service);
}

static void renewal_that_takes_a_while_is_waited_for(void **state)
{
    const struct step steps[] = {{"HTTP/1.1 400 B\r\nContent-Length: 2\r\n\r\nno", THEN_KEEP, 0, 0},
                                 {OK_HELLO, THEN_KEEP, 0, 0}};
    struct credentials credentials = {.is_available = true, .has_others = true, .renewed_after = 4};
    struct remote_exchange exchange;
    struct service service;

    (void)state;
    run_signed(steps, 2, &credentials, &service, &exchange, "GET");
    assert_int_equal(exchange.head.status, 200);
    assert_int_equal(service.request_count, 2);
    assert_non_null(strstr(service.requests[1], "Credential=NEW/"));
    service_stop(&service);
}

static void refusal_that_no_renewal_mends_is_told_in_time(void **state)
{
    const struct step steps[] = {
        {"HTTP/1.1 403 F\r\nContent-Length: 2\r\n\r\nno", THEN_KEEP, 0, 0}};
    struct credentials credentials = {.is_available = true, .has_others = true};
    struct remote *remote = start_remote(2);
    struct signer *signer = signer_new(&credentials, "here", "s3");
    struct remote_exchange exchange;
    struct service service;

    (void)state;
    service_start(&service, steps, 1);
    exchange_with(&exchange, &service);
    exchange.signer = signer;
    exchange.time_ms = 1000;
    assert_int_equal(remote_run(remote, &exchange), ZT_OK);
    assert_int_equal(exchange.head.status, 403);
    assert_int_equal(service.request_count, 2);
    remote_exchange_free(&exchange);
    remote_stop(remote);
    signer_free(signer);
    service_stop(&service);
}

static void without_credentials_nothing_is_sent(void **state)
{
    const struct step steps[] = {{OK_HELLO, THEN_KEEP, 0, 0}};
    struct credentials credentials = {.is_available = false};
    struct remote_exchange exchange;
    struct service service;

    (void)state;
    run_signed(steps, 1, &credentials, &service, &exchange, "GET");
    assert_int_equal(exchange.status, ZT_UNAVAILABLE);
    assert_int_equal(exchange.failure, REMOTE_FAILURE_CREDENTIALS);
    assert_int_equal(service.request_count, 0);
    service_stop(&service);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clock_of_the_service_is_used_once),
        cmocka_unit_test(service_without_a_steady_clock_is_asked_once_more),
        cmocka_unit_test(clock_is_corrected_after_head_which_cannot_say_why),
        cmocka_unit_test(refused_credentials_are_renewed_once),
        cmocka_unit_test(renewal_that_takes_a_while_is_waited_for),
        cmocka_unit_test(refusal_that_no_renewal_mends_is_told_in_time),
        cmocka_unit_test(without_credentials_nothing_is_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
