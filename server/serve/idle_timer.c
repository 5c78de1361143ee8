/* A timer on the first loop starts a worker. */
#include "serve/idle_timer.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/server.h"
#include "base/workers.h"
#include "http/wire/loop.h"

struct idle_timer {
    struct job job; /* first: the job is the structure */
    struct server *server;
    int descriptor;
    atomic_bool is_queued;
    void (*run)(void *context);
    void *context;
};

static void run_work(struct job *job)
{
    struct idle_timer *timer = (struct idle_timer *)job;

    timer->run(timer->context);
    atomic_store(&timer->is_queued, false);
}

static void on_timer(void *context)
{
    struct idle_timer *timer = context;
    uint64_t times;

    if (read(timer->descriptor, &times, sizeof(times)) == (ssize_t)sizeof(times) &&
        !atomic_load(&timer->server->draining) && !atomic_exchange(&timer->is_queued, true))
        workers_submit_idle(server_waiters(timer->server), &timer->job);
}

struct idle_timer *idle_timer_start(struct server *server, unsigned interval_s,
                                    void (*run)(void *context), void *context)
{
    const struct itimerspec every = {.it_interval.tv_sec = interval_s, .it_value.tv_nsec = 1};
    struct idle_timer *timer = calloc(1, sizeof(*timer));

    assert(interval_s > 0 && run != NULL);
    if (timer == NULL)
        return NULL;
    timer->server = server;
    timer->run = run;
    timer->context = context;
    timer->job.run = run_work;
    timer->descriptor = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer->descriptor >= 0 && timerfd_settime(timer->descriptor, 0, &every, NULL) == 0 &&
        loop_watch(server->loops[0], timer->descriptor, on_timer, timer) == 0)
        return timer;
    idle_timer_free(timer);
    return NULL;
}

void idle_timer_free(struct idle_timer *timer)
{
    if (timer == NULL)
        return;
    if (timer->descriptor >= 0)
        close(timer->descriptor);
    free(timer);
}
