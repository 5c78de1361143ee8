/* Working on a body while it arrives: workers read back what was written, which is in the page
 * cache then, and give it to a sink (hashing, compression), one worker at a time and in order. The
 * loop never waits for them. */
#ifndef UPLOAD_SHARED_BODY_FOLLOWER_H
#define UPLOAD_SHARED_BODY_FOLLOWER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/server.h"
#include "base/workers.h"
#include "store/store.h"
#include "zt/writer.h"

struct body_follower {
    /* Set by the owner before body_follower_init. */
    struct server *server;
    struct stored_upload *stored; /* nobody else reads it back */
    uint64_t base;                /* where in it the body begins */
    struct zt_sink sink;
    void (*hold)(void *owner); /* while a job is queued or runs */
    void (*release)(void *owner);
    void *owner;

    /* Private. */
    struct job job;
    pthread_mutex_t lock; /* whoever holds it reads */
    atomic_bool is_queued;
    atomic_uint_fast64_t received;
    atomic_uint_fast64_t taken;
    uint8_t *buffer;
    struct zt_error error; /* the first failure stays: a sink cannot be given bytes twice */
};

/* Of a cleared structure. False when memory is out; body_follower_free is due in any case. */
bool body_follower_init(struct body_follower *follower);
void body_follower_free(struct body_follower *follower);

uint64_t body_follower_received(struct body_follower *follower);

/* On the loop: so many more bytes were written. Lets a worker catch up when that is worth a job. */
void body_follower_advance(struct body_follower *follower, uint64_t length);

/* While no job of the follower's is queued, on two workers: so many more bytes were written; and,
 * in order, the bytes themselves, of which nothing is then read back. */
void body_follower_count(struct body_follower *follower, uint64_t length);
void body_follower_take(struct body_follower *follower, uint64_t at, const void *bytes,
                        size_t length);

/* On a worker, when all bytes were written: gives the sink what is left. */
enum zt_status body_follower_finish(struct body_follower *follower, struct zt_error *error);

#endif
