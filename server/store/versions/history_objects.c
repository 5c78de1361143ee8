/* Kept files: which ones must stay, and the functions that keep, read and restore them. */
#include <assert.h>

#include "base/thread.h"
#include "store/staging.h"
#include "store/versions/history_inside.h"
#include "store/versions/history_shas.h"

/* More fresh files than this are looked through between collections. */
#define FRESH_COUNT 65536u

/* --- files that stay --- */

/* The generation from which on fresh files stay. */
static uint64_t least_generation(const struct history *history)
{
    uint64_t least = history->generation + 1;

    if (history->is_collecting && history->collection_generation < least)
        least = history->collection_generation;
    for (unsigned i = 0; i < HISTORY_CHANGERS; i++)
        if (history->changers[i].is_used && history->changers[i].generation < least)
            least = history->changers[i].generation;
    return least;
}

bool history_protect(struct history *history, const uint8_t sha256[HISTORY_SHA256_BYTES])
{
    uint64_t *generation;

    pthread_mutex_lock(&history->changing);
    if (history->fresh->count >= history->fresh_limit) {
        sha_set_keep_from(history->fresh, least_generation(history));
        history->fresh_limit = 2 * history->fresh->count + FRESH_COUNT;
    }
    generation = sha_set_put(history->fresh, sha256);
    if (generation != NULL)
        *generation = history->generation;
    pthread_mutex_unlock(&history->changing);
    return generation != NULL;
}

bool history_is_protected(struct history *history, const uint8_t sha256[HISTORY_SHA256_BYTES])
{
    const uint64_t *generation = sha_set_find(history->fresh, sha256);

    assert(lock_is_held(&history->changing));
    return generation != NULL && *generation >= least_generation(history);
}

/* A change that is in progress now may have looked at its files before. */
void history_begin_collecting(struct history *history)
{
    pthread_mutex_lock(&history->changing);
    history->is_collecting = false;
    history->generation++;
    history->collection_generation = least_generation(history);
    assert(history->collection_generation <= history->generation + 1);
    history->is_collecting = true;
    pthread_mutex_unlock(&history->changing);
}

void history_end_collecting(struct history *history)
{
    pthread_mutex_lock(&history->changing);
    history->is_collecting = false;
    history->generation++;
    sha_set_keep_from(history->fresh, least_generation(history));
    pthread_mutex_unlock(&history->changing);
}

/* --- keeping --- */

static enum zt_status begin_keeping(struct history *history, const uint8_t sha256[32],
                                    struct zt_error *error)
{
    if (!history_is_writing(history))
        return history_refuse(error);
    return history_protect(history, sha256) ? ZT_OK : zt_fail_memory(error, "a kept file");
}

static void count_kept(struct history *history, bool is_new, uint64_t bytes)
{
    atomic_fetch_add(&history->figures[FIGURE_KEPT_FILES], is_new ? 1 : 0);
    atomic_fetch_add(&history->figures[FIGURE_KEPT_BYTES], is_new ? (int64_t)bytes : 0);
}

enum zt_status history_keep_file(struct history *history, const char *path,
                                 const struct file_identity *identity, const uint8_t sha256[32],
                                 struct zt_error *error)
{
    struct history_place *place = history->place;
    enum zt_status status = begin_keeping(history, sha256, error);
    bool is_new = false;

    if (status == ZT_OK)
        status = place->ops->keep(place, path, identity, sha256, &is_new, error);
    count_kept(history, is_new, identity->size_bytes);
    return status;
}

enum zt_status history_keep_removed(struct history *history, const char *path,
                                    const struct file_identity *identity, const uint8_t sha256[32],
                                    struct zt_error *error)
{
    struct history_place *place = history->place;
    enum zt_status status = begin_keeping(history, sha256, error);
    bool is_new = false;

    if (status == ZT_OK)
        status = place->ops->keep_removed != NULL
                     ? place->ops->keep_removed(place, path, identity, sha256, &is_new, error)
                     : history_refuse(error);
    count_kept(history, is_new, identity->size_bytes);
    return status;
}

enum zt_status history_keep_staged(struct history *history, struct staged_file *file,
                                   const uint8_t sha256[32], struct zt_error *error)
{
    const uint64_t length = staged_file_length(file);
    struct history_place *place = history->place;
    enum zt_status status = begin_keeping(history, sha256, error);
    bool is_new = false;

    if (status != ZT_OK)
        return status;
    atomic_store(&history->has_garbage, true);
    status = place->ops->keep_staged(place, file, sha256, &is_new, error);
    count_kept(history, is_new, length);
    return status;
}

/* --- reading --- */

static enum zt_status fail_missing(struct zt_error *error)
{
    return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the file is not kept");
}

enum zt_status history_stat_kept(struct history *history, const uint8_t sha256[32],
                                 struct file_identity *out_identity, struct zt_error *error)
{
    struct history_place *place = history->place;

    return place->is_missing
               ? fail_missing(error)
               : place->ops->find(place, sha256, place->is_writable, out_identity, error);
}

enum zt_status history_open_kept(struct history *history, const uint8_t sha256[32],
                                 struct zt_source **out_source, struct file_identity *out_identity,
                                 struct zt_error *error)
{
    struct history_place *place = history->place;

    return place->is_missing ? fail_missing(error)
                             : place->ops->open(place, sha256, out_source, out_identity, error);
}

/* --- going back --- */

enum zt_status history_restore(struct history *history, const uint8_t sha256[32], const char *path,
                               struct zt_error *error)
{
    return history_is_writing(history)
               ? history->place->ops->restore(history->place, sha256, path, error)
               : history_refuse(error);
}

enum zt_status history_remove_path(struct history *history, const char *path,
                                   const struct file_identity *identity, struct zt_error *error)
{
    return history_is_writing(history)
               ? history->place->ops->remove_path(history->place, path, identity, error)
               : history_refuse(error);
}

bool history_has_path(const struct history *history, const char *path, bool asks)
{
    return history->place->ops->has_path(history->place, path, asks);
}
