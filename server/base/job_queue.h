/* Jobs of one kind that wait for a worker: in turn one of each client, and those of a client in
 * their order. So a client that queues a thousand jobs delays another's first one by a single job.
 *
 * Nothing is locked here; the pool's lock covers its queues. */
#ifndef BASE_JOB_QUEUE_H
#define BASE_JOB_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/workers.h"

/* Clients with a line of their own. Of more than that at a time, some share a line. */
#define JOB_LINES 128

/* The jobs of a client. */
struct job_line {
    uint64_t client;
    struct mail *first;
    struct mail **last;
    size_t length;
    struct job_line *next; /* in the ring of lines with jobs, or in the list of free ones */
    struct job_line *previous;
};

struct job_queue {
    struct job_line lines[JOB_LINES];
    struct job_line *turn; /* of the next job; NULL: the queue is empty */
    struct job_line *free;
    size_t length;
};

void job_queue_init(struct job_queue *queue);

void job_queue_put(struct job_queue *queue, struct job *job);

/* Puts a job that was taken back before the others of its client. */
void job_queue_put_back(struct job_queue *queue, struct job *job);

/* Whether a client may have one more job run now. */
typedef bool (*job_queue_rule)(const void *context, uint64_t client);

/* The next job of a client that may have one more run now; NULL if there is none. */
struct job *job_queue_take(struct job_queue *queue, job_queue_rule may_run, const void *context);

/* Whether a job that waits does so in this queue. */
bool job_queue_has(const struct job_queue *queue, const struct job *job);

/* Puts a waiting job behind those of another client if it is then nearer to its turn: that client
 * may have one more run now, and the job's own may not, or has more jobs before it. */
void job_queue_move(struct job_queue *queue, struct job *job, uint64_t client,
                    job_queue_rule may_run, const void *context);

/* The jobs of one client that wait. */
size_t job_queue_count(const struct job_queue *queue, uint64_t client);

#endif
