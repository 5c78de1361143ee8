/* Brings the missing pieces of an incoming file by several requests at a time, each of them for a
 * run of pieces. A request that breaks goes on where it broke, until nothing has come for some
 * tries. */
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
    unsigned failures; /* since something came */
    int64_t due_ms;    /* of the next try */
    enum { JOB_IDLE, JOB_FLYING, JOB_ENDED, JOB_PAUSED } state;
    bool has_written_badly;
    struct zt_error error;
};

struct range_jobs {
    struct client *client; /* their own, so that they can be ended alone */
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

/* Judges what has ended and begins what may begin; called again and again, under the incoming's
 * lock, which it gives up meanwhile. ZT_STALE: the file is another by now; others: it is over. */
enum zt_status range_jobs_turn(struct range_jobs *jobs, struct zt_error *error);

/* Ends what is on its way. */
void range_jobs_close(struct range_jobs *jobs);

#endif
