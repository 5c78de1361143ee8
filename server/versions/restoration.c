/* Goes back to an earlier commit: gives kept files their names again, and removes the files that
 * the commit does not have. No byte is copied, and none is read unless another program may have
 * written into a kept file. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/changes.h"
#include "catalog/catalog.h"
#include "digests/file_hashes.h"
#include "store/versions/versions_store.h"
#include "versions/folder_state.h"
#include "versions/recording.h"

struct restoration {
    struct server *server;
    struct history *history;
    const struct history_repo *repo;
    struct store *folder;            /* without versions and mirrors */
    struct folder_state now;         /* before the change */
    const struct history_tree *tree; /* the state to restore */
    int64_t *checked_ns;             /* when the kept files of the tree were last modified */
    size_t restored;                 /* the first files of the tree that have their bytes */
};

static bool is_same(const struct history_file *a, const struct history_file *b)
{
    return a != NULL && b != NULL && memcmp(a->sha256, b->sha256, sizeof(a->sha256)) == 0;
}

static const struct history_file *find_now(const struct restoration *restoration, const char *path)
{
    return folder_state_find(&restoration->now, path);
}

static const struct history_file *find_wanted(const struct restoration *restoration,
                                              const char *path)
{
    return history_tree_find(restoration->tree, zt_text_from(path));
}

/* Writes a file's path below the root. */
static enum zt_status write_path(const struct restoration *restoration, const char *path,
                                 char out_path[MODEL_PATH_SIZE], struct zt_error *error)
{
    return folder_state_path(restoration->repo, path, out_path)
               ? ZT_OK
               : zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "a path is too long");
}

/* Links change a file's changed_ns. */
static bool is_untouched(const struct file_identity *then, const struct file_identity *now)
{
    return then->device == now->device && then->inode == now->inode &&
           then->size_bytes == now->size_bytes && then->modified_ns == now->modified_ns;
}

static bool find_identity(const struct restoration *restoration, const char *path,
                          struct file_identity *out_identity)
{
    struct store *folder = restoration->folder;
    struct zt_source *source;
    struct zt_error ignored;

    if (folder->ops->open(folder, path, &source, out_identity, &ignored) != ZT_OK)
        return false;
    zt_source_close(source);
    return true;
}

/* A file that is also a kept file changes its changed_ns when another one takes that place. */
static enum zt_status keep(const struct restoration *restoration, const struct history_file *file,
                           struct zt_error *error)
{
    const size_t at = (size_t)(file - restoration->now.files);
    const struct file_identity *then = &restoration->now.identities[at];
    struct history *history = restoration->history;
    struct file_identity identity;
    char path[MODEL_PATH_SIZE];
    enum zt_status status = write_path(restoration, file->path, path, error);

    assert(at < restoration->now.count);
    if (status == ZT_OK)
        status = history_keep_file(history, path, then, file->sha256, error);
    return status == ZT_STALE && !history_is_shared(history) &&
                   find_identity(restoration, path, &identity) && is_untouched(then, &identity)
               ? history_keep_file(history, path, &identity, file->sha256, error)
               : status;
}

/* --- before any change --- */

/* Finds any file of the folder that has these bytes. */
static const struct history_file *find_bytes(const struct restoration *restoration,
                                             const struct history_file *wanted)
{
    const struct folder_state *now = &restoration->now;

    for (size_t i = 0; i < now->count; i++)
        if (is_same(&now->files[i], wanted))
            return &now->files[i];
    return NULL;
}

/* A file of the folder that is not in the list could not be read, or belongs to another repository
 * since a config.json came or went. It would be lost. */
static enum zt_status check_free(const struct restoration *restoration,
                                 const struct history_file *wanted, struct zt_error *error)
{
    char path[MODEL_PATH_SIZE];
    const enum zt_status status = write_path(restoration, wanted->path, path, error);

    if (status != ZT_OK || !history_has_path(restoration->history, path, true))
        return status;
    return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                   "the present file %s would be replaced, but cannot be kept: it cannot be read, "
                   "or belongs to another repository",
                   path);
}

/* Makes sure that the bytes of a file are kept, and are these bytes. The SHA-256s of the folder's
 * files are known, so one of them is better than a file that must be hashed. */
static enum zt_status check_bytes(const struct restoration *restoration,
                                  const struct history_file *wanted, int64_t *out_modified_ns,
                                  struct zt_error *error)
{
    struct history *history = restoration->history;
    struct file_identity kept = {.modified_ns = 0};
    const struct history_file *elsewhere = NULL;
    enum zt_status status = history_stat_kept(history, wanted->sha256, &kept, error);
    const bool is_same_file =
        status == ZT_OK &&
        (history_is_shared(history) ||
         (kept.size_bytes == wanted->size_bytes && kept.modified_ns == wanted->modified_ns));

    if (!is_same_file && (status == ZT_OK || status == ZT_NOT_FOUND)) {
        elsewhere = find_bytes(restoration, wanted);
        status = elsewhere != NULL ? keep(restoration, elsewhere, error) : ZT_OK;
        if (status == ZT_OK)
            status = versions_check(restoration->server->store,
                                    elsewhere != NULL ? elsewhere : wanted, &kept, error);
    }
    *out_modified_ns = kept.modified_ns;
    return status;
}

/* Makes sure that the bytes of every file that must be restored are kept, and that no file gets
 * lost. */
static enum zt_status keep_all(const struct restoration *restoration, struct zt_error *error)
{
    const struct folder_state *now = &restoration->now;
    enum zt_status status = ZT_OK;

    for (size_t i = 0; i < restoration->tree->count && status == ZT_OK; i++) {
        const struct history_file *wanted = &restoration->tree->files[i];

        if (is_same(find_now(restoration, wanted->path), wanted))
            continue;
        if (find_now(restoration, wanted->path) == NULL)
            status = check_free(restoration, wanted, error);
        if (status == ZT_OK)
            status = check_bytes(restoration, wanted, &restoration->checked_ns[i], error);
    }
    for (size_t i = 0; i < now->count && status == ZT_OK; i++)
        if (!is_same(find_wanted(restoration, now->files[i].path), &now->files[i]))
            status = keep(restoration, &now->files[i], error);
    return status;
}

/* --- removals --- */

/* Returns true if a file is where the commit has a folder, or below a file of the commit. */
static bool is_in_way(const struct restoration *restoration, const char *path)
{
    const struct history_tree *tree = restoration->tree;
    const size_t length = strlen(path);
    char above[MODEL_PATH_SIZE];

    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
        if (find_wanted(restoration, above) != NULL)
            return true;
    }
    for (size_t i = 0; i < tree->count; i++)
        if (strncmp(tree->files[i].path, path, length) == 0 && tree->files[i].path[length] == '/')
            return true;
    return false;
}

static enum zt_status remove_files(const struct restoration *restoration, bool in_way,
                                   struct zt_error *error)
{
    const struct folder_state *now = &restoration->now;
    struct store *folder = restoration->folder;
    const size_t kept_length =
        restoration->repo->is_root_model ? 0 : strlen(restoration->repo->name);
    enum zt_status status = ZT_OK;

    for (size_t i = 0; i < now->count && status == ZT_OK; i++) {
        const char *name = now->files[i].path;
        char path[MODEL_PATH_SIZE];

        if (find_wanted(restoration, name) != NULL || is_in_way(restoration, name) != in_way)
            continue;
        status = write_path(restoration, name, path, error);
        if (status == ZT_OK)
            status = history_remove_path(restoration->history, path, &now->identities[i], error);
        if (status == ZT_NOT_FOUND)
            status = ZT_OK; /* Another program has removed it. */
        if (status == ZT_STALE)
            status = zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                             "another program is changing %s; try again", path);
        if (status != ZT_OK)
            break;
        (void)store_settle(folder, path, error);
        if (folder->ops->remove_emptied != NULL)
            folder->ops->remove_emptied(folder, path, kept_length);
    }
    return status;
}

/* --- restored files --- */

static enum zt_status restore_file(const struct restoration *restoration,
                                   const struct history_file *wanted, struct zt_error *error)
{
    char path[MODEL_PATH_SIZE];
    enum zt_status status = write_path(restoration, wanted->path, path, error);

    if (status == ZT_OK)
        status = history_restore(restoration->history, wanted->sha256, path, error);
    return status == ZT_OK ? store_settle(restoration->folder, path, error) : status;
}

static enum zt_status restore_files(struct restoration *restoration, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    assert(restoration->restored == 0);
    for (size_t i = 0; i < restoration->tree->count && status == ZT_OK; i++) {
        const struct history_file *wanted = &restoration->tree->files[i];

        if (!is_same(find_now(restoration, wanted->path), wanted))
            status = restore_file(restoration, wanted, error);
        restoration->restored += status == ZT_OK;
    }
    return status;
}

/* --- what is known of the files --- */

/* Returns true for a file that was not restored if it is still the same one, and for a restored one
 * if it is the kept file that was checked, or a file of the folder that was kept afterwards. */
static bool has_known_bytes(const struct restoration *restoration,
                            const struct history_file *wanted, const struct file_identity *identity)
{
    const struct history_file *before = find_now(restoration, wanted->path);
    const size_t at = (size_t)(wanted - restoration->tree->files);

    assert(at < restoration->tree->count);
    if (!is_same(before, wanted)) {
        if (history_is_shared(restoration->history))
            return true;
        if (identity->size_bytes == wanted->size_bytes &&
            identity->modified_ns == restoration->checked_ns[at])
            return true;
        before = find_bytes(restoration, wanted);
        return before != NULL && before->size_bytes == identity->size_bytes &&
               before->modified_ns == identity->modified_ns;
    }
    assert(before >= restoration->now.files &&
           before < restoration->now.files + restoration->now.count);
    return is_untouched(&restoration->now.identities[before - restoration->now.files], identity);
}

/* Links have changed the times of files whose bytes are known, so their digests are noted again. */
static void note_digest(const struct restoration *restoration, const struct history_file *wanted)
{
    struct file_identity identity;
    struct zt_error ignored;
    char path[MODEL_PATH_SIZE];

    if (write_path(restoration, wanted->path, path, &ignored) == ZT_OK &&
        find_identity(restoration, path, &identity) &&
        has_known_bytes(restoration, wanted, &identity))
        file_hashes_keep(restoration->server->hashes, path, &identity, wanted->sha256);
}

static void show(const struct restoration *restoration, const char *name)
{
    char path[MODEL_PATH_SIZE];
    char model[MODEL_NAME_MAX + 1];

    if (folder_state_path(restoration->repo, name, path) && model_path_name(path, model))
        generation_release(catalog_update(restoration->server->catalog, path));
}

static void show_all(const struct restoration *restoration)
{
    const struct history_tree *tree = restoration->tree;
    const struct folder_state *now = &restoration->now;

    assert(restoration->restored <= tree->count);
    for (size_t i = 0; i < restoration->restored; i++)
        note_digest(restoration, &tree->files[i]);
    for (size_t i = 0; i < now->count; i++)
        if (find_wanted(restoration, now->files[i].path) == NULL)
            show(restoration, now->files[i].path);
    for (size_t i = 0; i < tree->count; i++)
        if (!is_same(find_now(restoration, tree->files[i].path), &tree->files[i]))
            show(restoration, tree->files[i].path);
    atomic_fetch_add(&restoration->server->files_changed, 1);
    changes_note();
}

/* --- all of it --- */

static enum zt_status check_head(const struct restoration *restoration, const char *expected,
                                 struct zt_error *error)
{
    struct history_found found;
    enum zt_status status;

    if (expected == NULL)
        return ZT_OK;
    status = history_find(restoration->history, restoration->repo, zt_text_from(HISTORY_MAIN),
                          &found, error);
    if (status == ZT_OK && strcmp(found.commit, expected) != 0)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the repository is at commit %s",
                       found.commit);
    return status;
}

/* With the repository locked. *out_changed: files may have changed, also on failure. */
static enum zt_status restore_held(struct restoration *restoration, const char *expected,
                                   bool *out_changed, struct zt_error *error)
{
    enum zt_status status = check_head(restoration, expected, error);

    if (status == ZT_OK)
        status =
            folder_state_read(restoration->server, restoration->repo, &restoration->now, error);
    restoration->checked_ns = calloc(restoration->tree->count + 1, sizeof(int64_t));
    if (status == ZT_OK && restoration->checked_ns == NULL)
        status = zt_fail_memory(error, "the kept files");
    if (status == ZT_OK)
        status = keep_all(restoration, error);
    if (status != ZT_OK)
        return status;
    *out_changed = true;
    status = remove_files(restoration, true, error);
    if (status == ZT_OK)
        status = restore_files(restoration, error);
    if (status == ZT_OK)
        status = remove_files(restoration, false, error);
    show_all(restoration);
    return status;
}

enum zt_status recording_restore(struct server *server, const struct history_repo *repo,
                                 const struct recording_target *target,
                                 const struct history_note *note, struct history_commit *out_commit,
                                 struct zt_error *error)
{
    struct restoration restoration = {.server = server,
                                      .history = store_history(server->store),
                                      .repo = repo,
                                      .folder = store_innermost(server->store)};
    struct recording recording;
    struct zt_error late;
    bool is_changed = false;
    enum zt_status status;

    if (restoration.history == NULL)
        return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "no versions are kept");
    recording_prepare(server, repo);
    status = recording_begin(&recording, server, repo, error);
    if (status != ZT_OK)
        return status;
    status = history_tree_get(restoration.history, repo, target->commit, &restoration.tree, error);
    if (status == ZT_OK)
        status = restore_held(&restoration, target->expected, &is_changed, error);
    history_tree_release(restoration.tree);
    folder_state_free(&restoration.now);
    free(restoration.checked_ns);
    if (recording_end(&recording, is_changed ? note : NULL, out_commit, &late) != ZT_OK &&
        status == ZT_OK && error != NULL) {
        *error = late;
        status = late.status;
    }
    return status;
}
