/* Hashing that clients wait for, in short turns: so many at a time, one after the other, so that
 * any number of clients who want digests of large things keep neither the workers from other
 * requests nor each other from their turn. */
#ifndef HTTP_EXCHANGE_DIGEST_QUEUE_H
#define HTTP_EXCHANGE_DIGEST_QUEUE_H

#include <stdbool.h>

#include "base/workers.h"

struct digest_queue;

/* One turn; a structure of its owner's with this one inside. run may free it. */
struct digest_turn {
    struct job job; /* first: the job is the structure */
    void (*run)(struct digest_turn *turn);
    struct digest_queue *queue;
    struct digest_turn *next;
};

/* NULL when memory is out. */
struct digest_queue *digest_queue_new(struct workers *workers, unsigned at_once);
/* After the workers have ended. Takes NULL. */
void digest_queue_free(struct digest_queue *queue);

/* For the end of the program, before the loops are stopped: who is in the middle of hashing is to
 * give it up. */
void digest_queue_stop(struct digest_queue *queue);
bool digest_queue_is_stopped(const struct digest_queue *queue);

/* Calls turn->run on a worker when its turn has come. Never blocks. */
void digest_queue_submit(struct digest_queue *queue, struct digest_turn *turn);

#endif
