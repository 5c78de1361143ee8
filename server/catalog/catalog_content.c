/* Adds files to the catalog. A file is opened and added under one lock, so that if a scan and an
 * upload update it at the same time, the later update sees its true state. Lookups take only the
 * index's lock, for a short binary search. */
#include "catalog/catalog_content.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/changes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "catalog/catalog_log.h"
#include "catalog/catalog_open.h"
#include "catalog/failed_lookups.h"
#include "catalog/parking.h"
#include "digests/file_hashes.h"
#include "parts/split_path.h"

/* The limits of a batch in files and time before it is published; uploads wait for the lock that
 * long. */
#define BATCH_FILES_MAX 1024
#define BATCH_NS_MAX    (50 * CLOCK_NS_PER_MS)

/* The ETag also covers shards; errors caused by shards can come and go without a change of the file
 * itself. */
static bool is_known(const struct generation *opened, const struct generation *known)
{
    return store_identity_equal(&opened->identity, &known->identity) &&
           strcmp(opened->etag, known->etag) == 0 &&
           strcmp(opened->error->message, known->error->message) == 0;
}

/* Returns true if a remote file must be opened again although its version is unchanged, because
 * cached bytes of it were wrong. */
static bool has_lost_files(struct catalog_content *content, const char *path)
{
    struct generation *known = NULL;
    bool has_lost;

    if (store_may_wait(content->server->store))
        known = catalog_content_find(content, catalog_index_find_path, zt_text_from(path));
    has_lost = known != NULL && !generation_is_same(known);
    generation_release(known);
    return has_lost;
}

/* The manifest of a joined model depends on other files too. */
static bool has_same_manifest(const struct generation *opened, const struct generation *known)
{
    return opened->is_joined || opened->model == NULL || known->model == NULL ||
           opened->model->manifest_hash == known->model->manifest_hash;
}

/* Drops what was saved about a version of which other bytes have been seen since: the file was
 * written twice within a tick of the clock, or the store gave other bytes for the same version. */
static void drop_saved(struct catalog_content *content, struct generation *opened,
                       const struct generation *known, bool has_lost)
{
    if (!store_identity_equal(&opened->identity, &known->identity) ||
        (!has_lost && has_same_manifest(opened, known)))
        return;
    opened->ignores_saved = true;
    if (content->server->hashes != NULL)
        file_hashes_forget(content->server->hashes, opened->own_path, &opened->identity);
}

/* Returns true if opening the file again showed nothing new. */
static bool is_unchanged(struct catalog_content *content, struct generation *opened,
                         const struct generation *known)
{
    const bool has_lost = has_lost_files(content, opened->path);

    if (is_known(opened, known) && !has_lost)
        return true;
    drop_saved(content, opened, known, has_lost);
    return false;
}

/* Keeps the known state of a file that the store cannot provide at present. */
static void keep_known(struct catalog_content *content, const char *path, struct generation *known)
{
    if (known != NULL)
        atomic_store(&known->failed_ms, clock_coarse_ms());
    else
        unopened_note(content, path, true);
}

/* Compares an opened file with the index. Returns false if the index need not change, or cannot
 * change at present. */
static bool judge_opened(struct catalog_content *content, const struct catalog_file *file,
                         const struct opening *opening, struct catalog_change *out_change)
{
    struct generation *known = catalog_index_find_path(&content->index, zt_text_from(file->path));
    struct generation *opened = opening->opened;

    if (opening->outcome == OPENING_UNAVAILABLE) {
        keep_known(content, file->path, known);
        return false;
    }
    /* Keep the known state: the file is not broken, and a later check will show it. */
    if (opening->outcome == OPENING_POSTPONED) {
        atomic_store(&content->postponed, true);
        failed_lookups_note();
        return false;
    }
    if (store_may_wait(content->server->store))
        unopened_note(content, file->path, false);
    if (file->leaves) {
        generation_release(opened);
        opened = NULL;
    }
    /* If a single path was requested, it is not known whether the file is listed. */
    if (opened != NULL && failed_lookups_note_if(opened) && !file->listed) {
        generation_release(opened);
        return false;
    }
    if (opened != NULL && opened->source == NULL && !generation_is_split(opened)) {
        /* A file that cannot be opened gets its identity from the listing. If it is not listed
         * either, it is gone. */
        opened->identity = file->identity;
        if (!file->listed) {
            generation_release(opened);
            opened = NULL;
        }
    }
    assert(known == NULL || !atomic_load(&known->retired));
    if (opened == NULL && known == NULL)
        return false;
    if (opened != NULL && known != NULL && is_unchanged(content, opened, known)) {
        generation_release(opened);
        return false;
    }
    if (opened != NULL && opened->model != NULL && content->observer.opened != NULL)
        content->observer.opened(content->observer.context, opened);
    if (opened != NULL && known != NULL)
        opened->logged_shadow = known->logged_shadow;
    if (opened != NULL)
        catalog_log_if_settled(content, opened);
    *out_change = (struct catalog_change){file->path, opened};
    return true;
}

/* Opens as many files as are opened together. Returns how many. *out_changed: the number of
 * changes. */
static size_t open_together(struct catalog_content *content, const struct catalog_file *files,
                            size_t count, struct catalog_change *out_changes, size_t *out_changed)
{
    const size_t most = openings_at_once(content);
    struct opening openings[OPENINGS_MOST];
    size_t changed = 0;

    assert(count > 0 && most > 0 && most <= OPENINGS_MOST);
    count = count < most ? count : most;
    for (size_t i = 0; i < count; i++)
        openings[i] = (struct opening){.path = files[i].path};
    openings_run(content, openings, count);
    for (size_t i = 0; i < count; i++)
        changed += judge_opened(content, &files[i], &openings[i], &out_changes[changed]);
    *out_changed = changed;
    return count;
}

/* Returns how many files a generation adds to the open ones. */
static size_t close_if_too_many(struct catalog_content *content, struct generation *generation,
                                size_t opened)
{
    const size_t files = generation != NULL ? generation_open_files(generation) : 0;

    if (generation != NULL && opened + files > content->open_most && parking_close_new(generation))
        return 0;
    return files;
}

/* Opens files until the batch is full or its time is over, but at least one. Returns how many were
 * processed. Files beyond the limit of open files are closed at once and opened again when they are
 * read. */
static size_t open_batch(struct catalog_content *content, const struct catalog_file *files,
                         size_t count, struct catalog_change *out_changes, size_t *out_changed)
{
    const int64_t begun_ns = clock_ns();
    size_t opened = parking_count(content);
    size_t changed = 0;
    size_t at = 0;

    while (at < count && changed < BATCH_FILES_MAX &&
           (at == 0 || clock_ns() - begun_ns < BATCH_NS_MAX)) {
        const size_t room = BATCH_FILES_MAX - changed;
        size_t more;

        at += open_together(content, files + at, count - at < room ? count - at : room,
                            out_changes + changed, &more);
        for (size_t i = changed; i < changed + more; i++)
            opened += close_if_too_many(content, out_changes[i].generation, opened);
        changed += more;
    }
    assert(changed <= at && at <= count);
    *out_changed = changed;
    return at;
}

/* Replaces the index. Lookups use the old index until the new one is complete. */
static bool exchange_index(struct catalog_content *content, const struct catalog_change *changes,
                           size_t count, struct generation **out_dropped, size_t *out_dropped_count)
{
    struct catalog_index old = content->index;
    struct catalog_index next;

    assert(lock_is_held(&content->update));
    if (!catalog_index_merge(&old, changes, count, &next, out_dropped, out_dropped_count))
        return false;
    assert(next.count + *out_dropped_count <= old.count + count);
    /* Blobs of a model must be found before the model itself is. */
    for (size_t i = 0; content->observer.showing != NULL && i < count; i++)
        if (changes[i].generation != NULL)
            content->observer.showing(content->observer.context, changes[i].generation);
    pthread_rwlock_wrlock(&content->index_lock);
    for (size_t i = 0; i < *out_dropped_count; i++) {
        assert(!atomic_load(&out_dropped[i]->retired));
        atomic_store(&out_dropped[i]->retired, true);
    }
    content->index = next;
    pthread_rwlock_unlock(&content->index_lock);
    changes_note();
    catalog_index_free_arrays(&old);
    return true;
}

static bool apply(struct catalog_content *content, const struct catalog_change *changes,
                  size_t count)
{
    struct generation *dropped[BATCH_FILES_MAX];
    size_t dropped_count = 0;
    bool done;

    assert(count > 0 && count <= BATCH_FILES_MAX);
    assert(lock_is_held(&content->update));
    done = exchange_index(content, changes, count, dropped, &dropped_count);
    assert(dropped_count <= count);
    for (size_t i = 0; i < dropped_count; i++) {
        if (content->observer.dropped != NULL)
            content->observer.dropped(content->observer.context, dropped[i]);
        parking_leave(content, dropped[i]);
        generation_release(dropped[i]);
    }
    if (!done)
        log_write(LOG_LEVEL_ERROR, "no memory for the catalog: %zu changes are not shown", count);
    for (size_t i = 0; i < count; i++) {
        if (!done)
            generation_release(changes[i].generation);
        else if (changes[i].generation != NULL) {
            parking_enter(content, changes[i].generation);
            if (content->observer.shown != NULL)
                content->observer.shown(content->observer.context, changes[i].generation);
            catalog_log_shadowed(content, changes[i].generation);
        }
    }
    parking_limit(content);
    return done;
}

/* --- models over several files --- */

static bool note_sharded(const struct catalog_content *content,
                         const struct catalog_change *changes, size_t count,
                         struct catalog_files *concerned)
{
    bool added = true;

    for (size_t i = 0; added && i < content->index.sharded_count; i++) {
        const struct generation *generation = content->index.sharded[i];

        if (catalog_changes_concern(generation, changes, count))
            added = catalog_files_add(concerned, generation->path, &generation->identity);
    }
    return added;
}

/* Finds split GGUFs that are not in the catalog and of which a part has appeared. */
static bool note_splits(const struct catalog_content *content, const struct catalog_change *changes,
                        size_t count, struct catalog_files *concerned)
{
    char last[MODEL_PATH_SIZE] = "";
    char path[MODEL_PATH_SIZE];
    bool added = true;

    for (size_t i = 0; added && i < count; i++) {
        if (changes[i].generation == NULL || !split_path_of_part(changes[i].path, path) ||
            strcmp(path, last) == 0)
            continue;
        snprintf(last, sizeof(last), "%s", path);
        if (catalog_index_find_path(&content->index, zt_text_from(path)) == NULL)
            added = catalog_files_add(concerned, path, NULL);
    }
    return added;
}

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct catalog_file *)a)->path, ((const struct catalog_file *)b)->path);
}

/* Sorts the files by path and removes duplicates. */
static void put_in_order(struct catalog_files *files)
{
    size_t used = 0;

    if (files->count > 1)
        qsort(files->items, files->count, sizeof(*files->items), compare_files);
    for (size_t i = 0; i < files->count; i++)
        if (used > 0 && strcmp(files->items[used - 1].path, files->items[i].path) == 0)
            free(files->items[i].path);
        else
            files->items[used++] = files->items[i];
    files->count = used;
}

/* Opens models again that may have gained or lost a shard through the changes just published. This
 * changes no other model's shards. */
static void follow_shards(struct catalog_content *content, const struct catalog_change *changes,
                          size_t count)
{
    struct catalog_files concerned = {NULL, 0, 0};
    size_t at = 0;

    assert(count > 0 && count <= BATCH_FILES_MAX);
    if (!note_sharded(content, changes, count, &concerned) ||
        !note_splits(content, changes, count, &concerned))
        log_write(LOG_LEVEL_ERROR, "no memory to look for the models of changed shards");
    put_in_order(&concerned);
    while (at < concerned.count) {
        struct catalog_change models[BATCH_FILES_MAX];
        size_t changed;

        at += open_batch(content, concerned.items + at, concerned.count - at, models, &changed);
        if (changed > 0)
            (void)apply(content, models, changed);
    }
    catalog_files_free(&concerned);
}

bool catalog_content_find_new_data(struct catalog_content *content,
                                   struct catalog_files *out_models)
{
    struct store *store = content->server->store;
    bool added = true;

    pthread_mutex_lock(&content->update);
    for (size_t i = 0; added && i < content->index.sharded_count; i++) {
        const struct generation *generation = content->index.sharded[i];

        if (store_has_locally(store, zt_text_from(generation->path)) &&
            shard_files_have_new_data(&generation->shards, store))
            added = catalog_files_add(out_models, generation->path, &generation->identity);
    }
    pthread_mutex_unlock(&content->update);
    put_in_order(out_models);
    return added;
}

static size_t update(struct catalog_content *content, const struct catalog_file *files,
                     size_t count)
{
    struct catalog_change changes[BATCH_FILES_MAX];
    size_t changed;
    size_t at;

    assert(count > 0 && lock_is_held(&content->update));
    at = open_batch(content, files, count, changes, &changed);
    if (changed > 0 && apply(content, changes, changed))
        follow_shards(content, changes, changed);
    return at;
}

size_t catalog_content_update(struct catalog_content *content, const struct catalog_file *files,
                              size_t count)
{
    size_t at;

    pthread_mutex_lock(&content->update);
    at = update(content, files, count);
    pthread_mutex_unlock(&content->update);
    return at;
}

struct generation *catalog_content_update_one(struct catalog_content *content,
                                              const struct catalog_file *file)
{
    struct generation *found;

    pthread_mutex_lock(&content->update);
    update(content, file, 1);
    found = catalog_content_find(content, catalog_index_find_path, zt_text_from(file->path));
    pthread_mutex_unlock(&content->update);
    return found;
}

bool catalog_content_compare(struct catalog_content *content, const struct catalog_files *files,
                             struct catalog_files *out_changed)
{
    bool compared;

    pthread_mutex_lock(&content->update);
    for (size_t i = 0; i < content->index.count; i++)
        catalog_log_if_settled(content, content->index.by_path[i]);
    compared = catalog_files_compare(files, &content->index, out_changed);
    pthread_mutex_unlock(&content->update);
    return compared;
}

void catalog_content_drop_known(struct catalog_content *content, struct catalog_files *files)
{
    pthread_mutex_lock(&content->update);
    catalog_files_drop_known(files, &content->index);
    pthread_mutex_unlock(&content->update);
}

bool catalog_content_rejudge(struct catalog_content *content, struct catalog_files *out_models)
{
    const bool by_name = atomic_load(&content->server->shards_by_name);
    bool added = true;

    pthread_mutex_lock(&content->update);
    for (size_t i = 0; added && by_name != content->by_name && i < content->index.sharded_count;
         i++) {
        const struct generation *generation = content->index.sharded[i];

        added = catalog_files_add(out_models, generation->path, &generation->identity);
    }
    if (added)
        content->by_name = by_name;
    pthread_mutex_unlock(&content->update);
    return added;
}

void catalog_content_loaded(struct catalog_content *content)
{
    const struct catalog_files *unopened = &content->unopened;
    const char **paths;
    size_t count = 0;

    assert(!atomic_load(&content->loaded));
    pthread_mutex_lock(&content->update);
    pthread_mutex_lock(&content->unopened_lock);
    paths = calloc(content->index.count + unopened->count + 1, sizeof(*paths));
    for (size_t i = 0; paths != NULL && i < content->index.count; i++)
        paths[count++] = content->index.by_path[i]->path;
    for (size_t i = 0; paths != NULL && i < unopened->count; i++)
        paths[count++] = unopened->items[i].path;
    if (paths != NULL && content->observer.loaded != NULL)
        content->observer.loaded(content->observer.context, paths, count);
    pthread_mutex_unlock(&content->unopened_lock);
    atomic_store(&content->loaded, true);
    pthread_mutex_unlock(&content->update);
    free(paths);
}

struct generation *catalog_content_find(struct catalog_content *content, catalog_finder *finder,
                                        struct zt_text key)
{
    struct generation *found;

    pthread_rwlock_rdlock(&content->index_lock);
    found = finder(&content->index, key);
    if (found != NULL)
        generation_hold(found);
    pthread_rwlock_unlock(&content->index_lock);
    return found;
}

void catalog_content_hold(struct catalog_content *content, struct generation *generation)
{
    /* Under the lock its files cannot be closed. */
    pthread_rwlock_rdlock(&content->index_lock);
    generation_hold(generation);
    pthread_rwlock_unlock(&content->index_lock);
}

static bool has_shard(const struct generation *model, struct zt_text path)
{
    for (uint32_t i = 0; i < model->shards.count; i++)
        if (model->shards.items[i].path != NULL && zt_text_is(path, model->shards.items[i].path))
            return true;
    return false;
}

bool catalog_content_has_shard_of(struct catalog_content *content, struct zt_text path,
                                  struct name_filter filter)
{
    bool found = false;

    pthread_rwlock_rdlock(&content->index_lock);
    found = catalog_index_model_of(&content->index, path.bytes, filter) != NULL;
    for (size_t at = path.length; at > 0 && path.bytes[at - 1] != '/' && !found; at--) {
        const struct zt_text stem = {path.bytes, at - 1};
        const struct generation *model;

        if (path.bytes[at - 1] != '-' || !name_filter_passes(filter, stem))
            continue;
        model = catalog_index_find_name(&content->index, stem);
        found = model != NULL && has_shard(model, path);
    }
    pthread_rwlock_unlock(&content->index_lock);
    return found;
}

bool catalog_content_part_of(struct catalog_content *content, const char *path,
                             struct name_filter filter, char out_name[MODEL_NAME_MAX + 1])
{
    const struct generation *model;

    pthread_rwlock_rdlock(&content->index_lock);
    model = catalog_index_model_of(&content->index, path, filter);
    if (model != NULL)
        snprintf(out_name, MODEL_NAME_MAX + 1, "%.*s", (int)generation_name(model).length,
                 generation_name(model).bytes);
    pthread_rwlock_unlock(&content->index_lock);
    return model != NULL;
}

void catalog_content_withhold(struct catalog_content *content, struct catalog_withheld *withheld)
{
    assert(withheld->path != NULL);
    pthread_mutex_lock(&content->update);
    withheld->next = content->withheld;
    content->withheld = withheld;
    pthread_mutex_unlock(&content->update);
}

void catalog_content_let_go(struct catalog_content *content,
                            const struct catalog_withheld *withheld)
{
    struct catalog_withheld **at = &content->withheld;

    pthread_mutex_lock(&content->update);
    while (*at != withheld) {
        assert(*at != NULL);
        at = &(*at)->next;
    }
    *at = withheld->next;
    pthread_mutex_unlock(&content->update);
}

struct generation **catalog_content_hold_all(struct catalog_content *content, size_t *out_count)
{
    struct generation **all;

    pthread_rwlock_rdlock(&content->index_lock);
    *out_count = content->index.count;
    all = calloc(*out_count + 1, sizeof(*all));
    for (size_t i = 0; all != NULL && i < *out_count; i++)
        all[i] = generation_hold(content->index.by_path[i]);
    pthread_rwlock_unlock(&content->index_lock);
    return all;
}

/* Hashing a shard to recognise it must not delay the shutdown of the program. */
static bool may_hash_on(void *context, uint64_t bytes)
{
    const struct catalog_content *content = context;

    (void)bytes;
    return !atomic_load(&content->server->draining);
}

void catalog_content_init(struct catalog_content *content, struct server *server,
                          const struct catalog_observer *observer)
{
    content->server = server;
    if (observer != NULL)
        content->observer = *observer;
    content->hashing = (struct zt_progress){may_hash_on, content};
    content->search = (struct shard_search){.store = server->store,
                                            .hashes = server->hashes,
                                            .index = &content->index,
                                            .progress = &content->hashing};
    content->by_name = atomic_load(&server->shards_by_name);
    parking_init(content);
    pthread_mutex_init(&content->update, NULL);
    pthread_mutex_init(&content->unopened_lock, NULL);
    pthread_rwlock_init(&content->index_lock, NULL);
}

void catalog_content_clear(struct catalog_content *content)
{
    catalog_index_clear(&content->index);
    shard_search_clear(&content->search);
    parking_clear(content);
    catalog_files_free(&content->unopened);
    pthread_mutex_destroy(&content->unopened_lock);
    pthread_mutex_destroy(&content->update);
    pthread_rwlock_destroy(&content->index_lock);
}
