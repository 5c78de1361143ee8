/* Ids made here are 64 bits of a per-thread sequence with a random start: they need to be distinct,
 * not secret. */
#include "http/exchange/trace.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "http/exchange/request_state.h"

static bool id_is_valid(const char *id)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const size_t length = strlen(id);

    return length > 0 && length < REQUEST_ID_SIZE && strspn(id, allowed) == length;
}

/* SplitMix64: a counter that grows by an odd constant, mixed so that successive numbers look
 * unrelated. */
static uint64_t next_number(void)
{
    static _Thread_local uint64_t counter;
    uint64_t mixed;

    if (counter == 0 && getrandom(&counter, sizeof(counter), GRND_NONBLOCK) != sizeof(counter))
        counter = (uint64_t)clock_ns() ^ (uint64_t)(uintptr_t)&counter;
    counter += 0x9E3779B97F4A7C15u;
    mixed = counter;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    return mixed ^ (mixed >> 31);
}

void trace_make_id(char out_id[REQUEST_ID_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    uint64_t number = next_number();

    for (unsigned i = 0; i < 16; i++, number >>= 4)
        out_id[i] = digits[number & 15];
    out_id[16] = '\0';
}

/* "00-<32 digits>-<16 digits>-<2 digits>"; later versions may append to it. */
static void read_trace(const char *traceparent, char out_trace[TRACE_ID_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    static const char nothing[] = "00000000000000000000000000000000";
    const size_t version = strspn(traceparent, digits);

    if (version != 2 || memcmp(traceparent, "ff", 2) == 0 || traceparent[2] != '-')
        return;
    if (strspn(traceparent + 3, digits) != 32 || traceparent[35] != '-' ||
        strspn(traceparent + 36, digits) != 16 || traceparent[52] != '-' ||
        memcmp(traceparent + 3, nothing, 32) == 0)
        return;
    memcpy(out_trace, traceparent + 3, 32);
    out_trace[32] = '\0';
}

void trace_identify(struct request *request)
{
    const char *id = request_header(request, "X-Request-Id");
    const char *traceparent = request_header(request, "traceparent");

    if (id != NULL && id_is_valid(id))
        memcpy(request->id, id, strlen(id) + 1);
    else
        trace_make_id(request->id);
    if (traceparent != NULL)
        read_trace(traceparent, request_state(request)->trace_id);
}

static const struct {
    const char *reason;
    unsigned status; /* of a request without an answer */
} endings[] = {
    [ENDING_WHOLE] = {NULL, 0},
    [ENDING_REFUSED] = {NULL, 400},
    [ENDING_TIMEOUT] = {"timeout", 408},
    [ENDING_DRAIN] = {"drain", 503},
    [ENDING_CLIENT] = {"client gone", 499},
    [ENDING_SERVER] = {"ended by the server", 500},
};

/* What the client has received of the answer's body. */
static uint64_t body_bytes(const struct request_state *state, uint64_t sent_bytes)
{
    const uint64_t body = sent_bytes > state->head_bytes ? sent_bytes - state->head_bytes : 0;

    return body < state->answer.content_length ? body : state->answer.content_length;
}

static struct log_cut cut_of(const struct request_state *state, enum ending ending,
                             uint64_t sent_bytes)
{
    switch (state->phase) {
    case PHASE_HEADER:
        return (struct log_cut){endings[ending].reason, "header", 0, UINT64_MAX};
    case PHASE_BODY:
        if (state->body_received < state->body_length)
            return (struct log_cut){endings[ending].reason, "body", state->body_received,
                                    state->body_length};
        break;
    case PHASE_LOADING:
        break;
    case PHASE_QUEUED:
        if (state->answer.segment_count > 0)
            return (struct log_cut){endings[ending].reason, "answer", body_bytes(state, sent_bytes),
                                    state->answer.content_length};
        break;
    }
    return (struct log_cut){endings[ending].reason, "answer", 0, UINT64_MAX};
}

static uint64_t bytes_of(const struct request_state *state, const struct log_cut *cut)
{
    if (state->phase != PHASE_QUEUED || state->answer.segment_count == 0)
        return 0;
    return cut->reason != NULL ? cut->done_bytes : state->answer.content_length;
}

void trace_end(struct request *request, enum ending ending, uint64_t sent_bytes)
{
    const struct request_state *state = request_state(request);
    struct log_cut cut = {0};

    assert((unsigned)ending < sizeof(endings) / sizeof(endings[0]));
    assert(ending != ENDING_WHOLE || state->phase == PHASE_QUEUED);
    if (!log_enabled(LOG_LEVEL_INFO))
        return;
    /* The library refused the header. */
    if (state->phase == PHASE_HEADER)
        trace_make_id(request->id);
    if (endings[ending].reason != NULL)
        cut = cut_of(state, ending, sent_bytes);
    log_request(&(struct log_request_line){
        .request_id = request->id,
        .trace_id = state->trace_id,
        .method = state->phase != PHASE_HEADER ? method_name(request->method) : "-",
        .path = state->target,
        .route = request->route != NULL ? request->route->pattern : "",
        .status = state->phase == PHASE_QUEUED ? state->answer.status : endings[ending].status,
        .bytes = bytes_of(state, &cut),
        .duration_us = (uint64_t)(clock_ns() - state->started_ns) / 1000,
        .cut = cut,
    });
}
