/* Opens and closes a history, and locks its repositories. */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memo.h"
#include "base/thread.h"
#include "store/versions/history_inside.h"
#include "store/versions/history_shas.h"
#include "zt/digest.h"

/* How long a change waits for another one of the same repository. */
#define LOCK_WAIT_MS 30000

/* --- opening --- */

enum zt_status history_open(const struct history_options *options, struct history **out_history,
                            struct zt_error *error)
{
    struct history *history = calloc(1, sizeof(*history));

    if (history == NULL) {
        options->place->ops->close(options->place);
        return zt_fail_memory(error, "versions");
    }
    history->place = options->place;
    history->file_bytes = HISTORY_FILE_BYTES;
    history->wait_ms = LOCK_WAIT_MS;
    history->keep = options->keep;
    history->context = options->context;
    atomic_init(&history->has_garbage, true);
    atomic_init(&history->due_ms, INT64_MAX);
    pthread_mutex_init(&history->lock, NULL);
    pthread_cond_init(&history->loaded, NULL);
    pthread_cond_init(&history->watched, NULL);
    pthread_mutex_init(&history->changing, NULL);
    pthread_cond_init(&history->changed, NULL);
    history->trees = history_trees_new();
    history->fresh = calloc(1, sizeof(*history->fresh));
    if (history->trees == NULL || history->fresh == NULL) {
        history_close(history);
        return zt_fail_memory(error, "versions");
    }
    *out_history = history;
    return ZT_OK;
}

void history_close(struct history *history)
{
    if (history == NULL)
        return;
    history_collection_free(history);
    logs_free(history);
    memo_free(history->trees);
    if (history->fresh != NULL)
        sha_set_free(history->fresh);
    free(history->fresh);
    history->place->ops->close(history->place);
    pthread_cond_destroy(&history->changed);
    pthread_mutex_destroy(&history->changing);
    pthread_cond_destroy(&history->watched);
    pthread_cond_destroy(&history->loaded);
    pthread_mutex_destroy(&history->lock);
    free(history);
}

bool history_is_shared(const struct history *history)
{
    return history->place->is_shared;
}

/* --- locks of repositories --- */

/* Two names with the same hash would only wait for one another. */
static struct changer_key key_of(const struct history_repo *repo)
{
    struct changer_key key = {.is_root_model = repo->is_root_model};

    zt_xxh3_128(repo->name, strlen(repo->name), key.words);
    return key;
}

static bool is_locked(const struct changer *changer, const struct changer_key *key)
{
    return changer->is_used && changer->key.is_root_model == key->is_root_model &&
           changer->key.words[0] == key->words[0] && changer->key.words[1] == key->words[1];
}

/* Returns a free place, or NULL if the repository is locked or there is none. */
static struct changer *find_place(struct history *history, const struct changer_key *key)
{
    struct changer *free_place = NULL;

    assert(lock_is_held(&history->changing));
    for (unsigned i = 0; i < HISTORY_CHANGERS; i++) {
        struct changer *changer = &history->changers[i];

        if (is_locked(changer, key))
            return NULL;
        if (!changer->is_used)
            free_place = changer;
    }
    return free_place;
}

static enum zt_status fail_busy(const struct history_repo *repo, const char *who,
                                struct zt_error *error)
{
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                   "%s is changing the repository %.200s; try again", who, repo->name);
}

/* Returns NULL if another thread still has it at by_ms. */
static struct changer *lock_here(struct history *history, const struct history_repo *repo,
                                 int64_t by_ms)
{
    const struct changer_key key = key_of(repo);
    struct changer *changer;

    pthread_mutex_lock(&history->changing);
    while ((changer = find_place(history, &key)) == NULL && clock_ms() < by_ms)
        thread_wait_ms(&history->changed, &history->changing, 1000);
    if (changer != NULL)
        *changer =
            (struct changer){.is_used = true, .key = key, .generation = ++history->generation};
    pthread_mutex_unlock(&history->changing);
    return changer;
}

static void unlock_here(struct history *history, struct changer *changer)
{
    pthread_mutex_lock(&history->changing);
    assert(changer->is_used);
    changer->is_used = false;
    pthread_cond_broadcast(&history->changed);
    pthread_mutex_unlock(&history->changing);
}

/* Excludes other servers, and reads what they have changed. */
static enum zt_status lock_place(struct history *history, const struct history_repo *repo,
                                 struct changer *changer, int64_t by_ms, struct zt_error *error)
{
    struct history_place *place = history->place;
    char key[HISTORY_KEY_SIZE];
    enum zt_status status = history_repo_key(repo, key, error);

    if (status == ZT_OK)
        status = place->ops->lock(place, key, by_ms, &changer->lock, error);
    if (status == ZT_ARGUMENT)
        return fail_busy(repo, "another server", error);
    if (status != ZT_OK)
        return status;
    status = log_refresh(history, repo, error);
    if (status != ZT_OK)
        place->ops->unlock(place, changer->lock);
    return status;
}

enum zt_status history_lock(struct history *history, const struct history_repo *repo,
                            struct zt_error *error)
{
    const int64_t by_ms = clock_ms() + history->wait_ms;
    struct changer *changer = lock_here(history, repo, by_ms);
    enum zt_status status = ZT_OK;

    if (changer == NULL)
        return fail_busy(repo, "another request", error);
    if (history->place->ops->lock != NULL && history_is_writing(history))
        status = lock_place(history, repo, changer, by_ms, error);
    if (status != ZT_OK)
        unlock_here(history, changer);
    return status;
}

static struct changer *find_locked(struct history *history, const struct history_repo *repo)
{
    const struct changer_key key = key_of(repo);
    struct changer *changer = NULL;

    pthread_mutex_lock(&history->changing);
    for (unsigned i = 0; i < HISTORY_CHANGERS && changer == NULL; i++)
        if (is_locked(&history->changers[i], &key))
            changer = &history->changers[i];
    pthread_mutex_unlock(&history->changing);
    return changer;
}

void history_unlock(struct history *history, const struct history_repo *repo)
{
    struct changer *changer = find_locked(history, repo);

    assert(changer != NULL);
    if (changer->lock != NULL)
        history->place->ops->unlock(history->place, changer->lock);
    unlock_here(history, changer);
}

bool history_is_changing(const struct history *history)
{
    for (unsigned i = 0; i < HISTORY_CHANGERS; i++)
        if (history->changers[i].is_used)
            return true;
    return false;
}

/* --- figures --- */

/* Changes are counted before the first collection counts everything. */
static uint64_t figure(struct history *history, enum history_figure which)
{
    const int64_t value = atomic_load(&history->figures[which]);

    return value > 0 ? (uint64_t)value : 0;
}

void history_report(struct history *history, struct history_report *out_report)
{
    *out_report = (struct history_report){
        .repositories = figure(history, FIGURE_REPOSITORIES),
        .commits = figure(history, FIGURE_COMMITS),
        .kept_files = figure(history, FIGURE_KEPT_FILES),
        .kept_bytes = figure(history, FIGURE_KEPT_BYTES),
        .removed_files = figure(history, FIGURE_REMOVED_FILES),
    };
}
