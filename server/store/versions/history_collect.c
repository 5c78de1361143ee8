/* Removes kept files that no kept commit names: all lists of files are read without a lock, then
 * each file that none of them names is removed, unless it was kept or named since then. */
#include <assert.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/memory.h"
#include "store/versions/history_collection.h"

#define KEYS_MAX ((size_t)1 << 26)

static enum zt_status fail_memory(struct zt_error *error)
{
    return zt_fail_memory(error, "a collection of kept files");
}

/* --- the repositories --- */

static bool add_key(void *context, const char *name)
{
    struct collection *collection = context;

    assert(collection->key_count <= collection->key_capacity);
    if (!zt_hex_is_lower(zt_text_from(name), HISTORY_KEY_SIZE - 1))
        return true;
    if (zt_array_reserve(&collection->keys, &collection->key_capacity, collection->key_count + 1,
                         sizeof(*collection->keys), KEYS_MAX) != ZT_OK)
        return false;
    strcpy(collection->keys[collection->key_count++], name);
    return true;
}

enum zt_status collection_list(struct history *history, struct collection *collection,
                               struct zt_error *error)
{
    assert(history->collection == collection);
    collection->key_count = 0;
    return history->place->ops->list(history->place, HISTORY_REPOS, add_key, collection, error);
}

/* Returns ZT_NOT_FOUND for a folder without a log, which a killed process has left. */
enum zt_status collection_repo(struct history *history, const char *key,
                               struct history_repo *out_repo, struct zt_error *error)
{
    char own[HISTORY_KEY_SIZE];
    enum zt_status status = log_file_name(history, key, out_repo, error);

    if (status == ZT_OK)
        status = history_repo_key(out_repo, own, error);
    if (status == ZT_OK && strcmp(own, key) != 0)
        status = zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the log is of another folder");
    return status;
}

/* --- what is named --- */

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, HISTORY_SHA1_BYTES);
}

/* Copies the different commits of a log, sorted. */
static enum zt_status copy_ids(const struct log_state *state,
                               uint8_t (**out_ids)[HISTORY_SHA1_BYTES], size_t *out_count)
{
    uint8_t(*ids)[HISTORY_SHA1_BYTES] = calloc(state->count + 1, sizeof(*ids));
    size_t count = 0;

    if (ids == NULL)
        return ZT_NO_MEMORY;
    for (size_t i = 0; i < state->count; i++)
        memcpy(ids[i], state->entries[i].id, sizeof(ids[i]));
    qsort(ids, state->count, sizeof(*ids), compare_ids);
    for (size_t i = 0; i < state->count; i++)
        if (count == 0 || memcmp(ids[count - 1], ids[i], sizeof(ids[i])) != 0)
            memmove(ids[count++], ids[i], sizeof(ids[i]));
    assert(count <= state->count);
    *out_ids = ids;
    *out_count = count;
    return ZT_OK;
}

static enum zt_status mark_file(void *context, const struct history_file *file)
{
    uint64_t *uses = sha_set_put(context, file->sha256);

    if (uses == NULL)
        return ZT_NO_MEMORY;
    ++*uses;
    return ZT_OK;
}

/* Looks again while no one can forget the commit: if it is still in the log, its list of files is
 * damaged or missing. */
static enum zt_status check_list(struct history *history, struct collection *collection,
                                 const struct history_repo *repo,
                                 const uint8_t id[HISTORY_SHA1_BYTES], struct zt_error *error)
{
    char commit[HISTORY_COMMIT_SIZE];
    struct log *log;
    enum zt_status status = history_lock(history, repo, error);

    if (status != ZT_OK)
        return status;
    zt_hex_write(commit, id, HISTORY_SHA1_BYTES);
    status = log_pin(history, repo, &log, error);
    if (status == ZT_OK) {
        if (log_state_commit(&log->state, id) != NULL)
            status = history_tree_visit(history, log->file.key, commit, mark_file,
                                        &collection->uses, error);
        if (status == ZT_CORRUPT || status == ZT_NOT_FOUND)
            status = zt_fail(
                error, ZT_IO, NULL, ZT_NO_OFFSET,
                "the list of files of commit %.8s of %.50s is %s: .ztserve/versions/" HISTORY_REPOS
                "/%s/trees/%s",
                commit, repo->name, status == ZT_CORRUPT ? "damaged" : "missing", log->file.key,
                commit);
        log_unpin(history, log);
    }
    history_unlock(history, repo);
    return status;
}

/* Fails if any list cannot be read, because the files that it names are unknown. */
static enum zt_status mark_commits(struct history *history, struct collection *collection,
                                   const struct history_repo *repo,
                                   const uint8_t (*ids)[HISTORY_SHA1_BYTES], size_t count,
                                   struct zt_error *error)
{
    char key[HISTORY_KEY_SIZE];
    enum zt_status status = history_repo_key(repo, key, error);

    assert(count == 0 || ids != NULL);
    for (size_t i = 0; status == ZT_OK && i < count; i++) {
        char commit[HISTORY_COMMIT_SIZE];

        zt_hex_write(commit, ids[i], sizeof(ids[i]));
        status = history_tree_visit(history, key, commit, mark_file, &collection->uses, error);
        if (status == ZT_CORRUPT || status == ZT_NOT_FOUND)
            status = check_list(history, collection, repo, ids[i], error);
    }
    return status;
}

/* Reading a log may have found damage, so this comes after it. */
static enum zt_status check_damage(struct history *history, const char *key, struct zt_error *error)
{
    return history_has_damage(history, key)
               ? zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET,
                         "there is a damaged log in .ztserve/versions/" HISTORY_REPOS "/%s", key)
               : ZT_OK;
}

static enum zt_status mark_repo(struct history *history, struct collection *collection,
                                const char *key, struct zt_error *error)
{
    struct history_repo repo;
    uint8_t(*ids)[HISTORY_SHA1_BYTES];
    struct log *log;
    size_t count;
    enum zt_status status = collection_repo(history, key, &repo, error);

    assert(strlen(key) == HISTORY_KEY_SIZE - 1);
    if (status == ZT_OK)
        status = log_begin(history, &repo, &log, error);
    if (status != ZT_OK)
        return status == ZT_NOT_FOUND ? check_damage(history, key, error) : status;
    status = copy_ids(&log->state, &ids, &count);
    collection->commits += log->state.count;
    collection->repositories += log->state.count > 0;
    log_end(history, log);
    if (status != ZT_OK)
        return fail_memory(error);
    status = check_damage(history, key, error);
    if (status == ZT_OK)
        status = mark_commits(history, collection, &repo, (const uint8_t(*)[HISTORY_SHA1_BYTES])ids,
                              count, error);
    free(ids);
    return status;
}

static enum zt_status mark(struct history *history, struct collection *collection,
                           struct zt_error *error)
{
    enum zt_status status = collection_list(history, collection, error);

    sha_set_free(&collection->uses);
    collection->commits = 0;
    collection->repositories = 0;
    for (size_t i = 0; status == ZT_OK && i < collection->key_count; i++)
        status = mark_repo(history, collection, collection->keys[i], error);
    return status;
}

/* --- what is kept --- */

static bool list_object(void *context, const struct history_object *object)
{
    struct collection *collection = context;
    uint64_t *size;

    collection->files++;
    collection->bytes += object->size_bytes;
    assert(collection->garbage_count <= collection->garbage_capacity);
    if (sha_set_find(&collection->uses, object->sha256) != NULL) {
        size = sha_set_put(&collection->sizes, object->sha256);
        if (size != NULL)
            *size = object->size_bytes;
        return size != NULL;
    }
    if (object->is_young) {
        collection->has_young = true;
        return true;
    }
    if (zt_array_reserve(&collection->garbage, &collection->garbage_capacity,
                         collection->garbage_count + 1, sizeof(*collection->garbage),
                         SIZE_MAX) != ZT_OK)
        return false;
    collection->garbage[collection->garbage_count++] = *object;
    collection->garbage_bytes += object->size_bytes;
    return true;
}

static enum zt_status list_objects(struct history *history, struct collection *collection,
                                   struct zt_error *error)
{
    struct history_place *place = history->place;
    enum zt_status status = ZT_OK;

    sha_set_free(&collection->sizes);
    collection->files = collection->bytes = collection->garbage_bytes = 0;
    collection->garbage_count = collection->next = 0;
    collection->has_young = false;
    for (unsigned i = 0; i < 256 && status == ZT_OK; i++)
        status = place->ops->list_objects(place, (uint8_t)i, list_object, collection, error);
    return status;
}

enum zt_status collection_look(struct history *history, struct collection *collection,
                               struct zt_error *error)
{
    enum zt_status status;

    assert(history->collection == collection);
    history_begin_collecting(history);
    atomic_store(&history->has_garbage, false);
    status = mark(history, collection, error);
    if (status == ZT_OK)
        status = list_objects(history, collection, error);
    if (status != ZT_OK || collection->has_young)
        atomic_store(&history->has_garbage, true);
    if (status != ZT_OK)
        return status;
    atomic_store(&history->figures[FIGURE_REPOSITORIES], (int64_t)collection->repositories);
    atomic_store(&history->figures[FIGURE_COMMITS], (int64_t)collection->commits);
    atomic_store(&history->figures[FIGURE_KEPT_FILES], (int64_t)collection->files);
    atomic_store(&history->figures[FIGURE_KEPT_BYTES], (int64_t)collection->bytes);
    return ZT_OK;
}

/* --- removing --- */

/* Setting a file aside is quick, and happens while no one can keep or name it. Freeing a large
 * file's blocks may take long. */
static bool remove_object(struct history *history, const struct history_object *garbage)
{
    struct history_place *place = history->place;
    bool is_free;

    assert(history->collection != NULL);
    pthread_mutex_lock(&history->changing);
    is_free = !history_is_protected(history, garbage->sha256) &&
              (place->ops->set_aside == NULL || place->ops->set_aside(place, garbage->sha256));
    pthread_mutex_unlock(&history->changing);
    if (!is_free || !place->ops->drop(place, garbage->sha256)) {
        atomic_store(&history->has_garbage, true);
        return false;
    }
    atomic_fetch_sub(&history->figures[FIGURE_KEPT_FILES], 1);
    atomic_fetch_sub(&history->figures[FIGURE_KEPT_BYTES], (int64_t)garbage->size_bytes);
    atomic_fetch_add(&history->figures[FIGURE_REMOVED_FILES], 1);
    return true;
}

static void sweep(struct history *history, struct collection *collection, unsigned most)
{
    assert(collection->next <= collection->garbage_count);
    while (collection->next < collection->garbage_count && most > 0)
        most -= remove_object(history, &collection->garbage[collection->next++]);
}

static void end(struct history *history)
{
    history_collection_free(history);
    history_end_collecting(history);
}

void history_collection_free(struct history *history)
{
    struct collection *collection = history->collection;

    if (collection == NULL)
        return;
    if (collection->is_claimed)
        history->place->ops->end_collecting(history->place);
    free(collection->keys);
    free(collection->garbage);
    sha_set_free(&collection->uses);
    sha_set_free(&collection->sizes);
    free(collection);
    history->collection = NULL;
}

/* A process was killed before the first entry of a log. Other threads and servers add one only with
 * the repository locked, and may just have done so. */
static void sweep_without_log(struct history *history, const char *key)
{
    struct history_place *place = history->place;
    struct log none = {.users = 0};
    struct history_repo repo;
    void *lock = NULL;

    assert(strlen(key) == HISTORY_KEY_SIZE - 1);
    if (place->ops->lock != NULL && place->ops->lock(place, key, 0, &lock, NULL) != ZT_OK)
        return;
    strcpy(none.file.key, key);
    pthread_mutex_lock(&history->changing);
    if (!history_is_changing(history) && log_file_name(history, key, &repo, NULL) == ZT_NOT_FOUND)
        history_trees_sweep(history, &none);
    pthread_mutex_unlock(&history->changing);
    if (lock != NULL)
        place->ops->unlock(place, lock);
}

/* Leftovers of killed processes: lists of commits that are in no log. */
static void sweep_trees(struct history *history, const struct collection *collection)
{
    for (size_t i = 0; i < collection->key_count; i++) {
        struct history_repo repo;
        struct log *log;

        if (log_file_name(history, collection->keys[i], &repo, NULL) == ZT_NOT_FOUND)
            sweep_without_log(history, collection->keys[i]);
        if (collection_repo(history, collection->keys[i], &repo, NULL) != ZT_OK)
            continue;
        if (history_lock(history, &repo, NULL) != ZT_OK)
            continue;
        if (log_pin(history, &repo, &log, NULL) == ZT_OK) {
            history_trees_sweep(history, log);
            log_unpin(history, log);
        }
        history_unlock(history, &repo);
    }
}

/* Also if more is kept than the limit, unless that was so the last time. */
static bool is_needed(struct history *history, const struct history_keep *keep)
{
    const int64_t bytes = atomic_load(&history->figures[FIGURE_KEPT_BYTES]);

    return atomic_load(&history->has_garbage) ||
           (keep->bytes > 0 && bytes > 0 && (uint64_t)bytes > keep->bytes &&
            (uint64_t)bytes > history->looked_bytes);
}

/* Returns ZT_STALE if another server collects. */
static enum zt_status claim(struct history *history, struct collection *collection)
{
    struct history_place *place = history->place;

    if (place->ops->begin_collecting == NULL)
        return ZT_OK;
    collection->is_claimed = place->ops->begin_collecting(place);
    return collection->is_claimed ? ZT_OK : ZT_STALE;
}

/* Begins a collection if there may be something to remove. Returns ZT_STALE if another server
 * collects. */
static enum zt_status begin(struct history *history, const struct history_keep *keep,
                            struct zt_error *error)
{
    struct collection *collection;
    enum zt_status status;
    bool is_due;

    assert(history->collection == NULL);
    collection = history->collection = calloc(1, sizeof(*collection));
    if (collection == NULL)
        return fail_memory(error);
    status = collection_forget_old(history, collection, keep, error);
    is_due = is_needed(history, keep);
    if (status == ZT_OK && (is_due || !history->has_swept_trees))
        status = claim(history, collection);
    if (status == ZT_OK && is_due) {
        status = collection_look(history, collection, error);
        if (status == ZT_OK)
            status = collection_forget_bytes(history, collection, keep, error);
        assert(collection->garbage_bytes <= collection->bytes);
        history->looked_bytes = collection->bytes - collection->garbage_bytes;
    }
    if (status == ZT_OK && !history->has_swept_trees) {
        sweep_trees(history, collection);
        history->has_swept_trees = true;
    }
    return status;
}

enum zt_status history_collect(struct history *history, unsigned most, bool *out_more,
                               struct zt_error *error)
{
    struct history_keep keep = {.commits = 0};
    enum zt_status status = ZT_OK;

    if (!history_is_writing(history))
        return history_refuse(error);
    history->keep(history->context, &keep);
    if (keep.commits == 0 && keep.age_s == 0 && keep.bytes == 0) {
        *out_more = false;
        return ZT_OK;
    }
    if (history->collection == NULL)
        status = begin(history, &keep, error);
    if (status == ZT_OK)
        sweep(history, history->collection, most);
    if (status == ZT_OK && history->collection->next < history->collection->garbage_count) {
        *out_more = true;
        return ZT_OK;
    }
    end(history);
    if (status != ZT_OK && status != ZT_STALE)
        return status;
    *out_more = status == ZT_STALE;
    return ZT_OK;
}
