#include "remote/credential_call.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "remote/credential_text.h"

/* An answer has a few KiB. */
#define ANSWER_MAX ((size_t)64 << 10)
/* The time by which the remote may exceed its limit. */
#define GRACE_MS 2000

struct credential_calls {
    struct remote *remote;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_stopping;
    unsigned users; /* its owner, and each exchange that is under way */
};

struct call {
    struct remote_exchange exchange;
    struct credential_calls *calls;
    bool is_done;
    bool is_given_up;
    struct service_address address;
    char *values[2];
    char *body;
    size_t body_length;
};

struct credential_calls *credential_calls_new(struct remote *remote)
{
    struct credential_calls *calls = calloc(1, sizeof(*calls));
    pthread_condattr_t attributes;

    if (calls == NULL)
        return NULL;
    calls->remote = remote;
    calls->users = 1;
    pthread_mutex_init(&calls->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&calls->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return calls;
}

void credential_calls_stop(struct credential_calls *calls)
{
    pthread_mutex_lock(&calls->lock);
    calls->is_stopping = true;
    pthread_cond_broadcast(&calls->changed);
    pthread_mutex_unlock(&calls->lock);
}

/* Under the lock, which it gives back. */
static void leave(struct credential_calls *calls)
{
    const bool is_last = --calls->users == 0;

    pthread_mutex_unlock(&calls->lock);
    if (!is_last)
        return;
    pthread_cond_destroy(&calls->changed);
    pthread_mutex_destroy(&calls->lock);
    free(calls);
}

void credential_calls_free(struct credential_calls *calls)
{
    if (calls == NULL)
        return;
    pthread_mutex_lock(&calls->lock);
    calls->is_stopping = true;
    leave(calls);
}

/* --- one call --- */

static void wipe(char *text, size_t length)
{
    if (text != NULL)
        explicit_bzero(text, length);
    free(text);
}

static void call_free(struct call *call)
{
    if (call == NULL)
        return;
    assert(call->exchange.flight == NULL);
    if (call->exchange.answer != NULL)
        explicit_bzero(call->exchange.answer, call->exchange.answer_length);
    remote_exchange_free(&call->exchange);
    for (size_t i = 0; i < 2; i++)
        wipe(call->values[i], call->values[i] == NULL ? 0 : strlen(call->values[i]));
    wipe(call->body, call->body_length);
    free(call);
}

/* On the remote's thread. */
static void call_ends(struct remote_exchange *exchange)
{
    struct call *call = exchange->context;
    struct credential_calls *calls = call->calls;

    pthread_mutex_lock(&calls->lock);
    assert(!call->is_done && calls->users > 0);
    call->is_done = true;
    pthread_cond_broadcast(&calls->changed);
    if (call->is_given_up)
        call_free(call);
    leave(calls);
}

static bool copy_request(struct call *call, const struct credential_request *request)
{
    struct remote_exchange *exchange = &call->exchange;

    call->address = *request->address;
    for (unsigned i = 0; i < request->field_count; i++) {
        call->values[i] = strdup(request->fields[i].value);
        if (call->values[i] == NULL)
            return false;
        exchange->fields[i] = (struct remote_field){request->fields[i].name, call->values[i]};
    }
    exchange->field_count = request->field_count;
    if (request->body.length == 0)
        return true;
    call->body = malloc(request->body.length);
    if (call->body == NULL)
        return false;
    memcpy(call->body, request->body.bytes, request->body.length);
    call->body_length = request->body.length;
    exchange->body = REMOTE_BODY_MEMORY;
    exchange->body_bytes = call->body;
    exchange->body_length = call->body_length;
    return true;
}

static struct call *call_new(struct credential_calls *calls,
                             const struct credential_request *request)
{
    struct call *call = calloc(1, sizeof(*call));
    struct remote_exchange *exchange;

    assert(request->field_count <= 2);
    if (call == NULL)
        return NULL;
    exchange = &call->exchange;
    remote_exchange_init(exchange);
    call->calls = calls;
    if (!copy_request(call, request)) {
        call_free(call);
        return NULL;
    }
    exchange->method = request->method;
    exchange->origin = call->address.origin;
    exchange->path = call->address.path;
    exchange->query = call->address.query[0] == '\0' ? NULL : call->address.query;
    exchange->time_ms = request->time_ms;
    /* One that hangs leaves time for another. */
    exchange->try_ms = request->tries > 1 ? request->time_ms / 2 : request->time_ms;
    exchange->tries = request->tries;
    exchange->is_urgent = true;
    exchange->body_most = ANSWER_MAX;
    exchange->done = call_ends;
    exchange->context = call;
    return call;
}

static struct timespec deadline_after(uint64_t ms)
{
    const int64_t at_ns = clock_ns() + (int64_t)ms * CLOCK_NS_PER_MS;

    return (struct timespec){at_ns / CLOCK_NS_PER_S, at_ns % CLOCK_NS_PER_S};
}

/* Whether the call is done, not given up. */
static bool wait_for(struct call *call, uint64_t time_ms)
{
    struct credential_calls *calls = call->calls;
    const struct timespec deadline = deadline_after(time_ms + GRACE_MS);
    bool is_done;

    pthread_mutex_lock(&calls->lock);
    while (!call->is_done && !calls->is_stopping)
        if (pthread_cond_timedwait(&calls->changed, &calls->lock, &deadline) != 0)
            break;
    is_done = call->is_done;
    call->is_given_up = !is_done;
    pthread_mutex_unlock(&calls->lock);
    return is_done;
}

static bool enter(struct credential_calls *calls)
{
    bool may;

    pthread_mutex_lock(&calls->lock);
    may = !calls->is_stopping;
    calls->users += may;
    pthread_mutex_unlock(&calls->lock);
    return may;
}

static enum zt_status no_answer(const struct credential_request *request, const char *why,
                                struct zt_error *error)
{
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "%s at %s does not respond%s%s",
                   request->what, request->address->origin, why[0] == '\0' ? "" : ": ", why);
}

enum zt_status credential_call(struct credential_calls *calls,
                               const struct credential_request *request,
                               struct credential_answer *out_answer, struct zt_error *error)
{
    struct call *call = call_new(calls, request);
    struct remote_exchange *exchange;
    enum zt_status status = ZT_OK;

    if (call == NULL)
        return zt_fail_memory(error, "credentials");
    if (!enter(calls)) {
        call_free(call);
        return no_answer(request, "", error);
    }
    exchange = &call->exchange;
    remote_begin(calls->remote, exchange);
    if (!wait_for(call, request->time_ms))
        return no_answer(request, "", error);
    if (exchange->status != ZT_OK) {
        status = no_answer(request, exchange->error.message, error);
    } else {
        *out_answer = (struct credential_answer){exchange->head.status, exchange->answer,
                                                 exchange->answer_length};
        exchange->answer = NULL;
    }
    call_free(call);
    return status;
}

void credential_answer_free(struct credential_answer *answer)
{
    wipe(answer->text, answer->length);
    answer->text = NULL;
}

enum zt_status credential_answer_refused(const char *where,
                                         const struct credential_request *request,
                                         const struct credential_answer *answer,
                                         struct zt_error *error)
{
    const bool may_end = answer->status >= 500 || answer->status == 408 || answer->status == 429;
    char code[CREDENTIAL_CODE_SIZE];

    credential_error_code((struct zt_text){answer->text, answer->length}, code);
    return zt_fail(error, may_end ? ZT_UNAVAILABLE : ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                   "%s: %s at %s answered %u%s%s", where, request->what, request->address->origin,
                   answer->status, code[0] == '\0' ? "" : " ", code);
}
