/* An upstream from configuration to report, and the requests that are sent to it. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/glob.h"
#include "base/log.h"
#include "base/percent.h"
#include "remote/retry.h"
#include "upstream/hub.h"
#include "upstream/kept_addresses.h"
#include "upstream/state.h"

/* Time between requests to an upstream that is away. */
#define AWAY_TRY_MS 1000
/* One range may take this long: lines of 64 KiB/s are served. */
#define FETCH_MS       30000
#define FETCH_MS_A_MIB 16000
#define MIB            ((uint64_t)1 << 20)
/* A line that is slower than this for ten seconds is taken for dead. */
#define SLOW_BYTES_S 4096
/* For short ranges, whose speed proves nothing. */
#define SHORT_TRY_MS 20000
#define FETCH_TRIES  4
/* After this many requests in a row without an answer, the upstream counts as away. Broken
 * connections count one by one, since the service may be restarting; time limits count once for all
 * tries of a request, since they may be about one repository. */
#define UNANSWERED_MOST 3

/* --- beginning and end --- */

static bool token_is_valid(const char *token)
{
    const size_t length = strlen(token);

    if (length == 0 || length >= UPSTREAM_TOKEN_SIZE)
        return false;
    for (size_t i = 0; i < length; i++)
        if (token[i] <= ' ' || token[i] > '~')
            return false;
    return true;
}

enum zt_status upstream_set_token(struct upstream *upstream, const char *token,
                                  struct zt_error *error)
{
    if (token != NULL && !token_is_valid(token))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "the token of the upstream \"%s\" is empty, too long, or has characters "
                       "that no token has",
                       upstream->name);
    pthread_mutex_lock(&upstream->lock);
    explicit_bzero(upstream->token, sizeof(upstream->token));
    if (token != NULL)
        strcpy(upstream->token, token);
    pthread_mutex_unlock(&upstream->lock);
    /* Another token may see more. */
    lookups_forget(upstream->lookups);
    return ZT_OK;
}

static enum zt_status hub_open(struct upstream *upstream, const struct upstream_options *options,
                               void **out_context, struct zt_error *error)
{
    char *target = upstream->base.target;
    size_t length;

    *out_context = NULL;
    if (!address_read(zt_text_from(options->url), &upstream->base) || strchr(target, '?') != NULL)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "the address of the upstream \"%s\" is not http(s)://host[:port][/path]",
                       upstream->name);
    for (length = strlen(target); length > 0 && target[length - 1] == '/'; length--)
        target[length - 1] = '\0';
    return ZT_OK;
}

static void hub_close(void *context)
{
    (void)context;
}

const struct upstream_kind upstream_hub = {.open = hub_open,
                                           .close = hub_close,
                                           .find_commit = hub_find_commit,
                                           .list = hub_list,
                                           .fetch = hub_fetch};

const struct upstream_kind upstream_ztserve = {.open = hub_open,
                                               .close = hub_close,
                                               .find_commit = hub_find_commit,
                                               .list = hub_list,
                                               .fetch = hub_fetch,
                                               .states_digests_late = true};

static enum zt_status fill(struct upstream *upstream, const struct upstream_options *options,
                           struct zt_error *error)
{
    enum zt_status status;

    upstream->name = strdup(options->name);
    upstream->url = strdup(options->url);
    upstream->lookups = lookups_new();
    upstream->kept = kept_addresses_new();
    if (upstream->name == NULL || upstream->url == NULL || upstream->lookups == NULL ||
        upstream->kept == NULL)
        return zt_fail_memory(error, "an upstream");
    status = upstream->kind->open(upstream, options, &upstream->context, error);
    if (status == ZT_OK)
        status = upstream_set_token(upstream, options->token, error);
    if (status != ZT_OK || options->glob_count == 0)
        return status;
    for (size_t i = 0; i < options->glob_count; i++)
        if (!glob_is_valid(options->globs[i]))
            return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                           "a pattern of the upstream \"%s\" is not valid", upstream->name);
    upstream->globs = glob_set_new(options->globs, options->glob_count);
    return upstream->globs != NULL ? ZT_OK : zt_fail_memory(error, "patterns of an upstream");
}

enum zt_status upstream_new(const struct upstream_options *options, struct upstream **out_upstream,
                            struct zt_error *error)
{
    struct upstream *upstream = calloc(1, sizeof(*upstream));
    enum zt_status status;

    if (upstream == NULL)
        return zt_fail_memory(error, "an upstream");
    pthread_mutex_init(&upstream->lock, NULL);
    upstream->kind = options->kind;
    upstream->remote = options->remote;
    upstream->on_stale = options->on_stale;
    upstream->owner = options->context;
    atomic_store(&upstream->is_offline, options->is_offline);
    status = fill(upstream, options, error);
    if (status != ZT_OK) {
        upstream_free(upstream);
        return status;
    }
    *out_upstream = upstream;
    return ZT_OK;
}

void upstream_interrupt(struct upstream *upstream)
{
    atomic_store(&upstream->is_stopped, true);
}

void upstream_free(struct upstream *upstream)
{
    if (upstream == NULL)
        return;
    upstream->kind->close(upstream->context);
    lookups_free(upstream->lookups);
    kept_addresses_free(upstream->kept);
    glob_set_free(upstream->globs);
    explicit_bzero(upstream->token, sizeof(upstream->token));
    pthread_mutex_destroy(&upstream->lock);
    free(upstream->name);
    free(upstream->url);
    free(upstream);
}

void upstream_set_offline(struct upstream *upstream, bool is_offline)
{
    atomic_store(&upstream->is_offline, is_offline);
}

const char *upstream_url(const struct upstream *upstream)
{
    return upstream->url;
}

void *upstream_context(const struct upstream *upstream)
{
    return upstream->context;
}

bool upstream_matches(const struct upstream *upstream, struct zt_text repository)
{
    return upstream->globs == NULL || glob_set_matches(upstream->globs, repository);
}

/* --- whether to ask --- */

static enum zt_status fail_away(struct upstream *upstream, struct zt_error *error)
{
    char reason[UPSTREAM_REASON_SIZE];

    pthread_mutex_lock(&upstream->lock);
    memcpy(reason, upstream->reason, sizeof(reason));
    pthread_mutex_unlock(&upstream->lock);
    return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_AWAY, ZT_NO_OFFSET, "%s",
                   reason[0] != '\0' ? reason : "the upstream cannot be reached");
}

enum zt_status upstream_may_ask(struct upstream *upstream, struct zt_error *error)
{
    const int64_t now_ms = clock_ms();
    int64_t next_ms = atomic_load(&upstream->next_try_ms);

    if (atomic_load(&upstream->is_stopped))
        return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_AWAY, ZT_NO_OFFSET,
                       "the program is shutting down");
    if (atomic_load(&upstream->is_offline))
        return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_AWAY, ZT_NO_OFFSET,
                       "the upstream \"%.60s\" is set offline", upstream->name);
    if (!atomic_load(&upstream->is_away) ||
        (now_ms >= next_ms &&
         atomic_compare_exchange_strong(&upstream->next_try_ms, &next_ms, now_ms + AWAY_TRY_MS)))
        return ZT_OK;
    return fail_away(upstream, error);
}

static uint64_t pause_left_ms(const struct upstream *upstream)
{
    const int64_t left_ms = atomic_load(&upstream->pause_until_ms) - clock_ms();

    return left_ms > 0 ? (uint64_t)left_ms : 0;
}

void upstream_fail(struct upstream *upstream, struct zt_error *error)
{
    const bool is_refusal = error->rule != NULL && strcmp(error->rule, UPSTREAM_REFUSED) == 0;

    if (error->status != ZT_UNAVAILABLE)
        return;
    if (error->pause_ms == 0)
        error->pause_ms = is_refusal ? LOOKUPS_REFUSED_MS : (uint32_t)pause_left_ms(upstream);
    pthread_mutex_lock(&upstream->lock);
    upstream->failed_s = clock_wall_ns() / CLOCK_NS_PER_S;
    snprintf(upstream->reason, sizeof(upstream->reason), "%s", error->message);
    pthread_mutex_unlock(&upstream->lock);
}

static void note_reached(struct upstream *upstream)
{
    atomic_store(&upstream->was_reached, true);
    atomic_store(&upstream->unanswered, 0);
    if (!atomic_load(&upstream->is_away) || !atomic_exchange(&upstream->is_away, false))
        return;
    atomic_store(&upstream->away_since_s, 0);
    log_write(LOG_LEVEL_INFO, "the upstream \"%s\" is reachable again", upstream->name);
}

static void note_away(struct upstream *upstream, const char *why)
{
    if (atomic_exchange(&upstream->is_away, true))
        return;
    atomic_store(&upstream->away_since_s, clock_wall_ns() / CLOCK_NS_PER_S);
    log_write(LOG_LEVEL_WARN,
              "the upstream \"%s\" is unreachable: %s; files that are complete here are still "
              "served",
              upstream->name, why);
}

/* Whether there is no connection to the upstream at all. */
static bool is_conclusive(enum remote_failure failure)
{
    return failure == REMOTE_FAILURE_CONNECT || failure == REMOTE_FAILURE_PROXY ||
           failure == REMOTE_FAILURE_TLS || failure == REMOTE_FAILURE_CERTIFICATE;
}

/* Once it has answered from outside, a name that leads inside now and then gives it no rights
 * there: its owner decides where the name leads. */
static void note_outermost(struct upstream *upstream, enum reach reach)
{
    enum reach before = atomic_load(&upstream->reached);

    while (reach != REACH_ANY && (before == REACH_ANY || reach < before) &&
           !atomic_compare_exchange_weak(&upstream->reached, &before, reach))
        continue;
}

/* Hubs return 403 if a valid token lacks access. */
static void note_token(struct upstream *upstream, unsigned status)
{
    bool is_refused;

    if (status == 0)
        return;
    pthread_mutex_lock(&upstream->lock);
    is_refused = status == 401 && upstream->token[0] != '\0';
    pthread_mutex_unlock(&upstream->lock);
    if (atomic_exchange(&upstream->is_token_refused, is_refused) != is_refused && is_refused)
        log_write(LOG_LEVEL_WARN, "the upstream \"%s\" refuses the token of token_file (401)",
                  upstream->name);
}

void upstream_note(struct upstream *upstream, const struct remote_exchange *exchange, bool is_own)
{
    const enum remote_failure failure =
        exchange->status == ZT_OK ? REMOTE_FAILURE_NONE : exchange->failure;
    const unsigned unanswered = failure == REMOTE_FAILURE_BROKEN ? exchange->tried : 1;

    atomic_fetch_add(&upstream->requests, exchange->tried);
    if (failure != REMOTE_FAILURE_NONE && failure != REMOTE_FAILURE_STOPPED)
        atomic_fetch_add(&upstream->failures, 1);
    if (!is_own || failure == REMOTE_FAILURE_STOPPED)
        return;
    note_token(upstream, exchange->head.status);
    if (failure == REMOTE_FAILURE_NONE)
        note_outermost(upstream, exchange->reached);
    if (failure == REMOTE_FAILURE_NONE || failure == REMOTE_FAILURE_BUSY ||
        failure == REMOTE_FAILURE_REFUSED)
        note_reached(upstream);
    else if (is_conclusive(failure) ||
             atomic_fetch_add(&upstream->unanswered, unanswered) + unanswered >= UNANSWERED_MOST)
        note_away(upstream, exchange->error.message);
}

int64_t upstream_lookup_end_ms(const struct upstream *upstream, int64_t time_ms)
{
    const bool is_brief = atomic_load(&upstream->is_away) && time_ms > LOOKUP_BRIEF_MS;

    return clock_ms() + (is_brief ? LOOKUP_BRIEF_MS : time_ms);
}

/* --- bytes --- */

void upstream_limit_fetch(const struct upstream *upstream, const struct cache_fetch *fetch,
                          bool is_own, struct remote_exchange *exchange)
{
    const uint64_t time_ms = FETCH_MS + fetch->length * FETCH_MS_A_MIB / MIB;

    exchange->tries = FETCH_TRIES;
    exchange->time_ms = time_ms;
    exchange->try_ms = fetch->length < MIB ? SHORT_TRY_MS : time_ms;
    exchange->slow_bytes_s = SLOW_BYTES_S;
    if (!is_own || !atomic_load(&upstream->is_away))
        return;
    exchange->tries = 1;
    exchange->time_ms = LOOKUP_BRIEF_MS + fetch->length * 1000 / MIB;
}

void upstream_fetch(struct upstream *upstream, const struct upstream_place *place,
                    struct cache_fetch *fetch)
{
    assert(fetch->length > 0 && fetch->offset < place->size_bytes &&
           fetch->length <= place->size_bytes - fetch->offset);
    upstream->kind->fetch(upstream, place, fetch);
}

void upstream_end_fetch(struct upstream *upstream, const char *repository,
                        struct cache_fetch *fetch, enum zt_status status,
                        const struct zt_error *error)
{
    struct zt_error own;

    if (status == ZT_OK) {
        atomic_fetch_add(&upstream->fetched_bytes, fetch->length);
        fetch->done(fetch, ZT_OK, NULL);
        return;
    }
    own = *error;
    upstream_fail(upstream, &own);
    if (status == ZT_STALE && upstream->on_stale != NULL)
        upstream->on_stale(upstream->owner, repository);
    fetch->done(fetch, status, &own);
}

/* --- requests to a Hub --- */

/* On the remote's thread. */
static void note_busy(struct remote_exchange *exchange)
{
    struct upstream_request *request = (struct upstream_request *)exchange;
    const uint64_t pause_ms =
        retry_after_ms(exchange->head.retry_after, clock_wall_ns() / CLOCK_NS_PER_S);

    if (request->is_own && pause_ms > 0)
        atomic_store(&request->upstream->pause_until_ms, clock_ms() + (int64_t)pause_ms);
}

static void add_token(struct upstream_request *request)
{
    struct upstream *upstream = request->upstream;

    pthread_mutex_lock(&upstream->lock);
    request->has_token = upstream->token[0] != '\0';
    snprintf(request->authorization, sizeof(request->authorization), "Bearer %s", upstream->token);
    pthread_mutex_unlock(&upstream->lock);
    if (request->has_token)
        remote_exchange_add(&request->exchange, "authorization", request->authorization);
}

/* How far inside a network the upstream may lead: as far as it is itself. */
static enum reach reach_most(struct upstream *upstream)
{
    enum reach reach = atomic_load(&upstream->reached);

    if (reach == REACH_ANY)
        reach = address_reach(&upstream->base);
    if (reach == REACH_ANY)
        return REACH_PUBLIC;
    return reach > REACH_LOOPBACK ? REACH_LOOPBACK : reach;
}

void upstream_request_prepare(struct upstream_request *request)
{
    struct upstream *upstream = request->upstream;
    struct remote_exchange *exchange = &request->exchange;

    remote_exchange_init(exchange);
    request->is_own = address_is_same_origin(&request->address, &upstream->base);
    request->has_token = false;
    exchange->method = "GET";
    exchange->origin = request->address.origin;
    exchange->path = request->address.target;
    exchange->obeys_retry_after = true;
    exchange->busied = note_busy;
    remote_exchange_add(exchange, "accept-encoding", "identity");
    if (!request->is_own) {
        exchange->reach_most = reach_most(upstream);
        return;
    }
    if (atomic_load(&upstream->pause_until_ms) > clock_ms())
        exchange->not_before_ms = atomic_load(&upstream->pause_until_ms);
    add_token(request);
}

void upstream_request_end(struct upstream_request *request)
{
    remote_exchange_free(&request->exchange);
    explicit_bzero(request->authorization, sizeof(request->authorization));
}

static enum zt_status refuse_redirect(struct zt_error *error, const char *why)
{
    return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                   "the upstream redirects %s", why);
}

enum zt_status upstream_request_redirect(struct upstream_request *request, struct zt_error *error)
{
    struct upstream *upstream = request->upstream;
    const struct remote_head *head = &request->exchange.head;
    struct upstream_address address;

    if (head->location[0] == '\0' || head->status == 304 || head->status == 300 ||
        !address_follow(&request->address, zt_text_from(head->location), &address))
        return refuse_redirect(error, "without an address that can be followed");
    if (request->hops == UPSTREAM_HOPS_MOST)
        return refuse_redirect(error, "again and again");
    if (address_is_tls(&upstream->base) && !address_is_tls(&address))
        return refuse_redirect(error, "from https to http");
    if (!address_is_same_origin(&address, &upstream->base) &&
        address_reach(&address) > reach_most(upstream))
        return refuse_redirect(error, "to an address inside a network");
    request->hops++;
    request->address = address;
    return ZT_OK;
}

void target_begin(struct target_writer *writer, struct upstream_request *request)
{
    request->address = request->upstream->base;
    writer->text = request->address.target;
    writer->length = strlen(writer->text);
    writer->is_too_long = false;
}

void target_plain(struct target_writer *writer, const char *text)
{
    const size_t length = strlen(text);

    if (length >= REMOTE_LOCATION_SIZE - writer->length) {
        writer->is_too_long = true;
        return;
    }
    memcpy(writer->text + writer->length, text, length + 1);
    writer->length += length;
}

void target_encoded(struct target_writer *writer, struct zt_text text, bool keep_slash)
{
    if (ZT_PERCENT_LENGTH * text.length >= REMOTE_LOCATION_SIZE - writer->length) {
        writer->is_too_long = true;
        return;
    }
    writer->length =
        (size_t)(zt_percent_write(writer->text + writer->length, text, keep_slash) - writer->text);
    writer->text[writer->length] = '\0';
}

/* --- the report --- */

void upstream_report(struct upstream *upstream, struct upstream_report *out_report)
{
    memset(out_report, 0, sizeof(*out_report));
    out_report->is_offline = atomic_load(&upstream->is_offline);
    out_report->is_away = atomic_load(&upstream->is_away);
    out_report->was_reached = atomic_load(&upstream->was_reached);
    out_report->away_since_s = atomic_load(&upstream->away_since_s);
    out_report->pause_ms = pause_left_ms(upstream);
    out_report->requests = atomic_load(&upstream->requests);
    out_report->lookups = atomic_load(&upstream->lookup_count);
    out_report->failures = atomic_load(&upstream->failures);
    out_report->fetched_bytes = atomic_load(&upstream->fetched_bytes);
    pthread_mutex_lock(&upstream->lock);
    out_report->failed_s = upstream->failed_s;
    memcpy(out_report->reason, upstream->reason, sizeof(out_report->reason));
    pthread_mutex_unlock(&upstream->lock);
}
