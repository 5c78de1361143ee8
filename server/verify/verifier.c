/* Creates and ends the verifier; its thread saves verdicts and digests, and it observes the
 * catalog. Components are checked in verifier_checks.c, whole generations in verifier_runs.c,
 * shards in verifier_shards.c. */
#include "verify/verifier.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "store/state_place.h"
#include "verify/verifier_work.h"

/* Verdicts are saved in batches, this long after the first. */
#define SAVE_DELAY_NS (500 * CLOCK_NS_PER_MS)

/* --- the saver --- */

void verifier_mark_dirty(struct verifier *verifier, struct generation *generation)
{
    struct verification *verification = verification_of(generation);

    pthread_mutex_lock(&verifier->lock);
    if (!verification->dirty) {
        verification->dirty = true;
        verification->next_dirty = verifier->dirty;
        /* Saving needs no open file. */
        parking_hold_idle(generation);
        verifier->dirty = generation;
        pthread_cond_signal(&verifier->changed);
    }
    pthread_mutex_unlock(&verifier->lock);
}

/* The lock must be held; it is released during the call. */
static void save_dirty(struct verifier *verifier)
{
    struct generation *next = verifier->dirty;

    /* Some generations are marked again during the loop, for the next call. */
    verifier->dirty = NULL;
    while (next != NULL) {
        struct generation *generation = next;

        next = verification_of(generation)->next_dirty;
        verification_of(generation)->dirty = false;
        pthread_mutex_unlock(&verifier->lock);
        verification_save(verifier, generation);
        digest_state_save(verifier, generation);
        parking_release_idle(generation);
        pthread_mutex_lock(&verifier->lock);
    }
}

/* Waits for more verdicts, unless the verifier is ending. The lock must be held. */
static void await_more(struct verifier *verifier)
{
    int64_t until_ns = clock_ns() + SAVE_DELAY_NS;
    struct timespec until = {until_ns / CLOCK_NS_PER_S, until_ns % CLOCK_NS_PER_S};

    while (!verifier->ending && clock_ns() < until_ns)
        pthread_cond_timedwait(&verifier->changed, &verifier->lock, &until);
}

static void *saver_main(void *argument)
{
    struct verifier *verifier = argument;

    pthread_mutex_lock(&verifier->lock);
    for (;;) {
        while (verifier->dirty == NULL && !verifier->ending)
            pthread_cond_wait(&verifier->changed, &verifier->lock);
        if (verifier->ending)
            break;
        await_more(verifier);
        save_dirty(verifier);
    }
    /* Save everything now, since there is no later call. */
    while (verifier->dirty != NULL)
        save_dirty(verifier);
    pthread_mutex_unlock(&verifier->lock);
    return NULL;
}

/* --- life --- */

static void open_folder(struct verifier *verifier)
{
    const struct config *config = verifier->server->config;
    bool is_configured = config->state.dir[0] != '\0';
    char path[STATE_FOLDER_PATH_SIZE];
    int state_folder = state_folder_open(config);
    int os_error = errno;

    ledger_folder_open(&verifier->folder, state_folder, "verified");
    if (state_folder >= 0)
        os_error = errno;
    state_folder_path(config, path);
    /* Only a warning, unless the folder was configured; the root may be read-only on purpose. */
    if (state_folder < 0 && !is_configured && os_error == ENOTDIR)
        log_write(LOG_LEVEL_WARN,
                  "state is kept in memory only: %s is a link, or something else that is not a "
                  "folder; state.dir can name a folder anywhere",
                  path);
    else if (verifier->folder.descriptor < 0)
        log_write(is_configured ? LOG_LEVEL_WARN : LOG_LEVEL_INFO,
                  "verification results are kept in memory only: the state folder %s is not "
                  "writable (%s)",
                  path, strerror(os_error));
    wanted_digests_init(verifier, state_folder);
    if (state_folder >= 0)
        close(state_folder);
}

static void destroy(struct verifier *verifier)
{
    wanted_digests_clear(verifier);
    blob_index_free(verifier->blobs);
    free(verifier->slots);
    ledger_folder_close(&verifier->folder);
    pthread_cond_destroy(&verifier->changed);
    pthread_mutex_destroy(&verifier->lock);
    free(verifier);
}

struct verifier *verifier_new(struct server *server)
{
    struct verifier *verifier = calloc(1, sizeof(*verifier));
    pthread_condattr_t monotonic;

    if (verifier == NULL)
        return NULL;
    verifier->server = server;
    pthread_mutex_init(&verifier->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&verifier->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    verifier->blobs = blob_index_new();
    open_folder(verifier);
    if (!verifier_runs_init(verifier) || verifier->blobs == NULL ||
        thread_start(&verifier->saver, "saver", saver_main, verifier) != 0) {
        destroy(verifier);
        return NULL;
    }
    return verifier;
}

void verifier_stop(struct verifier *verifier)
{
    /* Under the lock, so that no run begins afterwards. */
    pthread_mutex_lock(&verifier->lock);
    atomic_store(&verifier->stopping, true);
    pthread_mutex_unlock(&verifier->lock);
}

void verifier_finish(struct verifier *verifier)
{
    if (verifier == NULL || verifier->ending)
        return;
    verifier_stop(verifier);
    pthread_mutex_lock(&verifier->lock);
    verifier->ending = true;
    pthread_cond_signal(&verifier->changed);
    pthread_mutex_unlock(&verifier->lock);
    pthread_join(verifier->saver, NULL);
    wanted_digests_drop(verifier);
}

void verifier_free(struct verifier *verifier)
{
    if (verifier == NULL)
        return;
    verifier_finish(verifier);
    assert(verifier->dirty == NULL);
    destroy(verifier);
}

/* --- events of the catalog --- */

/* Otherwise the next process would recall what is saved about other bytes of the same version. */
static void remove_saved(struct verifier *verifier, const struct generation *generation)
{
    assert(generation->ignores_saved);
    ledger_remove(&verifier->folder, generation->path);
    ledger_remove(&verifier->wanted.folder, generation->path);
}

static void on_opened(void *context, struct generation *generation)
{
    struct verifier *verifier = context;
    struct verification *verification = verification_attach(generation);

    assert(generation->model != NULL);
    if (verification == NULL)
        return;
    if (generation->ignores_saved)
        remove_saved(verifier, generation);
    else
        verification_recall(verifier, generation);
    digest_table_adopt(verifier, generation);
    if (verifier->server->config->verify == CONFIG_VERIFY_EAGER &&
        (verification->counts[COMPONENT_UNCHECKED] > 0 || digests_are_on(generation)))
        verifier_run_begin(verifier, generation, false, JOB_OF_SERVER);
}

/* Called both before and after the model can be found. If the index is built in between, the first
 * call adds nothing, and the catalog does not have the model yet. */
static void on_shown(void *context, struct generation *generation)
{
    struct verifier *verifier = context;

    blob_index_add(verifier->blobs, generation);
}

static void on_dropped(void *context, struct generation *generation)
{
    struct verifier *verifier = context;

    assert(atomic_load(&generation->retired));
    blob_index_remove(verifier->blobs, generation);
}

static void on_loaded(void *context, const char *const *paths, size_t count)
{
    struct verifier *verifier = context;

    ledger_folder_sweep(&verifier->folder, paths, count);
    ledger_folder_sweep(&verifier->wanted.folder, paths, count);
    pthread_mutex_lock(&verifier->lock);
    verifier->loaded = true;
    verifier_note_ready(verifier);
    pthread_mutex_unlock(&verifier->lock);
}

struct catalog_observer verifier_observer(struct verifier *verifier)
{
    return (struct catalog_observer){.context = verifier,
                                     .opened = on_opened,
                                     .showing = on_shown,
                                     .shown = on_shown,
                                     .dropped = on_dropped,
                                     .loaded = on_loaded};
}

/* --- asked by others --- */

void verifier_learn(struct verifier *verifier, struct generation *generation,
                    const unsigned char *verdicts, uint32_t count)
{
    struct verification *verification = verification_of(generation);

    if (verification == NULL || count != generation->model->component_count)
        return;
    pthread_mutex_lock(&verification->lock);
    for (uint32_t i = 0; i < count; i++)
        if (verdicts[i] == ZT_VERDICT_VERIFIED &&
            atomic_load(&generation->states[i]) == COMPONENT_UNCHECKED)
            verification_set(generation, i, COMPONENT_VERIFIED);
    pthread_mutex_unlock(&verification->lock);
    verifier_mark_dirty(verifier, generation);
}

void verifier_start(struct verifier *verifier, struct generation *generation, uint64_t client)
{
    if (verification_of(generation) != NULL)
        verifier_run_begin(verifier, generation, true, client);
}

bool verifier_is_ready(const struct verifier *verifier)
{
    return verifier->server->config->verify != CONFIG_VERIFY_EAGER || atomic_load(&verifier->ready);
}
