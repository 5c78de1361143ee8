/* Takes exchanges from where remote_begin leaves them, sends as many as the pace allows, and judges
 * what comes back: done, or once more after a pause. What waits is in a queue, what is on its way
 * in libcurl's multi handle; neither is touched by another thread. */
#include "remote/fetch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "remote/request.h"
#include "remote/retry.h"
#include "remote/sign.h"

#define TRIES 5
/* Exchanges whose time is over while they wait end this late at most. */
#define WATCH_MS 200
/* Credentials that were refused get so long to be renewed, and how often they are looked at. */
#define RENEWAL_MS      5000
#define RENEWAL_LOOK_MS 50
/* So long without progress (attempt_moved_ms): quiet. */
#define QUIET_MS 1000
/* A try that fetched this many bytes does not count if the next one requests the rest. */
#define PROGRESS_BYTES ((size_t)64 << 10)
/* The longest sleep while there is no work. */
#define IDLE_MS 60000

/* A handle, and the flight that it carries. */
struct carrier {
    struct attempt *attempt;
    struct remote_flight *flight; /* NULL: idle */
    bool is_quiet;                /* no progress for a second */
    struct carrier *next;         /* of those that are idle */
};

/* Adds one that is idle. Returns false if there is no memory, or if there are as many as there may
 * be. */
static bool add_carrier(struct remote *remote)
{
    const struct request_peer peer = {remote->ca_file, remote->proxy, remote->system_proxy};
    struct carrier *carrier = &remote->carriers[remote->carrier_count];

    assert(remote->carrier_count <= remote->carriers_most);
    if (remote->carrier_count == remote->carriers_most)
        return false;
    carrier->attempt = attempt_new(&peer);
    if (carrier->attempt == NULL)
        return false;
    remote->carrier_count++;
    carrier->next = remote->idle;
    remote->idle = carrier;
    return true;
}

bool fetch_make_carriers(struct remote *remote, unsigned count)
{
    assert(remote->carriers == NULL);
    remote->carriers_most = count + REMOTE_QUIET_MOST;
    remote->carriers = calloc(remote->carriers_most, sizeof(remote->carriers[0]));
    if (remote->carriers == NULL)
        return false;
    while (remote->carrier_count < count)
        if (!add_carrier(remote))
            return false;
    return true;
}

void fetch_free_carriers(struct remote *remote)
{
    for (unsigned i = 0; i < remote->carrier_count; i++)
        attempt_free(remote->carriers[i].attempt);
    free(remote->carriers);
}

void fetch_finish(struct remote_exchange *exchange, enum remote_failure failure)
{
    exchange->failure = failure;
    exchange->status = failure == REMOTE_FAILURE_NONE ? ZT_OK : ZT_UNAVAILABLE;
    if (failure == REMOTE_FAILURE_NONE)
        zt_error_clear(&exchange->error);
    exchange->flight = NULL;
    exchange->done(exchange);
}

void fetch_fail(struct remote_exchange *exchange, enum remote_failure failure, const char *message)
{
    zt_fail(&exchange->error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "%s", message);
    fetch_finish(exchange, failure);
}

bool remote_is_unreachable(enum remote_failure failure, const struct remote_exchange *exchange)
{
    return failure == REMOTE_FAILURE_CONNECT || failure == REMOTE_FAILURE_PROXY ||
           (failure == REMOTE_FAILURE_BROKEN && exchange->head.status == 0);
}

/* --- the thread: the end of a try --- */

static void end_flight(struct remote_flight *flight, enum remote_failure failure)
{
    struct remote_exchange *exchange = flight->exchange;

    free(flight);
    fetch_finish(exchange, failure);
}

static void end_waiting(struct remote *remote, struct remote_flight *flight,
                        enum remote_failure failure, const char *message)
{
    struct remote_exchange *exchange = flight->exchange;

    assert(atomic_load(&remote->waiting) > 0);
    atomic_fetch_sub(&remote->waiting, 1);
    free(flight);
    fetch_fail(exchange, failure, message);
}

static void pause_flight(struct remote *remote, struct remote_flight *flight, int64_t due_ms)
{
    flight->due_ms = due_ms;
    atomic_fetch_add(&remote->waiting, 1);
    flight_queue_pause(&remote->queue, flight);
}

static unsigned tries_of(const struct remote_flight *flight, enum remote_failure failure)
{
    const struct remote_exchange *exchange = flight->exchange;
    const unsigned tries = exchange->tries != 0 ? exchange->tries : TRIES;
    const unsigned patient = failure == REMOTE_FAILURE_BUSY ? exchange->tries_busy
                             : remote_is_unreachable(failure, exchange)
                                 ? exchange->tries_unreachable
                                 : 0;

    return (patient > tries ? patient : tries) + flight->extra;
}

static int64_t try_pause_ms(struct remote *remote, const struct remote_exchange *exchange)
{
    const uint64_t pause_ms = retry_pause_ms(exchange->tried, &remote->seed);
    const uint64_t asked_ms =
        exchange->obeys_retry_after
            ? retry_after_ms(exchange->head.retry_after, clock_wall_ns() / CLOCK_NS_PER_S)
            : 0;

    return (int64_t)(asked_ms > pause_ms ? asked_ms : pause_ms);
}

/* Pauses before another try. False: there is no time or no try left. */
static bool try_again(struct remote *remote, struct remote_flight *flight,
                      enum remote_failure failure)
{
    const struct remote_exchange *exchange = flight->exchange;
    const int64_t now_ms = clock_ms();
    int64_t due_ms;

    if (exchange->arrived - exchange->begun >= PROGRESS_BYTES)
        flight->extra++;
    if (exchange->tried >= tries_of(flight, failure))
        return false;
    due_ms = now_ms + try_pause_ms(remote, exchange);
    if (due_ms >= flight->deadline_ms)
        return false;
    pause_flight(remote, flight, due_ms);
    return true;
}

/* Whether the answer says that the clocks differ. One to HEAD has no body to say it. */
static bool blames_clock(const struct remote_exchange *exchange)
{
    return exchange->head.status == 403 &&
           (exchange->answer == NULL || strstr(exchange->answer, "RequestTimeTooSkewed") != NULL);
}

/* Half of the remaining time is for the response: if the credentials were not renewed, the
 * refusal. */
static int64_t renewal_end_ms(const struct remote_flight *flight)
{
    const int64_t now_ms = clock_ms();
    const int64_t half_ms = (flight->deadline_ms - now_ms) / 2;

    return now_ms + (half_ms < RENEWAL_MS ? half_ms : RENEWAL_MS);
}

/* A refusal that another signature may avoid, once for each reason. */
static bool sign_again(struct remote *remote, struct remote_flight *flight)
{
    const struct remote_exchange *exchange = flight->exchange;
    const unsigned status = exchange->head.status;

    if (exchange->signer == NULL || (status != 400 && status != 401 && status != 403))
        return false;
    if (!flight->has_adjusted_clock && blames_clock(exchange) &&
        signer_adjust_clock(exchange->signer, exchange->head.date, flight->signed_date))
        flight->has_adjusted_clock = true;
    else if (!flight->is_second_attempt && signer_note_refusal(exchange->signer)) {
        flight->is_second_attempt = true;
        flight->renewed_by_ms = renewal_end_ms(flight);
    } else
        return false;
    flight->extra++;
    return try_again(remote, flight, REMOTE_FAILURE_NONE);
}

static void judge_answer(struct remote *remote, struct remote_flight *flight)
{
    struct remote_exchange *exchange = flight->exchange;
    const unsigned status = exchange->head.status;

    assert(status >= 200);
    if (retry_means_busy(status))
        pace_halve(&remote->pace, flight->round);
    else
        pace_succeed(&remote->pace);
    if (retry_means_busy(status) && exchange->busied != NULL)
        exchange->busied(exchange);
    if (!retry_helps(status)) {
        if (!sign_again(remote, flight))
            end_flight(flight, REMOTE_FAILURE_NONE);
        return;
    }
    if (try_again(remote, flight, REMOTE_FAILURE_BUSY))
        return;
    zt_fail(&exchange->error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the service returned %u",
            status);
    end_flight(flight, REMOTE_FAILURE_BUSY);
}

static void judge(struct remote *remote, struct remote_flight *flight,
                  struct attempt_outcome outcome)
{
    if (outcome.failure == REMOTE_FAILURE_NONE)
        judge_answer(remote, flight);
    else if (!outcome.may_help || !try_again(remote, flight, outcome.failure))
        end_flight(flight, outcome.failure);
}

/* --- the thread: beginning a try --- */

/* False: there are no credentials at the moment. */
static bool sign(const struct remote_exchange *exchange, struct signed_fields *out_fields)
{
    char host[REQUEST_HOST_SIZE];

    /* A wrong origin is found and reported when the request is made. */
    if (!request_host(exchange->origin, host))
        host[0] = '\0';
    return signer_sign(exchange->signer, exchange, host, clock_wall_ns() / CLOCK_NS_PER_S,
                       out_fields);
}

/* Signed with refused credentials, while others are being fetched. */
static bool is_renewing(const struct remote_flight *flight, const struct signed_fields *fields,
                        int64_t now_ms)
{
    return flight->is_second_attempt && fields->credential == flight->signed_with &&
           now_ms < flight->renewed_by_ms;
}

static void release(struct remote *remote, struct carrier *carrier)
{
    assert(carrier->flight != NULL && atomic_load(&remote->running) > 0);
    carrier->flight = NULL;
    carrier->is_quiet = false;
    carrier->next = remote->idle;
    remote->idle = carrier;
    atomic_fetch_sub(&remote->running, 1);
}

/* Hands the request to libcurl. */
static bool launch(struct remote *remote, struct carrier *carrier,
                   const struct signed_fields *fields, int64_t now_ms,
                   struct attempt_outcome *out_outcome)
{
    struct remote_flight *flight = carrier->flight;
    const uint64_t left_ms =
        flight->deadline_ms > now_ms ? (uint64_t)(flight->deadline_ms - now_ms) : 1;

    flight->round = remote->pace.round;
    if (!attempt_begin(carrier->attempt, flight->exchange, left_ms, fields, out_outcome))
        return false;
    attempt_set_context(carrier->attempt, carrier);
    if (curl_multi_add_handle(remote->multi, attempt_handle(carrier->attempt)) == CURLM_OK)
        return true;
    *out_outcome = attempt_end(carrier->attempt, CURLE_OUT_OF_MEMORY);
    return false;
}

static void send_off(struct remote *remote, struct carrier *carrier, struct remote_flight *flight,
                     int64_t now_ms)
{
    struct remote_exchange *exchange = flight->exchange;
    struct attempt_outcome outcome = {REMOTE_FAILURE_CREDENTIALS, true};
    struct signed_fields fields;
    bool can_sign = true;

    assert(carrier->flight == NULL && flight->exchange->flight == flight);
    carrier->flight = flight;
    exchange->begun = exchange->arrived;
    if (exchange->signer != NULL) {
        can_sign = sign(exchange, &fields);
        if (can_sign && is_renewing(flight, &fields, now_ms)) {
            release(remote, carrier);
            pause_flight(remote, flight, now_ms + RENEWAL_LOOK_MS);
            return;
        }
        flight->signed_with = fields.credential;
        memcpy(flight->signed_date, fields.date, sizeof(flight->signed_date));
    }
    exchange->tried++;
    if (!can_sign)
        zt_fail(&exchange->error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                "there are no valid credentials at the moment");
    else if (launch(remote, carrier, exchange->signer != NULL ? &fields : NULL, now_ms, &outcome))
        return;
    release(remote, carrier);
    judge(remote, flight, outcome);
}

/* --- the thread: quiet requests --- */

/* Finds those that are quiet now, and returns how many there are. */
static unsigned mark_quiet(struct remote *remote)
{
    const int64_t before_ms = clock_coarse_ms() - QUIET_MS;
    unsigned count = 0;

    for (unsigned i = 0; i < remote->carrier_count; i++) {
        struct carrier *carrier = &remote->carriers[i];

        carrier->is_quiet =
            carrier->flight != NULL && attempt_moved_ms(carrier->attempt) <= before_ms;
        count += carrier->is_quiet;
    }
    return count;
}

static bool is_beside_quiet(const struct remote *remote, const struct remote_exchange *exchange)
{
    for (unsigned i = 0; i < remote->carrier_count; i++) {
        const struct carrier *carrier = &remote->carriers[i];

        if (carrier->is_quiet && strcmp(carrier->flight->exchange->path, exchange->path) == 0 &&
            strcmp(carrier->flight->exchange->origin, exchange->origin) == 0)
            return true;
    }
    return false;
}

static bool is_not_beside_quiet(const void *remote, const struct remote_flight *flight)
{
    return !is_beside_quiet(remote, flight->exchange);
}

/* One that may be sent now. A quiet request takes no turn from the others, only from those that are
 * likely to become quiet too. */
static struct remote_flight *take_allowed(struct remote *remote, unsigned quiet)
{
    const unsigned running = atomic_load(&remote->running);
    struct remote_flight *flight = NULL;

    if (running >= remote->pace.allowed + quiet)
        return NULL;
    if (quiet > 0)
        flight = flight_queue_take_if(&remote->queue, is_not_beside_quiet, remote);
    if (flight == NULL && running < remote->pace.allowed)
        flight = flight_queue_take(&remote->queue);
    return flight;
}

static void send_allowed(struct remote *remote, int64_t now_ms)
{
    const unsigned quiet = flight_queue_is_waiting(&remote->queue) ? mark_quiet(remote) : 0;

    while (remote->idle != NULL || add_carrier(remote)) {
        struct remote_flight *flight = take_allowed(remote, quiet);
        struct carrier *carrier = remote->idle;

        if (flight == NULL)
            return;
        remote->idle = carrier->next;
        atomic_fetch_sub(&remote->waiting, 1);
        atomic_fetch_add(&remote->running, 1);
        send_off(remote, carrier, flight, now_ms);
    }
}

/* --- the thread: its loop --- */

static void collect_answers(struct remote *remote)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(remote->multi, &left)) != NULL) {
        CURL *handle = message->easy_handle;
        const CURLcode code = message->data.result;
        struct carrier *carrier;
        struct remote_flight *flight;
        struct attempt_outcome outcome;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(handle, CURLINFO_PRIVATE, (char **)&carrier);
        curl_multi_remove_handle(remote->multi, handle);
        flight = carrier->flight;
        assert(flight != NULL);
        outcome = attempt_end(carrier->attempt, code);
        release(remote, carrier);
        judge(remote, flight, outcome);
    }
}

/* Ends those whose time was over before their turn came. */
static void watch_deadlines(struct remote *remote, int64_t now_ms)
{
    struct remote_flight *flight;

    if (now_ms - remote->watched_ms < WATCH_MS)
        return;
    remote->watched_ms = now_ms;
    while ((flight = flight_queue_expire(&remote->queue, now_ms)) != NULL)
        end_waiting(remote, flight, REMOTE_FAILURE_TIMEOUT,
                    "too many requests were queued before this one");
}

static void take_arrivals(struct remote *remote)
{
    struct remote_flight *flight;

    while ((flight = flight_queue_take(&remote->arrivals)) != NULL) {
        flight->due_ms = flight->exchange->not_before_ms;
        if (flight->due_ms > 0)
            flight_queue_pause(&remote->queue, flight);
        else
            flight_queue_add(&remote->queue, flight);
    }
}

static int pause_ms(const struct remote *remote, int64_t now_ms)
{
    const int64_t due_ms = flight_queue_due_ms(&remote->queue);
    int64_t pause = IDLE_MS;

    if (flight_queue_is_waiting(&remote->queue) || due_ms != INT64_MAX)
        pause = WATCH_MS;
    if (due_ms - now_ms < pause)
        pause = due_ms - now_ms;
    return pause > 0 ? (int)pause : 0;
}

/* Waits until there is something to do. False: the end. */
static bool rest(struct remote *remote)
{
    bool has_arrivals;

    pthread_mutex_lock(&remote->lock);
    has_arrivals = flight_queue_is_waiting(&remote->arrivals);
    remote->is_asleep = !has_arrivals && !remote->is_stopping;
    pthread_mutex_unlock(&remote->lock);
    if (!has_arrivals)
        curl_multi_poll(remote->multi, NULL, 0, pause_ms(remote, clock_ms()), NULL);
    pthread_mutex_lock(&remote->lock);
    remote->is_asleep = false;
    take_arrivals(remote);
    has_arrivals = !remote->is_stopping;
    pthread_mutex_unlock(&remote->lock);
    return has_arrivals;
}

static void end_all(struct remote *remote)
{
    struct remote_flight *flight;

    for (unsigned i = 0; i < remote->carrier_count; i++) {
        struct carrier *carrier = &remote->carriers[i];

        flight = carrier->flight;
        if (flight == NULL)
            continue;
        curl_multi_remove_handle(remote->multi, attempt_handle(carrier->attempt));
        attempt_end(carrier->attempt, CURLE_ABORTED_BY_CALLBACK);
        release(remote, carrier);
        atomic_fetch_add(&remote->waiting, 1);
        end_waiting(remote, flight, REMOTE_FAILURE_STOPPED, "the program is shutting down");
    }
    while ((flight = flight_queue_expire(&remote->queue, INT64_MAX)) != NULL)
        end_waiting(remote, flight, REMOTE_FAILURE_STOPPED, "the program is shutting down");
}

void *fetch_work(void *argument)
{
    struct remote *remote = argument;

    while (rest(remote)) {
        int64_t now_ms;
        int running;

        curl_multi_perform(remote->multi, &running);
        collect_answers(remote);
        now_ms = clock_ms();
        watch_deadlines(remote, now_ms);
        flight_queue_wake(&remote->queue, now_ms);
        send_allowed(remote, now_ms);
        atomic_store(&remote->allowed, remote->pace.allowed);
    }
    end_all(remote);
    return NULL;
}
