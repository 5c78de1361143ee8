/* The thread of a remote: what it shares with the rest, and its loop. */
#ifndef REMOTE_FETCH_H
#define REMOTE_FETCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "remote/attempt.h"
#include "remote/flight_queue.h"
#include "remote/pace.h"
#include "remote/remote.h"

/* A handle, and the flight that it carries. */
struct carrier {
    struct attempt *attempt;
    struct remote_flight *flight; /* NULL: idle */
    bool is_quiet;                /* no progress for a second */
    struct carrier *next;         /* of those that are idle */
};

struct remote {
    CURLM *multi;
    char *ca_file;
    char *proxy;
    bool system_proxy;
    pthread_t thread;
    pthread_mutex_t lock;
    /* Under the lock. */
    struct flight_queue arrivals;
    bool is_stopping;
    bool is_asleep;
    /* For anyone. */
    atomic_uint running;
    atomic_uint waiting;
    atomic_uint allowed;
    /* The thread's. */
    struct flight_queue queue;
    struct pace pace;
    struct carrier *carriers;
    unsigned carrier_count;
    unsigned carriers_most;
    struct carrier *idle;
    uint64_t seed;
    int64_t watched_ms;
};

/* Adds an idle carrier. False: there is no memory, or there are as many as there may be. */
bool fetch_add_carrier(struct remote *remote);

/* The thread's function, of a struct remote: returns after is_stopping, when all have ended. */
void *fetch_work(void *argument);

/* Ends an exchange: sets its result and calls done. error must be set if it failed. */
void fetch_finish(struct remote_exchange *exchange, enum remote_failure failure);
void fetch_fail(struct remote_exchange *exchange, enum remote_failure failure, const char *message);

#endif
