/* The kinds of upload that are kept, and the timer that they share. */
#include "upload/shared/kept_uploads.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/workers.h"
#include "http/wire/loop.h"
#include "store/store.h"
#include "upload/tus/resumable.h"
#include "upload/writer/writers.h"

#define LOOK_S 1

struct kept_uploads {
    struct server *server;
    int timer;
    struct job job;
    atomic_bool is_queued;
};

/* --- start --- */

static bool restore(void *context, const char *id)
{
    struct server *server = context;
    struct zt_error error;

    if (writers_restore(server->writers, id) || resumables_restore(server->resumables, id))
        return true;
    log_write(LOG_LEVEL_WARN, "upload %s: nobody can go on with it: removed", id);
    (void)server->store->ops->kept_drop(server->store, id, &error);
    return true;
}

void kept_uploads_restore(struct server *server)
{
    struct zt_error error;

    /* Who cannot write leaves what there is to the next who can. */
    if (!server->config->writable)
        return;
    if (server->store->ops->kept_list(server->store, restore, server, &error) != ZT_OK)
        log_write(LOG_LEVEL_WARN, "unfinished uploads are not found again: %s", error.message);
}

/* --- expiry --- */

static void run_look(struct job *job)
{
    struct kept_uploads *kept =
        (struct kept_uploads *)((char *)job - offsetof(struct kept_uploads, job));

    writers_expire(kept->server->writers);
    resumables_expire(kept->server->resumables);
    atomic_store(&kept->is_queued, false);
}

static void on_timer(void *context)
{
    struct kept_uploads *kept = context;
    uint64_t times;

    if (read(kept->timer, &times, sizeof(times)) != (ssize_t)sizeof(times) ||
        atomic_exchange(&kept->is_queued, true))
        return;
    workers_submit_idle(kept->server->workers, &kept->job);
}

struct kept_uploads *kept_uploads_watch(struct server *server)
{
    const struct itimerspec every = {.it_interval.tv_sec = LOOK_S, .it_value.tv_sec = LOOK_S};
    struct kept_uploads *kept = calloc(1, sizeof(*kept));

    if (kept == NULL)
        return NULL;
    kept->server = server;
    kept->job.run = run_look;
    kept->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (kept->timer >= 0 && timerfd_settime(kept->timer, 0, &every, NULL) == 0 &&
        loop_watch(server->loops[0], kept->timer, on_timer, kept) == 0)
        return kept;
    log_write(LOG_LEVEL_WARN, "unfinished uploads do not expire: there is no timer");
    kept_uploads_free(kept);
    return NULL;
}

void kept_uploads_free(struct kept_uploads *kept)
{
    if (kept == NULL)
        return;
    if (kept->timer >= 0)
        close(kept->timer);
    free(kept);
}
