/* Turns a response of the service into a status with a one-line message, and tracks whether the
 * store is away. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "input/xml_read.h"
#include "store/s3/bucket.h"

/* Time between requests to a store that is away. */
#define AWAY_TRY_MS 1000
/* After this many writes in a row without a response, the store counts as away. */
#define UNANSWERED_MOST 3
/* Time limit of such a request, plus 1 s for each MiB that it reads. */
#define AWAY_ANSWER_MS 3000
#define MIB            ((uint64_t)1 << 20)
/* Time that the store has to respond when it is checked. */
#define SUSPICION_MS 5000

/* --- the body of an error --- */

struct error_body {
    char code[80];
    char message[200];
    char region[64];
    char endpoint[128];
};

static void keep(char *out, size_t size, struct zt_text text)
{
    snprintf(out, size, "%.*s", (int)(text.length < size ? text.length : size - 1), text.bytes);
}

static bool take(void *context, const char *path, struct zt_text text)
{
    struct error_body *error_body = context;

    if (text.bytes == NULL)
        return true;
    if (strcmp(path, "Error/Code") == 0)
        keep(error_body->code, sizeof(error_body->code), text);
    else if (strcmp(path, "Error/Message") == 0)
        keep(error_body->message, sizeof(error_body->message), text);
    else if (strcmp(path, "Error/Region") == 0)
        keep(error_body->region, sizeof(error_body->region), text);
    else if (strcmp(path, "Error/Endpoint") == 0)
        keep(error_body->endpoint, sizeof(error_body->endpoint), text);
    return true;
}

static void read_body(const struct remote_exchange *exchange, struct error_body *out_error_body)
{
    struct error_body error_body = {.code = ""};
    struct zt_error ignored;

    if (exchange->answer != NULL &&
        xml_read((struct zt_text){exchange->answer, exchange->answer_length}, take, &error_body,
                 &ignored) == ZT_OK)
        *out_error_body = error_body;
}

bool bucket_is_error(const struct remote_exchange *exchange)
{
    struct error_body error_body = {.code = ""};

    read_body(exchange, &error_body);
    return error_body.code[0] != '\0';
}

static bool begins(const char *text, size_t length, size_t *at, const char *with)
{
    const size_t wanted = strlen(with);

    if (length - *at < wanted || memcmp(text + *at, with, wanted) != 0)
        return false;
    *at += wanted;
    return true;
}

/* Returns true for a 200 whose body is an error, which completing an upload may return. */
static bool is_error_body(const struct remote_exchange *exchange)
{
    const char *text = exchange->answer;
    const size_t length = exchange->answer_length;
    size_t at = 0;

    if (text == NULL)
        return false;
    while (at < length && strchr(" \t\r\n", text[at]) != NULL)
        at++;
    if (begins(text, length, &at, "<?"))
        while (at < length && text[at++] != '>')
            ;
    while (at < length && strchr(" \t\r\n", text[at]) != NULL)
        at++;
    return begins(text, length, &at, "<Error");
}

/* --- whether the store is away --- */

static void note_reached(struct bucket *bucket)
{
    atomic_store(&bucket->was_reached, true);
    atomic_store_explicit(&bucket->unanswered, 0, memory_order_relaxed);
    if (!atomic_load(&bucket->is_unreachable) || !atomic_exchange(&bucket->is_unreachable, false))
        return;
    metric_set(METRIC_STORE_AWAY, 0);
    log_write(LOG_LEVEL_INFO, "the object store is reachable again: %s", bucket->origin);
}

static void note_unreachable(struct bucket *bucket, const char *why)
{
    if (atomic_exchange(&bucket->is_unreachable, true))
        return;
    metric_set(METRIC_STORE_AWAY, 1);
    log_write(LOG_LEVEL_WARN,
              "the object store is unreachable: %s: %s; cached data is still served",
              bucket->origin, why);
}

bool bucket_may_ask(struct bucket *bucket)
{
    const int64_t now_ms = clock_ms();
    int64_t next_ms = atomic_load(&bucket->next_try_ms);

    if (!atomic_load(&bucket->is_unreachable))
        return true;
    return now_ms >= next_ms &&
           atomic_compare_exchange_strong(&bucket->next_try_ms, &next_ms, now_ms + AWAY_TRY_MS);
}

void bucket_be_brief(struct bucket *bucket, struct remote_exchange *exchange)
{
    if (!atomic_load(&bucket->is_unreachable))
        return;
    exchange->tries = 1;
    exchange->time_ms = AWAY_ANSWER_MS + exchange->into_length * 1000 / MIB;
}

/* --- one object in trouble, or the store --- */

/* Returns true if the failure may concern only the requested object. */
static bool is_of_object(enum remote_failure failure)
{
    return failure == REMOTE_FAILURE_TIMEOUT || failure == REMOTE_FAILURE_BUSY ||
           failure == REMOTE_FAILURE_BROKEN;
}

struct suspicion {
    struct remote_exchange exchange; /* first */
    struct bucket *bucket;
    char path[BUCKET_PATH_SIZE];
};

/* Any response shows that the store is reachable, even an error about the bucket. */
static void settle_suspicion(struct remote_exchange *exchange)
{
    struct suspicion *suspicion = (struct suspicion *)exchange;

    metric_add(METRIC_STORE_OTHER, exchange->tried);
    if (exchange->status == ZT_OK)
        note_reached(suspicion->bucket);
    else if (exchange->failure != REMOTE_FAILURE_STOPPED)
        note_unreachable(suspicion->bucket, exchange->error.message);
    atomic_store(&suspicion->bucket->is_suspected, false);
    remote_exchange_free(exchange);
    free(suspicion);
}

/* Checks the whole store after a read has failed, before it counts as away: one object that hangs
 * or is busy must not make the others unavailable. */
static void suspect_store(struct bucket *bucket)
{
    struct suspicion *suspicion;

    if (atomic_load(&bucket->is_unreachable) || atomic_exchange(&bucket->is_suspected, true))
        return;
    suspicion = calloc(1, sizeof(*suspicion));
    if (suspicion == NULL || !bucket_own_path(bucket, suspicion->path)) {
        atomic_store(&bucket->is_suspected, false);
        free(suspicion);
        return;
    }
    bucket_exchange(bucket, &suspicion->exchange, "HEAD", suspicion->path);
    suspicion->bucket = bucket;
    suspicion->exchange.time_ms = SUSPICION_MS;
    suspicion->exchange.is_urgent = true;
    suspicion->exchange.done = settle_suspicion;
    remote_begin(bucket->remote, &suspicion->exchange);
}

/* Returns true if the failure shows that the store is away. A single write without a response does
 * not, because it may be large and slow; reads will notice if the store is really away. */
static bool is_conclusive(struct bucket *bucket, enum metric operation, enum remote_failure failure)
{
    if (operation == METRIC_STORE_LIST)
        return true;
    if (operation == METRIC_STORE_READ)
        return !is_of_object(failure);
    return atomic_fetch_add(&bucket->unanswered, 1) + 1 >= UNANSWERED_MOST;
}

static void note_failure(struct bucket *bucket, enum metric operation,
                         const struct remote_exchange *exchange)
{
    static const enum metric metrics[] = {
        [REMOTE_FAILURE_NONE] = METRIC_STORE_ERROR_BROKEN,
        [REMOTE_FAILURE_CONNECT] = METRIC_STORE_ERROR_CONNECT,
        [REMOTE_FAILURE_PROXY] = METRIC_STORE_ERROR_CONNECT,
        [REMOTE_FAILURE_TIMEOUT] = METRIC_STORE_ERROR_TIMEOUT,
        [REMOTE_FAILURE_BROKEN] = METRIC_STORE_ERROR_BROKEN,
        [REMOTE_FAILURE_TLS] = METRIC_STORE_ERROR_TLS,
        [REMOTE_FAILURE_CERTIFICATE] = METRIC_STORE_ERROR_TLS,
        [REMOTE_FAILURE_BUSY] = METRIC_STORE_ERROR_BUSY,
        [REMOTE_FAILURE_REFUSED] = METRIC_STORE_ERROR_STALE,
        [REMOTE_FAILURE_CREDENTIALS] = METRIC_STORE_ERROR_REFUSED,
        [REMOTE_FAILURE_STOPPED] = METRIC_STORE_ERROR_BROKEN,
    };

    if (exchange->failure == REMOTE_FAILURE_STOPPED)
        return;
    metric_add(metrics[exchange->failure], 1);
    /* A response that was rejected is still a response. */
    if (exchange->failure == REMOTE_FAILURE_REFUSED)
        note_reached(bucket);
    else if (is_conclusive(bucket, operation, exchange->failure))
        note_unreachable(bucket, exchange->error.message);
    else if (operation == METRIC_STORE_READ)
        suspect_store(bucket);
}

static void note(struct bucket *bucket, enum metric operation,
                 const struct remote_exchange *exchange)
{
    const unsigned tried = exchange->tried > 0 ? exchange->tried : 1;

    if (bucket->noted != NULL) {
        bucket->noted(bucket, exchange);
        return;
    }
    metric_add(operation, tried);
    if (tried > 1)
        metric_add(METRIC_STORE_RETRIES, tried - 1);
    if (exchange->status == ZT_OK)
        note_reached(bucket);
    else
        note_failure(bucket, operation, exchange);
}

static void count_error(const struct bucket *bucket, enum metric metric)
{
    if (bucket->noted == NULL)
        metric_add(metric, 1);
}

/* --- answers that say no --- */

static enum zt_status permanent(struct zt_error *error, const char *format, const char *detail)
{
    char text[512];

    snprintf(text, sizeof(text), "%s%s%s", format, detail[0] != '\0' ? ": " : "", detail);
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s", text);
}

/* The meaning of each permanent error code. The first word names the wrong setting: clock, region,
 * bucket or credentials. */
static const struct {
    const char *code;
    const char *means;
} codes[] = {
    {"InvalidAccessKeyId", "the credentials are wrong: the access key is not known"},
    {"SignatureDoesNotMatch",
     "the credentials are wrong: the secret does not match the access key"},
    {"AccessDenied", "the credentials do not give access"},
    {"AllAccessDisabled", "the credentials do not give access"},
    {"AccountProblem", "the credentials do not give access"},
    {"UserSuspended", "the credentials do not give access"},
    {"ExpiredToken", "the credentials are wrong: the session token has expired"},
    {"InvalidToken", "the credentials are wrong: the session token is not valid"},
    {"TokenRefreshRequired", "the credentials are wrong: the session token must be renewed"},
    {"InvalidClientTokenId", "the credentials are wrong: the session token is not valid"},
    {"RequestTimeTooSkewed", "the clock of this machine differs too much from the store's"},
    {"RequestExpired", "the clock of this machine differs too much from the store's"},
    {"NoSuchBucket", "the bucket does not exist"},
    {"InvalidBucketName", "the bucket's name is not valid"},
    {"PermanentRedirect", "the bucket has another region or endpoint"},
    {"TemporaryRedirect", "the bucket has another region or endpoint"},
    {"IllegalLocationConstraintException", "the region is wrong"},
    {"InvalidRegion", "the region is wrong"},
};

static const char *meaning_of(const char *code)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (strcmp(codes[i].code, code) == 0)
            return codes[i].means;
    return NULL;
}

static enum zt_status fail_other_region(const struct error_body *error_body, struct zt_error *error)
{
    if (error_body->region[0] != '\0')
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "the region is wrong: the store expects \"%s\"", error_body->region);
    return permanent(error, "the bucket has another region or endpoint", error_body->endpoint);
}

/* Reports an error response, except a failed condition or a missing key. */
static enum zt_status say(const struct bucket *bucket, unsigned status,
                          const struct error_body *error_body, struct zt_error *error)
{
    const char *means = meaning_of(error_body->code);
    char number[32];

    if (strcmp(error_body->code, "AuthorizationHeaderMalformed") == 0 || status / 100 == 3)
        return fail_other_region(error_body, error);
    if (strcmp(error_body->code, "NoSuchBucket") == 0)
        return permanent(error, "the bucket does not exist", bucket->name);
    if (means != NULL)
        return permanent(error, means, error_body->message);
    if (status == 401 || status == 403)
        return permanent(error, "the credentials do not give access", error_body->message);
    snprintf(number, sizeof(number), "%u", status);
    if (bucket->noted != NULL)
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the store returned %s", number);
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the store returned %s%s%s%s%s",
                   number, error_body->code[0] != '\0' ? " " : "", error_body->code,
                   error_body->message[0] != '\0' ? ": " : "", error_body->message);
}

enum zt_status bucket_is_no_store(unsigned status, struct zt_error *error)
{
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                   "this is not an object store (S3): it returned %u without the XML of one",
                   status);
}

/* Returns true if the object is missing, not the bucket. */
static bool is_absence(enum metric operation, unsigned status, const struct error_body *error_body)
{
    return status == 404 && operation != METRIC_STORE_LIST &&
           strcmp(error_body->code, "NoSuchBucket") != 0;
}

/* Returns true for a 304 that was asked for. Its ETag may be missing. */
static bool is_unchanged(const struct remote_exchange *exchange)
{
    return exchange->head.status == 304 && exchange->field_count > 0 &&
           strcmp(exchange->fields[0].name, "if-none-match") == 0;
}

static enum zt_status judge_answer(struct bucket *bucket, enum metric operation,
                                   const struct remote_exchange *exchange, struct zt_error *error)
{
    const unsigned code = exchange->head.status;
    const bool is_get = strcmp(exchange->method, "GET") == 0 && operation != METRIC_STORE_LIST;
    struct error_body error_body = {.code = ""};
    enum zt_status status;

    if ((code / 100 == 2 && (is_get || !is_error_body(exchange))) ||
        (is_get && is_unchanged(exchange)))
        return ZT_OK;
    read_body(exchange, &error_body);
    if (bucket->noted != NULL)
        error_body.message[0] = error_body.region[0] = error_body.endpoint[0] = '\0';
    if (is_absence(operation, code, &error_body))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the store has no such object");
    if (code == 412 || code == 416 || (code == 409 && operation == METRIC_STORE_WRITE)) {
        count_error(bucket, METRIC_STORE_ERROR_STALE);
        return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET,
                       "the store has another version of the object");
    }
    /* Stores report a missing bucket by a code in XML, so this is not a store. */
    if (code == 404 && error_body.code[0] == '\0')
        status = bucket_is_no_store(code, error);
    else
        status = say(bucket, code, &error_body, error);
    count_error(bucket,
                status == ZT_ARGUMENT ? METRIC_STORE_ERROR_REFUSED : METRIC_STORE_ERROR_BUSY);
    return status;
}

enum zt_status bucket_judge(struct bucket *bucket, enum metric operation,
                            struct remote_exchange *exchange, struct zt_error *error)
{
    assert(operation >= METRIC_STORE_LIST && operation <= METRIC_STORE_OTHER);
    note(bucket, operation, exchange);
    if (exchange->status == ZT_OK)
        return judge_answer(bucket, operation, exchange, error);
    if (exchange->failure == REMOTE_FAILURE_STOPPED)
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the program is shutting down");
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "%s", exchange->error.message);
}
