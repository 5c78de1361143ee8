/* Names of requests. Those made here are 64 bits from a per-thread sequence that nobody can guess the start of; they
 * need to be distinct, not secret. */
#include "http/trace.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "http/request_state.h"
#include "runtime/log.h"

static bool id_is_sane(const char *id)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const size_t length = strlen(id);

    return length > 0 && length < REQUEST_ID_SIZE && strspn(id, allowed) == length;
}

/* The sequence of SplitMix64: a counter in steps of an odd constant, mixed so that neighbours look unlike. */
static uint64_t next_number(void)
{
    static _Thread_local uint64_t counter;
    uint64_t mixed;

    if (counter == 0 && getrandom(&counter, sizeof(counter), GRND_NONBLOCK) != sizeof(counter))
        counter = trace_clock_ns() ^ (uint64_t)(uintptr_t)&counter;
    counter += 0x9E3779B97F4A7C15u;
    mixed = counter;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    return mixed ^ (mixed >> 31);
}

static void make_id(char *out_id)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t number = next_number();

    for (unsigned i = 0; i < 16; i++, number >>= 4)
        out_id[i] = digits[number & 15];
    out_id[16] = '\0';
}

/* "00-<32 digits>-<16 digits>-<2 digits>"; later versions may go on after it. */
static void read_trace(const char *traceparent, char out_trace[TRACE_ID_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    static const char nothing[] = "00000000000000000000000000000000";
    const size_t version = strspn(traceparent, digits);

    if (version != 2 || memcmp(traceparent, "ff", 2) == 0 || traceparent[2] != '-')
        return;
    if (strspn(traceparent + 3, digits) != 32 || traceparent[35] != '-' || strspn(traceparent + 36, digits) != 16 ||
        traceparent[52] != '-' || memcmp(traceparent + 3, nothing, 32) == 0)
        return;
    memcpy(out_trace, traceparent + 3, 32);
    out_trace[32] = '\0';
}

void trace_identify(struct request *request)
{
    const char *id = request_header(request, "X-Request-Id");
    const char *traceparent = request_header(request, "traceparent");

    if (id != NULL && id_is_sane(id))
        memcpy(request->id, id, strlen(id) + 1);
    else
        make_id(request->id);
    if (traceparent != NULL)
        read_trace(traceparent, request_state(request)->trace_id);
}

uint64_t trace_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void trace_log(struct request *request, uint64_t bytes_sent)
{
    const struct request_state *state = request_state(request);

    if (!log_enabled(LOG_LEVEL_INFO))
        return;
    log_request(&(struct log_request_line){
        .request_id = request->id,
        .trace_id = state->trace_id,
        .method = method_name(request->method),
        .path = state->target,
        .route = request->route != NULL ? request->route->pattern : "",
        .status = state->answer.status,
        .bytes = bytes_sent,
        .duration_us = (trace_clock_ns() - state->started_ns) / 1000,
    });
}
