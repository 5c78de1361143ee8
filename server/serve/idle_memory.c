#include "serve/idle_memory.h"

#include <stddef.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/server.h"
#include "derived/manifest_json.h"
#include "serve/idle_timer.h"

/* How long a text is kept, and the interval of the timer. */
#define IDLE_MS (INT64_C(60) * 1000)
#define LOOK_S  15

static void release(void *context)
{
    const struct server *server = context;

    manifest_release_idle(server->manifests, clock_coarse_ms() - IDLE_MS);
}

struct idle_timer *idle_memory_watch(struct server *server)
{
    struct idle_timer *timer = idle_timer_start(server, LOOK_S, release, server);

    if (timer == NULL)
        log_write(LOG_LEVEL_WARN, "long manifests are kept in memory: there is no timer");
    return timer;
}
