/* Hashing that clients wait for, cut into short jobs. Only a few of them run at a time, in the
 * order in which they were submitted. So however many clients want digests of large
 * representations, all of them make progress, and workers stay available for other requests. */
#ifndef HTTP_EXCHANGE_DIGEST_QUEUE_H
#define HTTP_EXCHANGE_DIGEST_QUEUE_H

#include <stdbool.h>

#include "base/workers.h"

struct digest_queue;

/* One short job, embedded in its owner's structure. run may free it. */
struct digest_job {
    struct job job; /* first: the job is the structure */
    void (*run)(struct digest_job *digest_job);
    struct digest_queue *queue;
    uint64_t client; /* set by the owner: who waits for it (struct job) */
};

/* A queue that runs at_once jobs at a time, at least one. NULL if out of memory. */
struct digest_queue *digest_queue_new(struct workers *workers, unsigned at_once);
/* After the workers have ended. Takes NULL. */
void digest_queue_free(struct digest_queue *queue);

/* Call it before the loops are stopped: requests in the middle of hashing give up. */
void digest_queue_stop(struct digest_queue *queue);
bool digest_queue_is_stopped(const struct digest_queue *queue);

/* Calls digest_job->run on a worker once it may run. Never blocks. */
void digest_queue_submit(struct digest_queue *queue, struct digest_job *digest_job);

#endif
