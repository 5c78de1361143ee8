/* What a store's first answer means, or that there is none: the one place that tells what a person
 * has to mend from what may go away by itself. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "input/xml_read.h"
#include "store/s3/bucket.h"
#include "store/s3/percent.h"

#define CHECK_MS     5000
#define CHECK_TRY_MS 4000
#define CHECK_TRIES  2
/* Of asking whether a port speaks the other of http and https. */
#define OTHER_MS 3000

#define QUERY_SIZE (3 * BUCKET_KEY_SIZE + 80)

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

/* What a proxy answers by itself says nothing of the port. */
static bool is_of_proxy(unsigned status)
{
    return status == 407 || status == 502 || status == 503 || status == 504;
}

/* Whether the same port answers in the other one: asked without a signature. */
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
    return is_tls(bucket->origin) ? zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                                            "the port speaks http, and not https")
                                  : zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                                            "the port speaks https, and not http");
}

/* --- the first answer --- */

/* There is none. */
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

static bool note_list(void *context, const char *path, struct zt_text text)
{
    bool *is_list = context;

    (void)text;
    *is_list = *is_list || strncmp(path, "ListBucketResult", strlen("ListBucketResult")) == 0;
    return true;
}

static bool is_list(const struct remote_exchange *exchange)
{
    bool is = false;

    return exchange->answer != NULL &&
           xml_read((struct zt_text){exchange->answer, exchange->answer_length}, note_list, &is,
                    NULL) == ZT_OK &&
           is;
}

/* An answer that is no list: of a store, which says why; or of something else. */
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

static bool make_query(const struct bucket *bucket, char out_query[QUERY_SIZE])
{
    size_t used = 0;

    out_query[0] = '\0';
    return percent_append_plain(out_query, QUERY_SIZE, &used,
                                "encoding-type=url&list-type=2&max-keys=1&prefix=") &&
           percent_append(out_query, QUERY_SIZE, &used, zt_text_from(bucket->prefix), false);
}

static bool make_path(const struct bucket *bucket, char out_path[BUCKET_PATH_SIZE])
{
    size_t used = 0;

    return percent_append_plain(out_path, BUCKET_PATH_SIZE, &used, "/") &&
           (!bucket->path_style ||
            percent_append_plain(out_path, BUCKET_PATH_SIZE, &used, bucket->name));
}

enum zt_status bucket_check(struct bucket *bucket, struct zt_error *error)
{
    struct remote_exchange exchange;
    char path[BUCKET_PATH_SIZE];
    char query[QUERY_SIZE];
    enum zt_status status;

    if (!make_path(bucket, path) || !make_query(bucket, query))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the prefix is too long");
    bucket_exchange(bucket, &exchange, "GET", path);
    exchange.query = query;
    exchange.body_most = BUCKET_REPLY_MOST;
    exchange.try_ms = CHECK_TRY_MS;
    exchange.tries = CHECK_TRIES;
    status = bucket_run(bucket, METRIC_STORE_LIST, &exchange, clock_ms() + CHECK_MS, error);
    if (exchange.status != ZT_OK)
        status = judge_failure(bucket, &exchange, error);
    else if (status != ZT_OK || !is_list(&exchange))
        status = judge_other(bucket, &exchange, status, error);
    remote_exchange_free(&exchange);
    return status;
}
