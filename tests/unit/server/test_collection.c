/* When files of forgotten commits are removed. */
#include "history_world.h"

#include <sys/syscall.h>
#include <time.h>

#include "base/server.h"
#include "serve/collection.h"
#include "serve/idle_timer.h"

static time_t passed_s;
static void (*run)(void *context);
static void *run_context;

int clock_gettime(clockid_t clock, struct timespec *out_time)
{
    const int result = (int)syscall(SYS_clock_gettime, clock, out_time);

    out_time->tv_sec += passed_s;
    return result;
}

/* Tests call run themselves. */
struct idle_timer *idle_timer_start(struct server *server, unsigned interval_s,
                                    void (*new_run)(void *context), void *context)
{
    assert_true(interval_s > 0);
    run = new_run;
    run_context = context;
    return (struct idle_timer *)server;
}

void idle_timer_free(struct idle_timer *timer)
{
    assert_non_null(timer);
}

WITH_HISTORY(mended_history_is_collected_within_a_minute)
{
    const struct store_ops ops = {.open = NULL};
    struct config config = {.writable = true};
    struct store store = {.ops = &ops, .history = world->history};
    struct server *server = calloc(1, sizeof(*server));
    struct collection *collection;

    assert_non_null(server);
    server->config = &config;
    server->store = &store;
    record(world, "a=1");
    keep(world, "9");
    run_in(world->path, "cd .ztserve/versions/repos/* && mv trees away");
    collection = collection_watch(server);
    assert_non_null(collection);
    run(run_context);
    assert_true(is_kept(world, "9"));
    run_in(world->path, "cd .ztserve/versions/repos/* && mv away trees");
    passed_s += 50;
    run(run_context);
    assert_true(is_kept(world, "9"));
    passed_s += 11;
    run(run_context);
    assert_false(is_kept(world, "9"));
    collection_free(collection);
    free(server);
}
