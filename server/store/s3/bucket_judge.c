/* What an answer of the service means, in one line for people; and whether the store is away. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "input/xml_read.h"
#include "store/s3/bucket.h"

/* How often a store that is away is asked for its clients. */
#define AWAY_TRY_MS 1000
/* So many writes, one after another, without an answer mean that it is away. */
#define UNANSWERED_MOST 3
/* How long such a request may take; longer by 1 s for each MiB that it asks for. */
#define AWAY_ANSWER_MS 3000
#define MIB            ((uint64_t)1 << 20)

/* --- the body of an error --- */

struct said {
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
    struct said *said = context;

    if (text.bytes == NULL)
        return true;
    if (strcmp(path, "Error/Code") == 0)
        keep(said->code, sizeof(said->code), text);
    else if (strcmp(path, "Error/Message") == 0)
        keep(said->message, sizeof(said->message), text);
    else if (strcmp(path, "Error/Region") == 0)
        keep(said->region, sizeof(said->region), text);
    else if (strcmp(path, "Error/Endpoint") == 0)
        keep(said->endpoint, sizeof(said->endpoint), text);
    return true;
}

static void read_body(const struct remote_exchange *exchange, struct said *out_said)
{
    struct said said = {.code = ""};
    struct zt_error ignored;

    if (exchange->answer != NULL &&
        xml_read((struct zt_text){exchange->answer, exchange->answer_length}, take, &said,
                 &ignored) == ZT_OK)
        *out_said = said;
}

bool bucket_is_error(const struct remote_exchange *exchange)
{
    struct said said = {.code = ""};

    read_body(exchange, &said);
    return said.code[0] != '\0';
}

static bool begins(const char *text, size_t length, size_t *at, const char *with)
{
    const size_t wanted = strlen(with);

    if (length - *at < wanted || memcmp(text + *at, with, wanted) != 0)
        return false;
    *at += wanted;
    return true;
}

/* A 200 whose body is an error after all, as completing an upload may give. */
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
    if (!atomic_load(&bucket->is_away) || !atomic_exchange(&bucket->is_away, false))
        return;
    metric_set(METRIC_STORE_AWAY, 0);
    log_write(LOG_LEVEL_INFO, "the object store is back: %s", bucket->origin);
}

static void note_away(struct bucket *bucket, const char *why)
{
    if (atomic_exchange(&bucket->is_away, true))
        return;
    metric_set(METRIC_STORE_AWAY, 1);
    log_write(LOG_LEVEL_WARN, "the object store is away: %s: %s; what is cached is still served",
              bucket->origin, why);
}

bool bucket_may_ask(struct bucket *bucket)
{
    const int64_t now_ms = clock_ms();
    int64_t next_ms = atomic_load(&bucket->next_try_ms);

    if (!atomic_load(&bucket->is_away))
        return true;
    return now_ms >= next_ms &&
           atomic_compare_exchange_strong(&bucket->next_try_ms, &next_ms, now_ms + AWAY_TRY_MS);
}

void bucket_be_brief(struct bucket *bucket, struct remote_exchange *exchange)
{
    if (!atomic_load(&bucket->is_away))
        return;
    exchange->tries = 1;
    exchange->time_ms = AWAY_ANSWER_MS + exchange->into_length * 1000 / MIB;
}

/* One write without an answer, which may be large and slow, says little of the store: reads go on,
 * and notice themselves. */
static bool is_telling(struct bucket *bucket, enum metric operation)
{
    if (operation == METRIC_STORE_LIST || operation == METRIC_STORE_READ)
        return true;
    return atomic_fetch_add(&bucket->unanswered, 1) + 1 >= UNANSWERED_MOST;
}

static enum zt_status judge_failure(struct bucket *bucket, enum metric operation,
                                    const struct remote_exchange *exchange, struct zt_error *error)
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
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the program ends");
    metric_add(metrics[exchange->failure], 1);
    /* What was not wanted is an answer too. */
    if (exchange->failure == REMOTE_FAILURE_REFUSED)
        note_reached(bucket);
    else if (is_telling(bucket, operation))
        note_away(bucket, exchange->error.message);
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "%s", exchange->error.message);
}

/* --- answers that say no --- */

static enum zt_status permanent(struct zt_error *error, const char *format, const char *detail)
{
    char text[512];

    snprintf(text, sizeof(text), "%s%s%s", format, detail[0] != '\0' ? ": " : "", detail);
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s", text);
}

/* What each code that will not go away means; the first word tells which of clock, region, bucket,
 * credentials is wrong. */
static const struct {
    const char *code;
    const char *means;
} codes[] = {
    {"InvalidAccessKeyId", "the credentials are wrong: the access key is not known"},
    {"SignatureDoesNotMatch", "the credentials are wrong: the secret does not fit the access key"},
    {"AccessDenied", "the credentials do not give access"},
    {"AllAccessDisabled", "the credentials do not give access"},
    {"AccountProblem", "the credentials do not give access"},
    {"UserSuspended", "the credentials do not give access"},
    {"ExpiredToken", "the credentials are wrong: the session token has expired"},
    {"InvalidToken", "the credentials are wrong: the session token is not valid"},
    {"TokenRefreshRequired", "the credentials are wrong: the session token has to be renewed"},
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

static enum zt_status say_elsewhere(const struct said *said, struct zt_error *error)
{
    if (said->region[0] != '\0')
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "the region is wrong: the store expects \"%s\"", said->region);
    return permanent(error, "the bucket has another region or endpoint", said->endpoint);
}

/* Not an answer to a condition, nor of a missing key. */
static enum zt_status say(const struct bucket *bucket, unsigned status, const struct said *said,
                          struct zt_error *error)
{
    const char *means = meaning_of(said->code);
    char number[32];

    if (strcmp(said->code, "AuthorizationHeaderMalformed") == 0 || status / 100 == 3)
        return say_elsewhere(said, error);
    if (strcmp(said->code, "NoSuchBucket") == 0)
        return permanent(error, "the bucket does not exist", bucket->name);
    if (means != NULL)
        return permanent(error, means, said->message);
    if (status == 401 || status == 403)
        return permanent(error, "the credentials do not give access", said->message);
    snprintf(number, sizeof(number), "%u", status);
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the store answered %s%s%s%s%s",
                   number, said->code[0] != '\0' ? " " : "", said->code,
                   said->message[0] != '\0' ? ": " : "", said->message);
}

enum zt_status bucket_is_no_store(unsigned status, struct zt_error *error)
{
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                   "what answers is not an object store (S3): its answer is a %u without the XML "
                   "of one",
                   status);
}

/* Whether it says that the object is not there, not the bucket. */
static bool is_absence(enum metric operation, unsigned status, const struct said *said)
{
    return status == 404 && operation != METRIC_STORE_LIST &&
           strcmp(said->code, "NoSuchBucket") != 0;
}

static enum zt_status judge_answer(struct bucket *bucket, enum metric operation,
                                   const struct remote_exchange *exchange, struct zt_error *error)
{
    const unsigned code = exchange->head.status;
    const bool is_get = strcmp(exchange->method, "GET") == 0 && operation != METRIC_STORE_LIST;
    struct said said = {.code = ""};
    enum zt_status status;

    if (code / 100 == 2 && (is_get || !is_error_body(exchange)))
        return ZT_OK;
    read_body(exchange, &said);
    if (is_absence(operation, code, &said))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the store has no such object");
    if (code == 412 || code == 416 || (code == 409 && operation == METRIC_STORE_WRITE)) {
        metric_add(METRIC_STORE_ERROR_STALE, 1);
        return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET,
                       "the store has another version of the object");
    }
    /* A bucket that is missing is called by its name in XML. */
    if (code == 404 && said.code[0] == '\0')
        status = bucket_is_no_store(code, error);
    else
        status = say(bucket, code, &said, error);
    metric_add(status == ZT_ARGUMENT ? METRIC_STORE_ERROR_REFUSED : METRIC_STORE_ERROR_BUSY, 1);
    return status;
}

enum zt_status bucket_judge(struct bucket *bucket, enum metric operation,
                            struct remote_exchange *exchange, struct zt_error *error)
{
    const unsigned tried = exchange->tried > 0 ? exchange->tried : 1;

    assert(operation >= METRIC_STORE_LIST && operation <= METRIC_STORE_OTHER);
    metric_add(operation, tried);
    if (tried > 1)
        metric_add(METRIC_STORE_RETRIES, tried - 1);
    if (exchange->status != ZT_OK)
        return judge_failure(bucket, operation, exchange, error);
    note_reached(bucket);
    return judge_answer(bucket, operation, exchange, error);
}
