/* The logs in memory: read when they are needed, and the least recently used ones go. */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/workers.h"
#include "store/versions/history_inside.h"
#include "zt/digest.h"

/* The limit for logs without users. */
#define LOGS_BYTES ((size_t)64 << 20)
/* How old the knowledge of a log may be that other servers change too. */
#define LOOK_MS 1000
/* How often a log is read again in a second for revisions that it does not have. */
#define AGAIN_MAX 8u

static struct log **bucket_of(struct history *history, const struct history_repo *repo)
{
    const uint64_t hash = zt_xxh3(repo->name, strlen(repo->name));

    return &history->buckets[(hash + repo->is_root_model) % HISTORY_BUCKETS];
}

static struct log *find(struct history *history, const struct history_repo *repo)
{
    struct log *log = *bucket_of(history, repo);

    assert(lock_is_held(&history->lock));
    while (log != NULL && (log->repo.is_root_model != repo->is_root_model ||
                           strcmp(log->repo.name, repo->name) != 0))
        log = log->next;
    return log;
}

static void unload(struct history *history, struct log *log)
{
    assert(log->bytes <= history->log_bytes);
    history->log_bytes -= log->bytes;
    log->bytes = 0;
    log->is_loaded = false;
    log_state_free(&log->state);
}

static void measure(struct history *history, struct log *log)
{
    const size_t bytes = sizeof(*log) + log->state.capacity * sizeof(*log->state.entries) +
                         log->state.ref_capacity * sizeof(*log->state.refs) +
                         (size_t)log->state.live_bytes;

    assert(log->bytes <= history->log_bytes);
    assert(lock_is_held(&history->lock));
    history->log_bytes += bytes - log->bytes;
    log->bytes = bytes;
}

static void drop(struct history *history, struct log *log)
{
    struct log **at = bucket_of(history, &log->repo);

    assert(log->users == 0 && log->waiters == NULL);
    assert(!log->is_looking);
    while (*at != log)
        at = &(*at)->next;
    *at = log->next;
    recency_remove(&history->idle, &log->link);
    unload(history, log);
    free(log);
}

static void evict(struct history *history)
{
    while (history->log_bytes > LOGS_BYTES && history->idle.oldest != NULL)
        drop(history, (struct log *)history->idle.oldest);
}

static void begin_use(struct history *history, struct log *log)
{
    assert(lock_is_held(&history->lock));
    if (log->users++ == 0 && log->waiters == NULL) {
        recency_remove(&history->idle, &log->link);
        recency_add(&history->held, &log->link);
    }
}

static void become_idle(struct history *history, struct log *log)
{
    assert(log->users == 0 && log->waiters == NULL);
    recency_remove(&history->held, &log->link);
    recency_add(&history->idle, &log->link);
    if (!log->is_loaded)
        drop(history, log);
    evict(history);
}

static void end_use(struct history *history, struct log *log)
{
    assert(log->users > 0);
    if (--log->users == 0 && log->waiters == NULL)
        become_idle(history, log);
}

static struct waiter *take_waiters(struct log *log)
{
    struct waiter *waiters = log->waiters;

    assert(log->users > 0);
    log->waiters = NULL;
    return waiters;
}

static struct log *find_or_add(struct history *history, const struct history_repo *repo)
{
    struct log **bucket = bucket_of(history, repo);
    struct log *log = find(history, repo);

    assert(lock_is_held(&history->lock));
    if (log != NULL)
        return log;
    log = calloc(1, sizeof(*log));
    if (log == NULL)
        return NULL;
    log->repo = *repo;
    log->next = *bucket;
    *bucket = log;
    recency_add(&history->idle, &log->link);
    return log;
}

/* Reads the file without the lock if it is not the one that is known. Others continue with what is
 * known, or wait if there is nothing. */
static enum zt_status look(struct history *history, struct log *log, struct zt_error *error)
{
    const bool was_loaded = log->is_loaded;
    struct waiter *waiters = NULL;
    struct log_file file = log->file;
    struct log_state state;
    enum zt_status status;
    bool is_same;

    assert(log->users > 0 && !log->is_looking);
    log->is_looking = true;
    if (!was_loaded)
        file.version[0] = '\0';
    pthread_mutex_unlock(&history->lock);
    status = log_file_read(history, &file, &log->repo, &state, &is_same, error);
    pthread_mutex_lock(&history->lock);
    if (status == ZT_OK && !(is_same && was_loaded)) {
        unload(history, log);
        log->file = file;
        log->state = state;
        log->is_loaded = true;
        measure(history, log);
        waiters = take_waiters(log);
    }
    log->is_looking = false;
    log->looked_ms = clock_ms();
    pthread_cond_broadcast(&history->loaded);
    if (waiters != NULL) {
        pthread_mutex_unlock(&history->lock);
        waiters_wake(waiters);
        pthread_mutex_lock(&history->lock);
    }
    return status;
}

static bool is_due(const struct history *history, const struct log *log)
{
    return history->place->is_shared && log->pins == 0 && !log->is_looking &&
           clock_ms() - log->looked_ms >= LOOK_MS;
}

/* With `lock` held. pins: the caller will change the log. */
static enum zt_status load(struct history *history, struct log *log, bool pins,
                           struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    if (!log->is_loaded && history->place->is_shared && !thread_may_wait())
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the commits of the repository have not been read yet");
    while (status == ZT_OK && (!log->is_loaded || (pins && log->is_looking)))
        if (log->is_looking)
            pthread_cond_wait(&history->loaded, &history->lock);
        else
            status = look(history, log, error);
    /* If that fails, what is known is used. */
    if (status == ZT_OK && !pins && thread_may_wait() && is_due(history, log))
        (void)look(history, log, NULL);
    return status;
}

static enum zt_status begin(struct history *history, const struct history_repo *repo, bool pins,
                            struct log **out_log, struct zt_error *error)
{
    enum zt_status status;
    struct log *log;

    pthread_mutex_lock(&history->lock);
    log = find_or_add(history, repo);
    if (log == NULL) {
        pthread_mutex_unlock(&history->lock);
        return zt_fail_memory(error, "the commits of a repository");
    }
    begin_use(history, log);
    status = load(history, log, pins, error);
    if (status != ZT_OK) {
        end_use(history, log);
        pthread_mutex_unlock(&history->lock);
        return status;
    }
    assert(log->is_loaded);
    log->pins += pins;
    *out_log = log;
    return ZT_OK;
}

enum zt_status log_begin(struct history *history, const struct history_repo *repo,
                         struct log **out_log, struct zt_error *error)
{
    return begin(history, repo, false, out_log, error);
}

bool log_look_again(struct history *history, struct log *log)
{
    assert(lock_is_held(&history->lock));
    if (!history->place->is_shared || !thread_may_wait())
        return false;
    if (clock_ms() - log->again_ms >= 1000) {
        log->again_ms = clock_ms();
        log->again = 0;
    }
    if (log->again >= AGAIN_MAX)
        return false;
    log->again++;
    while (log->is_looking)
        pthread_cond_wait(&history->loaded, &history->lock);
    /* A log that this server changes is known. */
    return log->pins == 0 && look(history, log, NULL) == ZT_OK && log->is_loaded;
}

void log_end(struct history *history, struct log *log)
{
    assert(lock_is_held(&history->lock));
    end_use(history, log);
    pthread_mutex_unlock(&history->lock);
}

enum zt_status log_pin(struct history *history, const struct history_repo *repo,
                       struct log **out_log, struct zt_error *error)
{
    const enum zt_status status = begin(history, repo, true, out_log, error);

    if (status == ZT_OK)
        pthread_mutex_unlock(&history->lock);
    return status;
}

void log_unpin(struct history *history, struct log *log)
{
    pthread_mutex_lock(&history->lock);
    assert(log->pins > 0);
    log->pins--;
    log_end(history, log);
}

enum zt_status log_refresh(struct history *history, const struct history_repo *repo,
                           struct zt_error *error)
{
    enum zt_status status = ZT_OK;
    struct log *log;

    pthread_mutex_lock(&history->lock);
    log = find(history, repo);
    if (log != NULL) {
        begin_use(history, log);
        while (log->is_looking)
            pthread_cond_wait(&history->loaded, &history->lock);
        if (log->pins == 0)
            status = look(history, log, error);
        end_use(history, log);
    }
    pthread_mutex_unlock(&history->lock);
    return status;
}

/* --- changes --- */

/* Another server has changed the log, or may have the change that was lost on its way: it is read
 * again before it is used. */
static enum zt_status fail_change(struct history *history, struct log *log, enum zt_status status,
                                  struct zt_error *error)
{
    if (history->place->is_shared) {
        pthread_mutex_lock(&history->lock);
        unload(history, log);
        pthread_mutex_unlock(&history->lock);
    }
    return status == ZT_STALE
               ? zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                         "another server has changed the repository %.200s; try again",
                         log->repo.name)
               : status;
}

static enum zt_status fail_unfit(enum zt_status status, struct zt_error *error)
{
    return status == ZT_NO_MEMORY
               ? zt_fail_memory(error, "the commits of a repository")
               : zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "a change does not fit its log");
}

static void end_change(struct history *history, struct log *log, int64_t count_before)
{
    struct waiter *waiters;

    assert(lock_is_held(&history->lock));
    atomic_fetch_add(&history->figures[FIGURE_COMMITS], (int64_t)log->state.count - count_before);
    measure(history, log);
    log->looked_ms = clock_ms();
    waiters = take_waiters(log);
    pthread_mutex_unlock(&history->lock);
    waiters_wake(waiters);
}

/* Replaces the file by one with just this state, and takes it over. */
static enum zt_status replace(struct history *history, struct log *log, struct log_state *state,
                              struct zt_error *error)
{
    const int64_t before = (int64_t)log->state.count;
    const enum zt_status status = log_file_replace(history, &log->file, &log->repo, state, error);

    if (status != ZT_OK) {
        log_state_free(state);
        return fail_change(history, log, status, error);
    }
    pthread_mutex_lock(&history->lock);
    log_state_free(&log->state);
    log->state = *state;
    end_change(history, log, before);
    return ZT_OK;
}

enum zt_status log_change(struct history *history, struct log *log, struct log_record *record,
                          struct zt_error *error)
{
    struct record_reader reader = {.at = record->writer.bytes, .left = record->writer.length};
    const int64_t before = (int64_t)log->state.count;
    struct log_state after;
    enum zt_status status;

    if (record->writer.failed)
        return zt_fail_memory(error, "a change of a repository");
    if (!log_file_may_grow(history, &log->file, &log->state, record)) {
        status = log_state_copy(&log->state, &after);
        if (status == ZT_OK) {
            status = log_state_apply(&after, &reader);
            if (status == ZT_OK)
                return replace(history, log, &after, error);
            log_state_free(&after);
        }
        return fail_unfit(status, error);
    }
    status = log_file_append(history, &log->file, record, error);
    if (status != ZT_OK)
        return fail_change(history, log, status, error);
    pthread_mutex_lock(&history->lock);
    status = log_state_apply(&log->state, &reader);
    /* A record that cannot be applied is found when the log is read again. */
    if (status != ZT_OK)
        unload(history, log);
    end_change(history, log, before);
    return status == ZT_OK ? ZT_OK : fail_unfit(status, error);
}

enum zt_status log_clear(struct history *history, struct log *log, struct zt_error *error)
{
    struct log_state empty = {.last = log->state.last + 1};

    return replace(history, log, &empty, error);
}

/* --- waiters --- */

/* Returns the next log with waiters that is to be looked at; *out_waits: there are waiters. */
static struct log *find_watched(struct history *history, bool *out_waits)
{
    *out_waits = false;
    for (struct recency_link *link = history->held.newest; link != NULL; link = link->older) {
        struct log *log = (struct log *)link;

        *out_waits = *out_waits || log->waiters != NULL;
        if (log->waiters != NULL && is_due(history, log))
            return log;
    }
    return NULL;
}

/* The thread that finds what other servers have changed. */
static void *watch(void *context)
{
    struct history *history = context;

    pthread_mutex_lock(&history->lock);
    while (!history->is_ending) {
        bool waits;
        struct log *log = find_watched(history, &waits);

        if (log != NULL) {
            begin_use(history, log);
            (void)look(history, log, NULL);
            end_use(history, log);
        } else if (waits)
            thread_wait_ms(&history->watched, &history->lock, LOOK_MS / 4);
        else
            pthread_cond_wait(&history->watched, &history->lock);
    }
    pthread_mutex_unlock(&history->lock);
    return NULL;
}

/* Without the thread, waiters learn of this server's changes only. */
static void begin_watching(struct history *history)
{
    assert(lock_is_held(&history->lock));
    if (!history->place->is_shared)
        return;
    if (!history->is_watching)
        history->is_watching = thread_start(&history->watcher, "versions", watch, history) == 0;
    pthread_cond_signal(&history->watched);
}

static void end_watching(struct history *history)
{
    if (!history->is_watching)
        return;
    pthread_mutex_lock(&history->lock);
    history->is_ending = true;
    pthread_cond_signal(&history->watched);
    pthread_mutex_unlock(&history->lock);
    pthread_join(history->watcher, NULL);
}

bool history_wait(struct history *history, const struct history_repo *repo, uint64_t above,
                  struct waiter *waiter)
{
    struct log *log;
    bool waits;

    pthread_mutex_lock(&history->lock);
    log = find(history, repo);
    waits = log != NULL && log->is_loaded && log->state.last <= above;
    if (waits) {
        begin_use(history, log);
        waiter->next = log->waiters;
        log->waiters = waiter;
        log->users--;
        begin_watching(history);
    }
    pthread_mutex_unlock(&history->lock);
    return waits;
}

static bool remove_waiter(struct log *log, const struct waiter *waiter)
{
    for (struct waiter **at = &log->waiters; *at != NULL; at = &(*at)->next)
        if (*at == waiter) {
            *at = waiter->next;
            return true;
        }
    return false;
}

bool history_forget_waiter(struct history *history, struct waiter *waiter)
{
    bool was_waiting = false;

    pthread_mutex_lock(&history->lock);
    for (struct recency_link *link = history->held.newest; link != NULL && !was_waiting;) {
        struct log *log = (struct log *)link;

        link = link->older;
        was_waiting = remove_waiter(log, waiter);
        if (was_waiting && log->users == 0 && log->waiters == NULL)
            become_idle(history, log);
    }
    pthread_mutex_unlock(&history->lock);
    return was_waiting;
}

void logs_free(struct history *history)
{
    end_watching(history);
    while (history->held.newest != NULL) {
        struct log *log = (struct log *)history->held.newest;
        struct waiter *waiters = log->waiters;

        assert(log->users == 0);
        log->waiters = NULL;
        become_idle(history, log);
        waiters_wake(waiters);
    }
    while (history->idle.newest != NULL)
        drop(history, (struct log *)history->idle.newest);
    assert(history->log_bytes == 0);
}
