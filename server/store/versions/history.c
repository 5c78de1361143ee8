/* Opens and closes a history, and locks its repositories. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memo.h"
#include "base/thread.h"
#include "store/store_path.h"
#include "store/versions/history_files.h"
#include "store/versions/history_inside.h"
#include "store/versions/history_shas.h"
#include "zt/digest.h"

#define ABOVE        ".ztserve"
#define VERSIONS     "versions"
#define REPOS        "repos"
#define OBJECTS      "objects"
#define REMOVED      "removed"
#define LOG_NEW      "log" HISTORY_NEW_SUFFIX
#define OBJECT_BYTES 256u

/* --- opening --- */

/* Returns -1 with errno. */
static int open_folder(int above, const char *name, bool make)
{
    if (make && !history_folder_make(above, name))
        return -1;
    return openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static bool remove_file(void *context, int folder, const char *name)
{
    (void)context;
    unlinkat(folder, name, 0);
    return true;
}

/* What a killed process left in the folder of a repository. The trees' leftovers go with the first
 * collection. */
static bool remove_new_log(void *context, int folder, const char *name)
{
    const int repo = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    (void)context;
    if (repo < 0)
        return true;
    unlinkat(repo, LOG_NEW, 0);
    close(repo);
    return true;
}

/* All of them at once, so that no later link waits for a new folder. */
static bool make_object_folders(int objects)
{
    char name[3];

    assert(objects >= 0);
    for (unsigned i = 0; i < OBJECT_BYTES; i++) {
        snprintf(name, sizeof(name), "%02x", i);
        if (mkdirat(objects, name, 0700) != 0 && errno != EEXIST)
            return false;
    }
    return history_sync(objects, fsync);
}

static bool open_folders(struct history *history)
{
    const bool make = history->is_writable;
    const int above = open_folder(history->root, ABOVE, make);

    if (above < 0)
        return false;
    history->folder = open_folder(above, VERSIONS, make);
    history_close_folder(above);
    if (history->folder < 0)
        return false;
    history->repos = open_folder(history->folder, REPOS, make);
    history->objects = open_folder(history->folder, OBJECTS, make);
    history->removed = open_folder(history->folder, REMOVED, make);
    return history->repos >= 0 && history->objects >= 0 && history->removed >= 0;
}

static void clean(struct history *history)
{
    (void)history_folder_visit(history->removed, ".", remove_file, NULL);
    (void)history_folder_visit(history->repos, ".", remove_new_log, NULL);
}

static void close_folders(struct history *history)
{
    int *const folders[] = {&history->folder, &history->repos, &history->objects,
                            &history->removed};

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        if (*folders[i] >= 0)
            close(*folders[i]);
        *folders[i] = -1;
    }
}

static enum zt_status begin(struct history *history, struct zt_error *error)
{
    const bool is_open = open_folders(history);
    enum zt_status status;

    /* A server that only reads may have no versions. */
    if (!is_open && !history->is_writable && errno == ENOENT) {
        close_folders(history);
        return ZT_OK;
    }
    if (is_open && !history->is_writable)
        return ZT_OK;
    if (!is_open || !make_object_folders(history->objects)) {
        status = store_fail_errno(error, errno, "cannot keep versions in " ABOVE "/" VERSIONS);
        if (error != NULL)
            error->status = ZT_IO;
        return status == ZT_LIMIT ? ZT_IO : status;
    }
    clean(history);
    return ZT_OK;
}

enum zt_status history_open(const struct history_options *options, struct history **out_history,
                            struct zt_error *error)
{
    struct history *history = calloc(1, sizeof(*history));
    enum zt_status status;

    if (history == NULL)
        return zt_fail_memory(error, "versions");
    history->root = options->root;
    history->folder = history->repos = history->objects = history->removed = -1;
    history->is_writable = options->is_writable;
    history->keep = options->keep;
    history->context = options->context;
    atomic_init(&history->has_garbage, true);
    pthread_mutex_init(&history->lock, NULL);
    pthread_cond_init(&history->loaded, NULL);
    pthread_mutex_init(&history->changing, NULL);
    pthread_cond_init(&history->changed, NULL);
    history->trees = history_trees_new();
    history->fresh = calloc(1, sizeof(*history->fresh));
    status = history->trees != NULL && history->fresh != NULL ? begin(history, error)
                                                              : zt_fail_memory(error, "versions");
    if (status != ZT_OK) {
        history_close(history);
        return status;
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
    close_folders(history);
    pthread_cond_destroy(&history->changed);
    pthread_mutex_destroy(&history->changing);
    pthread_cond_destroy(&history->loaded);
    pthread_mutex_destroy(&history->lock);
    free(history);
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

void history_lock(struct history *history, const struct history_repo *repo)
{
    const struct changer_key key = key_of(repo);
    struct changer *changer;

    pthread_mutex_lock(&history->changing);
    while ((changer = find_place(history, &key)) == NULL)
        pthread_cond_wait(&history->changed, &history->changing);
    *changer = (struct changer){.is_used = true, .key = key, .generation = ++history->generation};
    pthread_mutex_unlock(&history->changing);
}

void history_unlock(struct history *history, const struct history_repo *repo)
{
    const struct changer_key key = key_of(repo);
    bool was_locked = false;

    pthread_mutex_lock(&history->changing);
    for (unsigned i = 0; i < HISTORY_CHANGERS && !was_locked; i++)
        if (is_locked(&history->changers[i], &key)) {
            history->changers[i].is_used = false;
            was_locked = true;
        }
    assert(was_locked);
    pthread_cond_broadcast(&history->changed);
    pthread_mutex_unlock(&history->changing);
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
