/* The thread of a remote: what it shares with the rest, and its loop. */
#ifndef REMOTE_FETCH_H
#define REMOTE_FETCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "remote/attempt.h"
#include "remote/flight_queue.h"
#include "remote/pace.h"
#include "remote/remote.h"

struct carrier;

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

/* Makes the carriers, and the attempts of so many of them. Those of quiet requests are made when
 * they are needed. Returns false without memory; the carriers must be freed then, too. */
bool fetch_make_carriers(struct remote *remote, unsigned count);
void fetch_free_carriers(struct remote *remote);

/* The thread's function, of a struct remote: returns after is_stopping, when all have ended. */
void *fetch_work(void *argument);

/* Ends an exchange: sets its result and calls done. error must be set if it failed. */
void fetch_finish(struct remote_exchange *exchange, enum remote_failure failure);
void fetch_fail(struct remote_exchange *exchange, enum remote_failure failure, const char *message);

#endif
