/* The catalog's thread, and lookups in the catalog. Scans have a thread of their own, so that they
 * never wait behind hours of hashing. What is requested while the thread works is done in its next
 * round. */
#include "catalog/catalog.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/changes.h"
#include "base/clock.h"
#include "base/thread.h"
#include "catalog/catalog_content.h"
#include "catalog/catalog_open.h"
#include "catalog/parking.h"

/* Pauses between rounds, so that a burst of changes takes few scans, and a file that is written to
 * all the time does not keep a core busy. */
#define STALE_GAP_NS    (5 * CLOCK_NS_PER_MS)
#define LOOK_GAP_NS     (20 * CLOCK_NS_PER_MS)
#define SCAN_GAP_MIN_NS (20 * CLOCK_NS_PER_MS)
#define SCAN_GAP_MAX_NS (2 * CLOCK_NS_PER_S)
/* A pause is so many times as long as the scan before it: scans of everything, one after another,
 * take at most a fifth of a processor. */
#define SCAN_GAP_SHARE 4
/* If more files than this changed in place, a scan finds them. */
#define STALE_MAX 1024
/* For so long a file that was seen unchanged is not looked at again, unless the store reports a
 * change. Bounds what a client may see of changes that the store does not report, as those through
 * a mapping or on another machine. */
#define UNSEEN_MS 50
/* Of generation.seen: the lower bits are a time, the others count changes. */
#define SEEN_TIME_BITS 40

/* Names that were not found, to be sought in a store that is elsewhere; it allows ten a second. */
#define SOUGHT_MAX 64
/* For so long after a failure a file of such a store is not opened again for a request. */
#define FAILED_MS 1000

struct catalog {
    struct catalog_content content;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    bool scan_wanted;
    bool look_wanted;
    char *stale[STALE_MAX];
    size_t stale_count;
    char *sought[SOUGHT_MAX];
    size_t sought_count;
    struct waiter *waiters;
    int64_t round_ended_ns;
    int64_t next_scan_ns;
    atomic_uint changes; /* that the store has reported */
};

static void update_stale(struct catalog *catalog, char **paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct catalog_file file = {.path = paths[i]};

        catalog_content_update(&catalog->content, &file, 1);
        free(paths[i]);
    }
}

/* A store that hangs is waited for once. */
static void seek(struct catalog *catalog, char **names, size_t count)
{
    bool answers = true;

    for (size_t i = 0; i < count; i++) {
        answers = answers && catalog_content_seek(&catalog->content, zt_text_from(names[i]));
        free(names[i]);
    }
}

/* --- the thread --- */

/* What a round does. */
struct round {
    bool with_scan;
    bool with_look;
};

/* When the next round is due; INT64_MAX if there is nothing to do. The lock is held. */
static int64_t due_of(const struct catalog *catalog)
{
    int64_t due_ns = INT64_MAX;

    if (catalog->scan_wanted)
        due_ns = catalog->next_scan_ns;
    if (catalog->look_wanted && catalog->round_ended_ns + LOOK_GAP_NS < due_ns)
        due_ns = catalog->round_ended_ns + LOOK_GAP_NS;
    if (catalog->stale_count + catalog->sought_count > 0 &&
        catalog->round_ended_ns + STALE_GAP_NS < due_ns)
        due_ns = catalog->round_ended_ns + STALE_GAP_NS;
    return due_ns;
}

/* Waits, with the lock held, until there is something to do and the pause is over. False if the
 * catalog is stopping. */
static bool await_round(struct catalog *catalog, struct round *out_round)
{
    for (;;) {
        int64_t due_ns = due_of(catalog);
        struct timespec until = {due_ns / CLOCK_NS_PER_S, due_ns % CLOCK_NS_PER_S};
        int64_t now = clock_ns();

        if (atomic_load(&catalog->content.stopping))
            return false;
        if (due_ns == INT64_MAX)
            pthread_cond_wait(&catalog->changed, &catalog->lock);
        else if (now < due_ns)
            pthread_cond_timedwait(&catalog->changed, &catalog->lock, &until);
        else {
            out_round->with_scan = catalog->scan_wanted && now >= catalog->next_scan_ns;
            out_round->with_look = catalog->look_wanted && !out_round->with_scan;
            return true;
        }
    }
}

/* The lock is held. */
static void end_round(struct catalog *catalog, bool with_scan, int64_t begun_ns)
{
    assert(begun_ns >= catalog->round_ended_ns);
    catalog->round_ended_ns = clock_ns();
    if (atomic_exchange(&catalog->content.postponed, false))
        catalog->scan_wanted = true;
    if (with_scan) {
        int64_t gap_ns = SCAN_GAP_SHARE * (catalog->round_ended_ns - begun_ns);

        gap_ns = gap_ns < SCAN_GAP_MIN_NS ? SCAN_GAP_MIN_NS : gap_ns;
        gap_ns = gap_ns < SCAN_GAP_MAX_NS ? gap_ns : SCAN_GAP_MAX_NS;
        catalog->next_scan_ns = catalog->round_ended_ns + gap_ns;
    }
}

/* One round: does everything that was requested before it began. The lock is held before and
 * after. */
static void run_round(struct catalog *catalog, struct round round)
{
    struct waiter *waiters = catalog->waiters;
    char *stale[STALE_MAX];
    char *sought[SOUGHT_MAX];
    size_t stale_count = catalog->stale_count;
    size_t sought_count = catalog->sought_count;
    int64_t begun_ns = clock_ns();

    catalog->waiters = NULL;
    memcpy(stale, catalog->stale, stale_count * sizeof(stale[0]));
    assert(stale_count <= STALE_MAX);
    catalog->stale_count = 0;
    memcpy(sought, catalog->sought, sought_count * sizeof(sought[0]));
    assert(sought_count <= SOUGHT_MAX);
    catalog->sought_count = 0;
    if (round.with_scan)
        catalog->scan_wanted = false;
    if (round.with_scan || round.with_look)
        catalog->look_wanted = false;
    pthread_mutex_unlock(&catalog->lock);
    update_stale(catalog, stale, stale_count);
    seek(catalog, sought, sought_count);
    if (round.with_scan)
        catalog_content_scan(&catalog->content);
    else if (round.with_look && !catalog_content_look(&catalog->content))
        catalog_refresh(catalog);
    waiters_wake(waiters);
    pthread_mutex_lock(&catalog->lock);
    end_round(catalog, round.with_scan, begun_ns);
}

static void *catalog_main(void *argument)
{
    struct catalog *catalog = argument;
    struct round round = {false, false};

    pthread_mutex_lock(&catalog->lock);
    while (await_round(catalog, &round))
        run_round(catalog, round);
    pthread_mutex_unlock(&catalog->lock);
    return NULL;
}

static void destroy(struct catalog *catalog)
{
    catalog_content_clear(&catalog->content);
    pthread_cond_destroy(&catalog->changed);
    pthread_mutex_destroy(&catalog->lock);
    free(catalog);
}

struct catalog *catalog_new(struct server *server, const struct catalog_observer *observer)
{
    struct catalog *catalog = calloc(1, sizeof(*catalog));
    pthread_condattr_t monotonic;

    if (catalog == NULL)
        return NULL;
    catalog_content_init(&catalog->content, server, observer);
    pthread_mutex_init(&catalog->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&catalog->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (thread_start(&catalog->thread, "catalog", catalog_main, catalog) != 0) {
        destroy(catalog);
        return NULL;
    }
    return catalog;
}

void catalog_free(struct catalog *catalog)
{
    if (catalog == NULL)
        return;
    pthread_mutex_lock(&catalog->lock);
    atomic_store(&catalog->content.stopping, true);
    pthread_cond_broadcast(&catalog->changed);
    pthread_mutex_unlock(&catalog->lock);
    pthread_join(catalog->thread, NULL);
    waiters_wake(catalog->waiters);
    while (catalog->stale_count > 0)
        free(catalog->stale[--catalog->stale_count]);
    while (catalog->sought_count > 0)
        free(catalog->sought[--catalog->sought_count]);
    destroy(catalog);
}

/* --- requests and lookups --- */

void catalog_refresh(struct catalog *catalog)
{
    pthread_mutex_lock(&catalog->lock);
    catalog->scan_wanted = true;
    pthread_cond_broadcast(&catalog->changed);
    pthread_mutex_unlock(&catalog->lock);
}

/* Files are looked at again before their next answer. */
static void note_change(struct catalog *catalog)
{
    atomic_fetch_add(&catalog->changes, 1);
    changes_note();
}

static void on_store_changed(void *context)
{
    struct catalog *catalog = context;
    struct store *store = catalog->content.server->store;
    bool wanted;

    /* Before and after: another loop takes a change as noted that it does not find waiting. */
    note_change(catalog);
    wanted = store->ops->changed(store);
    note_change(catalog);
    if (!wanted)
        return;
    pthread_mutex_lock(&catalog->lock);
    catalog->look_wanted = true;
    pthread_cond_broadcast(&catalog->changed);
    pthread_mutex_unlock(&catalog->lock);
}

void catalog_heed(struct catalog *catalog)
{
    struct store *store = catalog->content.server->store;

    if (store->ops->is_changing(store))
        note_change(catalog);
}

bool catalog_watch(struct catalog *catalog, struct loop *loop)
{
    struct store *store = catalog->content.server->store;
    const int descriptor = store->ops->watch(store);

    return descriptor >= 0 && loop_watch(loop, descriptor, on_store_changed, catalog) == 0;
}

bool catalog_is_loaded(const struct catalog *catalog)
{
    return atomic_load(&catalog->content.loaded);
}

/* Remembers a path that must be opened again. The lock is held. */
static void note_stale(struct catalog *catalog, const char *path)
{
    char *copy;

    for (size_t i = 0; i < catalog->stale_count; i++)
        if (strcmp(catalog->stale[i], path) == 0)
            return;
    copy = catalog->stale_count < STALE_MAX ? strdup(path) : NULL;
    assert(catalog->stale_count <= STALE_MAX);
    if (copy != NULL)
        catalog->stale[catalog->stale_count++] = copy;
    else
        catalog->scan_wanted = true;
}

/* Adds the waiter to those of the next round. The lock is held. */
static void await_next(struct catalog *catalog, struct waiter *waiter)
{
    assert(waiter->wake != NULL);
    waiter->next = catalog->waiters;
    catalog->waiters = waiter;
    pthread_cond_broadcast(&catalog->changed);
}

/* The same for a round that opens the path stale again or, if stale is NULL, scans. */
static void wait_for_round(struct catalog *catalog, const char *stale, struct waiter *waiter)
{
    pthread_mutex_lock(&catalog->lock);
    if (stale != NULL)
        note_stale(catalog, stale);
    else
        catalog->scan_wanted = true;
    await_next(catalog, waiter);
    pthread_mutex_unlock(&catalog->lock);
}

/* The same for a round that seeks a name. False: it cannot be sought. */
static bool wait_for_seek(struct catalog *catalog, struct zt_text name, struct waiter *waiter)
{
    char *copy = strndup(name.bytes, name.length);
    bool waits;

    pthread_mutex_lock(&catalog->lock);
    waits = copy != NULL && catalog->sought_count < SOUGHT_MAX;
    if (waits) {
        catalog->sought[catalog->sought_count++] = copy;
        await_next(catalog, waiter);
    }
    pthread_mutex_unlock(&catalog->lock);
    if (!waits)
        free(copy);
    return waits;
}

/* Whether its files are unchanged, as far as the store reports changes, and in any case as of
 * UNSEEN_MS ago. */
static bool is_current(const struct catalog *catalog, struct generation *generation)
{
    const struct store *store = catalog->content.server->store;
    const uint64_t times = (UINT64_C(1) << SEEN_TIME_BITS) - 1;
    const uint64_t now_ms = (uint64_t)clock_coarse_ms() & times;
    const uint64_t known = (uint64_t)atomic_load(&catalog->changes) << SEEN_TIME_BITS;
    const uint64_t seen = atomic_load_explicit(&generation->seen, memory_order_relaxed);

    /* Nothing may be remembered if nobody reports changes. */
    if (!store->ops->reports(store))
        changes_note();
    else if ((seen & ~times) == known && now_ms - (seen & times) < UNSEEN_MS)
        return true;
    if (!generation_is_same(generation))
        return false;
    /* A change that was reported meanwhile makes another look necessary. */
    atomic_store_explicit(&generation->seen, known | now_ms, memory_order_relaxed);
    return true;
}

/* What was looked up. */
struct key {
    catalog_finder *finder;
    struct zt_text text;
    struct zt_text name; /* of the model that it would belong to */
};

/* A file of a store that is elsewhere is not in the catalog. */
static enum catalog_answer seek_unknown(struct catalog *catalog, const struct key *key, bool loaded,
                                        struct waiter *waiter)
{
    struct store *store = catalog->content.server->store;
    struct store_report report;

    if (!loaded) {
        if (atomic_load(&catalog->content.unlisted))
            return CATALOG_UNAVAILABLE;
        wait_for_round(catalog, NULL, waiter);
        return CATALOG_PENDING;
    }
    if (store->ops->may_seek(store, key->name) && wait_for_seek(catalog, key->name, waiter))
        return CATALOG_PENDING;
    store->ops->report(store, &report);
    return report.is_away || unopened_has(&catalog->content, key->name) ? CATALOG_UNAVAILABLE
                                                                        : CATALOG_NOT_FOUND;
}

/* Whether opening it again has just failed because the store was away. */
static bool failed_lately(const struct generation *generation)
{
    const int64_t failed_ms = atomic_load(&generation->failed_ms);

    return failed_ms > 0 && clock_coarse_ms() - failed_ms < FAILED_MS;
}

static enum catalog_answer find(struct catalog *catalog, const struct key *key,
                                struct waiter *waiter, struct generation **out_generation)
{
    /* Read before the lookup: otherwise a file that a scan adds in between would be reported
     * missing. */
    bool loaded = atomic_load(&catalog->content.loaded);
    enum catalog_answer answer = CATALOG_PENDING;
    struct generation *found;

    found = catalog_content_find(&catalog->content, key->finder, key->text);
    if (found != NULL && parking_open_in_turn(&catalog->content, found) &&
        is_current(catalog, found)) {
        *out_generation = found;
        return CATALOG_FOUND;
    }
    if (found == NULL && store_is_elsewhere(catalog->content.server->store))
        return seek_unknown(catalog, key, loaded, waiter);
    if (found == NULL && loaded)
        return CATALOG_NOT_FOUND;
    if (found != NULL && failed_lately(found))
        answer = CATALOG_UNAVAILABLE;
    else
        wait_for_round(catalog, found != NULL ? found->path : NULL, waiter);
    generation_release(found);
    return answer;
}

enum catalog_answer catalog_find(struct catalog *catalog, struct zt_text name,
                                 struct waiter *waiter, struct generation **out_generation)
{
    const struct key key = {catalog_index_find_name, name, name};

    return find(catalog, &key, waiter, out_generation);
}

enum catalog_answer catalog_find_path(struct catalog *catalog, struct zt_text path,
                                      struct waiter *waiter, struct generation **out_generation)
{
    struct key key = {catalog_index_find_path, path, path};

    /* Without its extension. */
    while (key.name.length > 0 && key.name.bytes[--key.name.length] != '.')
        ;
    return find(catalog, &key, waiter, out_generation);
}

size_t catalog_list(struct catalog *catalog, const struct catalog_page *page,
                    struct generation **out_generations, struct catalog_page_end *out_end)
{
    return catalog_content_list(&catalog->content, page, out_generations, out_end);
}

bool catalog_part_of(struct catalog *catalog, const char *path, struct name_filter filter,
                     char out_name[MODEL_NAME_MAX + 1])
{
    return catalog_content_part_of(&catalog->content, path, filter, out_name);
}

struct generation *catalog_peek(struct catalog *catalog, struct zt_text name)
{
    return catalog_content_find(&catalog->content, catalog_index_find_name, name);
}

/* The first generation of that name that fits, and is not this one. */
static struct generation *find_fitting(const struct catalog_index *index, struct zt_text name,
                                       const struct generation *but,
                                       bool (*fits)(const struct generation *generation))
{
    size_t at = catalog_index_lower_bound(index, name);

    for (; at < index->count && zt_text_equal(generation_name(index->by_name[at]), name); at++)
        if (index->by_name[at] != but && fits(index->by_name[at]))
            return index->by_name[at];
    return NULL;
}

static bool is_odd(const struct generation *generation)
{
    return model_path_is_odd(generation->path);
}

static bool is_joined(const struct generation *generation)
{
    return generation->is_joined;
}

static struct generation *find_split(const struct catalog_index *index, struct zt_text name)
{
    return find_fitting(index, name, NULL, generation_is_split);
}

static struct generation *find_odd(const struct catalog_index *index, struct zt_text name)
{
    return find_fitting(index, name, NULL, is_odd);
}

static struct generation *find_behind(const struct catalog_index *index, struct zt_text name)
{
    return find_fitting(index, name, catalog_index_find_name(index, name), is_joined);
}

/* Of a split, whose parts have other names, the name is free for a file. */
static bool is_own_file(const struct generation *generation)
{
    return !generation_is_split(generation) && !generation_is_foreign(generation);
}

static struct generation *find_before(const struct catalog_index *index, struct zt_text name)
{
    return find_behind(index, name) != NULL ? catalog_index_find_name(index, name)
                                            : find_fitting(index, name, NULL, is_own_file);
}

static struct generation *find_in_way(const struct catalog_index *index, struct zt_text name)
{
    struct generation *behind = find_behind(index, name);

    return behind != NULL ? behind
                          : find_fitting(index, name, find_before(index, name), is_own_file);
}

/* Both are looked at: if either was removed meanwhile, nothing is in the way. That takes a request
 * where they are elsewhere. */
struct generation *catalog_peek_in_way(struct catalog *catalog, struct zt_text name)
{
    struct generation *before;
    struct generation *behind;

    if (store_is_elsewhere(catalog->content.server->store))
        return NULL;
    before = catalog_content_find(&catalog->content, find_before, name);
    behind = catalog_content_find(&catalog->content, find_in_way, name);
    if (behind != NULL &&
        (before == NULL || !is_current(catalog, before) || !is_current(catalog, behind))) {
        generation_release(behind);
        behind = NULL;
    }
    generation_release(before);
    return behind;
}

static struct generation *update_found(struct catalog *catalog, catalog_finder *finder,
                                       struct zt_text name)
{
    struct generation *known = catalog_content_find(&catalog->content, finder, name);
    struct generation *current = known != NULL ? catalog_update(catalog, known->path) : NULL;

    generation_release(known);
    return current;
}

struct generation *catalog_update_split(struct catalog *catalog, struct zt_text name)
{
    return update_found(catalog, find_split, name);
}

struct generation *catalog_update_odd(struct catalog *catalog, struct zt_text name)
{
    return update_found(catalog, find_odd, name);
}

struct generation *catalog_update_behind(struct catalog *catalog, struct zt_text name)
{
    return update_found(catalog, find_behind, name);
}

void catalog_withhold(struct catalog *catalog, struct catalog_withheld *withheld)
{
    catalog_content_withhold(&catalog->content, withheld);
    generation_release(catalog_update(catalog, withheld->path));
}

void catalog_let_go(struct catalog *catalog, const struct catalog_withheld *withheld)
{
    catalog_content_let_go(&catalog->content, withheld);
    generation_release(catalog_update(catalog, withheld->path));
}

bool catalog_has_shard_of(struct catalog *catalog, struct zt_text path, struct name_filter filter)
{
    return catalog_content_has_shard_of(&catalog->content, path, filter);
}

struct generation **catalog_hold_all(struct catalog *catalog, size_t *out_count)
{
    return catalog_content_hold_all(&catalog->content, out_count);
}

bool catalog_hold_open(struct catalog *catalog, struct generation *generation)
{
    catalog_content_hold(&catalog->content, generation);
    if (parking_open(&catalog->content, generation))
        return true;
    generation_release(generation);
    return false;
}

size_t catalog_open_files(struct catalog *catalog, size_t *out_most)
{
    *out_most = catalog->content.open_most;
    return parking_count(&catalog->content);
}

struct generation *catalog_update(struct catalog *catalog, const char *path)
{
    struct catalog_file file = {.path = strdup(path)};
    struct generation *found;

    if (file.path == NULL)
        return NULL;
    catalog_content_update(&catalog->content, &file, 1);
    found = catalog_content_find(&catalog->content, catalog_index_find_path, zt_text_from(path));
    free(file.path);
    if (found != NULL && !parking_open(&catalog->content, found)) {
        generation_release(found);
        return NULL;
    }
    return found;
}
