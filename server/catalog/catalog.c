/* The catalog's thread, and lookups in the catalog. Scans have their own thread, so that they never
 * wait for hours of hashing. Requests that arrive while the thread works are handled in its next
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
#include "catalog/failed_lookups.h"
#include "catalog/namesakes.h"
#include "catalog/parking.h"
#include "catalog/sought.h"

/* Pauses between rounds, so that a burst of changes takes few scans, and a file that is written to
 * all the time does not keep a core busy. */
#define STALE_GAP_NS    (5 * CLOCK_NS_PER_MS)
#define LOOK_GAP_NS     (20 * CLOCK_NS_PER_MS)
#define SCAN_GAP_MIN_NS (20 * CLOCK_NS_PER_MS)
#define SCAN_GAP_MAX_NS (2 * CLOCK_NS_PER_S)
/* A pause is this many times as long as the scan before it: continuous full scans use at most a
 * fifth of a processor. */
#define SCAN_GAP_SHARE 4
/* If more files than this have changed in place, a scan finds them. */
#define STALE_MAX 1024
/* A file that was seen unchanged is not checked again for this long, unless the store reports a
 * change. This limits how long a client may see the old state after changes that the store does not
 * report, for example through a mapping or on another machine. */
#define UNSEEN_MS 50
/* In generation.seen, the lower bits are a time and the others count changes. */
#define SEEN_TIME_BITS 40

/* How long after a failure a file of a remote store is not opened again for a request. */
#define FAILED_MS 1000

struct catalog {
    struct catalog_content content;
    pthread_t thread;
    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    bool scan_wanted;
    bool stat_wanted;
    char *stale[STALE_MAX];
    size_t stale_count;
    struct sought sought;
    struct waiter *waiters;
    int64_t round_ended_ns;
    int64_t next_scan_ns;
    atomic_uint changes;  /* number of changes that the store has reported */
    atomic_uint searches; /* number of rounds that have looked up names */
};

static void update_stale(struct catalog *catalog, char **paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct catalog_file file = {.path = paths[i]};

        catalog_content_update(&catalog->content, &file, 1);
        free(paths[i]);
    }
}

/* Looks up the names, but waits only once for a store that hangs. Then wakes the requests that
 * joined the search for them. */
static void search(struct catalog *catalog)
{
    struct sought *sought = &catalog->sought;
    struct waiter *joined;
    bool answers = true;

    for (size_t i = 0; i < sought->searching_count; i++)
        answers = answers &&
                  catalog_content_search(&catalog->content, zt_text_from(sought->searching[i]));
    pthread_mutex_lock(&catalog->lock);
    joined = sought_end(sought);
    atomic_fetch_add(&catalog->searches, 1);
    pthread_mutex_unlock(&catalog->lock);
    waiters_wake(joined);
}

/* --- the thread --- */

/* The tasks of a round. */
struct round {
    bool with_scan;
    bool with_stat;
};

/* Returns when the next round is due; INT64_MAX if no work is pending. The lock must be held. */
static int64_t due_of(const struct catalog *catalog)
{
    int64_t due_ns = INT64_MAX;

    if (catalog->scan_wanted)
        due_ns = catalog->next_scan_ns;
    if (catalog->stat_wanted && catalog->round_ended_ns + LOOK_GAP_NS < due_ns)
        due_ns = catalog->round_ended_ns + LOOK_GAP_NS;
    if (catalog->stale_count + catalog->sought.count > 0 &&
        catalog->round_ended_ns + STALE_GAP_NS < due_ns)
        due_ns = catalog->round_ended_ns + STALE_GAP_NS;
    return due_ns;
}

/* Waits until work is pending and the pause is over. Returns false if the catalog is stopping. The
 * lock must be held. */
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
            out_round->with_stat = catalog->stat_wanted && !out_round->with_scan;
            return true;
        }
    }
}

/* The lock must be held. */
static void end_round(struct catalog *catalog, bool with_scan, int64_t begun_ns)
{
    assert(begun_ns >= catalog->round_ended_ns);
    assert(lock_is_held(&catalog->lock));
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

/* Runs one round, which handles everything that was requested before it began. The lock must be
 * held; it is released during the round. */
static void run_round(struct catalog *catalog, struct round round)
{
    struct waiter *waiters = catalog->waiters;
    char *stale[STALE_MAX];
    size_t stale_count = catalog->stale_count;
    int64_t begun_ns = clock_ns();

    assert(lock_is_held(&catalog->lock));
    catalog->waiters = NULL;
    memcpy(stale, catalog->stale, stale_count * sizeof(stale[0]));
    assert(stale_count <= STALE_MAX);
    catalog->stale_count = 0;
    sought_begin(&catalog->sought);
    if (round.with_scan)
        catalog->scan_wanted = false;
    if (round.with_scan || round.with_stat)
        catalog->stat_wanted = false;
    pthread_mutex_unlock(&catalog->lock);
    update_stale(catalog, stale, stale_count);
    search(catalog);
    if (round.with_scan)
        catalog_content_scan(&catalog->content);
    else if (round.with_stat && !catalog_content_stat(&catalog->content))
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
    sought_begin(&catalog->sought);
    waiters_wake(sought_end(&catalog->sought));
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

/* Makes sure that files are checked again before their next answer. */
static void note_change(struct catalog *catalog)
{
    atomic_fetch_add(&catalog->changes, 1);
    changes_note();
}

void catalog_read_changes(void *context)
{
    struct catalog *catalog = context;
    struct store *store = catalog->content.server->store;
    bool wanted;

    /* Note the change before and after reading it. A loop that finds no change pending assumes that
     * it has been noted. */
    note_change(catalog);
    wanted = store->ops->changed(store);
    note_change(catalog);
    if (!wanted)
        return;
    pthread_mutex_lock(&catalog->lock);
    catalog->stat_wanted = true;
    pthread_cond_broadcast(&catalog->changed);
    pthread_mutex_unlock(&catalog->lock);
}

void catalog_poll_changes(struct catalog *catalog)
{
    struct store *store = catalog->content.server->store;

    if (store->ops->is_changing(store))
        note_change(catalog);
}

int catalog_watch(struct catalog *catalog)
{
    struct store *store = catalog->content.server->store;

    return store->ops->watch(store);
}

bool catalog_is_loaded(const struct catalog *catalog)
{
    return atomic_load(&catalog->content.loaded);
}

/* Remembers a path that must be opened again. The lock must be held. */
static void note_stale(struct catalog *catalog, const char *path)
{
    char *copy;

    assert(lock_is_held(&catalog->lock));
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

/* Lets the waiter wait for the next round. The lock must be held. */
static void await_next(struct catalog *catalog, struct waiter *waiter)
{
    assert(waiter->wake != NULL);
    assert(lock_is_held(&catalog->lock));
    waiter->next = catalog->waiters;
    catalog->waiters = waiter;
    pthread_cond_broadcast(&catalog->changed);
}

/* Does the same for a round that opens the path `stale` again or, if stale is NULL, scans. */
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

/* Does the same for a round that looks up a name. Returns false if the name cannot be looked up. */
static bool wait_for_search(struct catalog *catalog, struct zt_text name, struct waiter *waiter)
{
    bool waits;

    pthread_mutex_lock(&catalog->lock);
    waits = sought_add(&catalog->sought, name);
    if (waits)
        await_next(catalog, waiter);
    pthread_mutex_unlock(&catalog->lock);
    return waits;
}

/* Lets the waiter wait for a search for this name that another request wants. Returns false if
 * there is none. */
static bool join_search(struct catalog *catalog, struct zt_text name, struct waiter *waiter)
{
    bool joins;

    pthread_mutex_lock(&catalog->lock);
    joins = sought_join(&catalog->sought, name, waiter);
    if (!joins && sought_has(&catalog->sought, name)) {
        await_next(catalog, waiter);
        joins = true;
    }
    pthread_mutex_unlock(&catalog->lock);
    return joins;
}

/* Returns true if the generation's files are unchanged: as far as the store reports changes, and at
 * least as of UNSEEN_MS ago. */
static bool is_current(const struct catalog *catalog, struct generation *generation)
{
    const struct store *store = catalog->content.server->store;
    const uint64_t times = (UINT64_C(1) << SEEN_TIME_BITS) - 1;
    const uint64_t now_ms = (uint64_t)clock_coarse_ms() & times;
    const uint64_t known = (uint64_t)atomic_load(&catalog->changes) << SEEN_TIME_BITS;
    const uint64_t seen = atomic_load_explicit(&generation->seen, memory_order_relaxed);

    /* If the store reports no changes, cached answers must not be reused. */
    if (!store->ops->reports(store))
        changes_note();
    else if ((seen & ~times) == known && now_ms - (seen & times) < UNSEEN_MS)
        return true;
    if (!generation_is_same(generation))
        return false;
    /* If another change has been reported in the meantime, the files must be checked again. */
    atomic_store_explicit(&generation->seen, known | now_ms, memory_order_relaxed);
    return true;
}

/* The key of a lookup. */
struct key {
    catalog_finder *finder;
    struct zt_text text;
    struct zt_text name; /* of the model that the file would belong to */
};

/* Handles a file that is not in the catalog, but that the store may have nevertheless: of a remote
 * store, or of an earlier commit. */
static enum catalog_answer search_unknown(struct catalog *catalog, const struct key *key,
                                          bool loaded, struct waiter *waiter)
{
    struct store *store = catalog->content.server->store;
    struct store_report report;

    assert(store_searches(store));
    if (!loaded) {
        if (store_may_wait(store) && atomic_load(&catalog->content.unlisted))
            return CATALOG_UNAVAILABLE;
        wait_for_round(catalog, NULL, waiter);
        return CATALOG_PENDING;
    }
    if ((store->search->resolve != NULL && store->search->resolve(store, key->name, waiter)) ||
        join_search(catalog, key->name, waiter) ||
        (store->search->may_look_up(store, key->name) &&
         wait_for_search(catalog, key->name, waiter)))
        return CATALOG_PENDING;
    if (store_explains(store, key->name))
        return CATALOG_UNAVAILABLE;
    store->search->report(store, &report);
    return report.is_unreachable || unopened_has(&catalog->content, key->name) ? CATALOG_UNAVAILABLE
                                                                               : CATALOG_NOT_FOUND;
}

/* Returns true if opening the files again has just failed because the store was unreachable. A
 * mirrored file may have been completed since. */
static bool failed_lately(const struct generation *generation)
{
    const int64_t failed_ms = atomic_load(&generation->failed_ms);

    return failed_ms > 0 && clock_coarse_ms() - failed_ms < FAILED_MS &&
           !store_is_verified(generation->store, generation->own_path, &generation->identity);
}

static enum catalog_answer find(struct catalog *catalog, const struct key *key,
                                struct waiter *waiter, struct generation **out_generation)
{
    /* Read this before the lookup: otherwise a file that a scan adds in between would be reported
     * missing. */
    bool loaded = atomic_load(&catalog->content.loaded);
    const unsigned searches = atomic_load(&catalog->searches);
    enum catalog_answer answer = CATALOG_PENDING;
    struct generation *found;

    found = catalog_content_find(&catalog->content, key->finder, key->text);
    if (found != NULL && parking_open(&catalog->content, found, true) &&
        is_current(catalog, found)) {
        assert(!atomic_load(&found->parked));
        *out_generation = found;
        return CATALOG_FOUND;
    }
    if (found == NULL && store_searches(catalog->content.server->store)) {
        answer = search_unknown(catalog, key, loaded, waiter);
        /* A search that has ended since may have found it. */
        return answer == CATALOG_NOT_FOUND && atomic_load(&catalog->searches) != searches
                   ? find(catalog, key, waiter, out_generation)
                   : answer;
    }
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

    /* Strip the extension. */
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

struct generation *catalog_peek_path(struct catalog *catalog, struct zt_text path)
{
    return catalog_content_find(&catalog->content, catalog_index_find_path, path);
}

/* Checks both files: if either was removed, no file is hidden. For a remote store that would take a
 * request, so the answer is NULL. */
struct generation *catalog_peek_in_way(struct catalog *catalog, struct zt_text name)
{
    struct generation *before;
    struct generation *shadowed;

    if (!store_has_locally(catalog->content.server->store, name))
        return NULL;
    before = catalog_content_find(&catalog->content, namesakes_find_before, name);
    shadowed = catalog_content_find(&catalog->content, namesakes_find_in_way, name);
    if (shadowed != NULL &&
        (before == NULL || !is_current(catalog, before) || !is_current(catalog, shadowed))) {
        generation_release(shadowed);
        shadowed = NULL;
    }
    generation_release(before);
    return shadowed;
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
    return update_found(catalog, namesakes_find_split, name);
}

struct generation *catalog_update_uppercase(struct catalog *catalog, struct zt_text name)
{
    return update_found(catalog, namesakes_find_uppercase, name);
}

struct generation *catalog_update_shadowed(struct catalog *catalog, struct zt_text name)
{
    return update_found(catalog, namesakes_find_shadowed, name);
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
    if (parking_open(&catalog->content, generation, false))
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
    found = catalog_content_update_one(&catalog->content, &file);
    free(file.path);
    if (found != NULL && !parking_open(&catalog->content, found, false)) {
        failed_lookups_note();
        generation_release(found);
        return NULL;
    }
    return found;
}
