/* A timer on the first loop starts a worker that frees. */
#include "serve/idle_memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/server.h"
#include "base/workers.h"
#include "derived/manifest_json.h"
#include "http/wire/loop.h"

/* How long a text is kept, and the interval of the timer. */
#define IDLE_MS (INT64_C(60) * 1000)
#define LOOK_S  15

struct idle_memory {
    struct job job; /* first: the job is the structure */
    struct server *server;
    int timer;
    atomic_bool is_queued;
};

static void run_release(struct job *job)
{
    struct idle_memory *memory = (struct idle_memory *)job;

    manifest_release_idle(memory->server->manifests, clock_coarse_ms() - IDLE_MS);
    atomic_store(&memory->is_queued, false);
}

static void on_timer(void *context)
{
    struct idle_memory *memory = context;
    uint64_t times;

    if (read(memory->timer, &times, sizeof(times)) != (ssize_t)sizeof(times) ||
        atomic_exchange(&memory->is_queued, true))
        return;
    workers_submit_idle(memory->server->workers, &memory->job);
}

struct idle_memory *idle_memory_watch(struct server *server)
{
    const struct itimerspec every = {.it_interval.tv_sec = LOOK_S, .it_value.tv_sec = LOOK_S};
    struct idle_memory *memory = calloc(1, sizeof(*memory));

    if (memory != NULL) {
        memory->server = server;
        memory->job.run = run_release;
        memory->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (memory->timer >= 0 && timerfd_settime(memory->timer, 0, &every, NULL) == 0 &&
            loop_watch(server->loops[0], memory->timer, on_timer, memory) == 0)
            return memory;
    }
    log_write(LOG_LEVEL_WARN, "long manifests are kept in memory: there is no timer");
    idle_memory_free(memory);
    return NULL;
}

void idle_memory_free(struct idle_memory *memory)
{
    if (memory == NULL)
        return;
    if (memory->timer >= 0)
        close(memory->timer);
    free(memory);
}
