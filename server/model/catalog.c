/* The catalog's thread and its questions.
 *
 * A thread of its own scans, so that a scan never waits behind hours of hashing. One lock orders whoever changes the
 * catalog: a file is opened and brought in under it, so that of a scan and an upload the later one sees the truth.
 * Readers take the index's lock alone, for a few binary-search steps. */
#include "model/catalog.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/catalog_scan.h"
#include "model/verifier.h"
#include "runtime/log.h"

/* Between rounds: a burst of changes becomes few scans, and a file that is being written to does not keep a core busy.
 */
#define STALE_GAP_NS    ((int64_t)5000000)
#define SCAN_GAP_MIN_NS ((int64_t)20000000)
#define SCAN_GAP_MAX_NS ((int64_t)1000000000)
/* What is opened before it shows: uploads wait for the lock that long. */
#define BATCH_FILES_MAX 1024
#define BATCH_NS_MAX    ((int64_t)50000000)
/* More files changed in place than that are found by a scan. */
#define STALE_MAX 1024
/* A broken file younger than that may be one that is still being copied: the next scan tells. */
#define SETTLED_NS ((int64_t)1000000000)

struct catalog {
    struct server *server;
    pthread_t thread;
    pthread_mutex_t update; /* held by whoever opens files and changes the index */
    pthread_rwlock_t index_lock;
    struct catalog_index index;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    bool scan_wanted;
    bool stopping;
    char *stale[STALE_MAX];
    size_t stale_count;
    struct waiter *waiters;
    int64_t round_ended_ns;
    int64_t scan_gap_ns;
    atomic_bool loaded;
};

static int64_t now_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void wake_all(struct waiter *waiter)
{
    while (waiter != NULL) {
        struct waiter *next = waiter->next;

        waiter->wake(waiter);
        waiter = next;
    }
}

/* --- bringing files in; the update lock is held --- */

static void tell_error(struct generation *generation)
{
    const struct zt_error *error = &generation->error;
    char where[48] = "";

    if (error->status == ZT_DATA_SHARD || generation->told)
        return;
    generation->told = true;
    if (error->offset != ZT_NO_OFFSET)
        snprintf(where, sizeof where, ", at byte %" PRIu64, error->offset);
    log_write(LOG_LEVEL_WARN, "%s cannot be read: %s (%s%s)", generation->path, error->message,
              error->rule != NULL ? error->rule : zt_status_name(error->status), where);
}

static void tell_if_settled(struct catalog *catalog, struct generation *generation)
{
    int64_t age_ns = now_ns(CLOCK_REALTIME) - generation->identity.modified_ns;

    if (generation->model == NULL && (!atomic_load(&catalog->loaded) || age_ns < 0 || age_ns > SETTLED_NS))
        tell_error(generation);
}

static void tell_shadowed(const struct catalog *catalog, const struct generation *added)
{
    struct generation *first = catalog_index_find_name(&catalog->index, generation_name(added));
    size_t at = catalog_index_lower_bound(&catalog->index, generation_name(added));

    for (; first != NULL && at < catalog->index.count; at++) {
        const struct generation *other = catalog->index.by_name[at];

        if (catalog_text_compare(generation_name(other), generation_name(added)) != 0)
            break;
        if (other != first && (first == added || other == added) && other->error.status != ZT_DATA_SHARD)
            log_write(LOG_LEVEL_WARN, "%s is shadowed by %s, which has the same name", other->path, first->path);
    }
}

/* Opens a file anew. False when the index need not change. */
static bool open_file(struct catalog *catalog, const struct catalog_file *file, struct catalog_change *out_change)
{
    struct zt_text path = {file->path, strlen(file->path)};
    const struct generation *known = catalog_index_find_path(&catalog->index, path);
    struct generation *opened = generation_open(catalog->server->store, file->path);

    if (opened != NULL && opened->source == NULL) {
        /* What cannot be opened has the identity that the listing tells; what is not even listed is gone. */
        opened->identity = file->identity;
        if (!file->listed) {
            generation_release(opened);
            opened = NULL;
        }
    }
    if (opened == NULL && known == NULL)
        return false;
    if (opened != NULL && known != NULL && catalog_identity_equal(&opened->identity, &known->identity)) {
        generation_release(opened);
        return false;
    }
    if (opened != NULL && opened->model != NULL && catalog->server->verifier != NULL)
        verifier_adopt(catalog->server->verifier, opened);
    if (opened != NULL)
        tell_if_settled(catalog, opened);
    *out_change = (struct catalog_change){file->path, opened};
    return true;
}

static void apply(struct catalog *catalog, const struct catalog_change *changes, size_t count)
{
    struct generation *dropped[BATCH_FILES_MAX];
    size_t dropped_count = 0;
    bool done;

    pthread_rwlock_wrlock(&catalog->index_lock);
    done = catalog_index_apply(&catalog->index, changes, count, dropped, &dropped_count);
    pthread_rwlock_unlock(&catalog->index_lock);
    for (size_t i = 0; i < dropped_count; i++)
        generation_release(dropped[i]);
    if (!done)
        log_write(LOG_LEVEL_ERROR, "no memory for the catalog: %zu changes are not shown", count);
    for (size_t i = 0; i < count; i++) {
        if (!done)
            generation_release(changes[i].generation);
        else if (changes[i].generation != NULL)
            tell_shadowed(catalog, changes[i].generation);
    }
}

static bool is_stopping(struct catalog *catalog)
{
    bool stopping;

    pthread_mutex_lock(&catalog->lock);
    stopping = catalog->stopping;
    pthread_mutex_unlock(&catalog->lock);
    return stopping;
}

/* Opens files for a while and shows them; returns how many were dealt with. */
static size_t update_batch(struct catalog *catalog, const struct catalog_file *files, size_t count)
{
    struct catalog_change changes[BATCH_FILES_MAX];
    int64_t begun_ns = now_ns(CLOCK_MONOTONIC);
    size_t changed = 0;
    size_t at = 0;

    pthread_mutex_lock(&catalog->update);
    while (at < count && at < BATCH_FILES_MAX && now_ns(CLOCK_MONOTONIC) - begun_ns < BATCH_NS_MAX)
        changed += open_file(catalog, &files[at++], &changes[changed]);
    if (changed > 0)
        apply(catalog, changes, changed);
    pthread_mutex_unlock(&catalog->update);
    return at;
}

static void update_files(struct catalog *catalog, const struct catalog_files *files)
{
    size_t at = 0;

    while (at < files->count && !is_stopping(catalog))
        at += update_batch(catalog, files->items + at, files->count - at);
}

/* --- scans --- */

static void tell_settled(struct catalog *catalog)
{
    for (size_t i = 0; i < catalog->index.count; i++)
        tell_if_settled(catalog, catalog->index.by_path[i]);
}

/* The verifier learns what there is, so that it can forget the rest. */
static void tell_verifier(struct catalog *catalog)
{
    const char **paths = calloc(catalog->index.count + 1, sizeof(*paths));

    if (paths == NULL || catalog->server->verifier == NULL) {
        free(paths);
        return;
    }
    for (size_t i = 0; i < catalog->index.count; i++)
        paths[i] = catalog->index.by_path[i]->path;
    verifier_loaded(catalog->server->verifier, paths, catalog->index.count);
    free(paths);
}

static void first_scan_done(struct catalog *catalog)
{
    pthread_mutex_lock(&catalog->update);
    tell_verifier(catalog);
    pthread_mutex_unlock(&catalog->update);
    pthread_mutex_lock(&catalog->lock);
    atomic_store(&catalog->loaded, true);
    pthread_cond_broadcast(&catalog->changed);
    pthread_mutex_unlock(&catalog->lock);
}

static void scan(struct catalog *catalog)
{
    struct catalog_files files = {NULL, 0, 0};
    struct catalog_files changed = {NULL, 0, 0};
    struct zt_error error;

    if (catalog_files_list(catalog->server->store, &files, &error) == ZT_OK) {
        pthread_mutex_lock(&catalog->update);
        tell_settled(catalog);
        if (!catalog_files_compare(&files, &catalog->index, &changed))
            log_write(LOG_LEVEL_ERROR, "no memory to compare the catalog with the store");
        pthread_mutex_unlock(&catalog->update);
        update_files(catalog, &changed);
    } else {
        log_write(LOG_LEVEL_WARN, "the catalog stays as it is: %s", error.message);
    }
    catalog_files_free(&changed);
    catalog_files_free(&files);
    if (!atomic_load(&catalog->loaded) && !is_stopping(catalog))
        first_scan_done(catalog);
}

static void update_stale(struct catalog *catalog, char **paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct catalog_file file = {.path = paths[i]};

        update_batch(catalog, &file, 1);
        free(paths[i]);
    }
}

/* --- the thread --- */

/* Waits, with the lock held, until there is something to do and it is time for it. Returns false at the end; *out_scan:
 * whether a scan is due. */
static bool await_round(struct catalog *catalog, bool *out_scan)
{
    for (;;) {
        int64_t scan_ns = catalog->round_ended_ns + catalog->scan_gap_ns;
        int64_t due_ns = catalog->stale_count > 0 ? catalog->round_ended_ns + STALE_GAP_NS : scan_ns;
        int64_t now = now_ns(CLOCK_MONOTONIC);
        struct timespec until = {due_ns / 1000000000, due_ns % 1000000000};

        if (catalog->stopping)
            return false;
        if (!catalog->scan_wanted && catalog->stale_count == 0)
            pthread_cond_wait(&catalog->changed, &catalog->lock);
        else if (now < due_ns)
            pthread_cond_timedwait(&catalog->changed, &catalog->lock, &until);
        else {
            *out_scan = catalog->scan_wanted && now >= scan_ns;
            return true;
        }
    }
}

/* One round: what was asked for before it began is answered by it. The lock is held before and after. */
static void run_round(struct catalog *catalog, bool with_scan)
{
    struct waiter *waiters = catalog->waiters;
    char *stale[STALE_MAX];
    size_t stale_count = catalog->stale_count;
    int64_t begun_ns = now_ns(CLOCK_MONOTONIC);

    catalog->waiters = NULL;
    memcpy(stale, catalog->stale, stale_count * sizeof stale[0]);
    catalog->stale_count = 0;
    if (with_scan)
        catalog->scan_wanted = false;
    pthread_mutex_unlock(&catalog->lock);
    update_stale(catalog, stale, stale_count);
    if (with_scan)
        scan(catalog);
    wake_all(waiters);
    pthread_mutex_lock(&catalog->lock);
    catalog->round_ended_ns = now_ns(CLOCK_MONOTONIC);
    if (with_scan) {
        int64_t took_ns = catalog->round_ended_ns - begun_ns;

        took_ns = took_ns < SCAN_GAP_MIN_NS ? SCAN_GAP_MIN_NS : took_ns;
        catalog->scan_gap_ns = took_ns < SCAN_GAP_MAX_NS ? took_ns : SCAN_GAP_MAX_NS;
    }
}

static void *catalog_main(void *argument)
{
    struct catalog *catalog = argument;
    bool with_scan = false;

    pthread_mutex_lock(&catalog->lock);
    while (await_round(catalog, &with_scan))
        run_round(catalog, with_scan);
    pthread_mutex_unlock(&catalog->lock);
    return NULL;
}

/* Signals are the loops' affair. */
static bool start_thread(struct catalog *catalog)
{
    sigset_t all;
    sigset_t before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&catalog->thread, NULL, catalog_main, catalog);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0;
}

static void destroy(struct catalog *catalog)
{
    catalog_index_clear(&catalog->index);
    pthread_cond_destroy(&catalog->changed);
    pthread_mutex_destroy(&catalog->lock);
    pthread_mutex_destroy(&catalog->update);
    pthread_rwlock_destroy(&catalog->index_lock);
    free(catalog);
}

struct catalog *catalog_new(struct server *server)
{
    struct catalog *catalog = calloc(1, sizeof *catalog);
    pthread_condattr_t monotonic;

    if (catalog == NULL)
        return NULL;
    catalog->server = server;
    pthread_mutex_init(&catalog->update, NULL);
    pthread_mutex_init(&catalog->lock, NULL);
    pthread_rwlock_init(&catalog->index_lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&catalog->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (!start_thread(catalog)) {
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
    catalog->stopping = true;
    pthread_cond_broadcast(&catalog->changed);
    pthread_mutex_unlock(&catalog->lock);
    pthread_join(catalog->thread, NULL);
    wake_all(catalog->waiters);
    while (catalog->stale_count > 0)
        free(catalog->stale[--catalog->stale_count]);
    destroy(catalog);
}

/* --- questions --- */

void catalog_refresh(struct catalog *catalog)
{
    pthread_mutex_lock(&catalog->lock);
    catalog->scan_wanted = true;
    pthread_cond_broadcast(&catalog->changed);
    pthread_mutex_unlock(&catalog->lock);
}

bool catalog_is_loaded(const struct catalog *catalog)
{
    return atomic_load(&catalog->loaded);
}

void catalog_wait_loaded(struct catalog *catalog)
{
    pthread_mutex_lock(&catalog->lock);
    if (!atomic_load(&catalog->loaded))
        catalog->scan_wanted = true;
    pthread_cond_broadcast(&catalog->changed);
    while (!atomic_load(&catalog->loaded))
        pthread_cond_wait(&catalog->changed, &catalog->lock);
    pthread_mutex_unlock(&catalog->lock);
}

/* Notes a path that is to be opened anew. The lock is held. */
static void note_stale(struct catalog *catalog, const char *path)
{
    char *copy;

    for (size_t i = 0; i < catalog->stale_count; i++) {
        if (strcmp(catalog->stale[i], path) == 0)
            return;
    }
    copy = catalog->stale_count < STALE_MAX ? strdup(path) : NULL;
    if (copy != NULL)
        catalog->stale[catalog->stale_count++] = copy;
    else
        catalog->scan_wanted = true;
}

/* Whether the bytes behind a generation may no longer be those that it was made of. */
static bool is_stale(const struct generation *generation)
{
    struct file_identity now;

    return generation->source != NULL && store_identity_of(generation->source, &now) &&
           (now.size_bytes != generation->identity.size_bytes || now.modified_ns != generation->identity.modified_ns);
}

/* Lets the waiter wait for the next round; stale is the path to be opened anew, or NULL. */
static void wait_for_round(struct catalog *catalog, const char *stale, struct waiter *waiter)
{
    pthread_mutex_lock(&catalog->lock);
    if (stale != NULL)
        note_stale(catalog, stale);
    else
        catalog->scan_wanted = true;
    waiter->next = catalog->waiters;
    catalog->waiters = waiter;
    pthread_cond_broadcast(&catalog->changed);
    pthread_mutex_unlock(&catalog->lock);
}

static enum catalog_answer find(struct catalog *catalog,
                                struct generation *(*finder)(const struct catalog_index *, struct zt_text),
                                struct zt_text key, struct waiter *waiter, struct generation **out_generation)
{
    /* Asked before looking: a scan that ends in between must not make a missing file of one that it found. */
    bool loaded = atomic_load(&catalog->loaded);
    struct generation *found;

    pthread_rwlock_rdlock(&catalog->index_lock);
    found = finder(&catalog->index, key);
    if (found != NULL)
        generation_hold(found);
    pthread_rwlock_unlock(&catalog->index_lock);
    if (found != NULL && !is_stale(found)) {
        *out_generation = found;
        return CATALOG_FOUND;
    }
    if (found == NULL && loaded)
        return CATALOG_NOT_FOUND;
    wait_for_round(catalog, found != NULL ? found->path : NULL, waiter);
    generation_release(found);
    return CATALOG_PENDING;
}

enum catalog_answer catalog_find(struct catalog *catalog, struct zt_text name, struct waiter *waiter,
                                 struct generation **out_generation)
{
    return find(catalog, catalog_index_find_name, name, waiter, out_generation);
}

enum catalog_answer catalog_find_path(struct catalog *catalog, struct zt_text path, struct waiter *waiter,
                                      struct generation **out_generation)
{
    return find(catalog, catalog_index_find_path, path, waiter, out_generation);
}

static bool begins_with(struct zt_text text, struct zt_text prefix)
{
    return text.length >= prefix.length && (prefix.length == 0 || memcmp(text.bytes, prefix.bytes, prefix.length) == 0);
}

/* Where a list begins: at the prefix, or behind the name given, whichever is later. */
static size_t list_start(const struct catalog_index *index, struct zt_text prefix, struct zt_text after)
{
    bool continued = after.length > 0 && catalog_text_compare(after, prefix) >= 0;
    size_t at = catalog_index_lower_bound(index, continued ? after : prefix);

    while (continued && at < index->count && catalog_text_compare(generation_name(index->by_name[at]), after) == 0)
        at++;
    return at;
}

size_t catalog_list(struct catalog *catalog, struct zt_text prefix, struct zt_text after, size_t limit,
                    struct generation **out_generations, bool *out_more)
{
    struct generation *model;
    size_t count = 0;
    size_t at;

    *out_more = false;
    pthread_rwlock_rdlock(&catalog->index_lock);
    at = list_start(&catalog->index, prefix, after);
    while ((model = catalog_index_model_at(&catalog->index, at, &at)) != NULL &&
           begins_with(generation_name(model), prefix)) {
        if (count == limit) {
            *out_more = true;
            break;
        }
        out_generations[count++] = generation_hold(model);
    }
    pthread_rwlock_unlock(&catalog->index_lock);
    return count;
}

struct generation *catalog_update(struct catalog *catalog, const char *path)
{
    struct catalog_file file = {.path = strdup(path)};
    struct generation *found;

    if (file.path == NULL)
        return NULL;
    update_batch(catalog, &file, 1);
    pthread_rwlock_rdlock(&catalog->index_lock);
    found = catalog_index_find_path(&catalog->index, (struct zt_text){path, strlen(path)});
    if (found != NULL)
        generation_hold(found);
    pthread_rwlock_unlock(&catalog->index_lock);
    free(file.path);
    return found;
}
