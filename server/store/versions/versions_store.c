/* The store of versions: keeps files before they change, and adds the paths of commits. All other
 * operations are the inner store's. */
#include "store/versions/versions_store.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_inner.h"
#include "store/versions/versions_state.h"

/* How often to keep a file that other programs replace meanwhile. */
#define KEEP_TRIES 3

static struct store *inner_of(const struct store *store)
{
    assert(store->inner != NULL);
    return store->inner;
}

static bool is_of_commit(const char *path)
{
    struct history_path ignored;

    return history_path_split(zt_text_from(path), &ignored);
}

/* --- keeping --- */

/* history_keep_file or history_keep_removed. */
typedef enum zt_status (*keep_file)(struct history *history, const char *path,
                                    const struct file_identity *identity, const uint8_t sha256[32],
                                    struct zt_error *error);

/* A file that was kept. */
struct kept {
    bool is_kept;
    uint64_t size_bytes;
    uint8_t sha256[32];
};

/* Keeps the file that a path has, unless its replacement has the same bytes. Returns ZT_NOT_FOUND
 * if there is none; ZT_STALE. */
static enum zt_status keep_once(struct versions *versions, const char *path,
                                const uint8_t *replacement, keep_file keep, struct kept *out_kept,
                                struct zt_error *error)
{
    const struct versions_options *options = &versions->options;
    struct store *inner = versions->base.inner;
    struct file_identity identity;
    struct zt_source *source;
    uint8_t *sha256 = out_kept->sha256;
    enum zt_status status = inner->ops->open(inner, path, &source, &identity, error);

    if (status != ZT_OK)
        return status;
    zt_source_close(source);
    status = options->sha256(options->context, path, &identity, sha256, error);
    if (status != ZT_OK ||
        (replacement != NULL && memcmp(replacement, sha256, sizeof(out_kept->sha256)) == 0))
        return status;
    status = keep(options->history, path, &identity, sha256, error);
    out_kept->is_kept = status == ZT_OK;
    out_kept->size_bytes = identity.size_bytes;
    return status;
}

/* Returns ZT_OK also if there is no file. */
static enum zt_status keep_present(struct versions *versions, const char *path,
                                   const uint8_t *replacement, keep_file keep,
                                   struct kept *out_kept, struct zt_error *error)
{
    enum zt_status status = ZT_STALE;

    for (unsigned i = 0; i < KEEP_TRIES && status == ZT_STALE; i++)
        status = keep_once(versions, path, replacement, keep, out_kept, error);
    if (status == ZT_STALE)
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET,
                       "the present file cannot be kept, because another program is changing it");
    return status == ZT_NOT_FOUND ? ZT_OK : status;
}

static enum zt_status fail_of_commit(struct zt_error *error)
{
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the files of a commit never change");
}

static enum zt_status publish(struct store *store, struct staged_file *file, const char *path,
                              const struct store_expected *expected, struct zt_error *error)
{
    struct versions *versions = versions_of(store);
    struct kept kept = {.is_kept = false};
    enum zt_status status = ZT_OK;

    if (is_of_commit(path))
        return fail_of_commit(error);
    if (expected->what != STORE_EXPECTS_NOTHING)
        status = keep_present(versions, path, expected->sha256, history_keep_file, &kept, error);
    if (status == ZT_OK)
        status = inner_of(store)->ops->publish(inner_of(store), file, path, expected, error);
    if (status == ZT_OK && kept.is_kept && !store_may_wait(inner_of(store)))
        versions_share_later(versions, path, kept.size_bytes, kept.sha256);
    return status;
}

/* Where links are not permitted, keeping the file has removed it. */
static enum zt_status remove_file(struct store *store, const char *path,
                                  const struct store_expected *expected, struct zt_error *error)
{
    struct store *inner = inner_of(store);
    struct versions *versions = versions_of(store);
    struct kept ignored;
    enum zt_status kept;
    enum zt_status status;

    if (is_of_commit(path))
        return fail_of_commit(error);
    kept = keep_once(versions, path, NULL, history_keep_file, &ignored, error);
    if (kept == ZT_STALE)
        kept = keep_present(versions, path, NULL, history_keep_file, &ignored, error);
    if (kept == ZT_UNSUPPORTED)
        kept = keep_once(versions, path, NULL, history_keep_removed, &ignored, error);
    if (kept != ZT_OK && kept != ZT_NOT_FOUND)
        return kept;
    status = inner->ops->remove(inner, path, expected, error);
    return status == ZT_NOT_FOUND && kept == ZT_OK ? ZT_OK : status;
}

/* --- files --- */

static enum zt_status open_path(struct store *store, const char *path,
                                struct zt_source **out_source, struct file_identity *out_identity,
                                struct zt_error *error)
{
    struct versions *versions = versions_of(store);
    struct store *inner = inner_of(store);
    const struct history_file *file;
    struct versions_place place;
    enum zt_status status;

    if (!is_of_commit(path))
        return inner->ops->open(inner, path, out_source, out_identity, error);
    status = versions_place_find(versions, zt_text_from(path), &place, error);
    if (status == ZT_NOT_FOUND)
        return inner->ops->open(inner, path, out_source, out_identity, error);
    if (status != ZT_OK)
        return status;
    file = history_tree_find(place.tree, place.rest);
    status = file != NULL
                 ? versions_open_file(versions, &place, file, out_source, error)
                 : zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the commit has no such file");
    if (status == ZT_OK)
        *out_identity = versions_identity(file);
    versions_place_release(&place);
    return status;
}

static bool identity_of(struct store *store, struct zt_source *source,
                        struct file_identity *out_identity)
{
    return versions_source_identity(versions_of(store), source, out_identity) ||
           inner_of(store)->ops->identity_of(inner_of(store), source, out_identity);
}

/* Commits have no links. */
static void find_links(struct store *store, const char *folder, struct store_links *out_links)
{
    if (!versions_knows(versions_of(store), zt_text_from(folder))) {
        inner_of(store)->ops->find_links(inner_of(store), folder, out_links);
        return;
    }
    *out_links = (struct store_links){.is_known = true};
    snprintf(out_links->real, sizeof(out_links->real), "%s", folder);
}

/* --- revisions --- */

static enum zt_status find_revision(struct store *store, const char *repository,
                                    struct zt_text revision, struct store_revision *out_revision,
                                    struct zt_error *error)
{
    struct history_repo repo = {.is_root_model = false};
    struct history_found found;
    enum zt_status status;

    if ((size_t)snprintf(repo.name, sizeof(repo.name), "%s", repository) >= sizeof(repo.name))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the name is too long");
    status = history_find(versions_of(store)->options.history, &repo, revision, &found, error);
    if (status != ZT_OK)
        return status;
    /* The folder has it. */
    if (found.is_branch && strcmp(found.ref, HISTORY_MAIN) == 0)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "this is the folder's state");
    *out_revision = (struct store_revision){.is_kept = true};
    memcpy(out_revision->commit, found.commit, sizeof(found.commit));
    if (snprintf(out_revision->folder, sizeof(out_revision->folder), "%s@%s", repository,
                 found.commit) >= (int)sizeof(out_revision->folder))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the name is too long");
    return ZT_OK;
}

static bool state_file(struct store *store, const char *path, const struct file_identity *identity,
                       struct store_stated *out_stated)
{
    const struct history_file *file;
    struct versions_place place;
    struct file_identity known;
    struct zt_error ignored;
    bool is_same = false;

    if (!is_of_commit(path) ||
        versions_place_find(versions_of(store), zt_text_from(path), &place, &ignored) != ZT_OK)
        return false;
    file = history_tree_find(place.tree, place.rest);
    if (file != NULL) {
        known = versions_identity(file);
        is_same = store_identity_equal(&known, identity);
    }
    if (is_same) {
        *out_stated = (struct store_stated){.has_sha256 = true, .is_verified = true};
        memcpy(out_stated->sha256, file->sha256, sizeof(out_stated->sha256));
    }
    versions_place_release(&place);
    return is_same;
}

static bool refuses(struct store *store, const char *path, char out_why[STORE_WHY_SIZE])
{
    struct history_path parts;

    (void)store;
    if (!history_path_split(zt_text_from(path), &parts))
        return false;
    snprintf(out_why, STORE_WHY_SIZE,
             "%.8s is a commit of %.*s, and commits never change: write to %.*s", parts.commit,
             (int)(parts.repo.length < 150 ? parts.repo.length : 150), parts.repo.bytes,
             (int)(parts.repo.length < 150 ? parts.repo.length : 150), parts.repo.bytes);
    return true;
}

static bool was_wrong(struct store *store, const char *path, const struct file_identity *identity)
{
    (void)store;
    (void)path;
    (void)identity;
    return false;
}

static const struct store_revision_ops revision_ops = {
    .find = find_revision, .state = state_file, .refuses = refuses, .was_wrong = was_wrong};

/* --- operations that commits refuse --- */

static enum zt_status may_publish(struct store *store, const char *path,
                                  const struct store_leaving *leaving, struct zt_error *error)
{
    if (is_of_commit(path))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                       "the files of a commit never change");
    return inner_of(store)->ops->may_publish(inner_of(store), path, leaving, error);
}

static enum zt_status make_folder(struct store *store, const char *path, struct zt_error *error)
{
    return is_of_commit(path) ? fail_of_commit(error)
                              : inner_of(store)->ops->make_folder(inner_of(store), path, error);
}

/* --- searching --- */

static bool may_look_up(struct store *store, struct zt_text name)
{
    struct store *inner = inner_of(store);

    return versions_knows(versions_of(store), name)
               ? versions_may_look_up(store, name)
               : store_searches(inner) && inner->search->may_look_up(inner, name);
}

static enum zt_status look_up(struct store *store, struct zt_text name, store_visit visit,
                              void *context, struct zt_error *error)
{
    struct store *inner = inner_of(store);

    return !store_searches(inner) || versions_knows(versions_of(store), name)
               ? versions_look_up(store, name, visit, context, error)
               : inner->search->look_up(inner, name, visit, context, error);
}

static bool has_locally(const struct store *store, struct zt_text path)
{
    return store_has_locally(inner_of(store), path);
}

static void report(struct store *store, struct store_report *out_report)
{
    *out_report = (struct store_report){.was_reached = true, .has_list = true};
    if (store_searches(inner_of(store)))
        inner_of(store)->search->report(inner_of(store), out_report);
}

static void reconfigure(struct store *store)
{
    if (store_searches(inner_of(store)))
        inner_of(store)->search->reconfigure(inner_of(store));
}

static void interrupt(struct store *store)
{
    if (store_searches(inner_of(store)))
        inner_of(store)->search->interrupt(inner_of(store));
}

static const struct store_search_ops search_ops = {
    .may_look_up = may_look_up,
    .look_up = look_up,
    .has_locally = has_locally,
    .report = report,
    .reconfigure = reconfigure,
    .interrupt = interrupt,
};

static void close_versions(struct store *store)
{
    struct versions *versions = versions_of(store);
    struct store *inner = store->inner;

    versions_sharing_free(versions->sharing);
    history_close(versions->options.history);
    pthread_mutex_destroy(&versions->lock);
    free(versions);
    inner->ops->close(inner);
}

/* The inner store's operations, except these. */
static void set_ops(struct versions *versions)
{
    const struct store *inner = versions->base.inner;

    versions->ops = (struct store_ops){
        .walk = versions_walk,
        .open = open_path,
        .publish = publish,
        .may_publish = may_publish,
        .find_links = find_links,
        .make_folder = make_folder,
        .remove = remove_file,
        .identity_of = identity_of,
        .close = close_versions,
    };
    store_inner_ops(inner, &versions->ops);
    if (inner->shared != NULL)
        versions->base.shared = &store_inner_shared;
    if (inner->claims == NULL)
        return;
    store_inner_claims(inner, &versions->claims);
    versions->base.claims = &versions->claims;
}

enum zt_status versions_store_open(struct store *inner, const struct versions_options *options,
                                   struct store **out_store, struct zt_error *error)
{
    struct versions *versions = calloc(1, sizeof(*versions));

    if (versions == NULL)
        return zt_fail_memory(error, "the versions");
    assert(options->history != NULL && options->sha256 != NULL);
    versions->base = (struct store){.ops = &versions->ops,
                                    .search = &search_ops,
                                    .is_here = !store_may_wait(inner),
                                    .revisions = &revision_ops,
                                    .inner = inner,
                                    .staging = inner->staging,
                                    .history = options->history};
    versions->options = *options;
    set_ops(versions);
    if (versions->base.is_here)
        versions->sharing = versions_sharing_new();
    pthread_mutex_init(&versions->lock, NULL);
    *out_store = &versions->base;
    return ZT_OK;
}

/* Returns NULL if there is no store of versions among the inner ones. */
static struct versions *versions_in(struct store *store)
{
    while (store != NULL && store->ops->publish != publish)
        store = store->inner;
    return store != NULL ? versions_of(store) : NULL;
}

enum zt_status versions_check(struct store *store, const struct history_file *file,
                              struct file_identity *out_identity, struct zt_error *error)
{
    struct versions *versions = versions_in(store);
    struct zt_source *source;
    enum zt_status status;

    assert(versions != NULL);
    if (history_is_shared(versions->options.history))
        return history_stat_kept(versions->options.history, file->sha256, out_identity, error);
    status = versions_open_kept(versions, file, &source, out_identity, error);
    if (status == ZT_OK)
        zt_source_close(source);
    return status;
}

/* --- extents --- */

bool versions_share(struct store *store, uint64_t most_bytes, const atomic_bool *stop)
{
    struct versions *versions = versions_in(store);

    return versions != NULL && versions_share_pairs(versions, most_bytes, stop);
}

bool versions_may_share(struct store *store)
{
    const struct versions *versions = versions_in(store);

    return versions != NULL && versions_has_pairs(versions);
}
