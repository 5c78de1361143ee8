/* Removes a limited number of files each time, and then lets replaced files share extents with
 * their successors. */
#include "serve/collection.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/server.h"
#include "serve/idle_timer.h"
#include "store/versions/versions_store.h"

/* The interval of the timer, and how many files are removed each time: so that removing very many
 * files does not keep the disk from serving others. */
#define LOOK_S    2
#define FILES_MAX 256
/* How many bytes of files are compared each time, to share them: at most 128 MiB a second. */
#define COMPARED_MAX ((uint64_t)256 << 20)
/* The least time between collections of a history that other servers change too. */
#define SHARED_MS (INT64_C(60) * 1000)
/* How often commits are examined for their age, if none was made or is due meanwhile. */
#define AGE_MS (INT64_C(600) * 1000)
/* How long after a failure it is tried again: an operator may have repaired the history. */
#define RETRY_MS (INT64_C(60) * 1000)

struct collection {
    struct server *server;
    struct history *history;
    struct idle_timer *timer;
    bool has_more;
    bool shares_more;
    unsigned begun;   /* server->commits_recorded when this collection began */
    unsigned seen;    /* and when the last complete one did */
    int64_t ended_ms; /* when that ended; 0: never */
    char warning[sizeof(((struct zt_error *)NULL)->message)]; /* the last one; empty: it worked */
};

/* In a bucket, files are removed an hour after they were kept, so there is no hurry. */
static bool is_too_soon(const struct collection *collection)
{
    return history_is_shared(collection->history) && collection->ended_ms != 0 &&
           clock_ms() - collection->ended_ms < SHARED_MS;
}

static bool is_due(const struct collection *collection)
{
    const int64_t pause_ms = collection->warning[0] != '\0' ? RETRY_MS : AGE_MS;

    if (is_too_soon(collection))
        return false;
    return collection->has_more || collection->ended_ms == 0 ||
           atomic_load(&collection->server->commits_recorded) != collection->seen ||
           history_is_due(collection->history) || clock_ms() - collection->ended_ms >= pause_ms;
}

/* Says what is wrong only once, although each attempt finds it again. */
static void warn(struct collection *collection, const struct zt_error *error)
{
    if (strcmp(collection->warning, error->message) == 0)
        return;
    memcpy(collection->warning, error->message, sizeof(collection->warning));
    log_write(LOG_LEVEL_WARN, "kept files cannot be removed: %s", error->message);
}

static void collect(struct collection *collection)
{
    struct zt_error error;

    if (!collection->has_more)
        collection->begun = atomic_load(&collection->server->commits_recorded);
    if (history_collect(collection->history, FILES_MAX, &collection->has_more, &error) != ZT_OK) {
        warn(collection, &error);
        collection->has_more = false;
    } else
        collection->warning[0] = '\0';
    if (!collection->has_more) {
        collection->seen = collection->begun;
        collection->ended_ms = clock_ms();
    }
}

static void run(void *context)
{
    struct collection *collection = context;
    struct server *server = collection->server;

    if (is_due(collection))
        collect(collection);
    if (collection->shares_more || versions_may_share(server->store))
        collection->shares_more = versions_share(server->store, COMPARED_MAX, &server->draining);
}

struct collection *collection_watch(struct server *server)
{
    struct history *history = store_history(server->store);
    struct collection *collection;

    if (history == NULL || !server->config->writable)
        return NULL;
    collection = calloc(1, sizeof(*collection));
    if (collection != NULL) {
        collection->server = server;
        collection->history = history;
        collection->timer = idle_timer_start(server, LOOK_S, run, collection);
        if (collection->timer != NULL)
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
    idle_timer_free(collection->timer);
    free(collection);
}
