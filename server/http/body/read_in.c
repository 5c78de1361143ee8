/* The kernel reads ahead by itself as well, but only from one of its windows to the next. */
#include "http/body/read_in.h"

#include <assert.h>

#include "base/clock.h"
#include "http/body/windows.h"

/* On its way from the disk in front of what is sent. */
#define DEPTH_BYTES ((uint64_t)16 << 20)
/* By this much it may be less until the next job. */
#define STEP_BYTES ((uint64_t)4 << 20)
/* Windows for which a job asks, which takes about 1 ms. */
#define WINDOWS_A_JOB 4

static bool wants_more(const struct read_in *reading, uint64_t at, uint64_t depth)
{
    return reading->asked.at < reading->answer->content_length && reading->asked.at - at < depth;
}

static void run(struct job *job)
{
    struct read_in *reading = (struct read_in *)job;

    for (unsigned i = 0; i < WINDOWS_A_JOB && wants_more(reading, reading->from.at, DEPTH_BYTES);
         i++)
        reading->asked = window_ask(reading->answer, reading->asked);
    window_wait(reading->answer, reading->from);
}

bool read_in_is_due(const struct read_in *reading, uint64_t at)
{
    return !reading->runs &&
           (reading->asked.at < at || wants_more(reading, at, DEPTH_BYTES - STEP_BYTES));
}

void read_in_begin(struct read_in *reading, struct server *server, struct place from)
{
    if (reading->runs)
        return;
    assert(from.at < reading->answer->content_length);
    if (reading->asked.at < from.at)
        reading->asked = from;
    reading->from = from;
    reading->job.run = run;
    reading->runs = true;
    atomic_store_explicit(&server->disk_awaited_ms, clock_coarse_ms(), memory_order_relaxed);
    workers_submit(server->workers, &reading->job);
}

struct place read_in_done(struct read_in *reading)
{
    assert(reading->runs);
    reading->runs = false;
    return window_end(reading->answer, reading->from);
}
