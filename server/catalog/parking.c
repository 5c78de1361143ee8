/* Which files are closed while nobody reads them.
 *
 * The open generations of the index are in one list. When there are too many, they are considered
 * from its end: those that were found since they were last considered, and those that somebody
 * holds, go to the front, and the others are closed. So a lookup only sets a flag, without a
 * lock. */
#include "catalog/parking.h"

#include <assert.h>
#include <errno.h>
#include <sys/resource.h>

#include "base/metrics.h"

/* Files that nobody reads may hold an eighth of the descriptors; connections, uploads, files that
 * are being sent and those of a scan need the rest. */
#define OPEN_SHARE 8
/* Each open file may have a mapping, and a process may have 65,530 of them (vm.max_map_count). */
#define OPEN_MAX ((rlim_t)16384)
/* This share is closed at a time, so that lookups are not stopped for each file. */
#define CLOSED_SHARE 8

static size_t most_open(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur / OPEN_SHARE > OPEN_MAX)
        return (size_t)OPEN_MAX;
    return files.rlim_cur < OPEN_SHARE ? 1 : (size_t)(files.rlim_cur / OPEN_SHARE);
}

void parking_init(struct catalog_content *content)
{
    content->open_most = most_open();
    content->park_above = content->open_most;
    pthread_mutex_init(&content->open_lock, NULL);
    for (size_t i = 0; i < PARKING_LOCKS; i++)
        pthread_mutex_init(&content->opening[i], NULL);
}

void parking_clear(struct catalog_content *content)
{
    pthread_mutex_destroy(&content->open_lock);
    for (size_t i = 0; i < PARKING_LOCKS; i++)
        pthread_mutex_destroy(&content->opening[i]);
}

size_t parking_count(struct catalog_content *content)
{
    size_t count;

    pthread_mutex_lock(&content->open_lock);
    count = content->open_count;
    pthread_mutex_unlock(&content->open_lock);
    return count;
}

bool parking_is_out_of_files(const struct zt_error *error)
{
    return error->os_error == EMFILE || error->os_error == ENFILE;
}

/* --- the list of open generations; its lock is held --- */

static void list(struct catalog_content *content, struct generation *generation)
{
    assert(!generation->is_in_open);
    generation->is_in_open = true;
    recency_add(&content->open, &generation->open_link);
    content->open_count += generation_open_files(generation);
}

static void unlist(struct catalog_content *content, struct generation *generation)
{
    const size_t files = generation_open_files(generation);

    assert(generation->is_in_open && files <= content->open_count);
    generation->is_in_open = false;
    recency_remove(&content->open, &generation->open_link);
    content->open_count -= files;
}

void parking_enter(struct catalog_content *content, struct generation *generation)
{
    pthread_mutex_lock(&content->open_lock);
    /* It may have been found, and opened again, or removed, since it was shown. */
    if (!generation->is_in_open && !atomic_load(&generation->retired) &&
        !atomic_load(&generation->parked) && generation->source != NULL)
        list(content, generation);
    pthread_mutex_unlock(&content->open_lock);
}

void parking_leave(struct catalog_content *content, struct generation *generation)
{
    assert(atomic_load(&generation->retired));
    pthread_mutex_lock(&content->open_lock);
    if (generation->is_in_open)
        unlist(content, generation);
    pthread_mutex_unlock(&content->open_lock);
}

/* --- closing --- */

static void park(struct generation *generation)
{
    assert(!atomic_load(&generation->parked) && generation->source != NULL);
    zt_source_close(generation->source);
    generation->source = NULL;
    shard_files_park(&generation->shards);
    atomic_store(&generation->parked, true);
}

bool parking_close_new(struct generation *generation)
{
    if (generation->source == NULL || atomic_load(&generation->references) > 1)
        return false;
    park(generation);
    return true;
}

/* Closes files until at most so many are open. The index's write lock is held, so that nobody can
 * take a reference of one who reads. */
static void park_down_to(struct catalog_content *content, size_t most)
{
    const size_t margin = content->open_most / CLOSED_SHARE + 1;

    pthread_mutex_lock(&content->open_lock);
    /* Twice, since the first time may only take back a flag. */
    for (size_t left = 2 * content->open.count; left > 0 && content->open_count > most; left--) {
        struct generation *oldest = (struct generation *)content->open.oldest;
        const bool was_used = atomic_exchange(&oldest->used, false);

        if (was_used || atomic_load(&oldest->references) - oldest->idle_holds > 1) {
            recency_touch(&content->open, &oldest->open_link);
            continue;
        }
        unlist(content, oldest);
        park(oldest);
        metric_add(METRIC_FILES_PARKED, 1);
    }
    /* If they are in use, they are not looked through again for each that is added. */
    content->park_above = content->open_count + margin > content->open_most
                              ? content->open_count + margin
                              : content->open_most;
    pthread_mutex_unlock(&content->open_lock);
}

static bool is_above(struct catalog_content *content)
{
    bool above;

    pthread_mutex_lock(&content->open_lock);
    above = content->open_count > content->park_above;
    pthread_mutex_unlock(&content->open_lock);
    return above;
}

void parking_limit(struct catalog_content *content)
{
    if (!is_above(content))
        return;
    pthread_rwlock_wrlock(&content->index_lock);
    park_down_to(content, content->open_most - content->open_most / CLOSED_SHARE);
    pthread_rwlock_unlock(&content->index_lock);
}

void parking_make_room(struct catalog_content *content)
{
    pthread_rwlock_wrlock(&content->index_lock);
    park_down_to(content, parking_count(content) / 2);
    pthread_rwlock_unlock(&content->index_lock);
}

/* --- opening again --- */

static bool open_files(struct catalog_content *content, struct generation *generation,
                       struct zt_error *error)
{
    struct store *store = content->server->store;
    struct file_identity identity;
    struct zt_source *source = NULL;

    zt_error_clear(error);
    if (store->ops->open(store, generation->path, &source, &identity, error) != ZT_OK)
        return false;
    if (!store_identity_equal(&identity, &generation->identity) ||
        !shard_files_unpark(&generation->shards, store, error)) {
        zt_source_close(source);
        return false;
    }
    assert(generation->source == NULL);
    generation->source = source;
    return true;
}

static bool open_again(struct catalog_content *content, struct generation *generation)
{
    struct zt_error error;
    bool opened = open_files(content, generation, &error);

    if (!opened && parking_is_out_of_files(&error)) {
        parking_make_room(content);
        opened = open_files(content, generation, &error);
    }
    if (!opened)
        return false;
    atomic_store(&generation->parked, false);
    parking_enter(content, generation);
    metric_add(METRIC_FILES_OPENED_AGAIN, 1);
    return true;
}

bool parking_open(struct catalog_content *content, struct generation *generation)
{
    pthread_mutex_t *opening;
    bool opened;

    /* Most of the time it is set, and the cache line stays shared. */
    if (!atomic_load_explicit(&generation->used, memory_order_relaxed))
        atomic_store_explicit(&generation->used, true, memory_order_relaxed);
    if (!atomic_load(&generation->parked))
        return true;
    opening = &content->opening[(uintptr_t)generation / sizeof(*generation) % PARKING_LOCKS];
    pthread_mutex_lock(opening);
    opened = !atomic_load(&generation->parked) || open_again(content, generation);
    pthread_mutex_unlock(opening);
    parking_limit(content);
    return opened;
}

/* --- references that do not keep files open --- */

void parking_hold_idle(struct catalog_content *content, struct generation *generation)
{
    pthread_mutex_lock(&content->open_lock);
    generation_hold(generation);
    generation->idle_holds++;
    pthread_mutex_unlock(&content->open_lock);
}

void parking_release_idle(struct catalog_content *content, struct generation *generation)
{
    /* One step for park_down_to: it would otherwise take another's reference for an idle one. */
    pthread_mutex_lock(&content->open_lock);
    assert(generation->idle_holds > 0);
    generation->idle_holds--;
    generation_release(generation);
    pthread_mutex_unlock(&content->open_lock);
}
