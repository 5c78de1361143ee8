/* The phases are consecutive and add up to the total; waiting time is part of them. */
#include "http/exchange/timing.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "http/exchange/problem.h"
#include "http/exchange/request_state.h"

/* begin, body, handle, the steps of the representation, digest. */
#define LAPS_MOST (4 + REPRESENTATION_STEPS)
/* "handle;dur=1234567.123, " */
#define LAP_BYTES 48

struct timing {
    int64_t last_ns;
    int64_t wait_began_ns; /* 0: not waiting */
    int64_t waited_ns;
    unsigned count;
    struct {
        const char *name;
        int64_t ns;
    } laps[LAPS_MOST];
};

void timing_begin(struct request *request)
{
    struct request_state *state = request_state(request);
    struct zt_text value;

    if (!request_query(request, "timing", 0, &value) || zt_text_is(value, "0") ||
        zt_text_is(value, "false"))
        return;
    if (value.length > 0 && !zt_text_is(value, "1") && !zt_text_is(value, "true")) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "timing must be 1 or 0");
        return;
    }
    state->timing = request_allocate(request, sizeof(*state->timing));
    if (state->timing != NULL)
        *state->timing = (struct timing){.last_ns = state->started_ns};
}

void timing_lap(struct request *request, const char *name)
{
    struct timing *timing = request_state(request)->timing;
    const int64_t now_ns = clock_ns();

    assert(timing != NULL && timing->count < LAPS_MOST);
    timing->laps[timing->count].name = name;
    timing->laps[timing->count].ns = now_ns - timing->last_ns;
    timing->count++;
    timing->last_ns = now_ns;
}

void timing_wait(struct request *request)
{
    struct timing *timing = request_state(request)->timing;

    assert(timing != NULL);
    timing->wait_began_ns = clock_ns();
}

void timing_continue(struct request *request)
{
    struct timing *timing = request_state(request)->timing;

    assert(timing != NULL);
    if (timing->wait_began_ns == 0)
        return;
    timing->waited_ns += clock_ns() - timing->wait_began_ns;
    timing->wait_began_ns = 0;
}

/* Writes one phase with its time in milliseconds, as the field requires. */
static size_t write_entry(char *text, size_t size, const char *name, int64_t ns)
{
    const int length = snprintf(text, size, "%s;dur=%" PRId64 ".%03d, ", name, ns / CLOCK_NS_PER_MS,
                                (int)(ns % CLOCK_NS_PER_MS / 1000));

    assert(length > 0 && (size_t)length < size);
    return (size_t)length;
}

const char *timing_text(struct request *request)
{
    const struct request_state *state = request_state(request);
    const struct timing *timing = state->timing;
    const size_t size = (LAPS_MOST + 2) * LAP_BYTES;
    size_t length = 0;
    char *text;

    assert(timing != NULL);
    text = request_allocate(request, size);
    if (text == NULL)
        return NULL;
    for (unsigned i = 0; i < timing->count; i++)
        length +=
            write_entry(text + length, size - length, timing->laps[i].name, timing->laps[i].ns);
    length += write_entry(text + length, size - length, "wait", timing->waited_ns);
    length += write_entry(text + length, size - length, "total", clock_ns() - state->started_ns);
    text[length - strlen(", ")] = '\0';
    return text;
}
