/* Ids made here are 64 bits of a per-thread sequence with a random start: they must be distinct,
 * not secret. */
#include "http/exchange/trace.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/metrics.h"
#include "http/exchange/client.h"
#include "http/exchange/request_metrics.h"
#include "http/exchange/request_state.h"

/* --- names --- */

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
    const uint64_t number = next_number();

    zt_hex_write(out_id, &number, sizeof(number));
}

/* "00-<32 digits>-<16 digits>-<2 digits>"; later versions may append to it. */
static void read_trace(const char *traceparent, char out_trace[TRACE_ID_SIZE])
{
    static const char digits[] = ZT_HEX_LOWER;
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

    request_state(request)->has_own_id = id != NULL && id_is_valid(id);
    if (request_state(request)->has_own_id)
        memcpy(request->id, id, strlen(id) + 1);
    else
        trace_make_id(request->id);
    if (traceparent != NULL)
        read_trace(traceparent, request_state(request)->trace_id);
}

/* --- ends --- */

static const struct {
    const char *reason;
    unsigned status;    /* for a request without an answer */
    enum metric metric; /* used if there is a reason */
} endings[] = {
    [ENDING_WHOLE] = {NULL, 0, 0},
    [ENDING_REFUSED] = {NULL, 400, 0},
    [ENDING_TIMEOUT] = {"timeout", 408, METRIC_CUT_TIMEOUT},
    [ENDING_DRAIN] = {"drain", 503, METRIC_CUT_DRAIN},
    [ENDING_CLIENT] = {"client gone", 499, METRIC_CUT_CLIENT},
    [ENDING_SERVER] = {"ended by the server", 500, METRIC_CUT_SERVER},
};

/* Returns how many bytes of the answer's body the client has received. */
static uint64_t body_bytes(const struct request_state *state, uint64_t sent_bytes)
{
    const uint64_t body = sent_bytes > state->head_bytes ? sent_bytes - state->head_bytes : 0;

    return body < state->answer.content_length ? body : state->answer.content_length;
}

static struct log_cut cut_of(const struct request_state *state, enum ending ending,
                             uint64_t sent_bytes)
{
    switch (state->stage) {
    case STAGE_LINE:
        return (struct log_cut){endings[ending].reason, "header", 0, UINT64_MAX};
    case STAGE_BODY:
    case STAGE_HANDLE:
    case STAGE_PREPARE:
    case STAGE_DIGEST:
        if (state->received_ns == 0 && state->body_received < state->body_length)
            return (struct log_cut){endings[ending].reason, "body", state->body_received,
                                    state->body_length};
        break;
    case STAGE_ANSWER:
        break;
    case STAGE_QUEUED:
        if (state->answer.segment_count > 0)
            return (struct log_cut){endings[ending].reason, "answer", body_bytes(state, sent_bytes),
                                    state->answer.content_length};
        break;
    }
    return (struct log_cut){endings[ending].reason, "answer", 0, UINT64_MAX};
}

static uint64_t bytes_of(const struct request_state *state, const struct log_cut *cut)
{
    if (state->stage != STAGE_QUEUED || state->answer.segment_count == 0)
        return 0;
    return cut->reason != NULL ? cut->done_bytes : state->answer.content_length;
}

static unsigned status_of(const struct request_state *state, enum ending ending)
{
    if (state->stage == STAGE_QUEUED)
        return state->answer.status;
    return state->library_status != 0 ? state->library_status : endings[ending].status;
}

static bool has_sent_problem(const struct request_state *state)
{
    return state->stage == STAGE_QUEUED && state->has_problem && state->answer.status >= 400;
}

/* Returns the model in the path. */
static struct zt_text model_of(const struct request *request)
{
    static const char models[] = "/v1/models/{";
    static const struct zt_text none = {NULL, 0};
    const bool is_named =
        request->route != NULL && strncmp(request->route->pattern, models, sizeof(models) - 1) == 0;

    return is_named ? request->names[0] : none;
}

static void count(const struct request *request, enum ending ending, uint64_t sent_bytes,
                  int64_t ended_ns)
{
    const struct request_state *state = request_state_const(request);
    const bool is_answered = state->stage == STAGE_QUEUED;
    const uint64_t body =
        is_answered && state->answer.segment_count > 0 ? state->answer.content_length : 0;
    const int64_t received_ns = state->received_ns > 0 ? state->received_ns : state->started_ns;
    const int64_t answered_ns = state->answered_ns > 0 ? state->answered_ns : ended_ns;

    if (endings[ending].reason != NULL)
        metric_add(endings[ending].metric, 1);
    if (has_sent_problem(state))
        request_metrics_problem(state->problem);
    request_metrics_count(
        request, &(struct request_outcome){
                     .status = status_of(state, ending),
                     .sent_bytes = ending == ENDING_WHOLE ? state->head_bytes + body : sent_bytes,
                     .received_bytes = state->header_bytes + state->body_received,
                     .duration_ns = (uint64_t)(ended_ns - state->started_ns),
                     .wait_ns = is_answered ? (uint64_t)(answered_ns - received_ns) : UINT64_MAX,
                 });
}

void trace_end(struct request *request, enum ending ending, uint64_t sent_bytes)
{
    const struct request_state *state = request_state(request);
    const int64_t ended_ns = clock_ns();
    struct log_cut cut = {0};

    assert((unsigned)ending < sizeof(endings) / sizeof(endings[0]));
    assert(ending != ENDING_WHOLE || state->stage == STAGE_QUEUED);
    count(request, ending, sent_bytes, ended_ns);
    if (!log_enabled(LOG_LEVEL_INFO))
        return;
    /* The library refused the header, so the request has no id yet. */
    if (state->stage == STAGE_LINE)
        trace_make_id(request->id);
    if (endings[ending].reason != NULL)
        cut = cut_of(state, ending, sent_bytes);
    log_request(&(struct log_request_line){
        .request_id = request->id,
        .trace_id = state->trace_id,
        .method = state->stage != STAGE_LINE ? method_name(request->method) : "-",
        .path = state->target,
        .route = request->route != NULL ? route_name(request->route) : "",
        .client = state->peer != NULL ? state->peer->text : NULL,
        .forwarded = state->forwarded,
        .user = request->client,
        .user_agent = request_header(request, "User-Agent"),
        .code = has_sent_problem(state) ? problem_code(state->problem) : NULL,
        .model = model_of(request),
        .status = status_of(state, ending),
        .bytes = bytes_of(state, &cut),
        .duration_us = (uint64_t)(ended_ns - state->started_ns) / 1000,
        .cut = cut,
    });
}
