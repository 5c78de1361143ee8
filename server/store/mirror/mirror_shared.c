/* What servers over one bucket fetch for each other. A file that was verified is kept in the inner
 * store, one after the other in the background; other servers find it there when they open it, and
 * ask the upstream only if it cannot be read. They check it like everything else: what is in the
 * bucket is as little trusted as an upstream. */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "store/mirror/mirror_state.h"

/* How long after a failure a file is offered again, when it is opened. */
#define AGAIN_MS 10000
/* A store that does not answer makes one open wait in this time. */
#define FIND_AGAIN_MS 1000
/* The list of offers holds files open. */
#define OFFERS_MOST 256u

/* --- reading --- */

static bool may_be_shared(const struct mirror_files *files, const struct mirror_place *place)
{
    const struct store *store = files->options.shared;

    return store != NULL && store->shared != NULL && place->file.digest_kind == UPSTREAM_SHA256 &&
           place->file.size_bytes > 0;
}

static void describe(const struct mirror_place *place, struct store_shared_file *out_shared)
{
    *out_shared = (struct store_shared_file){.size_bytes = place->file.size_bytes};
    memcpy(out_shared->sha256, place->file.digest, sizeof(out_shared->sha256));
}

static bool may_find(struct mirror_files *files)
{
    const int64_t now_ms = clock_ms();
    int64_t after_ms = atomic_load(&files->find_after_ms);

    return after_ms == 0 ||
           (now_ms >= after_ms && atomic_compare_exchange_strong(&files->find_after_ms, &after_ms,
                                                                 now_ms + FIND_AGAIN_MS));
}

static bool find(struct mirror_files *files, struct store_shared_file *shared)
{
    struct store *store = files->options.shared;
    struct zt_error error;
    const enum zt_status status = store->shared->find(store, shared, &error);

    atomic_store(&files->find_after_ms, status == ZT_UNAVAILABLE ? clock_ms() + FIND_AGAIN_MS : 0);
    return status == ZT_OK;
}

bool mirror_shared_find(struct mirror_files *files, const struct mirror_place *place,
                        struct store_shared_file *out_shared)
{
    describe(place, out_shared);
    return may_be_shared(files, place) && !place->is_verified && thread_may_wait() &&
           !mirror_file_was_wrong(files, place) && may_find(files) && find(files, out_shared);
}

/* After the last use of the upstream. */
static void end_read(struct mirror_files *files)
{
    pthread_mutex_lock(&files->lock);
    assert(files->shared_reads > 0);
    files->shared_reads--;
    pthread_cond_broadcast(&files->parked);
    pthread_mutex_unlock(&files->lock);
}

static void on_fetched(void *context, struct cache_fetch *fetch, enum zt_status status,
                       const struct zt_error *error)
{
    struct mirror_file *file = context;
    struct mirror_files *files = file->files;

    /* fetch->done may free the file. */
    atomic_fetch_add(&files->holders, 1);
    if (status == ZT_OK)
        fetch->done(fetch, ZT_OK, NULL);
    else if (atomic_load(&files->is_stopping))
        fetch->done(fetch, ZT_UNAVAILABLE, error);
    else {
        atomic_store(&file->is_shared, false);
        files->options.fetch(files->options.upstream, &file->place.file, fetch);
    }
    end_read(files);
    mirror_files_release(files);
}

bool mirror_shared_fetch(struct mirror_file *file, struct cache_fetch *fetch)
{
    struct mirror_files *files = file->files;
    struct store *store = files->options.shared;

    if (!atomic_load(&file->is_shared) || atomic_load(&files->is_stopping))
        return false;
    assert(store != NULL && file->shared.version[0] != '\0');
    pthread_mutex_lock(&files->lock);
    files->shared_reads++;
    pthread_mutex_unlock(&files->lock);
    store->shared->fetch(store, &file->shared, fetch, on_fetched, file);
    return true;
}

/* --- keeping --- */

/* Something wrong under the file's name is replaced. */
static bool is_there(struct mirror_files *files, const struct mirror_file *file,
                     struct store_shared_file *shared)
{
    struct store *store = files->options.shared;
    struct zt_error error;

    return !mirror_file_was_wrong(files, &file->place) &&
           store->shared->find(store, shared, &error) == ZT_OK;
}

/* Returns true if the file is in the inner store. */
static bool keep(struct mirror_files *files, struct mirror_file *file)
{
    struct store *store = files->options.shared;
    const struct upstream_place *place = &file->place.file;
    struct store_shared_file shared;
    struct zt_pin pin;
    struct zt_error error;
    enum zt_status status;

    describe(&file->place, &shared);
    if (atomic_load(&files->is_stopping) || atomic_load(&file->verdict) != MIRROR_VERIFIED)
        return false;
    if (is_there(files, file, &shared))
        return true;
    /* Waits only for bytes that are being written or compared. */
    status = zt_source_pin(file->cached, 0, place->size_bytes, cache_has_all(file->cached), &pin,
                           &error);
    if (status == ZT_OK) {
        status = store->shared->keep(store, &shared, zt_source_descriptor(pin.view), &error);
        zt_pin_release(&pin);
    }
    if (status == ZT_OK)
        log_write(LOG_LEVEL_INFO, "mirror: %s/%s is in the bucket now, for other servers",
                  place->repository, place->path);
    else
        log_write(LOG_LEVEL_WARN, "mirror: %s/%s is not kept for other servers: %s",
                  place->repository, place->path, error.message);
    return status == ZT_OK;
}

/* Waits for the store, on a thread that may. */
static void run(struct job *job)
{
    struct mirror_files *files =
        (struct mirror_files *)((char *)job - offsetof(struct mirror_files, offering));
    bool has_more = true;

    while (has_more) {
        struct mirror_file *file;
        bool is_kept;

        pthread_mutex_lock(&files->lock);
        file = files->offers;
        files->offers = file->next_offer;
        files->offer_count--;
        pthread_mutex_unlock(&files->lock);
        is_kept = keep(files, file);
        pthread_mutex_lock(&files->lock);
        file->is_kept = is_kept;
        if (is_kept)
            mirror_noted_add(&files->kept, file->key);
        file->offered_ms = clock_ms();
        file->is_offered = false;
        has_more = files->offers != NULL;
        files->is_offering = has_more;
        pthread_mutex_unlock(&files->lock);
        mirror_file_release(file);
    }
}

void mirror_shared_offer(struct mirror_file *file)
{
    struct mirror_files *files = file->files;
    struct mirror_file **link = &files->offers;

    if (!may_be_shared(files, &file->place) || files->options.shared->staging == NULL ||
        atomic_load(&file->is_shared) || atomic_load(&file->verdict) != MIRROR_VERIFIED)
        return;
    pthread_mutex_lock(&files->lock);
    if (!file->is_kept && !file->is_offered && !atomic_load(&files->is_stopping) &&
        files->offer_count < OFFERS_MOST && !mirror_noted_has(&files->kept, file->key) &&
        (file->offered_ms == 0 || clock_ms() - file->offered_ms >= AGAIN_MS)) {
        while (*link != NULL)
            link = &(*link)->next_offer;
        *link = file;
        file->next_offer = NULL;
        file->is_offered = true;
        files->offer_count++;
        file->users++;
        if (!files->is_offering) {
            files->is_offering = true;
            files->offering = (struct job){.run = run, .client = JOB_OF_SERVER};
            workers_submit_idle(files->options.waiters, &files->offering);
        }
    }
    pthread_mutex_unlock(&files->lock);
}

void mirror_shared_end(struct mirror_files *files)
{
    if (files == NULL)
        return;
    assert(!files->is_offering);
    pthread_mutex_lock(&files->lock);
    while (files->shared_reads > 0)
        pthread_cond_wait(&files->parked, &files->lock);
    pthread_mutex_unlock(&files->lock);
}
