/* The operations of the mirrored store on files. What is not a mirrored repository's goes to the
 * inner store. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
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

/* --- walking --- */

struct visiting {
    store_visit visit;
    void *context;
    const char *base;
    size_t skipped; /* of paths in the repository */
    bool is_deep;
    bool has_any;
    char above[MODEL_PATH_SIZE]; /* the folder that was visited last */
};

/* Visits the folders of a file that did not contain the file before. Files come in order. Returns
 * false to stop. */
static bool visit_folders(struct visiting *visiting, const char *path, size_t below)
{
    const char *slash = strchr(path + below, '/');

    for (; slash != NULL; slash = visiting->is_deep ? strchr(slash + 1, '/') : NULL) {
        const size_t length = (size_t)(slash - path);

        if (strncmp(visiting->above, path, length) == 0 &&
            (visiting->above[length] == '\0' || visiting->above[length] == '/'))
            continue;
        snprintf(visiting->above, sizeof(visiting->above), "%.*s", (int)length, path);
        if (!visiting->visit(visiting->context, visiting->above, NULL))
            return false;
    }
    return true;
}

/* Returns false to stop. */
static bool visit_entry(struct visiting *visiting, const struct mirror_version *version,
                        const struct mirror_entry *entry)
{
    const struct file_identity identity = mirror_entry_identity(version, entry);
    char path[MODEL_PATH_SIZE];
    const size_t below = strlen(visiting->base) + 1 + visiting->skipped;

    visiting->has_any = true;
    if (snprintf(path, sizeof(path), "%s/%s", visiting->base, entry->path) >= (int)sizeof(path))
        return true;
    assert(below <= strlen(path));
    if (!visit_folders(visiting, path, below))
        return false;
    if (!visiting->is_deep && strchr(path + below, '/') != NULL)
        return true;
    return visiting->visit(visiting->context, path, &identity);
}

static bool visit_all(struct visiting *visiting, const struct mirror_version *version,
                      struct zt_text folder)
{
    char beginning[MODEL_PATH_SIZE];
    struct zt_text prefix = {beginning, folder.length + (folder.length > 0)};

    if (prefix.length >= sizeof(beginning))
        return true;
    snprintf(beginning, sizeof(beginning), "%.*s/", (int)folder.length, folder.bytes);
    visiting->skipped = prefix.length;
    for (size_t i = mirror_version_lower_bound(version, prefix); i < version->count; i++) {
        if (!zt_text_starts_with(zt_text_from(version->entries[i].path), prefix))
            break;
        if (!visit_entry(visiting, version, &version->entries[i]))
            return false;
    }
    return true;
}

/* Visits the known repositories below an owner, or all of them if it is empty. Returns false to
 * stop. */
static bool visit_repositories(struct visiting *visiting, const struct mirror_current *list,
                               size_t count, const char *owner)
{
    const size_t length = strlen(owner);

    for (size_t i = 0; i < count; i++) {
        const char *name = list[i].name;
        const char *slash;

        if (strncmp(name, owner, length) != 0 || (length > 0 && name[length] != '/'))
            continue;
        visiting->has_any = true;
        slash = strchr(name, '/');
        if (length == 0 && slash != NULL && !visit_folders(visiting, name, 0))
            return false;
        if (length == 0 && slash != NULL && !visiting->is_deep)
            continue;
        if (!visiting->visit(visiting->context, name, NULL))
            return false;
        visiting->base = name;
        if (visiting->is_deep && !visit_all(visiting, list[i].version, (struct zt_text){"", 0}))
            return false;
    }
    return true;
}

/* Walks the inner store, and adds the known repositories. */
static enum zt_status walk_above(struct mirror *mirror, const char *folder,
                                 struct visiting *visiting, struct zt_error *error)
{
    struct store *inner = mirror->base.inner;
    struct mirror_current *list;
    size_t count;
    enum zt_status status;

    if (!mirror_index_list(&mirror->index, &list, &count))
        return zt_fail_memory(error, "a list of repositories");
    if (visit_repositories(visiting, list, count, folder)) {
        status = inner->ops->walk(inner, folder, visiting->is_deep, visiting->visit,
                                  visiting->context, error);
        if (status == ZT_NOT_FOUND && visiting->has_any)
            status = ZT_OK;
    } else {
        status = ZT_OK;
    }
    mirror_current_free(list, count);
    return status;
}

static enum zt_status mirror_walk(struct store *store, const char *folder, bool is_deep,
                                  store_visit visit, void *context, struct zt_error *error)
{
    struct mirror *mirror = mirror_of(store);
    struct visiting visiting = {.visit = visit, .context = context, .is_deep = is_deep};
    struct mirror_target target = {.version = NULL};
    enum zt_status status = ZT_OK;

    if (folder[0] != '\0')
        status = mirror_find(mirror, folder, false, &target, error);
    if (status != ZT_OK)
        return status;
    if (target.version == NULL)
        return walk_above(mirror, folder, &visiting, error);
    visiting.base = target.base;
    snprintf(visiting.above, sizeof(visiting.above), "%s", folder);
    (void)visit_all(&visiting, target.version, target.path);
    if (!visiting.has_any && target.path.length > 0)
        status = zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such folder");
    mirror_version_release(target.version);
    return status;
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

/* The catalog opens what it lists, so only models that somebody asked for are listed. */
static bool list_models(struct mirror *mirror, const struct mirror_current *repository,
                        store_visit visit, void *context)
{
    const struct mirror_version *version = repository->version;
    char path[MODEL_PATH_SIZE];

    for (size_t i = 0; i < version->count; i++) {
        const struct mirror_entry *entry = &version->entries[i];
        const struct file_identity identity = mirror_entry_identity(version, entry);

        if (is_asked(mirror, entry) &&
            snprintf(path, sizeof(path), "%s/%s", repository->name, entry->path) <
                (int)sizeof(path) &&
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

/* Visits a path as it is now. Returns false to stop. */
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

/* Notes that somebody asked for a file, so that its model is listed from now on. */
static void ask_for(struct mirror *mirror, const struct mirror_target *target,
                    struct mirror_entry *entry, const char *path, bool tells_catalog)
{
    bool is_new;

    pthread_mutex_lock(&mirror->index.lock);
    is_new = !entry->is_asked;
    entry->is_asked = true;
    pthread_mutex_unlock(&mirror->index.lock);
    if (!is_new)
        return;
    mirror_index_save(&mirror->index, target->name.repository);
    if (tells_catalog && target->name.commit[0] == '\0' && is_model(path))
        mirror_changes_add(&mirror->changes, path);
}

static struct mirror_place place_of(struct mirror *mirror, const struct mirror_target *target,
                                    const struct mirror_entry *entry)
{
    struct mirror_place place = {.file = {.repository = target->name.repository,
                                          .commit = target->version->commit,
                                          .path = entry->path,
                                          .size_bytes = entry->size_bytes,
                                          .digest_kind = entry->digest_kind},
                                 .is_pinned = target->name.commit[0] != '\0'};

    memcpy(place.file.digest, entry->digest, sizeof(place.file.digest));
    pthread_mutex_lock(&mirror->index.lock);
    place.is_verified = entry->is_verified;
    memcpy(place.proof, entry->proof, sizeof(place.proof));
    pthread_mutex_unlock(&mirror->index.lock);
    return place;
}

static enum zt_status open_entry(struct mirror *mirror, const struct mirror_target *target,
                                 const struct mirror_entry *entry, struct zt_source **out_source,
                                 struct file_identity *out_identity, struct zt_error *error)
{
    struct mirror_upstream *upstream = &mirror->upstreams[target->upstream];
    const struct mirror_place place = place_of(mirror, target, entry);
    const enum zt_status status = mirror_file_open(upstream->files, &place, out_source, error);

    if (status != ZT_OK)
        return status;
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
    enum zt_status status = mirror_find(mirror, path, true, &target, error);

    if (status != ZT_OK)
        return status;
    if (target.version == NULL)
        return inner->ops->open(inner, path, out_source, out_identity, error);
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

/* Finds the file of a source that was opened as a file of the current commit. */
static const struct mirror_entry *find_current(struct mirror *mirror,
                                               const struct upstream_place *place,
                                               struct mirror_target *out_target)
{
    const struct mirror_repository *repository;
    struct mirror_version *version = NULL;

    memset(out_target, 0, sizeof(*out_target));
    pthread_mutex_lock(&mirror->index.lock);
    repository = mirror_index_find(&mirror->index, zt_text_from(place->repository));
    if (repository != NULL)
        version = mirror_repository_current(repository);
    if (version != NULL)
        out_target->version = mirror_version_hold(version);
    pthread_mutex_unlock(&mirror->index.lock);
    return version != NULL ? mirror_version_find(version, zt_text_from(place->path)) : NULL;
}

/* The files of a commit never change. */
static bool identify_pinned(struct mirror *mirror, const struct upstream_place *place,
                            struct file_identity *out_identity)
{
    char folder[MODEL_PATH_SIZE];
    struct mirror_target target;
    const struct mirror_entry *entry = NULL;

    if (mirror_name_snapshot(place->repository, place->commit, folder) &&
        mirror_find_known(mirror, folder, &target))
        entry = mirror_version_find(target.version, zt_text_from(place->path));
    else
        return true;
    if (entry != NULL)
        *out_identity = mirror_entry_identity(target.version, entry);
    mirror_version_release(target.version);
    return true;
}

/* A file that is gone, or whose bytes were wrong, gets an identity that no file has. */
static bool mirror_identity_of(struct store *store, struct zt_source *source,
                               struct file_identity *out_identity)
{
    struct mirror *mirror = mirror_of(store);
    struct store *inner = inner_of(store);
    const struct mirror_place *place = mirror_file_place(source);
    const struct mirror_entry *entry;
    struct mirror_target target;

    if (place == NULL)
        return inner->ops->identity_of(inner, source, out_identity);
    *out_identity = (struct file_identity){.size_bytes = UINT64_MAX};
    if (mirror_file_is_lost(source))
        return true;
    if (place->is_pinned)
        return identify_pinned(mirror, &place->file, out_identity);
    entry = find_current(mirror, &place->file, &target);
    if (entry != NULL)
        *out_identity = mirror_entry_identity(target.version, entry);
    mirror_version_release(target.version);
    return true;
}

/* --- looking for names --- */

static bool mirror_has_locally(const struct store *store, struct zt_text path)
{
    struct mirror *mirror = mirror_of_const(store);
    struct mirror_name name;
    bool is_known = false;

    pthread_mutex_lock(&mirror->index.lock);
    for (unsigned parts = 2; parts > 0 && !is_known; parts--)
        is_known = mirror_name_split(path, parts, &name) &&
                   mirror_index_find(&mirror->index, zt_text_from(name.repository)) != NULL;
    pthread_mutex_unlock(&mirror->index.lock);
    return !is_known && store_has_locally(store->inner, path);
}

/* Returns true if a name could be a model of a repository of an upstream. */
static bool may_be_upstream(const struct mirror *mirror, struct zt_text model)
{
    struct mirror_name name;
    const char *slash = memchr(model.bytes, '/', model.length);
    unsigned parts;

    if (slash == NULL)
        return false;
    parts = memchr(slash + 1, '/', model.length - (size_t)(slash + 1 - model.bytes)) ? 2 : 1;
    if (!mirror_name_split(model, parts, &name))
        return false;
    for (unsigned i = 0; i < mirror->upstream_count; i++)
        if (upstream_matches(mirror->upstreams[i].upstream, zt_text_from(name.repository)))
            return true;
    return false;
}

static bool mirror_may_look_up(struct store *store, struct zt_text name)
{
    struct mirror *mirror = mirror_of(store);
    struct store *inner = inner_of(store);
    const uint64_t hash = zt_xxh3(name.bytes, name.length);
    const int64_t now_ms = clock_ms();
    const size_t at = hash % MIRROR_SOUGHT;
    bool may;

    if (!may_be_upstream(mirror, name))
        return store_may_wait(inner) && inner->search->may_look_up(inner, name);
    pthread_mutex_lock(&mirror->sought_lock);
    may = mirror->sought[at].hash != hash || now_ms - mirror->sought[at].at_ms >= SOUGHT_AGAIN_MS;
    if (may) {
        mirror->sought[at].hash = hash;
        mirror->sought[at].at_ms = now_ms;
    }
    pthread_mutex_unlock(&mirror->sought_lock);
    return may;
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
        if (snprintf(path, sizeof(path), "%s/%s", target->base, entry->path) >= (int)sizeof(path) ||
            !model_path_name(path, model) || !zt_text_is(name, model))
            continue;
        ask_for(mirror, target, entry, path, false);
        if (!visit(context, path, &identity))
            return;
    }
}

static enum zt_status mirror_look_up(struct store *store, struct zt_text name, store_visit visit,
                                     void *context, struct zt_error *error)
{
    struct mirror *mirror = mirror_of(store);
    struct store *inner = inner_of(store);
    struct mirror_target target = {.version = NULL};
    char path[MODEL_PATH_SIZE];
    enum zt_status status = ZT_OK;

    if (name.length < sizeof(path)) {
        snprintf(path, sizeof(path), "%.*s", (int)name.length, name.bytes);
        status = mirror_find(mirror, path, true, &target, error);
    }
    if (status != ZT_OK)
        return status;
    if (target.version == NULL)
        return store_may_wait(inner) ? inner->search->look_up(inner, name, visit, context, error)
                                     : ZT_OK;
    visit_model(mirror, &target, name, visit, context);
    mirror_version_release(target.version);
    return ZT_OK;
}

/* --- revisions --- */

static enum zt_status find_revision(struct store *store, const char *repository,
                                    struct zt_text revision, struct store_revision *out_revision,
                                    struct zt_error *error)
{
    struct mirror_version *version;
    unsigned upstream;
    bool is_current = false;
    bool fits;
    enum zt_status status = mirror_find_revision(mirror_of(store), repository, revision, &version,
                                                 &is_current, &upstream, error);

    if (status != ZT_OK)
        return status;
    *out_revision = (struct store_revision){.is_current = is_current};
    memcpy(out_revision->commit, version->commit, sizeof(out_revision->commit));
    if (is_current)
        fits = snprintf(out_revision->folder, sizeof(out_revision->folder), "%s", repository) <
               (int)sizeof(out_revision->folder);
    else
        fits = mirror_name_snapshot(repository, version->commit, out_revision->folder);
    mirror_version_release(version);
    return fits ? ZT_OK : zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the name is too long");
}

static void fill_stated(struct mirror *mirror, const struct mirror_entry *entry,
                        struct store_stated *out_stated)
{
    *out_stated = (struct store_stated){.has_sha256 = entry->digest_kind == UPSTREAM_SHA256,
                                        .has_git_sha1 = entry->digest_kind == UPSTREAM_GIT_SHA1};
    if (out_stated->has_sha256)
        memcpy(out_stated->sha256, entry->digest, sizeof(out_stated->sha256));
    if (out_stated->has_git_sha1)
        memcpy(out_stated->git_sha1, entry->digest, sizeof(out_stated->git_sha1));
    pthread_mutex_lock(&mirror->index.lock);
    out_stated->is_verified = entry->is_verified;
    pthread_mutex_unlock(&mirror->index.lock);
}

/* Finds the file with this identity. *out_target is to be released also on failure. */
static const struct mirror_entry *find_same(struct mirror *mirror, const char *path,
                                            const struct file_identity *identity,
                                            struct mirror_target *out_target)
{
    const struct mirror_entry *entry = NULL;
    struct file_identity known;

    if (mirror_find_known(mirror, path, out_target))
        entry = mirror_version_find(out_target->version, out_target->path);
    if (entry == NULL)
        return NULL;
    known = mirror_entry_identity(out_target->version, entry);
    return store_identity_equal(&known, identity) ? entry : NULL;
}

static bool state_file(struct store *store, const char *path, const struct file_identity *identity,
                       struct store_stated *out_stated)
{
    struct mirror *mirror = mirror_of(store);
    struct mirror_target target;
    const struct mirror_entry *entry = find_same(mirror, path, identity, &target);

    if (entry != NULL)
        fill_stated(mirror, entry, out_stated);
    mirror_version_release(target.version);
    return entry != NULL;
}

static bool was_wrong(struct store *store, const char *path, const struct file_identity *identity)
{
    struct mirror *mirror = mirror_of(store);
    struct mirror_target target;
    const struct mirror_entry *entry = find_same(mirror, path, identity, &target);
    bool wrong = false;

    if (entry != NULL) {
        const struct mirror_place place = place_of(mirror, &target, entry);

        wrong = mirror_file_was_wrong(mirror->upstreams[target.upstream].files, &place);
    }
    mirror_version_release(target.version);
    return wrong;
}

static bool refuses(struct store *store, const char *path, char out_why[STORE_WHY_SIZE])
{
    struct mirror *mirror = mirror_of(store);
    struct mirror_name name;
    const struct mirror_repository *repository = NULL;

    pthread_mutex_lock(&mirror->index.lock);
    for (unsigned parts = 2; parts > 0 && repository == NULL; parts--)
        if (mirror_name_split(zt_text_from(path), parts, &name))
            repository = mirror_index_find(&mirror->index, zt_text_from(name.repository));
    if (repository != NULL)
        snprintf(
            out_why, STORE_WHY_SIZE,
            "%.200s is mirrored from %.200s, so nothing can be written to it here; choose another "
            "repository",
            repository->name, mirror->urls[repository->upstream]);
    pthread_mutex_unlock(&mirror->index.lock);
    return repository != NULL;
}

/* --- tables --- */

static const struct store_revision_ops revision_ops = {
    .find = find_revision, .state = state_file, .refuses = refuses, .was_wrong = was_wrong};

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
    mirror->base.revisions = &revision_ops;
    mirror->search.may_look_up = mirror_may_look_up;
    mirror->search.look_up = mirror_look_up;
    mirror->search.has_locally = mirror_has_locally;
}
