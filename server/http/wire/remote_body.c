/* The first part is small, so that the first byte is sent soon; each further part is twice as
 * large, up to the largest piece that a store sends. A job runs only while the request waits for
 * it, or while bulk.c sends; bulk.c waits for the job before it lets the request end. */
#include "http/wire/remote_body.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/server.h"
#include "base/workers.h"
#include "http/body/pinned.h"
#include "http/exchange/request_state.h"
#include "http/wire/bulk.h"

/* Answers up to this size are fetched and kept whole. */
#define WHOLE_BYTES ((uint64_t)8 << 20)
#define PARTS       4
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
    bool runs;
    struct zt_error error; /* once it has failed */

    /* The job owns these while it runs. */
    struct pinned coming;
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
    status = pinned_take(&body->coming, body->answer, body->end, body->part_bytes, true,
                         &body->job_error);
    if (status == ZT_LIMIT && body->end.at > 0) {
        zt_error_clear(&body->job_error);
        pinned_read(&body->coming, body->answer, body->end, READ_BYTES, &body->job_error);
    }
    body->part_bytes = grown(body->part_bytes, 2, PART_MOST);
    body->ahead_bytes = grown(body->ahead_bytes, 4, AHEAD_MOST);
}

/* --- on the loop --- */

static void append(struct remote_body *body, const struct pinned *part)
{
    assert(body->count < PARTS && part->answer.content_length > 0);
    body->parts[body->count++] = *part;
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

/* Takes the next part if it is local. Otherwise starts a job and returns false. */
static bool take_next(struct remote_body *body)
{
    assert(!body->runs && body->count < PARTS);
    if (!body->is_cold && take_local(body, HERE_BYTES))
        return true;
    if (body->is_cold && take_local(body, body->part_bytes)) {
        advise_more(body);
        return true;
    }
    body->is_cold = true;
    body->runs = true;
    workers_submit(server_waiters(body->request->server), &body->job);
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
    return body->count == PARTS || ready >= READY_BYTES;
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

/* --- of a request --- */

static void on_fetched(struct job *job)
{
    struct remote_body *body = (struct remote_body *)job;
    struct request_state *state = request_state(body->request);

    assert(body->runs);
    body->runs = false;
    if (body->job_error.status == ZT_OK) {
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
static struct remote_body *begin(struct request *request)
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
    if (pin == NULL ||
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

static enum remote_body_fetch take_first(struct request *request,
                                         bool (*may_stream)(struct request *request))
{
    struct request_state *state = request_state(request);
    struct answer *answer = &state->answer;
    const struct answer *part = remote_body_part(state->remote);
    const struct zt_error *error = remote_body_error(state->remote);

    if (part == NULL && error == NULL)
        return REMOTE_BODY_WAITS;
    /* If there is no room to keep the answer, it is read in small pieces. */
    if (part == NULL)
        return error->status == ZT_LIMIT ? REMOTE_BODY_READ : REMOTE_BODY_FAILED;
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
        state->remote = begin(request);
        if (state->remote == NULL)
            return REMOTE_BODY_READ;
        if (is_open(state->remote) && state->remote->count == 0)
            (void)take_next(state->remote);
    }
    return take_first(request, may_stream);
}
