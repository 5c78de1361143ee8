/* The operations of the mirrored store on files. Other paths go to the inner store. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cache/cache.h"
#include "store/mirror/mirror_store.h"
#include "upstream/upstream.h"
#include "zt/digest.h"

/* How often a name is looked for, and how many names in a second. */
#define SOUGHT_AGAIN_MS 2000

static struct store *inner_of(struct store *store)
{
    assert(store->inner != NULL);
    return store->inner;
}

/* --- the catalog's files --- */

static bool is_model(const char *path)
{
    size_t name_length;
    unsigned rank;

    return model_path_split(path, &name_length, &rank);
}

static bool is_asked(struct mirror *mirror, const struct mirror_entry *entry)
{
    bool asked;

    pthread_mutex_lock(&mirror->index.lock);
    asked = entry->is_asked;
    pthread_mutex_unlock(&mirror->index.lock);
    return asked;
}

/* The catalog opens every listed model, so only requested models are listed. */
static bool list_models(struct mirror *mirror, const struct mirror_current *repository,
                        store_visit visit, void *context)
{
    const struct mirror_version *version = repository->version;
    char path[MODEL_PATH_SIZE];

    for (size_t i = 0; i < version->count; i++) {
        const struct mirror_entry *entry = &version->entries[i];
        const struct file_identity identity = mirror_entry_identity(version, entry);

        if (is_asked(mirror, entry) && mirror_name_join(repository->name, entry->path, path) &&
            is_model(path) && !visit(context, path, &identity))
            return false;
    }
    return true;
}

static enum zt_status mirror_list(struct store *store, store_visit visit, void *context,
                                  struct zt_error *error)
{
    struct mirror *mirror = mirror_of(store);
    struct store *inner = inner_of(store);
    struct mirror_current *list;
    size_t count;
    bool goes_on = true;

    if (!mirror_index_list(&mirror->index, &list, &count))
        return zt_fail_memory(error, "a list of repositories");
    for (size_t i = 0; i < count && goes_on; i++)
        goes_on = list_models(mirror, &list[i], visit, context);
    mirror_current_free(list, count);
    return goes_on ? inner->ops->list(inner, visit, context, error) : ZT_OK;
}

/* Visits the current state of a path. Returns false to stop. */
static bool visit_changed(struct mirror *mirror, const char *path, store_visit visit, void *context)
{
    struct mirror_target target;
    const struct mirror_entry *entry = NULL;
    struct file_identity identity;
    bool goes_on;

    if (!is_model(path))
        return true;
    if (mirror_find_known(mirror, path, &target))
        entry = mirror_version_find(target.version, target.path);
    if (entry != NULL)
        identity = mirror_entry_identity(target.version, entry);
    goes_on = visit(context, path, entry != NULL ? &identity : NULL);
    mirror_version_release(target.version);
    return goes_on;
}

static enum zt_status mirror_list_changes(struct store *store, store_visit visit, void *context,
                                          bool *out_whole, struct zt_error *error)
{
    struct mirror *mirror = mirror_of(store);
    struct store *inner = inner_of(store);
    char **paths;
    size_t count;
    bool goes_on = mirror_changes_take(&mirror->changes, &paths, &count);
    const bool is_whole = !goes_on;
    enum zt_status status;

    for (size_t i = 0; i < count; i++) {
        goes_on = goes_on && visit_changed(mirror, paths[i], visit, context);
        free(paths[i]);
    }
    free(paths);
    status = inner->ops->list_changes(inner, visit, context, out_whole, error);
    *out_whole = *out_whole || is_whole;
    return status;
}

static int mirror_watch(struct store *store)
{
    struct store *inner = inner_of(store);

    return mirror_changes_watch(&mirror_of(store)->changes, inner->ops->watch(inner));
}

static bool mirror_changed(struct store *store)
{
    struct store *inner = inner_of(store);
    const bool has_own = mirror_changes_drain(&mirror_of(store)->changes);
    const bool has_inner = inner->ops->changed(inner);

    return has_own || has_inner;
}

static bool mirror_is_changing(struct store *store)
{
    struct store *inner = inner_of(store);

    return mirror_changes_wait(&mirror_of(store)->changes) || inner->ops->is_changing(inner);
}

static bool mirror_reports(const struct store *store)
{
    return store->inner->ops->reports(store->inner);
}

static size_t mirror_misnamed_files(const struct store *store)
{
    return store->inner->ops->misnamed_files(store->inner);
}

/* --- files --- */

/* Notes that a client asked for a file, so that its model is listed from now on. */
static void ask_for(struct mirror *mirror, const struct mirror_target *target,
                    struct mirror_entry *entry, const char *path, bool tells_catalog)
{
    bool is_new;

    if (!is_model(path))
        return;
    pthread_mutex_lock(&mirror->index.lock);
    is_new = !entry->is_asked;
    entry->is_asked = true;
    pthread_mutex_unlock(&mirror->index.lock);
    if (!is_new)
        return;
    mirror_index_save(&mirror->index, target->name.repository);
    if (tells_catalog && target->name.commit[0] == '\0')
        mirror_changes_add(&mirror->changes, path);
}

static enum zt_status open_entry(struct mirror *mirror, const struct mirror_target *target,
                                 struct mirror_entry *entry, struct zt_source **out_source,
                                 struct file_identity *out_identity, struct zt_error *error)
{
    struct mirror_upstream *upstream = &mirror->upstreams[target->upstream];
    const struct mirror_place place = mirror_place_of(mirror, target, entry);
    const enum zt_status status = mirror_file_open(upstream->files, &place, out_source, error);

    if (status != ZT_OK)
        return status;
    mirror_index_agree(&mirror->index, &place, *out_source);
    /* The last block is held back, so files of one block do not count. */
    if (entry->digest_kind != UPSTREAM_NO_DIGEST && entry->size_bytes > CACHE_BLOCK_BYTES)
        mirror_index_begin(&mirror->index, target->name.repository, entry);
    *out_identity = mirror_entry_identity(target->version, entry);
    atomic_fetch_add(mirror_file_is_verified(*out_source) ? &upstream->hits : &upstream->misses, 1);
    return ZT_OK;
}

static enum zt_status mirror_open_path(struct store *store, const char *path,
                                       struct zt_source **out_source,
                                       struct file_identity *out_identity, struct zt_error *error)
{
    struct mirror *mirror = mirror_of(store);
    struct store *inner = inner_of(store);
    struct mirror_target target;
    struct mirror_entry *entry;
    enum zt_status status = ZT_NOT_FOUND;

    /* So opening a local file costs no look at its folder. */
    if (!mirror_is_known(mirror, zt_text_from(path)))
        status = inner->ops->open(inner, path, out_source, out_identity, error);
    if (status != ZT_NOT_FOUND)
        return status;
    status = mirror_find(mirror, path, true, &target, error);
    if (status != ZT_OK)
        return status;
    if (target.version == NULL)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the file does not exist");
    entry = mirror_version_find(target.version, target.path);
    if (entry == NULL)
        status = zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the file does not exist");
    else
        status = open_entry(mirror, &target, entry, out_source, out_identity, error);
    if (status == ZT_OK)
        ask_for(mirror, &target, entry, path, true);
    mirror_version_release(target.version);
    return status;
}

/* A file that is gone, or whose bytes were wrong, gets an identity that no file has. */
static bool mirror_identity_of(struct store *store, struct zt_source *source,
                               struct file_identity *out_identity)
{
    struct mirror *mirror = mirror_of(store);
    struct store *inner = inner_of(store);
    const struct mirror_place *place = mirror_file_place(source);
    const struct mirror_entry *entry = NULL;
    struct mirror_version *version;

    if (place == NULL)
        return inner->ops->identity_of(inner, source, out_identity);
    *out_identity = (struct file_identity){.size_bytes = UINT64_MAX};
    if (mirror_file_is_lost(source))
        return true;
    mirror_file_continue(source);
    /* The files of a commit never change. */
    if (!place->is_pinned)
        mirror_recheck(mirror, place->file.repository);
    version = mirror_hold_known(mirror, place->file.repository,
                                place->is_pinned ? place->file.commit : "", NULL);
    if (version != NULL)
        entry = mirror_version_find(version, zt_text_from(place->file.path));
    if (entry != NULL)
        *out_identity = mirror_entry_identity(version, entry);
    mirror_version_release(version);
    return true;
}

/* --- looking for names --- */

static bool mirror_has_locally(const struct store *store, struct zt_text path)
{
    return !mirror_is_known(mirror_of_const(store), path) && store_has_locally(store->inner, path);
}

static bool mirror_may_look_up(struct store *store, struct zt_text name)
{
    struct mirror *mirror = mirror_of(store);
    struct store *inner = inner_of(store);
    const uint64_t hash = zt_xxh3(name.bytes, name.length);
    const int64_t now_ms = clock_ms();
    const size_t at = hash % MIRROR_SOUGHT;
    bool may;

    if (!mirror_is_known(mirror, name))
        return store_searches(inner) && inner->search->may_look_up(inner, name);
    pthread_mutex_lock(&mirror->sought_lock);
    may = mirror->sought[at].hash != hash || now_ms - mirror->sought[at].at_ms >= SOUGHT_AGAIN_MS;
    if (may) {
        mirror->sought[at].hash = hash;
        mirror->sought[at].at_ms = now_ms;
    }
    pthread_mutex_unlock(&mirror->sought_lock);
    return may;
}

void mirror_seek_again(struct mirror *mirror, const struct upstream_place *place)
{
    char path[MODEL_PATH_SIZE];
    char name[MODEL_NAME_MAX + 1];
    uint64_t hash;

    if (!mirror_name_join(place->repository, place->path, path) || !model_path_name(path, name))
        return;
    hash = zt_xxh3(name, strlen(name));
    pthread_mutex_lock(&mirror->sought_lock);
    if (mirror->sought[hash % MIRROR_SOUGHT].hash == hash)
        mirror->sought[hash % MIRROR_SOUGHT].hash = 0;
    pthread_mutex_unlock(&mirror->sought_lock);
    mirror_changes_add(&mirror->changes, path);
}

/* Returns the folder of a path, with its slash. */
static struct zt_text folder_of(struct zt_text path)
{
    size_t length = path.length;

    while (length > 0 && path.bytes[length - 1] != '/')
        length--;
    return (struct zt_text){path.bytes, length};
}

/* Visits the files of a target that could be this model's. */
static void visit_model(struct mirror *mirror, const struct mirror_target *target,
                        struct zt_text name, store_visit visit, void *context)
{
    const struct mirror_version *version = target->version;
    /* An index with a variant does not begin with the model's name. */
    const struct zt_text folder = folder_of(target->path);
    size_t at = mirror_version_lower_bound(version, folder);

    for (; at < version->count; at++) {
        struct mirror_entry *entry = &version->entries[at];
        const struct file_identity identity = mirror_entry_identity(version, entry);
        char path[MODEL_PATH_SIZE];
        char model[MODEL_NAME_MAX + 1];

        if (!zt_text_starts_with(zt_text_from(entry->path), folder))
            return;
        if (!mirror_name_join(target->base, entry->path, path) || !model_path_name(path, model) ||
            !zt_text_is(name, model))
            continue;
        ask_for(mirror, target, entry, path, false);
        if (!visit(context, path, &identity))
            return;
    }
}

/* Does not ask an upstream, because the catalog has only one thread; resolve does. */
static enum zt_status mirror_look_up(struct store *store, struct zt_text name, store_visit visit,
                                     void *context, struct zt_error *error)
{
    struct mirror *mirror = mirror_of(store);
    struct store *inner = inner_of(store);
    struct mirror_target target;
    char path[MODEL_PATH_SIZE];

    if (name.length >= sizeof(path))
        return ZT_OK;
    snprintf(path, sizeof(path), "%.*s", (int)name.length, name.bytes);
    if (!mirror_find_known(mirror, path, &target))
        return store_searches(inner) ? inner->search->look_up(inner, name, visit, context, error)
                                     : ZT_OK;
    mirror_recheck(mirror, target.name.repository);
    visit_model(mirror, &target, name, visit, context);
    mirror_version_release(target.version);
    return ZT_OK;
}

/* --- the table --- */

void mirror_set_ops(struct mirror *mirror)
{
    mirror->ops.list = mirror_list;
    mirror->ops.walk = mirror_walk;
    mirror->ops.open = mirror_open_path;
    mirror->ops.identity_of = mirror_identity_of;
    mirror->ops.misnamed_files = mirror_misnamed_files;
    mirror->ops.watch = mirror_watch;
    mirror->ops.changed = mirror_changed;
    mirror->ops.is_changing = mirror_is_changing;
    mirror->ops.reports = mirror_reports;
    mirror->ops.list_changes = mirror_list_changes;
    mirror->base.revisions = &mirror_revision_ops;
    mirror->search.may_look_up = mirror_may_look_up;
    mirror->search.look_up = mirror_look_up;
    mirror->search.resolve = mirror_resolve;
    mirror->search.has_locally = mirror_has_locally;
}
