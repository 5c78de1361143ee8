/* The state of a loop's HTTP library, shared by several files of this folder. */
#ifndef HTTP_WIRE_MHD_STATE_H
#define HTTP_WIRE_MHD_STATE_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "http/body/page_memory.h"
#include "http/exchange/request_state.h"
#include "http/limits/reserve.h"
#include "http/tap/tap.h"
#include "http/wire/connections.h"
#include "http/wire/file_changes.h"
#include "http/wire/handover.h"
#include "http/wire/hangups.h"
#include "http/wire/linger.h"
#include "http/wire/response_cache.h"

struct MHD_Daemon;

struct mhd {
    struct MHD_Daemon *daemon;
    struct server *server;
    struct loop *loop;
    pthread_t thread; /* the loop's, once it runs */
    bool running;
    struct tap tap;
    struct connections connections;
    struct hangups hangups;
    struct linger_set linger;
    struct intake_set *intakes;
    struct deadlines parts; /* when intakes must pass on what has arrived */
    struct request_pool pool;
    struct page_memory pages;
    struct response_cache kept;
    struct mapped_files mapped;
    struct bulk_set *bulks;
    struct handover handover;
    int direct_epoll;  /* readable when direct_answers_run has work */
    int64_t polled_ns; /* when the loop last checked the store for changes */
    uint64_t now_ms;   /* as of the last mhd_update_clock */
    unsigned connection_limit;
    unsigned address_limit;
    /* When clients began to wait to be accepted because no descriptors are left; 0: none wait. */
    uint64_t starved_ms;
    struct reserve reserve;
    int s3_socket;        /* listens at s3.listen; -1: none */
    bool s3_is_awaited;   /* clients may wait there to be accepted */
    bool is_accepting_s3; /* a client of s3_socket is being given to the library */
    unsigned waiting;     /* suspended connections, and work that outlives its request */
    atomic_uint active;
    bool cutting;
    bool runs_again; /* the library must look at a connection again */
    /* Detect that the library is spinning without progress (mhd.c). */
    bool progressed;     /* bytes or connections have come or gone since the last mhd_run */
    unsigned idle_runs;  /* consecutive calls of mhd_run without progress */
    uint64_t sent_bytes; /* connections_sent at the last check */
};

static inline void mhd_update_clock(struct mhd *mhd)
{
    mhd->now_ms = (uint64_t)clock_coarse_ms();
}

/* Makes the calling thread the loop's thread. */
static inline void mhd_enter_thread(struct mhd *mhd)
{
    assert(!mhd->running);
    mhd->thread = pthread_self();
    mhd->running = true;
}

/* Returns true on the loop's thread; for assertions. */
static inline bool mhd_is_own_thread(const struct mhd *mhd)
{
    return !mhd->running || pthread_equal(mhd->thread, pthread_self()) != 0;
}

/* Counts work as waiting that ends with mail to this loop, even if its request is over first. */
static inline void mhd_work_begun(struct mhd *mhd)
{
    assert(mhd_is_own_thread(mhd));
    mhd->waiting++;
}

static inline void mhd_work_ended(struct mhd *mhd)
{
    assert(mhd_is_own_thread(mhd) && mhd->waiting > 0);
    mhd->waiting--;
}

#endif
