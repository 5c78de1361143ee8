/* A timer on the first loop starts a worker that removes files, a limited number each time, and
 * then lets replaced files share extents with their successors. */
#include "serve/collection.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/server.h"
#include "base/workers.h"
#include "http/wire/loop.h"
#include "store/versions/versions_store.h"

/* The interval of the timer, and how many files are removed each time: so that removing very many
 * files does not keep the disk from serving others. */
#define LOOK_S    2
#define FILES_MAX 256
/* How many bytes of files are compared each time, to share them: at most 128 MiB a second. */
#define COMPARED_MAX ((uint64_t)256 << 20)
/* How often commits are examined for their age, if none was made meanwhile. */
#define AGE_MS (INT64_C(600) * 1000)

struct collection {
    struct job job; /* first: the job is the structure */
    struct server *server;
    struct history *history;
    int timer;
    atomic_bool is_queued;
    /* Of the job. */
    bool has_more;
    bool shares_more;
    unsigned seen;    /* server->commits_recorded before the last complete collection */
    int64_t ended_ms; /* when that ended; 0: never */
};

static bool is_due(const struct collection *collection)
{
    return collection->has_more || collection->ended_ms == 0 ||
           atomic_load(&collection->server->commits_recorded) != collection->seen ||
           clock_ms() - collection->ended_ms >= AGE_MS;
}

static void collect(struct collection *collection)
{
    const unsigned recorded = atomic_load(&collection->server->commits_recorded);
    struct zt_error error;

    if (history_collect(collection->history, FILES_MAX, &collection->has_more, &error) != ZT_OK) {
        log_write(LOG_LEVEL_WARN, "kept files cannot be removed: %s", error.message);
        collection->has_more = false;
    }
    if (!collection->has_more) {
        collection->seen = recorded;
        collection->ended_ms = clock_ms();
    }
}

static void run_collection(struct job *job)
{
    struct collection *collection = (struct collection *)job;
    struct server *server = collection->server;

    if (is_due(collection))
        collect(collection);
    collection->shares_more = versions_share(server->store, COMPARED_MAX, &server->draining);
    atomic_store(&collection->is_queued, false);
}

static void on_timer(void *context)
{
    struct collection *collection = context;
    uint64_t times;

    if (read(collection->timer, &times, sizeof(times)) != (ssize_t)sizeof(times) ||
        atomic_load(&collection->server->draining) || atomic_exchange(&collection->is_queued, true))
        return;
    if (is_due(collection) || collection->shares_more ||
        versions_may_share(collection->server->store))
        workers_submit_idle(collection->server->workers, &collection->job);
    else
        atomic_store(&collection->is_queued, false);
}

struct collection *collection_watch(struct server *server)
{
    const struct itimerspec every = {.it_interval.tv_sec = LOOK_S, .it_value.tv_nsec = 1};
    struct history *history = store_history(server->store);
    struct collection *collection;

    if (history == NULL || !server->config->writable)
        return NULL;
    collection = calloc(1, sizeof(*collection));
    if (collection != NULL) {
        collection->server = server;
        collection->history = history;
        collection->job.run = run_collection;
        collection->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (collection->timer >= 0 && timerfd_settime(collection->timer, 0, &every, NULL) == 0 &&
            loop_watch(server->loops[0], collection->timer, on_timer, collection) == 0)
            return collection;
    }
    log_write(LOG_LEVEL_WARN, "files of forgotten commits are not removed: there is no timer");
    collection_free(collection);
    return NULL;
}

void collection_free(struct collection *collection)
{
    if (collection == NULL)
        return;
    if (collection->timer >= 0)
        close(collection->timer);
    free(collection);
}
