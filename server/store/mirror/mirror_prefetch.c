/* Each prefetch runs as one job, which lists the repository and then opens its files, in turns. It
 * fetches a few files side by side, and is called back when one is complete. Threads wait only for
 * the list and for opening, never for the bytes. */
#include "store/mirror/mirror_prefetch.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/workers.h"
#include "store/mirror/mirror_file.h"

/* Prefetches that are remembered, and that run at once. */
#define PREFETCHES_MOST 64u
#define RUNNING_MOST    8u
/* Files of one prefetch that are fetched side by side: each in runs that are side by side too. */
#define LANES 4u

struct prefetch;

struct wanted {
    uint64_t size_bytes;
    char *path;
};

/* One file that is being fetched. */
struct lane {
    struct zt_source_waiter waiter; /* first */
    struct prefetch *prefetch;
    struct zt_source *source; /* NULL: free */
    struct zt_source *file;   /* the mirrored file that it reads from */
    bool has_ended;
};

struct prefetch {
    struct job job; /* first */
    struct mirror_prefetches *all;
    struct mirror_prefetch_report report;
    struct wanted *files;
    size_t count;
    size_t room;
    size_t next; /* to be opened */
    uint64_t ended_bytes;
    struct lane lanes[LANES];
    bool is_queued;
    bool is_poked;  /* a lane has ended while the job ran */
    uint64_t begun; /* a rising number */
};

struct mirror_prefetches {
    struct mirror_prefetch_ops ops;
    struct workers *waiters;
    pthread_mutex_t lock;
    struct prefetch *prefetches[PREFETCHES_MOST];
    uint64_t begun;
    atomic_bool is_stopping;
};

static bool is_running(const struct prefetch *prefetch)
{
    return prefetch->report.state <= MIRROR_PREFETCH_FETCHING;
}

static void forget_files(struct prefetch *prefetch)
{
    for (size_t i = 0; i < prefetch->count; i++)
        free(prefetch->files[i].path);
    free(prefetch->files);
    prefetch->files = NULL;
    prefetch->count = prefetch->room = 0;
}

static void prefetch_free(struct prefetch *prefetch)
{
    if (prefetch == NULL)
        return;
    for (unsigned i = 0; i < LANES; i++)
        assert(prefetch->lanes[i].source == NULL);
    forget_files(prefetch);
    free(prefetch);
}

/* --- the list --- */

static bool add_file(void *visitor, const char *path, uint64_t size_bytes)
{
    struct prefetch *prefetch = visitor;
    struct wanted *files;
    char *copy;

    if (prefetch->count == prefetch->room) {
        size_t room = prefetch->room * 2 + 64;

        files = realloc(prefetch->files, room * sizeof(*files));
        if (files == NULL)
            return false;
        prefetch->files = files;
        prefetch->room = room;
    }
    copy = strdup(path);
    if (copy == NULL)
        return false;
    prefetch->files[prefetch->count++] = (struct wanted){.size_bytes = size_bytes, .path = copy};
    pthread_mutex_lock(&prefetch->all->lock);
    prefetch->report.file_count++;
    prefetch->report.size_bytes += size_bytes;
    pthread_mutex_unlock(&prefetch->all->lock);
    return true;
}

/* With the lock. The first failure counts. */
static void fail(struct prefetch *prefetch, const struct zt_error *error)
{
    struct mirror_prefetch_report *report = &prefetch->report;

    if (report->status != ZT_OK)
        return;
    assert(error->status != ZT_OK);
    report->status = error->status;
    strncpy(report->error, error->message, sizeof(report->error) - 1);
}

/* Files that are evicted while the others are fetched would make the result useless. */
static enum zt_status check_room(const struct prefetch *prefetch, struct zt_error *error)
{
    const struct mirror_prefetch_ops *ops = &prefetch->all->ops;
    const uint64_t room = ops->room != NULL ? ops->room(ops->context) : UINT64_MAX;

    assert(prefetch->report.state == MIRROR_PREFETCH_LISTING);
    if (prefetch->report.size_bytes <= room)
        return ZT_OK;
    return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                   "the repository has %" PRIu64 " bytes, but only %" PRIu64
                   " may be kept: raise keep, or free disk space",
                   prefetch->report.size_bytes, room);
}

static void list_files(struct prefetch *prefetch)
{
    const struct mirror_prefetch_ops *ops = &prefetch->all->ops;
    struct mirror_prefetch_list list = {.repository = prefetch->report.repository,
                                        .revision = prefetch->report.revision,
                                        .visit = add_file,
                                        .context = prefetch};
    struct zt_error error;
    enum zt_status status;

    zt_error_clear(&error);
    status = ops->list(ops->context, &list, &error);
    if (status == ZT_OK && prefetch->count < prefetch->report.file_count)
        status = zt_fail_memory(&error, "a list of files");
    if (status == ZT_OK)
        status = check_room(prefetch, &error);
    pthread_mutex_lock(&prefetch->all->lock);
    memcpy(prefetch->report.commit, list.commit, sizeof(list.commit));
    prefetch->report.state = MIRROR_PREFETCH_FETCHING;
    if (status != ZT_OK)
        fail(prefetch, &error);
    pthread_mutex_unlock(&prefetch->all->lock);
}

/* --- files --- */

/* With the lock. */
static void submit(struct prefetch *prefetch)
{
    prefetch->is_poked = true;
    if (prefetch->is_queued)
        return;
    prefetch->is_queued = true;
    workers_submit(prefetch->all->waiters, &prefetch->job);
}

static void on_brought(struct zt_source_waiter *waiter)
{
    struct lane *lane = (struct lane *)waiter;
    struct prefetch *prefetch = lane->prefetch;

    pthread_mutex_lock(&prefetch->all->lock);
    lane->has_ended = true;
    submit(prefetch);
    pthread_mutex_unlock(&prefetch->all->lock);
}

static void count_file(struct prefetch *prefetch, uint64_t size_bytes)
{
    pthread_mutex_lock(&prefetch->all->lock);
    prefetch->report.files_done++;
    prefetch->ended_bytes += size_bytes;
    pthread_mutex_unlock(&prefetch->all->lock);
}

/* Opens the next file in a free lane. */
static void open_next(struct prefetch *prefetch, struct lane *lane)
{
    const struct mirror_prefetch_ops *ops = &prefetch->all->ops;
    const struct wanted *file = &prefetch->files[prefetch->next++];
    struct zt_source *source;
    struct zt_source *mirrored;
    struct zt_error error;

    assert(lane->source == NULL);
    if (ops->open(ops->context, file->path, &source, &error) != ZT_OK) {
        pthread_mutex_lock(&prefetch->all->lock);
        fail(prefetch, &error);
        pthread_mutex_unlock(&prefetch->all->lock);
        return;
    }
    /* Another folder of the store has the file. */
    mirrored = ops->mirrored != NULL ? ops->mirrored(source) : source;
    if (mirrored == NULL || mirror_file_place(mirrored) == NULL) {
        zt_source_close(source);
        count_file(prefetch, file->size_bytes);
        return;
    }
    lane->has_ended = false;
    pthread_mutex_lock(&prefetch->all->lock);
    lane->source = source;
    lane->file = mirrored;
    pthread_mutex_unlock(&prefetch->all->lock);
    lane->waiter.wake = on_brought;
    mirror_file_bring(mirrored, &lane->waiter);
}

/* Closes the files that are complete, or failed. */
static void end_lanes(struct prefetch *prefetch)
{
    for (unsigned i = 0; i < LANES; i++) {
        struct lane *lane = &prefetch->lanes[i];
        struct zt_source *source = lane->source;
        bool has_ended;

        pthread_mutex_lock(&prefetch->all->lock);
        has_ended = source != NULL && lane->has_ended;
        if (has_ended) {
            lane->source = NULL;
            if (lane->waiter.error.status != ZT_OK)
                fail(prefetch, &lane->waiter.error);
        }
        pthread_mutex_unlock(&prefetch->all->lock);
        if (!has_ended)
            continue;
        if (lane->waiter.error.status == ZT_OK)
            count_file(prefetch, zt_source_size(source));
        zt_source_close(source);
    }
}

static bool may_open(struct prefetch *prefetch)
{
    bool may;

    pthread_mutex_lock(&prefetch->all->lock);
    may = prefetch->next < prefetch->count && prefetch->report.status == ZT_OK &&
          !atomic_load(&prefetch->all->is_stopping);
    pthread_mutex_unlock(&prefetch->all->lock);
    return may;
}

static void fill_lanes(struct prefetch *prefetch)
{
    for (unsigned i = 0; i < LANES; i++)
        while (prefetch->lanes[i].source == NULL && may_open(prefetch))
            open_next(prefetch, &prefetch->lanes[i]);
}

static bool has_lanes(const struct prefetch *prefetch)
{
    for (unsigned i = 0; i < LANES; i++)
        if (prefetch->lanes[i].source != NULL)
            return true;
    return false;
}

/* With the lock. No file is being fetched. */
static void finish(struct prefetch *prefetch)
{
    struct mirror_prefetch_report *report = &prefetch->report;
    struct zt_error error;

    if (report->status == ZT_OK && prefetch->next < prefetch->count) {
        zt_fail(&error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the program is shutting down");
        fail(prefetch, &error);
    }
    report->state = report->status == ZT_OK ? MIRROR_PREFETCH_DONE : MIRROR_PREFETCH_FAILED;
    log_write(report->status == ZT_OK ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
              "mirror: prefetch of %s at %s: %s", report->repository, report->revision,
              report->status == ZT_OK ? "complete" : report->error);
    forget_files(prefetch);
}

static void run_job(struct job *job)
{
    struct prefetch *prefetch = (struct prefetch *)job;
    bool is_again = true;

    while (is_again) {
        pthread_mutex_lock(&prefetch->all->lock);
        prefetch->is_poked = false;
        pthread_mutex_unlock(&prefetch->all->lock);
        if (prefetch->report.state == MIRROR_PREFETCH_LISTING)
            list_files(prefetch);
        end_lanes(prefetch);
        fill_lanes(prefetch);
        pthread_mutex_lock(&prefetch->all->lock);
        is_again = prefetch->is_poked;
        if (!is_again) {
            if (!has_lanes(prefetch))
                finish(prefetch);
            prefetch->is_queued = false;
        }
        pthread_mutex_unlock(&prefetch->all->lock);
    }
}

/* --- all prefetches --- */

/* With the lock. */
static struct prefetch *find(const struct mirror_prefetches *all, const char *repository,
                             const char *revision)
{
    struct prefetch *found = NULL;

    for (unsigned i = 0; i < PREFETCHES_MOST; i++) {
        struct prefetch *prefetch = all->prefetches[i];

        if (prefetch != NULL && strcmp(prefetch->report.repository, repository) == 0 &&
            strcmp(prefetch->report.revision, revision) == 0)
            found = prefetch;
    }
    return found;
}

/* With the lock. The place for one more; NULL: too many run. */
static struct prefetch **free_place(struct mirror_prefetches *all)
{
    struct prefetch **place = NULL;
    unsigned running = 0;

    for (unsigned i = 0; i < PREFETCHES_MOST; i++) {
        struct prefetch **at = &all->prefetches[i];

        if (*at != NULL && is_running(*at))
            running++;
        else if (place == NULL ||
                 (*place != NULL && (*at == NULL || (*at)->begun < (*place)->begun)))
            place = at;
    }
    return running < RUNNING_MOST ? place : NULL;
}

static struct prefetch *prefetch_new(struct mirror_prefetches *all, const char *repository,
                                     const char *revision)
{
    struct prefetch *prefetch = calloc(1, sizeof(*prefetch));

    if (prefetch == NULL)
        return NULL;
    prefetch->all = all;
    prefetch->job = (struct job){.run = run_job, .client = JOB_OF_SERVER};
    strcpy(prefetch->report.repository, repository);
    strcpy(prefetch->report.revision, revision);
    for (unsigned i = 0; i < LANES; i++)
        prefetch->lanes[i].prefetch = prefetch;
    return prefetch;
}

/* With the lock. */
static enum zt_status begin(struct mirror_prefetches *all, const char *repository,
                            const char *revision, struct zt_error *error)
{
    struct prefetch *before = find(all, repository, revision);
    struct prefetch **place;
    struct prefetch *prefetch;

    if (before != NULL && is_running(before))
        return ZT_OK;
    place = free_place(all);
    if (place == NULL)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "%u prefetches are in progress",
                       RUNNING_MOST);
    if (atomic_load(&all->is_stopping))
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the program is shutting down");
    prefetch = prefetch_new(all, repository, revision);
    if (prefetch == NULL)
        return zt_fail_memory(error, "a prefetch");
    /* The earlier prefetch of the same revision, if there is one, is replaced. */
    for (unsigned i = 0; before != NULL && i < PREFETCHES_MOST; i++)
        if (all->prefetches[i] == before)
            place = &all->prefetches[i];
    prefetch_free(*place);
    *place = prefetch;
    prefetch->begun = ++all->begun;
    submit(prefetch);
    return ZT_OK;
}

enum zt_status mirror_prefetch_begin(struct mirror_prefetches *all, const char *repository,
                                     const char *revision, struct zt_error *error)
{
    enum zt_status status;

    if (strlen(repository) >= MIRROR_PREFETCH_TEXT || strlen(revision) >= MIRROR_PREFETCH_TEXT)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the name is too long");
    pthread_mutex_lock(&all->lock);
    status = begin(all, repository, revision, error);
    pthread_mutex_unlock(&all->lock);
    return status;
}

bool mirror_prefetch_report(struct mirror_prefetches *all, const char *repository,
                            const char *revision, struct mirror_prefetch_report *out_report)
{
    const struct prefetch *prefetch;

    pthread_mutex_lock(&all->lock);
    prefetch = find(all, repository, revision);
    if (prefetch != NULL) {
        *out_report = prefetch->report;
        out_report->bytes_here = prefetch->ended_bytes;
        for (unsigned i = 0; i < LANES; i++)
            if (prefetch->lanes[i].source != NULL)
                out_report->bytes_here += mirror_file_bytes_here(prefetch->lanes[i].file);
    }
    pthread_mutex_unlock(&all->lock);
    return prefetch != NULL;
}

enum zt_status mirror_prefetches_new(const struct mirror_prefetch_ops *ops, struct workers *waiters,
                                     struct mirror_prefetches **out_prefetches,
                                     struct zt_error *error)
{
    struct mirror_prefetches *all = calloc(1, sizeof(*all));

    assert(ops->list != NULL && ops->open != NULL && waiters != NULL);
    if (all == NULL)
        return zt_fail_memory(error, "prefetches");
    all->ops = *ops;
    all->waiters = waiters;
    pthread_mutex_init(&all->lock, NULL);
    *out_prefetches = all;
    return ZT_OK;
}

void mirror_prefetches_interrupt(struct mirror_prefetches *all)
{
    atomic_store(&all->is_stopping, true);
}

void mirror_prefetches_free(struct mirror_prefetches *all)
{
    if (all == NULL)
        return;
    for (unsigned i = 0; i < PREFETCHES_MOST; i++)
        prefetch_free(all->prefetches[i]);
    pthread_mutex_destroy(&all->lock);
    free(all);
}
