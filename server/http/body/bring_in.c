/* The first part is small, so that the first byte comes soon; each further one is twice as large,
 * up to what a store gives in one piece. */
#include "http/body/bring_in.h"

#include <string.h>

/* Waited for at a time. */
#define PART_FIRST ((uint64_t)1 << 20)
#define PART_MOST  ((uint64_t)8 << 20)
/* On its way in front of that. */
#define AHEAD_FIRST ((uint64_t)8 << 20)
#define AHEAD_MOST  ((uint64_t)64 << 20)
/* Pinned at a time as long as all is here. */
#define HERE_BYTES ((uint64_t)32 << 20)
/* What should be ready behind the part that is being sent. */
#define READY_BYTES ((uint64_t)16 << 20)
/* Read at a time if there is no room to keep what is brought. */
#define READ_BYTES ((uint64_t)256 << 10)

void bring_in_begin(struct bring_in *bring, const struct answer *answer)
{
    assert(answer->content_length > 0);
    bring->answer = answer;
    bring->part_bytes = answer->content_length <= BRING_IN_WHOLE ? BRING_IN_WHOLE : PART_FIRST;
    bring->ahead_bytes = AHEAD_FIRST;
    zt_error_clear(&bring->error);
    zt_error_clear(&bring->job_error);
}

/* --- on a worker --- */

static uint64_t grown(uint64_t bytes, unsigned factor, uint64_t most)
{
    return bytes * factor < most ? bytes * factor : most;
}

/* The part itself is brought by its pin, and not as a piece of something larger. */
static void advise_behind(const struct bring_in *bring)
{
    const uint64_t left = bring->answer->content_length - bring->end.at;
    struct place from = bring->end;

    place_advance(&from, bring->answer, left < bring->part_bytes ? left : bring->part_bytes);
    answer_advise(bring->answer, from, bring->ahead_bytes);
}

/* Once some of it has been sent it has to go on, if need be without being kept. */
static void run(struct job *job)
{
    struct bring_in *bring = (struct bring_in *)job;
    enum zt_status status;

    zt_error_clear(&bring->job_error);
    advise_behind(bring);
    status = pinned_take(&bring->coming, bring->answer, bring->end, bring->part_bytes, true,
                         &bring->job_error);
    if (status == ZT_LIMIT && bring->end.at > 0) {
        zt_error_clear(&bring->job_error);
        pinned_read(&bring->coming, bring->answer, bring->end, READ_BYTES, &bring->job_error);
    }
    bring->part_bytes = grown(bring->part_bytes, 2, PART_MOST);
    bring->ahead_bytes = grown(bring->ahead_bytes, 4, AHEAD_MOST);
}

/* --- on the loop --- */

static void append(struct bring_in *bring, const struct pinned *part)
{
    assert(bring->count < BRING_IN_PARTS && part->answer.content_length > 0);
    bring->parts[bring->count++] = *part;
    place_advance(&bring->end, bring->answer, part->answer.content_length);
}

static bool take_what_is_here(struct bring_in *bring, uint64_t most)
{
    struct pinned part;

    if (pinned_take(&part, bring->answer, bring->end, most, false, NULL) != ZT_OK)
        return false;
    append(bring, &part);
    return true;
}

/* What was on its way has come in the meantime; more must be. */
static void go_on(struct bring_in *bring)
{
    bring->part_bytes = grown(bring->part_bytes, 2, PART_MOST);
    if (bring->end.at < bring->answer->content_length)
        answer_advise(bring->answer, bring->end, bring->ahead_bytes);
}

/* False: a job has been begun. */
static bool take_next(struct bring_in *bring, struct server *server)
{
    if (!bring->is_cold && take_what_is_here(bring, HERE_BYTES))
        return true;
    if (bring->is_cold && take_what_is_here(bring, bring->part_bytes)) {
        go_on(bring);
        return true;
    }
    bring->is_cold = true;
    bring->job.run = run;
    bring->runs = true;
    workers_submit(server_waiters(server), &bring->job);
    return false;
}

/* Whether more can be taken now. */
static bool is_open(const struct bring_in *bring)
{
    return !bring->runs && bring->error.status == ZT_OK &&
           bring->end.at < bring->answer->content_length;
}

void bring_in_first(struct bring_in *bring, struct server *server)
{
    if (is_open(bring) && bring->count == 0)
        (void)take_next(bring, server);
}

static bool is_ready(const struct bring_in *bring)
{
    uint64_t ready = 0;

    for (unsigned i = 1; i < bring->count; i++)
        ready += bring->parts[i].answer.content_length;
    return bring->count == BRING_IN_PARTS || ready >= READY_BYTES;
}

void bring_in_continue(struct bring_in *bring, struct server *server)
{
    while (is_open(bring) && !is_ready(bring))
        if (!take_next(bring, server))
            return;
}

void bring_in_done(struct bring_in *bring)
{
    assert(bring->runs);
    bring->runs = false;
    if (bring->job_error.status != ZT_OK) {
        bring->error = bring->job_error;
        return;
    }
    append(bring, &bring->coming);
    bring->coming = (struct pinned){.pin_count = 0};
}

const struct answer *bring_in_part(const struct bring_in *bring)
{
    return bring->count > 0 ? &bring->parts[0].answer : NULL;
}

void bring_in_drop(struct bring_in *bring)
{
    assert(bring->count > 0);
    pinned_release(&bring->parts[0]);
    bring->count--;
    memmove(bring->parts, bring->parts + 1, bring->count * sizeof(bring->parts[0]));
    bring->parts[bring->count] = (struct pinned){.pin_count = 0};
}

bool bring_in_is_last(const struct bring_in *bring)
{
    return bring->count <= 1 && !bring->runs && bring->end.at == bring->answer->content_length;
}

const struct zt_error *bring_in_error(const struct bring_in *bring)
{
    return bring->error.status != ZT_OK ? &bring->error : NULL;
}

void bring_in_end(struct bring_in *bring)
{
    assert(!bring->runs);
    while (bring->count > 0)
        bring_in_drop(bring);
}
