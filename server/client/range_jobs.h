/* Fetches the missing pieces of an incoming file by several requests at once, each for a run of
 * pieces. A broken request resumes where it broke, until some tries in a row made no progress. */
#ifndef CLIENT_RANGE_JOBS_H
#define CLIENT_RANGE_JOBS_H

#include <stdatomic.h>

#include "client/incoming.h"
#include "client/web_file.h"

#define RANGE_JOBS_MAX 64

struct range_job {
    struct range_jobs *jobs;
    struct remote_exchange exchange;
    uint64_t at; /* the next byte */
    uint64_t end;
    uint64_t tried_at; /* where the last try began */
    unsigned failures; /* tries in a row without progress */
    int64_t due_ms;    /* of the next try */
    enum { JOB_IDLE, JOB_FLYING, JOB_ENDED, JOB_PAUSED } state;
    bool failed_to_write;
    struct zt_error error;
};

struct range_jobs {
    struct client *client; /* only of these jobs, so that they can be interrupted alone */
    struct incoming *incoming;
    const struct web_file *file;
    unsigned count;
    struct range_job *jobs;
    atomic_uint_least64_t received; /* bytes */
    uint64_t seed;
};

/* incoming, file and count are set. Fails as client_open does. */
enum zt_status range_jobs_open(struct range_jobs *jobs, const struct client_options *options,
                               struct zt_error *error);

/* Handles requests that have ended and begins new ones. Called repeatedly under the incoming file's
 * lock, which it releases for a moment. ZT_STALE: the server has another version now. After any
 * failure the transfer is over. */
enum zt_status range_jobs_turn(struct range_jobs *jobs, struct zt_error *error);

/* Interrupts all requests. */
void range_jobs_close(struct range_jobs *jobs);

#endif
