/* Interprets the first response of a store, or its absence. This is the only place that separates
 * errors that the user must fix from errors that may be temporary. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/s3/bucket.h"

#define CHECK_MS     5000
#define CHECK_TRY_MS 4000
#define CHECK_TRIES  2
/* Time limit for asking whether a port speaks https instead of http, or the reverse. */
#define OTHER_MS 3000

/* --- http or https --- */

static bool is_tls(const char *origin)
{
    return strncmp(origin, "https://", strlen("https://")) == 0;
}

static bool has_port(const char *host)
{
    const char *end = strrchr(host, ']');

    return strchr(end != NULL ? end : host, ':') != NULL;
}

static bool want_no_body(struct remote_exchange *exchange)
{
    (void)exchange;
    return false;
}

/* Returns true if a proxy may have sent the response itself, which says nothing about the port. */
static bool is_of_proxy(unsigned status)
{
    return status == 407 || status == 502 || status == 503 || status == 504;
}

/* Returns true if the same port responds to the other scheme. Asks without a signature. */
static bool speaks_other(const struct bucket *bucket)
{
    const bool was_tls = is_tls(bucket->origin);
    const char *host = strstr(bucket->origin, "://") + 3;
    const char *port = has_port(host) ? "" : was_tls ? ":443" : ":80";
    char origin[sizeof(bucket->origin) + 8];
    struct remote_exchange exchange;
    bool speaks;

    snprintf(origin, sizeof(origin), "%s://%s%s", was_tls ? "http" : "https", host, port);
    remote_exchange_init(&exchange);
    exchange.method = "GET";
    exchange.origin = origin;
    exchange.path = "/";
    exchange.tries = 1;
    exchange.time_ms = OTHER_MS;
    exchange.accept = want_no_body;
    speaks = remote_run(bucket->remote, &exchange) == ZT_OK ||
             exchange.failure == REMOTE_FAILURE_REFUSED;
    speaks = (speaks && !is_of_proxy(exchange.head.status)) ||
             exchange.failure == REMOTE_FAILURE_CERTIFICATE;
    remote_exchange_free(&exchange);
    return speaks;
}

static enum zt_status say_other(const struct bucket *bucket, struct zt_error *error)
{
    return is_tls(bucket->origin)
               ? zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the port speaks http, not https")
               : zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the port speaks https, not http");
}

/* --- the first answer --- */

/* Judges a request that got no response. */
static enum zt_status judge_failure(const struct bucket *bucket,
                                    const struct remote_exchange *exchange, struct zt_error *error)
{
    char why[sizeof(error->message)];

    if (exchange->failure == REMOTE_FAILURE_CERTIFICATE) {
        snprintf(why, sizeof(why), "%s", exchange->error.message);
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "the store's certificate is not trusted (s3.ca): %.150s", why);
    }
    if (((exchange->failure == REMOTE_FAILURE_TLS && is_tls(bucket->origin)) ||
         (exchange->failure == REMOTE_FAILURE_BROKEN && !is_tls(bucket->origin))) &&
        speaks_other(bucket))
        return say_other(bucket, error);
    return ZT_UNAVAILABLE;
}

/* Judges a response that is not a list. It comes from a store, and then explains the error, or from
 * something else. */
static enum zt_status judge_other(const struct bucket *bucket,
                                  const struct remote_exchange *exchange, enum zt_status judged,
                                  struct zt_error *error)
{
    const unsigned status = exchange->head.status;
    const bool is_bare_refusal = (status == 401 || status == 403) && exchange->answer_length == 0;

    if (status >= 500 || is_bare_refusal || bucket_is_error(exchange))
        return judged;
    return speaks_other(bucket) ? say_other(bucket, error) : bucket_is_no_store(status, error);
}

enum zt_status bucket_check(struct bucket *bucket, struct zt_error *error)
{
    const struct bucket_patience patience = {
        .by_ms = clock_ms() + CHECK_MS, .try_ms = CHECK_TRY_MS, .tries = CHECK_TRIES};
    struct remote_exchange exchange;
    enum zt_status status = bucket_list_first(bucket, &patience, &exchange, error);

    if (exchange.status != ZT_OK)
        status = judge_failure(bucket, &exchange, error);
    else if (status != ZT_OK && status != ZT_NO_MEMORY && exchange.tried > 0)
        status = judge_other(bucket, &exchange, status, error);
    remote_exchange_free(&exchange);
    return status;
}
