/* The first part is small, so that the first byte is sent soon; each further part is twice as
 * large, up to the largest piece that a store sends.
 *
 * An answer that is streamed takes its bytes as they arrive, and is called back for more: however
 * many clients wait for a slow store, they occupy no thread. Only answers that are sent whole, and
 * slices, wait for their bytes in a job. bulk.c waits for the job, or the call, before it lets the
 * request end. */
#include "http/wire/remote_body.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/server.h"
#include "base/workers.h"
#include "cache/cache.h"
#include "http/body/pinned.h"
#include "http/exchange/request_state.h"
#include "http/wire/bulk.h"

/* Answers up to this size are fetched and kept whole. */
#define WHOLE_BYTES ((uint64_t)8 << 20)
/* How many parts there may be, and how many are enough once the first is being sent. */
#define PARTS       8
#define PARTS_READY 4
/* The size of a part that a job waits for: at first, and at most. */
#define PART_FIRST ((uint64_t)1 << 20)
#define PART_MOST  ((uint64_t)8 << 20)
/* How many bytes after that part are kept in transit: at first, and at most. */
#define AHEAD_FIRST ((uint64_t)8 << 20)
#define AHEAD_MOST  ((uint64_t)64 << 20)
/* The maximum to pin at once as long as all bytes are local. */
#define HERE_BYTES ((uint64_t)32 << 20)
/* How many bytes should be ready after the part that is being sent. */
#define READY_BYTES ((uint64_t)16 << 20)
/* The maximum to copy from bytes that arrive, and to wait for: less than a slow store sends while
 * its clients are patient. */
#define ARRIVED_BYTES ((uint64_t)256 << 10)
#define LEAST_MOST    ((uint64_t)64 << 10)
/* After a wait of this length the next byte is sent as soon as it arrives. */
#define LONG_WAIT_MS 50
/* How many bytes to read at once if there is no room to keep fetched bytes. */
#define READ_BYTES ((uint64_t)256 << 10)

struct remote_body {
    struct job job; /* first: the job is the structure */
    struct request *request;
    const struct answer *answer; /* the request's answer; see pinned_is_possible */
    struct pinned parts[PARTS];  /* the first is being sent */
    unsigned count;
    struct place end; /* end of the last part */
    bool is_cold;     /* some of the answer was not local */
    bool has_fetched; /* some of that has arrived */
    bool is_streamed;
    bool runs;
    struct zt_error error; /* once it has failed */

    /* The call for the next bytes; the job carries it to the loop. */
    struct zt_source_waiter waiter;
    bool is_called;
    uint64_t least; /* how many bytes to wait for */
    int64_t asked_ms;
    uint64_t part_end; /* the part that was asked for ends here */

    /* The job owns these while it runs. */
    struct pinned coming;
    uint64_t job_bytes; /* of the part, as far as it may be given to the client */
    uint64_t part_bytes;
    uint64_t ahead_bytes;
    struct zt_error job_error;
};

/* --- on a worker --- */

static uint64_t grown(uint64_t bytes, unsigned factor, uint64_t most)
{
    return bytes * factor < most ? bytes * factor : most;
}

/* Announces the bytes after the part to the store. The pin fetches the part itself, so that it does
 * not become a piece of a larger fetch. */
static void advise_after_part(const struct remote_body *body)
{
    const uint64_t left = body->answer->content_length - body->end.at;
    struct place from = body->end;

    assert(body->end.at < body->answer->content_length);
    place_advance(&from, body->answer, left < body->part_bytes ? left : body->part_bytes);
    answer_advise(body->answer, from, body->ahead_bytes);
}

/* Fetches the next part. Once bytes of the answer have been sent it must continue, if necessary
 * without keeping the fetched bytes. */
static void fetch_part(struct job *job)
{
    struct remote_body *body = (struct remote_body *)job;
    enum zt_status status;

    assert(body->runs);
    zt_error_clear(&body->job_error);
    advise_after_part(body);
    status = pinned_take(&body->coming, body->answer, body->end, body->job_bytes, true,
                         &body->job_error);
    if (status == ZT_LIMIT && body->end.at > 0) {
        zt_error_clear(&body->job_error);
        pinned_read(&body->coming, body->answer, body->end,
                    body->job_bytes < READ_BYTES ? body->job_bytes : READ_BYTES, &body->job_error);
    }
    body->part_bytes = grown(body->part_bytes, 2, PART_MOST);
    body->ahead_bytes = grown(body->ahead_bytes, 4, AHEAD_MOST);
}

/* --- on the loop --- */

static void append(struct remote_body *body, const struct pinned *part)
{
    assert(body->count < PARTS && part->answer.content_length > 0);
    body->parts[body->count++] = *part;
    body->has_fetched = body->has_fetched || body->is_cold;
    assert(body->end.at + part->answer.content_length <= body->answer->content_length);
    place_advance(&body->end, body->answer, part->answer.content_length);
}

static bool take_local(struct remote_body *body, uint64_t most)
{
    struct pinned part;

    if (pinned_take(&part, body->answer, body->end, most, false, NULL) != ZT_OK)
        return false;
    append(body, &part);
    return true;
}

/* The announced bytes have arrived, so announce more. */
static void advise_more(struct remote_body *body)
{
    body->part_bytes = grown(body->part_bytes, 2, PART_MOST);
    if (body->end.at < body->answer->content_length)
        answer_advise(body->answer, body->end, body->ahead_bytes);
}

/* Returns true if the bytes at the end of the parts can be streamed as they arrive. */
static bool takes_arriving(const struct remote_body *body)
{
    return body->is_streamed && answer_can_await(body->answer, body->end);
}

/* Takes what is local of the next bytes: if not all of them, then half of them, and so on, at least
 * to the end of a block. So each part has at least half of what is left. */
static bool take_some_local(struct remote_body *body, uint64_t most)
{
    const struct segment *segment = place_segment(&body->end, body->answer);
    const struct zt_slice *slice;
    const struct zt_source *origin = segment_origin(segment, &slice);
    uint64_t least =
        origin != NULL && zt_source_is_remote(origin)
            ? CACHE_BLOCK_BYTES - (segment->offset + body->end.within) % CACHE_BLOCK_BYTES
            : segment->length - body->end.within;

    least = least < most ? least : most;
    for (; most > least; most /= 2)
        if (take_local(body, most))
            return true;
    return take_local(body, least);
}

static bool take_arrived(struct remote_body *body, uint64_t most)
{
    struct pinned part;

    if (pinned_take_arrived(&part, body->answer, body->end,
                            most < ARRIVED_BYTES ? most : ARRIVED_BYTES, NULL) != ZT_OK)
        return false;
    append(body, &part);
    return true;
}

static void wake(struct zt_source_waiter *waiter)
{
    struct remote_body *body =
        (struct remote_body *)((char *)waiter - offsetof(struct remote_body, waiter));

    mailbox_put(body->job.mailbox, &body->job.mail);
}

/* Asks for the next bytes, and to be called when they arrive. */
static void call_for_next(struct remote_body *body, uint64_t passed)
{
    const uint64_t least = passed > 0 && passed < body->least ? passed : body->least;

    if (body->end.at >= body->part_end) {
        body->part_end = body->end.at + body->part_bytes;
        if (body->end.at < body->answer->content_length)
            advise_after_part(body);
        body->part_bytes = grown(body->part_bytes, 2, PART_MOST);
        body->ahead_bytes = grown(body->ahead_bytes, 4, AHEAD_MOST);
    }
    body->is_called = true;
    body->asked_ms = clock_ms();
    answer_await(body->answer, body->end, body->part_end - body->end.at, least, &body->waiter);
}

/* Takes the next part if it is local. Otherwise asks for it and returns false. */
static bool take_next(struct remote_body *body)
{
    const bool is_cold = body->is_cold;
    const uint64_t passed =
        answer_pass(body->answer, body->end, is_cold ? body->part_bytes : HERE_BYTES);

    assert(!body->runs && body->count < PARTS);
    if (passed > 0 &&
        (takes_arriving(body) ? take_some_local(body, passed) : take_local(body, passed))) {
        if (is_cold)
            advise_more(body);
        return true;
    }
    body->is_cold = true;
    if (passed > 0 && takes_arriving(body) && take_arrived(body, passed))
        return true;
    body->runs = true;
    if (passed == 0 || takes_arriving(body)) {
        call_for_next(body, passed);
    } else {
        body->job_bytes = passed < body->part_bytes ? passed : body->part_bytes;
        workers_submit(server_waiters(body->request->server), &body->job);
    }
    return false;
}

/* Returns true if another part can be taken now. */
static bool is_open(const struct remote_body *body)
{
    return !body->runs && body->error.status == ZT_OK &&
           body->end.at < body->answer->content_length;
}

static bool is_ready(const struct remote_body *body)
{
    uint64_t ready = 0;

    for (unsigned i = 1; i < body->count; i++)
        ready += body->parts[i].answer.content_length;
    return body->count >= PARTS_READY || ready >= READY_BYTES;
}

void remote_body_continue(struct remote_body *body)
{
    while (is_open(body) && !is_ready(body))
        if (!take_next(body))
            return;
}

const struct answer *remote_body_part(const struct remote_body *body)
{
    return body->count > 0 ? &body->parts[0].answer : NULL;
}

void remote_body_drop(struct remote_body *body)
{
    assert(body->count > 0);
    pinned_release(&body->parts[0]);
    body->count--;
    memmove(body->parts, body->parts + 1, body->count * sizeof(body->parts[0]));
    body->parts[body->count] = (struct pinned){.pin_count = 0};
}

bool remote_body_is_last(const struct remote_body *body)
{
    assert(body->end.at <= body->answer->content_length);
    return body->count <= 1 && !body->runs && body->end.at == body->answer->content_length;
}

bool remote_body_is_fetching(const struct remote_body *body)
{
    return body->runs;
}

const struct zt_error *remote_body_error(const struct remote_body *body)
{
    return body->error.status != ZT_OK ? &body->error : NULL;
}

void remote_body_give_up(struct remote_body *body, int64_t waited_ms)
{
    assert(!body->is_called || body->runs);
    if (!body->is_called || clock_ms() - body->asked_ms < waited_ms ||
        !zt_source_forget(&body->waiter))
        return;
    zt_fail(&body->waiter.error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the client has left");
    wake(&body->waiter);
}

/* --- of a request --- */

static void end_call(struct remote_body *body)
{
    const bool was_long = clock_ms() - body->asked_ms > LONG_WAIT_MS;

    assert(body->least > 0 && body->least <= LEAST_MOST);
    body->is_called = false;
    body->least = was_long ? 1 : grown(body->least, 4, LEAST_MOST);
    if (body->waiter.error.status != ZT_OK)
        body->error = body->waiter.error;
}

static void on_fetched(struct job *job)
{
    struct remote_body *body = (struct remote_body *)job;
    struct request_state *state = request_state(body->request);

    assert(body->runs);
    body->runs = false;
    if (body->is_called) {
        end_call(body);
    } else if (body->job_error.status == ZT_OK) {
        append(body, &body->coming);
        body->coming = (struct pinned){.pin_count = 0};
    } else {
        body->error = body->job_error;
    }
    if (state->bulk != NULL)
        bulk_continue(state->bulk);
    else
        state->transport->resume(body->request);
}

static void end(void *thing)
{
    struct remote_body *body = thing;

    assert(!body->runs);
    while (body->count > 0)
        remote_body_drop(body);
    free(body);
}

/* Returns NULL if out of memory. */
static struct remote_body *begin(struct request *request, bool may_stream)
{
    const struct answer *answer = &request_state(request)->answer;
    struct remote_body *body = calloc(1, sizeof(*body));

    assert(answer->content_length > 0);
    if (body == NULL)
        return NULL;
    body->job = (struct job){.run = fetch_part,
                             .done = on_fetched,
                             .mailbox = request->mailbox,
                             .client = request_client_key(request)};
    body->request = request;
    body->answer = answer;
    body->is_streamed = may_stream;
    body->waiter.wake = wake;
    body->least = 1;
    body->part_bytes = answer->content_length <= WHOLE_BYTES ? WHOLE_BYTES : PART_FIRST;
    body->ahead_bytes = AHEAD_FIRST;
    zt_error_clear(&body->error);
    zt_error_clear(&body->job_error);
    request_hold(request, body, end);
    return body;
}

static void release_pin(void *thing)
{
    zt_pin_release(thing);
}

/* Pins the answer if it is one small piece of a local file, like most small answers. */
static bool pin_whole(struct request *request)
{
    struct request_state *state = request_state(request);
    struct answer *answer = &state->answer;
    const struct zt_slice *slice;
    struct zt_source *origin = segment_origin(&answer->segments[0], &slice);
    const struct segment *segment = &answer->segments[0];
    struct zt_pin *pin;

    if (answer->segment_count != 1 || answer->content_length > WHOLE_BYTES || slice != NULL)
        return false;
    pin = request_allocate(request, sizeof(*pin));
    if (pin == NULL || zt_source_pass(origin, segment->offset, segment->length) < segment->length ||
        zt_source_pin(origin, segment->offset, segment->length, false, pin, NULL) != ZT_OK)
        return false;
    request_hold(request, pin, release_pin);
    /* Do not change the representation's list of segments, which other requests may share. */
    state->answer_segments[0] = *segment;
    state->answer_segments[0].source = pin->view;
    state->answer_segments[0].is_pinned = true;
    answer->segments = state->answer_segments;
    return true;
}

/* Returns true if the head can be sent. A store that is away is a problem with a status, not an
 * answer that is cut off, so the first byte that must be fetched has to be here, unless so much
 * before it is local that the client should not wait. */
static bool may_begin(const struct remote_body *body)
{
    assert(body->count <= PARTS && body->end.at <= body->answer->content_length);
    return body->has_fetched || body->end.at == body->answer->content_length ||
           body->end.at >= WHOLE_BYTES || body->count == PARTS;
}

static enum remote_body_fetch take_first(struct request *request,
                                         bool (*may_stream)(struct request *request))
{
    struct request_state *state = request_state(request);
    struct answer *answer = &state->answer;
    const struct answer *part = remote_body_part(state->remote);
    const struct zt_error *error = remote_body_error(state->remote);

    if (!may_begin(state->remote)) {
        if (error == NULL)
            return REMOTE_BODY_WAITS;
        /* If there is no room to keep the answer, it is read in small pieces. */
        return part == NULL && error->status == ZT_LIMIT ? REMOTE_BODY_READ : REMOTE_BODY_FAILED;
    }
    if (part->content_length < answer->content_length)
        return may_stream(request) ? REMOTE_BODY_STREAM : REMOTE_BODY_READ;
    answer->segments = part->segments;
    answer->segment_count = part->segment_count;
    state->remote = NULL;
    return REMOTE_BODY_LOCAL;
}

enum remote_body_fetch remote_body_fetch(struct request *request,
                                         bool (*may_stream)(struct request *request))
{
    struct request_state *state = request_state(request);
    const struct answer *answer = &state->answer;

    if (!answer_is_remote(answer))
        return REMOTE_BODY_LOCAL;
    if (state->remote == NULL) {
        if (pin_whole(request))
            return REMOTE_BODY_LOCAL;
        if (!pinned_is_possible(answer) ||
            (answer->content_length > WHOLE_BYTES && !may_stream(request)))
            return REMOTE_BODY_READ;
        state->remote = begin(request, may_stream(request));
        if (state->remote == NULL)
            return REMOTE_BODY_READ;
    }
    while (!may_begin(state->remote) && is_open(state->remote) && take_next(state->remote))
        ;
    return take_first(request, may_stream);
}
