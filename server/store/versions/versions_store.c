/* The store of versions: keeps files before they change, and adds the paths of commits. All other
 * operations are the inner store's. */
#include "store/versions/versions_store.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/store_path.h"
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
typedef enum zt_status (*keep_file)(struct history *history, int folder, const char *name,
                                    const struct file_identity *identity, const uint8_t sha256[32],
                                    struct zt_error *error);

/* Keeps the file that a path has, unless its replacement has the same bytes. Returns ZT_NOT_FOUND
 * if there is none; ZT_STALE. */
static enum zt_status keep_once(struct versions *versions, const char *path,
                                const uint8_t *replacement, keep_file keep, struct zt_error *error)
{
    const struct versions_options *options = &versions->options;
    struct store *inner = versions->base.inner;
    struct file_identity identity;
    struct zt_source *source;
    uint8_t sha256[32];
    const char *base;
    int folder;
    enum zt_status status = inner->ops->open(inner, path, &source, &identity, error);

    if (status != ZT_OK)
        return status;
    zt_source_close(source);
    status = options->sha256(options->context, path, &identity, sha256, error);
    if (status != ZT_OK ||
        (replacement != NULL && memcmp(replacement, sha256, sizeof(sha256)) == 0))
        return status;
    folder = store_path_open_parent(versions->root, path, false, &base);
    if (folder < 0)
        return store_fail_errno(error, errno, "cannot open the folder");
    status = keep(options->history, folder, base, &identity, sha256, error);
    close(folder);
    return status;
}

/* Returns ZT_OK also if there is no file. */
static enum zt_status keep_present(struct versions *versions, const char *path,
                                   const uint8_t *replacement, keep_file keep,
                                   struct zt_error *error)
{
    enum zt_status status = ZT_STALE;

    for (unsigned i = 0; i < KEEP_TRIES && status == ZT_STALE; i++)
        status = keep_once(versions, path, replacement, keep, error);
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
    enum zt_status status = ZT_OK;

    if (is_of_commit(path))
        return fail_of_commit(error);
    if (expected->what != STORE_EXPECTS_NOTHING)
        status = keep_present(versions_of(store), path, expected->sha256, history_keep_file, error);
    return status == ZT_OK
               ? inner_of(store)->ops->publish(inner_of(store), file, path, expected, error)
               : status;
}

/* Where links are not permitted, keeping the file has removed it. */
static enum zt_status remove_file(struct store *store, const char *path,
                                  const struct store_expected *expected, struct zt_error *error)
{
    struct store *inner = inner_of(store);
    struct versions *versions = versions_of(store);
    enum zt_status kept;
    enum zt_status status;

    if (is_of_commit(path))
        return fail_of_commit(error);
    kept = keep_once(versions, path, NULL, history_keep_file, error);
    if (kept == ZT_STALE)
        kept = keep_present(versions, path, NULL, history_keep_file, error);
    if (kept == ZT_UNSUPPORTED)
        kept = keep_once(versions, path, NULL, history_keep_removed, error);
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

/* --- operations of the inner store --- */

static enum zt_status list(struct store *store, store_visit visit, void *context,
                           struct zt_error *error)
{
    return inner_of(store)->ops->list(inner_of(store), visit, context, error);
}

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

static enum zt_status exclude(struct store *store, const char *name, int64_t by_ms, int *out_lock,
                              struct zt_error *error)
{
    return inner_of(store)->ops->exclude(inner_of(store), name, by_ms, out_lock, error);
}

static enum zt_status settle(struct store *store, const char *path, struct zt_error *error)
{
    return inner_of(store)->ops->settle(inner_of(store), path, error);
}

static void remove_emptied(struct store *store, const char *path, size_t kept_length)
{
    inner_of(store)->ops->remove_emptied(inner_of(store), path, kept_length);
}

static size_t misnamed_files(const struct store *store)
{
    return inner_of(store)->ops->misnamed_files(inner_of(store));
}

static int watch(struct store *store)
{
    return inner_of(store)->ops->watch(inner_of(store));
}

static bool changed(struct store *store)
{
    return inner_of(store)->ops->changed(inner_of(store));
}

static bool is_changing(struct store *store)
{
    return inner_of(store)->ops->is_changing(inner_of(store));
}

static bool reports(const struct store *store)
{
    return inner_of(store)->ops->reports(inner_of(store));
}

static enum zt_status list_changes(struct store *store, store_visit visit, void *context,
                                   bool *out_whole, struct zt_error *error)
{
    return inner_of(store)->ops->list_changes(inner_of(store), visit, context, out_whole, error);
}

/* --- searching --- */

static bool has_locally(const struct store *store, struct zt_text path)
{
    (void)store;
    (void)path;
    return true;
}

static void report(struct store *store, struct store_report *out_report)
{
    (void)store;
    *out_report = (struct store_report){.was_reached = true, .has_list = true};
}

static void ignore(struct store *store)
{
    (void)store;
}

static void close_versions(struct store *store)
{
    struct versions *versions = versions_of(store);
    struct store *inner = store->inner;

    history_close(versions->options.history);
    pthread_mutex_destroy(&versions->lock);
    free(versions);
    inner->ops->close(inner);
}

static const struct store_ops versions_ops = {
    .list = list,
    .walk = versions_walk,
    .open = open_path,
    .publish = publish,
    .may_publish = may_publish,
    .find_links = find_links,
    .make_folder = make_folder,
    .exclude = exclude,
    .remove = remove_file,
    .settle = settle,
    .remove_emptied = remove_emptied,
    .identity_of = identity_of,
    .misnamed_files = misnamed_files,
    .watch = watch,
    .changed = changed,
    .is_changing = is_changing,
    .reports = reports,
    .list_changes = list_changes,
    .close = close_versions,
};

static const struct store_search_ops search_ops = {
    .may_look_up = versions_may_look_up,
    .look_up = versions_look_up,
    .has_locally = has_locally,
    .report = report,
    .reconfigure = ignore,
    .interrupt = ignore,
};

enum zt_status versions_store_open(struct store *inner, const struct versions_options *options,
                                   struct store **out_store, struct zt_error *error)
{
    struct versions *versions = calloc(1, sizeof(*versions));

    if (versions == NULL)
        return zt_fail_memory(error, "the versions");
    assert(options->history != NULL && options->sha256 != NULL);
    versions->base = (struct store){.ops = &versions_ops,
                                    .search = &search_ops,
                                    .is_here = true,
                                    .revisions = &revision_ops,
                                    .inner = inner,
                                    .staging = inner->staging,
                                    .history = options->history};
    versions->options = *options;
    versions->root = store_local_root(inner);
    pthread_mutex_init(&versions->lock, NULL);
    *out_store = &versions->base;
    return ZT_OK;
}
