/* What is brought is freed with the request. A job runs only while the request waits for it, or
 * while bulk.c sends, which waits for it before it lets the request end. */
#include "http/wire/elsewhere.h"

#include <stdlib.h>

#include "http/body/bring_in.h"
#include "http/exchange/client.h"
#include "http/exchange/request_state.h"
#include "http/wire/bulk.h"

struct bringing {
    struct bring_in bring; /* first: its job is the structure */
    struct request *request;
};

static void on_brought(struct job *job)
{
    struct bringing *bringing = (struct bringing *)job;
    struct request_state *state = request_state(bringing->request);

    bring_in_done(&bringing->bring);
    if (state->bulk != NULL)
        bulk_continue(state->bulk);
    else
        state->transport->resume(bringing->request);
}

static void end(void *thing)
{
    struct bringing *bringing = thing;

    bring_in_end(&bringing->bring);
    free(bringing);
}

/* False if out of memory. */
static bool begin(struct request *request)
{
    struct bringing *bringing = calloc(1, sizeof(*bringing));
    struct request_state *state = request_state(request);

    if (bringing == NULL)
        return false;
    bringing->request = request;
    bringing->bring.job = (struct job){
        .done = on_brought, .mailbox = request->mailbox, .client = request_client_key(request)};
    bring_in_begin(&bringing->bring, &state->answer);
    state->bring = &bringing->bring;
    request_hold(request, bringing, end);
    return true;
}

static void release_pin(void *thing)
{
    zt_pin_release(thing);
}

/* Most small answers are a piece of one file that is here: nothing but its pin is needed. */
static bool pin_whole(struct request *request)
{
    struct request_state *state = request_state(request);
    struct answer *answer = &state->answer;
    const struct zt_slice *slice;
    struct zt_source *origin = segment_origin(&answer->segments[0], &slice);
    const struct segment *segment = &answer->segments[0];
    struct zt_pin *pin;

    if (answer->segment_count != 1 || answer->content_length > BRING_IN_WHOLE || slice != NULL)
        return false;
    pin = request_allocate(request, sizeof(*pin));
    if (pin == NULL ||
        zt_source_pin(origin, segment->offset, segment->length, false, pin, NULL) != ZT_OK)
        return false;
    request_hold(request, pin, release_pin);
    /* Not in the list of the representation, which others may share. */
    state->answer_segments[0] = *segment;
    state->answer_segments[0].source = pin->view;
    state->answer_segments[0].is_pinned = true;
    answer->segments = state->answer_segments;
    return true;
}

static enum elsewhere take_first(struct request *request)
{
    struct request_state *state = request_state(request);
    struct answer *answer = &state->answer;
    const struct answer *part = bring_in_part(state->bring);
    const struct zt_error *error = bring_in_error(state->bring);

    if (part == NULL && error == NULL)
        return ELSEWHERE_WAITS;
    /* Without room to keep it, it is read in small pieces. */
    if (part == NULL)
        return error->status == ZT_LIMIT ? ELSEWHERE_READ : ELSEWHERE_FAILED;
    if (part->content_length < answer->content_length)
        return bulk_can_stream(request) ? ELSEWHERE_STREAM : ELSEWHERE_READ;
    answer->segments = part->segments;
    answer->segment_count = part->segment_count;
    return ELSEWHERE_HERE;
}

enum elsewhere elsewhere_bring(struct request *request)
{
    struct request_state *state = request_state(request);
    const struct answer *answer = &state->answer;

    /* Only such a store has them. */
    if (request->server->waiters == NULL || !answer_is_elsewhere(answer))
        return ELSEWHERE_HERE;
    if (state->bring == NULL) {
        if (pin_whole(request))
            return ELSEWHERE_HERE;
        if (!pinned_is_possible(answer) ||
            (answer->content_length > BRING_IN_WHOLE && !bulk_can_stream(request)) ||
            !begin(request))
            return ELSEWHERE_READ;
        bring_in_first(state->bring, request->server);
    }
    return take_first(request);
}

const struct zt_error *elsewhere_error(const struct request *request)
{
    return bring_in_error(request_state_const(request)->bring);
}
