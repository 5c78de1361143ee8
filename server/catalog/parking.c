/* Decides which unused files to close.
 *
 * The open generations of the index are in one list. When there are too many, they are examined
 * from its end: generations that were looked up since the last examination, or are in use, move to
 * the front, and the others are closed. So a lookup only sets a flag and takes no lock. */
#include "catalog/parking.h"

#include <assert.h>
#include <errno.h>
#include <sys/resource.h>

#include "base/metrics.h"
#include "base/thread.h"
#include "disk/open_files.h"

/* Connections come first. Unused files may hold a quarter of the remaining descriptors, and all
 * files of models three quarters; the others are for uploads, the state folder, scans and
 * workers. */
#define IDLE_SHARE      4
#define OPEN_SHARE_OF_4 3
/* Each open file may have a mapping, and Linux allows a process 65,530 mappings
 * (vm.max_map_count). */
#define IDLE_MAX ((size_t)16384)
#define OPEN_MAX ((size_t)32768)
/* The share that is closed in one pass, so that lookups are not blocked for each file. */
#define CLOSED_SHARE 8

/* Protects the lists of open generations and the counts of idle references, which may be released
 * after the catalog has ended. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t at_most(rlim_t count, size_t bound)
{
    if (count > bound)
        return bound;
    return count > 0 ? (size_t)count : 1;
}

void parking_init(struct catalog_content *content)
{
    const unsigned connections = open_files_for_connections(content->server->config);
    struct rlimit files;
    rlim_t rest = RLIM_INFINITY;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY)
        rest = files.rlim_cur > connections ? files.rlim_cur - connections : 0;
    content->open_most = at_most(rest / IDLE_SHARE, IDLE_MAX);
    content->open_limit = at_most(rest / 4 * OPEN_SHARE_OF_4, OPEN_MAX);
    assert(content->open_most <= content->open_limit);
    content->park_above = content->open_most;
    for (size_t i = 0; i < PARKING_LOCKS; i++)
        pthread_mutex_init(&content->opening[i], NULL);
}

void parking_clear(struct catalog_content *content)
{
    for (size_t i = 0; i < PARKING_LOCKS; i++)
        pthread_mutex_destroy(&content->opening[i]);
}

size_t parking_count(struct catalog_content *content)
{
    size_t count;

    pthread_mutex_lock(&open_lock);
    count = content->open_count;
    pthread_mutex_unlock(&open_lock);
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
    assert(lock_is_held(&open_lock));
    generation->is_in_open = true;
    recency_add(&content->open, &generation->open_link);
    content->open_count += generation_open_files(generation);
}

static void unlist(struct catalog_content *content, struct generation *generation)
{
    const size_t files = generation_open_files(generation);

    assert(generation->is_in_open && files <= content->open_count);
    assert(lock_is_held(&open_lock));
    generation->is_in_open = false;
    recency_remove(&content->open, &generation->open_link);
    content->open_count -= files;
}

void parking_enter(struct catalog_content *content, struct generation *generation)
{
    pthread_mutex_lock(&open_lock);
    /* Since it was published it may have been found and opened again, or removed. */
    if (!generation->is_in_open && !atomic_load(&generation->retired) &&
        !atomic_load(&generation->parked) && generation->source != NULL)
        list(content, generation);
    pthread_mutex_unlock(&open_lock);
}

void parking_leave(struct catalog_content *content, struct generation *generation)
{
    assert(atomic_load(&generation->retired));
    pthread_mutex_lock(&open_lock);
    if (generation->is_in_open)
        unlist(content, generation);
    pthread_mutex_unlock(&open_lock);
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
    assert(!generation->is_in_open && !atomic_load(&generation->parked));
    if (generation->source == NULL || atomic_load(&generation->references) > 1)
        return false;
    park(generation);
    return true;
}

/* Closes files until at most `most` are open. The index's write lock is held, so that no lookup can
 * take a reference in the meantime. */
static void park_down_to(struct catalog_content *content, size_t most)
{
    const size_t margin = content->open_most / CLOSED_SHARE + 1;

    pthread_mutex_lock(&open_lock);
    /* Visit each generation up to twice, since the first visit may only clear its flag. */
    for (size_t left = 2 * content->open.count; left > 0 && content->open_count > most; left--) {
        struct generation *oldest = (struct generation *)content->open.oldest;
        const bool was_used = atomic_exchange(&oldest->used, false);

        assert(atomic_load(&oldest->references) > oldest->idle_holds);
        if (was_used || atomic_load(&oldest->references) - oldest->idle_holds > 1) {
            recency_touch(&content->open, &oldest->open_link);
            continue;
        }
        unlist(content, oldest);
        park(oldest);
        metric_add(METRIC_FILES_PARKED, 1);
    }
    /* If the files are in use, do not search the list again for each added file. */
    content->park_above = content->open_count + margin > content->open_most
                              ? content->open_count + margin
                              : content->open_most;
    pthread_mutex_unlock(&open_lock);
}

static bool is_above(struct catalog_content *content)
{
    bool above;

    pthread_mutex_lock(&open_lock);
    above = content->open_count > content->park_above;
    pthread_mutex_unlock(&open_lock);
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
    if (store->ops->open(store, generation->own_path, &source, &identity, error) != ZT_OK)
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

    assert(atomic_load(&generation->parked));
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

/* A model with more files than may be open is opened only when no other file is. */
static bool has_room(struct catalog_content *content, const struct generation *generation)
{
    const size_t files = 1 + generation->shards.count;
    const size_t count = parking_count(content);

    assert(content->open_limit > 0);
    return count == 0 || count + files <= content->open_limit;
}

static bool find_room(struct catalog_content *content, const struct generation *generation)
{
    if (has_room(content, generation))
        return true;
    /* Close all unused files first, even if that frees little. */
    parking_make_room(content);
    return has_room(content, generation);
}

bool parking_open_again(struct catalog_content *content, struct generation *generation,
                        bool in_turn)
{
    pthread_mutex_t *opening =
        &content->opening[(uintptr_t)generation / sizeof(*generation) % PARKING_LOCKS];
    bool opened;

    assert(atomic_load(&generation->references) > 0);
    if (in_turn && !find_room(content, generation))
        return false;
    pthread_mutex_lock(opening);
    opened = !atomic_load(&generation->parked) || open_again(content, generation);
    pthread_mutex_unlock(opening);
    parking_limit(content);
    return opened;
}

/* --- references that do not keep files open --- */

void parking_hold_idle(struct generation *generation)
{
    pthread_mutex_lock(&open_lock);
    generation_hold(generation);
    generation->idle_holds++;
    pthread_mutex_unlock(&open_lock);
}

void parking_release_idle(struct generation *generation)
{
    bool is_last;

    /* Both counts must change in one step for park_down_to: it would otherwise take a reader's
     * reference for an idle one. The last reference is released without the lock, since freeing the
     * generation takes long. */
    pthread_mutex_lock(&open_lock);
    assert(generation->idle_holds > 0);
    generation->idle_holds--;
    is_last = atomic_load(&generation->references) == 1;
    if (!is_last)
        generation_release(generation);
    pthread_mutex_unlock(&open_lock);
    if (is_last)
        generation_release(generation);
}
