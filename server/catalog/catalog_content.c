/* Bringing files into the catalog: one lock orders whoever does it. A file is opened and brought in
 * under that lock, so that of a scan and an upload the later one sees the truth. Readers take the
 * index's lock alone, for a few steps of binary search. */
#include "catalog/catalog_content.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/log.h"
#include "verify/verifier.h"

/* What is opened before it shows: uploads wait for the lock that long. */
#define BATCH_FILES_MAX 1024
#define BATCH_NS_MAX    ((int64_t)50000000)
/* A broken file younger than that may be one that is still being copied: the next scan tells. */
#define SETTLED_NS ((int64_t)1000000000)

/* Files that nobody reads may hold a quarter of the descriptors; connections and passing files need
 * the rest. */
#define OPEN_SHARE 4
#define OPEN_MAX   ((rlim_t)16384)

static int64_t now_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- parking: more files than descriptors --- */

static size_t open_files(const struct generation *generation)
{
    return atomic_load(&generation->parked) ? 0 : generation_open_files(generation);
}

/* Closes the files of generations that only the index holds, until few enough are open. The index's
 * write lock is held, so that nobody can come to hold one meanwhile. */
static void park_some(struct catalog_content *content)
{
    size_t open_count = 0;

    /* Counted anew: what was dropped while somebody opened it again makes the count drift. */
    for (size_t i = 0; i < content->index.count; i++)
        open_count += open_files(content->index.by_path[i]);
    atomic_store(&content->open_count, open_count);
    for (size_t i = 0;
         i < content->index.count && atomic_load(&content->open_count) > content->open_most / 2;
         i++) {
        struct generation *generation = content->index.by_path[i];

        if (atomic_load(&generation->references) != 1 || generation->source == NULL)
            continue;
        atomic_fetch_sub(&content->open_count, generation_open_files(generation));
        zt_source_close(generation->source);
        generation->source = NULL;
        shard_files_park(&generation->shards);
        atomic_store(&generation->parked, true);
    }
}

static void park_excess(struct catalog_content *content)
{
    if (atomic_load(&content->open_count) <= content->open_most)
        return;
    pthread_rwlock_wrlock(&content->index_lock);
    park_some(content);
    pthread_rwlock_unlock(&content->index_lock);
}

static bool same_bytes(const struct file_identity *a, const struct file_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->size_bytes == b->size_bytes &&
           a->modified_ns == b->modified_ns;
}

static bool open_again(struct catalog_content *content, struct generation *generation)
{
    struct store *store = content->server->store;
    struct file_identity identity;
    struct zt_source *source = NULL;

    if (store->ops->open(store, generation->path, &source, &identity, NULL) != ZT_OK)
        return false;
    if (!same_bytes(&identity, &generation->identity) ||
        !shard_files_unpark(&generation->shards, store)) {
        zt_source_close(source);
        return false;
    }
    generation->source = source;
    atomic_fetch_add(&content->open_count, generation_open_files(generation));
    atomic_store(&generation->parked, false);
    return true;
}

bool catalog_content_unpark(struct catalog_content *content, struct generation *generation)
{
    bool opened;

    if (!atomic_load(&generation->parked))
        return true;
    pthread_mutex_lock(&content->parking);
    opened = !atomic_load(&generation->parked) || open_again(content, generation);
    pthread_mutex_unlock(&content->parking);
    park_excess(content);
    return opened;
}

/* --- what the log is told; the update lock is held --- */

static void tell_error(struct generation *generation)
{
    const struct zt_error *error = &generation->error;
    char where[48] = "";

    if (error->status == ZT_DATA_SHARD || generation->told)
        return;
    generation->told = true;
    if (error->offset != ZT_NO_OFFSET)
        snprintf(where, sizeof(where), ", at byte %" PRIu64, error->offset);
    log_write(LOG_LEVEL_WARN, "%s cannot be read: %s (%s%s)", generation->path, error->message,
              error->rule != NULL ? error->rule : zt_status_name(error->status), where);
}

static void tell_if_settled(struct catalog_content *content, struct generation *generation)
{
    int64_t age_ns = now_ns(CLOCK_REALTIME) - generation->identity.modified_ns;

    if (generation->model == NULL &&
        (!atomic_load(&content->loaded) || age_ns < 0 || age_ns > SETTLED_NS))
        tell_error(generation);
}

/* Once for a pair, in whatever order the two come, and not again when the first is replaced. */
static void tell_shadow(struct generation *shadowed, const struct generation *first)
{
    size_t name_length;
    unsigned rank = 0;

    (void)model_path_split(first->path, &name_length, &rank);
    if (shadowed->told_shadow == rank + 1)
        return;
    shadowed->told_shadow = rank + 1;
    log_write(LOG_LEVEL_WARN, "%s is shadowed by %s, which has the same name", shadowed->path,
              first->path);
}

static void tell_shadowed(const struct catalog_content *content, const struct generation *added)
{
    struct generation *first = catalog_index_find_name(&content->index, generation_name(added));
    size_t at = catalog_index_lower_bound(&content->index, generation_name(added));

    for (; first != NULL && at < content->index.count; at++) {
        struct generation *other = content->index.by_name[at];

        if (catalog_text_compare(generation_name(other), generation_name(added)) != 0)
            break;
        if (other != first && other->error.status != ZT_DATA_SHARD)
            tell_shadow(other, first);
    }
}

/* Whether what was opened says nothing else than what is known: the tag covers shards, too, and
 * errors that they cause come and go without a change of the file itself. */
static bool is_known(const struct generation *opened, const struct generation *known)
{
    return store_identity_equal(&opened->identity, &known->identity) &&
           strcmp(opened->etag, known->etag) == 0 &&
           strcmp(opened->error.message, known->error.message) == 0;
}

/* Opens a file anew. False when the index need not change. */
static bool open_file(struct catalog_content *content, const struct catalog_file *file,
                      struct catalog_change *out_change)
{
    struct zt_text path = {file->path, strlen(file->path)};
    const struct generation *known = catalog_index_find_path(&content->index, path);
    struct generation *opened =
        generation_open(content->server->store, file->path, &content->search);

    if (opened != NULL && opened->source == NULL) {
        /* What cannot be opened has the identity that the listing tells; what is not even listed is
         * gone. */
        opened->identity = file->identity;
        if (!file->listed) {
            generation_release(opened);
            opened = NULL;
        }
    }
    if (opened == NULL && known == NULL)
        return false;
    if (opened != NULL && known != NULL && is_known(opened, known)) {
        generation_release(opened);
        return false;
    }
    if (opened != NULL && opened->model != NULL && content->server->verifier != NULL)
        verifier_adopt(content->server->verifier, opened);
    if (opened != NULL)
        tell_if_settled(content, opened);
    *out_change = (struct catalog_change){file->path, opened};
    return true;
}

/* Opens files for a while, and no more than may be open; returns how many were dealt with. */
static size_t open_batch(struct catalog_content *content, const struct catalog_file *files,
                         size_t count, struct catalog_change *out_changes, size_t *out_changed)
{
    const int64_t begun_ns = now_ns(CLOCK_MONOTONIC);
    size_t opened = 0;
    size_t changed = 0;
    size_t at = 0;

    while (at < count && changed < BATCH_FILES_MAX && opened < content->open_most &&
           now_ns(CLOCK_MONOTONIC) - begun_ns < BATCH_NS_MAX) {
        if (!open_file(content, &files[at++], &out_changes[changed]))
            continue;
        if (out_changes[changed].generation != NULL)
            opened += generation_open_files(out_changes[changed].generation);
        changed++;
    }
    *out_changed = changed;
    return at;
}

static bool apply(struct catalog_content *content, const struct catalog_change *changes,
                  size_t count)
{
    struct generation *dropped[BATCH_FILES_MAX];
    size_t dropped_count = 0;
    bool done;

    pthread_rwlock_wrlock(&content->index_lock);
    done = catalog_index_apply(&content->index, changes, count, dropped, &dropped_count);
    pthread_rwlock_unlock(&content->index_lock);
    for (size_t i = 0; i < dropped_count; i++) {
        blob_index_remove(&content->blobs, dropped[i]);
        /* What was dropped while parked has no file; an open one leaves the count, whoever still
         * reads it. */
        atomic_fetch_sub(&content->open_count, open_files(dropped[i]));
        generation_release(dropped[i]);
    }
    if (!done)
        log_write(LOG_LEVEL_ERROR, "no memory for the catalog: changes not shown: %zu", count);
    for (size_t i = 0; i < count; i++) {
        if (!done)
            generation_release(changes[i].generation);
        else if (changes[i].generation != NULL) {
            atomic_fetch_add(&content->open_count, generation_open_files(changes[i].generation));
            blob_index_add(&content->blobs, changes[i].generation);
            tell_shadowed(content, changes[i].generation);
        }
    }
    park_excess(content);
    return done;
}

/* --- models over several files --- */

static bool concern(const struct generation *generation, const struct catalog_change *changes,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct generation *now = changes[i].generation;

        if (now != generation && shard_files_concern(&generation->shards, changes[i].path,
                                                     now != NULL ? &now->identity : NULL))
            return true;
    }
    return false;
}

/* Opens the models anew that may have got or lost a shard by the changes just shown. Those
 * themselves are no changes to any other model's shards. */
static void follow_shards(struct catalog_content *content, const struct catalog_change *changes,
                          size_t count)
{
    struct catalog_files concerned = {NULL, 0, 0};
    bool added = true;
    size_t at = 0;

    for (size_t i = 0; added && i < content->index.count; i++) {
        const struct generation *generation = content->index.by_path[i];

        if (generation->shards.count > 0 && concern(generation, changes, count))
            added = catalog_files_add(&concerned, generation->path, &generation->identity);
    }
    if (!added)
        log_write(LOG_LEVEL_ERROR, "no memory to look for the models of changed shards");
    while (at < concerned.count) {
        struct catalog_change models[BATCH_FILES_MAX];
        size_t changed;

        at += open_batch(content, concerned.items + at, concerned.count - at, models, &changed);
        if (changed > 0)
            (void)apply(content, models, changed);
    }
    catalog_files_free(&concerned);
}

size_t catalog_content_update(struct catalog_content *content, const struct catalog_file *files,
                              size_t count)
{
    struct catalog_change changes[BATCH_FILES_MAX];
    size_t changed;
    size_t at;

    pthread_mutex_lock(&content->update);
    at = open_batch(content, files, count, changes, &changed);
    if (changed > 0 && apply(content, changes, changed))
        follow_shards(content, changes, changed);
    pthread_mutex_unlock(&content->update);
    return at;
}

bool catalog_content_compare(struct catalog_content *content, const struct catalog_files *files,
                             struct catalog_files *out_changed)
{
    bool compared;

    pthread_mutex_lock(&content->update);
    for (size_t i = 0; i < content->index.count; i++)
        tell_if_settled(content, content->index.by_path[i]);
    compared = catalog_files_compare(files, &content->index, out_changed);
    pthread_mutex_unlock(&content->update);
    return compared;
}

void catalog_content_loaded(struct catalog_content *content)
{
    const char **paths;

    pthread_mutex_lock(&content->update);
    paths = calloc(content->index.count + 1, sizeof(*paths));
    if (paths != NULL && content->server->verifier != NULL) {
        for (size_t i = 0; i < content->index.count; i++)
            paths[i] = content->index.by_path[i]->path;
        verifier_loaded(content->server->verifier, paths, content->index.count);
    }
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

static bool begins_with(struct zt_text text, struct zt_text prefix)
{
    return text.length >= prefix.length &&
           (prefix.length == 0 || memcmp(text.bytes, prefix.bytes, prefix.length) == 0);
}

/* Where a list begins: at the prefix, or behind the name given, whichever is later. */
static size_t list_start(const struct catalog_index *index, struct zt_text prefix,
                         struct zt_text after)
{
    bool continued = after.length > 0 && catalog_text_compare(after, prefix) >= 0;
    size_t at = catalog_index_lower_bound(index, continued ? after : prefix);

    while (continued && at < index->count &&
           catalog_text_compare(generation_name(index->by_name[at]), after) == 0)
        at++;
    return at;
}

size_t catalog_content_list(struct catalog_content *content, struct zt_text prefix,
                            struct zt_text after, size_t limit, struct generation **out_generations,
                            bool *out_more)
{
    struct generation *model;
    size_t count = 0;
    size_t at;

    *out_more = false;
    pthread_rwlock_rdlock(&content->index_lock);
    at = list_start(&content->index, prefix, after);
    while ((model = catalog_index_model_at(&content->index, at, &at)) != NULL &&
           begins_with(generation_name(model), prefix)) {
        if (count == limit) {
            *out_more = true;
            break;
        }
        out_generations[count++] = generation_hold(model);
    }
    pthread_rwlock_unlock(&content->index_lock);
    return count;
}

static size_t most_open(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur / OPEN_SHARE > OPEN_MAX)
        return (size_t)OPEN_MAX;
    return files.rlim_cur < OPEN_SHARE ? 1 : (size_t)(files.rlim_cur / OPEN_SHARE);
}

/* A shard that is hashed to be recognised keeps nobody waiting at the end. */
static bool goes_on(void *context, uint64_t bytes)
{
    const struct catalog_content *content = context;

    (void)bytes;
    return !atomic_load(&content->server->draining);
}

void catalog_content_init(struct catalog_content *content, struct server *server)
{
    content->server = server;
    content->hashing = (struct zt_progress){goes_on, content};
    content->search = (struct shard_search){
        .store = server->store, .index = &content->index, .progress = &content->hashing};
    content->open_most = most_open();
    pthread_mutex_init(&content->parking, NULL);
    pthread_mutex_init(&content->update, NULL);
    pthread_rwlock_init(&content->index_lock, NULL);
    blob_index_init(&content->blobs);
}

void catalog_content_clear(struct catalog_content *content)
{
    blob_index_clear(&content->blobs);
    catalog_index_clear(&content->index);
    shard_search_clear(&content->search);
    pthread_mutex_destroy(&content->parking);
    pthread_mutex_destroy(&content->update);
    pthread_rwlock_destroy(&content->index_lock);
}
