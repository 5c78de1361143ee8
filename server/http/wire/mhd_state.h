/* The state of a loop's HTTP library, for the files of the wire that share it. */
#ifndef HTTP_WIRE_MHD_STATE_H
#define HTTP_WIRE_MHD_STATE_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/page_memory.h"
#include "http/exchange/request_state.h"
#include "http/wire/connections.h"
#include "http/wire/hangups.h"
#include "http/wire/kept_answers.h"
#include "http/wire/kept_sockets.h"
#include "http/wire/linger.h"
#include "http/wire/mapped_files.h"
#include "http/wire/own_answers.h"

struct MHD_Daemon;

struct mhd {
    struct MHD_Daemon *daemon;
    struct server *server;
    struct loop *loop;
    pthread_t thread; /* the loop's, once it runs */
    bool running;
    struct connections connections;
    struct hangups hangups;
    struct linger_set linger;
    struct intake_set *intakes;
    struct request_pool pool;
    struct page_memory pages;
    struct kept_answers kept;
    struct mapped_files mapped;
    struct bulk_set *bulks;
    struct kept_sockets kept_sockets;
    struct own_answers own_answers;
    int64_t heeded_ns; /* when the loop last asked whether the store has changed */
    uint64_t now_ms;   /* as of the last mhd_update_clock */
    unsigned turns;    /* of mhd_run */
    unsigned connection_limit;
    unsigned address_limit;
    unsigned waiting; /* suspended connections, and work that outlives its request */
    atomic_uint active;
    bool cutting;
    bool runs_again; /* the library has to look at a connection once more */
};

static inline void mhd_update_clock(struct mhd *mhd)
{
    mhd->now_ms = (uint64_t)clock_coarse_ms();
}

/* Declares the calling thread to be the loop's. */
static inline void mhd_enter_thread(struct mhd *mhd)
{
    assert(!mhd->running);
    mhd->thread = pthread_self();
    mhd->running = true;
}

/* For assertions: whether this is the loop's thread. */
static inline bool mhd_is_own_thread(const struct mhd *mhd)
{
    return !mhd->running || pthread_equal(mhd->thread, pthread_self()) != 0;
}

/* Counts work that ends with mail to this loop, even if its request is over by then, as waiting. */
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
