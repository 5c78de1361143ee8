/* The verifier's life, and its thread that writes down what was found out. Components are checked
 * in verifier_checks.c, whole generations in verifier_runs.c, shards in verifier_shards.c. */
#include "verify/verifier.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "store/state_folder.h"
#include "verify/found_digests.h"
#include "verify/verifier_runs.h"

/* Verdicts are written down together, that long after the first. */
#define SAVE_DELAY_NS ((int64_t)500000000)

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- the saver --- */

void verifier_mark_dirty(struct verifier *verifier, struct generation *generation)
{
    struct verification *verification = generation->verification;

    pthread_mutex_lock(&verifier->lock);
    if (!verification->dirty) {
        verification->dirty = true;
        verification->next_dirty = verifier->dirty;
        verifier->dirty = generation_hold(generation);
        pthread_cond_signal(&verifier->changed);
    }
    pthread_mutex_unlock(&verifier->lock);
}

/* The lock is held before and after. */
static void save_dirty(struct verifier *verifier)
{
    while (verifier->dirty != NULL) {
        struct generation *generation = verifier->dirty;

        verifier->dirty = generation->verification->next_dirty;
        generation->verification->dirty = false;
        pthread_mutex_unlock(&verifier->lock);
        verification_save(&verifier->folder, generation);
        found_state_save(verifier, generation);
        generation_release(generation);
        pthread_mutex_lock(&verifier->lock);
    }
}

/* Lets more verdicts come, unless it is the end. The lock is held. */
static void gather(struct verifier *verifier)
{
    int64_t until_ns = now_ns() + SAVE_DELAY_NS;
    struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};

    while (!verifier->ending && now_ns() < until_ns)
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
        gather(verifier);
        save_dirty(verifier);
    }
    save_dirty(verifier);
    pthread_mutex_unlock(&verifier->lock);
    return NULL;
}

/* --- life --- */

static void open_folder(struct verifier *verifier)
{
    const struct config *config = verifier->server->config;
    bool is_configured = config->state.dir[0] != '\0';
    int state_folder = state_folder_open(config);
    int os_error = errno;

    state_folder_enter(&verifier->folder, state_folder, "verified");
    /* Whoever names a folder counts on it; the one in the root is a chance. */
    if (verifier->folder.descriptor < 0)
        log_write(
            is_configured ? LOG_LEVEL_WARN : LOG_LEVEL_INFO,
            "what is verified is kept in memory only: the state folder cannot be written (%s)",
            strerror(state_folder < 0 ? os_error : errno));
    found_queue_init(verifier, state_folder);
    if (state_folder >= 0)
        close(state_folder);
}

static bool start_saver(struct verifier *verifier)
{
    sigset_t all;
    sigset_t before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&verifier->saver, NULL, saver_main, verifier);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0;
}

static void destroy(struct verifier *verifier)
{
    found_queue_clear(verifier);
    state_folder_leave(&verifier->folder);
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
    verifier_runs_init(verifier);
    open_folder(verifier);
    if (!start_saver(verifier)) {
        destroy(verifier);
        return NULL;
    }
    return verifier;
}

void verifier_stop(struct verifier *verifier)
{
    /* Under the lock, so that no run gets in after it. */
    pthread_mutex_lock(&verifier->lock);
    atomic_store(&verifier->stopping, true);
    pthread_mutex_unlock(&verifier->lock);
}

void verifier_free(struct verifier *verifier)
{
    if (verifier == NULL)
        return;
    verifier_stop(verifier);
    pthread_mutex_lock(&verifier->lock);
    verifier->ending = true;
    pthread_cond_signal(&verifier->changed);
    pthread_mutex_unlock(&verifier->lock);
    pthread_join(verifier->saver, NULL);
    destroy(verifier);
}

void verifier_adopt(struct verifier *verifier, struct generation *generation)
{
    if (generation->model == NULL)
        return;
    generation->verification = verification_new(generation);
    if (generation->verification == NULL)
        return;
    verification_recall(&verifier->folder, generation);
    found_digests_adopt(verifier, generation);
    if (verifier->server->config->verify == CONFIG_VERIFY_EAGER &&
        (generation->verification->counts[COMPONENT_UNCHECKED] > 0 || generation->found != NULL))
        verifier_run_begin(verifier, generation, false);
}

void verifier_learn(struct verifier *verifier, struct generation *generation,
                    const unsigned char *verdicts, uint32_t count)
{
    struct verification *verification = generation->verification;

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

void verifier_loaded(struct verifier *verifier, const char *const *paths, size_t count)
{
    state_folder_sweep(&verifier->folder, paths, count);
    state_folder_sweep(&verifier->found.folder, paths, count);
    pthread_mutex_lock(&verifier->lock);
    verifier->loaded = true;
    verifier_note_ready(verifier);
    pthread_mutex_unlock(&verifier->lock);
}

void verifier_start(struct verifier *verifier, struct generation *generation)
{
    if (generation->verification != NULL)
        verifier_run_begin(verifier, generation, true);
}

bool verifier_is_ready(const struct verifier *verifier)
{
    return verifier->server->config->verify != CONFIG_VERIFY_EAGER || atomic_load(&verifier->ready);
}
