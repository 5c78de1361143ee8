/* The logs in memory: read when they are needed, and the least recently used ones go. */
#include <assert.h>
#include <stdlib.h>

#include "base/thread.h"
#include "base/workers.h"
#include "store/versions/history_inside.h"
#include "zt/digest.h"

/* The limit for logs without users. */
#define LOGS_BYTES ((size_t)64 << 20)

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
    assert(!log->is_loading);
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

/* Reads the file without the lock, while others wait. */
static enum zt_status load(struct history *history, struct log *log, struct zt_error *error)
{
    struct log_file file;
    struct log_state state;
    enum zt_status status;

    assert(log->users > 0 && !log->is_loaded && !log->is_loading);
    log->is_loading = true;
    pthread_mutex_unlock(&history->lock);
    status = log_file_read(history, &file, &log->repo, &state, error);
    pthread_mutex_lock(&history->lock);
    log->is_loading = false;
    if (status == ZT_OK) {
        log->file = file;
        log->state = state;
        log->is_loaded = true;
        measure(history, log);
    }
    pthread_cond_broadcast(&history->loaded);
    return status;
}

enum zt_status log_begin(struct history *history, const struct history_repo *repo,
                         struct log **out_log, struct zt_error *error)
{
    enum zt_status status = ZT_OK;
    struct log *log;

    pthread_mutex_lock(&history->lock);
    log = find_or_add(history, repo);
    if (log == NULL) {
        pthread_mutex_unlock(&history->lock);
        return zt_fail_memory(error, "the commits of a repository");
    }
    begin_use(history, log);
    while (log->is_loading)
        pthread_cond_wait(&history->loaded, &history->lock);
    while (status == ZT_OK && !log->is_loaded)
        if (log->is_loading)
            pthread_cond_wait(&history->loaded, &history->lock);
        else
            status = load(history, log, error);
    if (status != ZT_OK) {
        end_use(history, log);
        pthread_mutex_unlock(&history->lock);
        return status;
    }
    assert(log->is_loaded && !log->is_loading);
    *out_log = log;
    return ZT_OK;
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
    const enum zt_status status = log_begin(history, repo, out_log, error);

    if (status == ZT_OK)
        pthread_mutex_unlock(&history->lock);
    return status;
}

void log_unpin(struct history *history, struct log *log)
{
    pthread_mutex_lock(&history->lock);
    log_end(history, log);
}

/* --- changes --- */

static struct waiter *take_waiters(struct log *log)
{
    struct waiter *waiters = log->waiters;

    assert(log->users > 0);
    log->waiters = NULL;
    return waiters;
}

/* A record that was written but cannot be applied is found when the log is read again. */
enum zt_status log_change(struct history *history, struct log *log, struct log_record *record,
                          struct zt_error *error)
{
    struct record_reader reader = {.at = record->writer.bytes, .left = record->writer.length};
    const int64_t before = (int64_t)log->state.count;
    struct waiter *waiters;
    enum zt_status status;

    if (record->writer.failed)
        return zt_fail_memory(error, "a change of a repository");
    status = log_file_add(history, &log->file, &log->repo, &log->state, record, error);
    if (status != ZT_OK)
        return status;
    pthread_mutex_lock(&history->lock);
    status = log_state_apply(&log->state, &reader);
    atomic_fetch_add(&history->figures[FIGURE_COMMITS], (int64_t)log->state.count - before);
    if (status == ZT_OK)
        measure(history, log);
    else
        unload(history, log);
    waiters = take_waiters(log);
    pthread_mutex_unlock(&history->lock);
    waiters_wake(waiters);
    if (status == ZT_OK)
        return ZT_OK;
    return status == ZT_NO_MEMORY
               ? zt_fail_memory(error, "the commits of a repository")
               : zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "a change does not fit its log");
}

enum zt_status log_clear(struct history *history, struct log *log, struct zt_error *error)
{
    const struct log_state empty = {.last = log->state.last + 1};
    const int64_t before = (int64_t)log->state.count;
    struct waiter *waiters;
    enum zt_status status;

    status = log_file_replace(history, &log->file, &log->repo, &empty, error);
    if (status != ZT_OK)
        return status;
    pthread_mutex_lock(&history->lock);
    log_state_free(&log->state);
    log->state = empty;
    measure(history, log);
    atomic_fetch_sub(&history->figures[FIGURE_COMMITS], before);
    waiters = take_waiters(log);
    pthread_mutex_unlock(&history->lock);
    waiters_wake(waiters);
    return ZT_OK;
}

/* --- waiters --- */

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
