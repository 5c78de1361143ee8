/* Jobs of one kind that wait for a worker. Clients take turns, and the jobs of a client keep their
 * order. So a client that queues a thousand jobs delays another client's first job by only one.
 *
 * There is no lock here; the pool's lock protects its queues. */
#ifndef BASE_JOB_QUEUE_H
#define BASE_JOB_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/workers.h"

/* The maximum number of clients with separate lines; if there are more, some share a line. */
#define JOB_LINES 128

/* The jobs of a client. */
struct job_line {
    uint64_t client;
    struct mail *first;
    struct mail **last;
    size_t length;
    struct job_line *next; /* in the ring of lines with jobs, or in the list of free lines */
    struct job_line *previous;
};

struct job_queue {
    struct job_line lines[JOB_LINES];
    struct job_line *turn; /* line of the next job; NULL: the queue is empty */
    struct job_line *free;
    size_t length;
};

void job_queue_init(struct job_queue *queue);

void job_queue_put(struct job_queue *queue, struct job *job);

/* Puts a job that was taken back in front of its client's other jobs. */
void job_queue_put_back(struct job_queue *queue, struct job *job);

/* Returns true if a client may have another running job. */
typedef bool (*job_queue_rule)(const void *context, uint64_t client);

/* Returns the next job of a client that may have another running job; NULL if there is none. */
struct job *job_queue_take(struct job_queue *queue, job_queue_rule may_run, const void *context);

/* Returns true if a waiting job is in this queue. */
bool job_queue_has(const struct job_queue *queue, const struct job *job);

/* Moves a waiting job behind the jobs of another client if it will then run earlier: that client
 * may have another running job, and the job's own client may not, or has more jobs before it. */
void job_queue_move(struct job_queue *queue, struct job *job, uint64_t client,
                    job_queue_rule may_run, const void *context);

/* Returns the number of waiting jobs of a client. */
size_t job_queue_count(const struct job_queue *queue, uint64_t client);

#endif
