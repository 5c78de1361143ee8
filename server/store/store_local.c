/* A folder as a store: opens the folder, removes what crashes left in it, opens and removes files.
 * Listing, uploads, kept uploads, watching and opening paths have files of their own. */
#include "store/store_local.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "config/bucket.h"

static enum zt_status not_found(struct zt_error *error)
{
    return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such file");
}

static enum zt_status local_open(struct store *store, const char *path,
                                 struct zt_source **out_source, struct file_identity *out_identity,
                                 struct zt_error *error)
{
    const struct local_store *local = (const struct local_store *)store;
    struct stat info;
    enum zt_status status;
    int descriptor;

    if (!store_path_is_clean(path) || store_local_withholds(local, path))
        return not_found(error);
    descriptor = store_path_open_file(local->root, path, O_RDONLY);
    if (descriptor < 0)
        return errno == ENOENT ? not_found(error) : store_fail_errno(error, errno, "cannot open");
    if (fstat(descriptor, &info) != 0) {
        status = store_fail_errno(error, errno, "cannot stat");
        goto out;
    }
    status = zt_source_from_descriptor(descriptor, out_source, error);
    if (status == ZT_OK) {
        *out_identity = store_identity_from(&info);
        return ZT_OK;
    }
out:
    close(descriptor);
    return status;
}

/* Errors that mean that the store has no such file: folders are not files of the store, and a name
 * that is too long cannot exist. */
static bool is_absent(int os_error)
{
    return os_error == ENOENT || os_error == EISDIR || os_error == ENAMETOOLONG;
}

/* Writers of this machine exclude each other, and others do not ask, so expectations are not
 * looked at. */
static enum zt_status local_remove(struct store *store, const char *path,
                                   const struct store_expected *expected, struct zt_error *error)
{
    const struct local_store *local = (const struct local_store *)store;
    const char *base;
    enum zt_status status = ZT_OK;
    int folder;

    (void)expected;
    if (!store_path_is_clean(path) || store_local_withholds(local, path) ||
        store_path_is_other(local->root, path))
        return not_found(error);
    folder = store_path_open_parent(local->root, path, false, &base);
    if (folder < 0)
        return errno == ENOENT ? not_found(error)
                               : store_fail_errno(error, errno, "cannot open the folder");
    if (unlinkat(folder, base, 0) != 0)
        status =
            is_absent(errno) ? not_found(error) : store_fail_errno(error, errno, "cannot remove");
    else if (fsync(folder) != 0)
        status = store_fail_errno(error, errno, "cannot sync the folder");
    close(folder);
    return status;
}

static void local_set_reserve(struct store *store, uint64_t reserve_bytes)
{
    atomic_store(&((struct local_store *)store)->reserve_bytes, reserve_bytes);
}

static size_t local_misfits(const struct store *store)
{
    return atomic_load(&((const struct local_store *)store)->misfits);
}

static int local_watch(struct store *store)
{
    return store_watch_descriptor(&((struct local_store *)store)->watch);
}

static bool local_changed(struct store *store)
{
    return store_watch_drain(&((struct local_store *)store)->watch);
}

static bool local_is_changing(struct store *store)
{
    return store_watch_is_waiting(&((struct local_store *)store)->watch);
}

static bool local_reports(const struct store *store)
{
    return atomic_load(&((const struct local_store *)store)->watch.complete);
}

static void local_close(struct store *store)
{
    struct local_store *local = (struct local_store *)store;

    assert(local->root >= 0);
    store_watch_close(&local->watch);
    skipped_free(&local->skipped);
    store_kept_close(local);
    close(local->root);
    for (unsigned i = 0; i < local->withheld_count; i++)
        free(local->withheld[i]);
    free(local->root_path);
    free(local);
}

static bool local_identity_of(struct store *store, struct zt_source *source,
                              struct file_identity *out_identity)
{
    int descriptor = zt_source_descriptor(source);
    struct stat info;

    (void)store;
    if (descriptor < 0 || fstat(descriptor, &info) != 0)
        return false;
    *out_identity = store_identity_from(&info);
    return true;
}

static const struct store_ops local_ops = {
    .list = store_local_list,
    .walk = store_local_walk,
    .open = local_open,
    .create = store_local_create,
    .write_at = store_local_write_at,
    .read_back = store_local_read_back,
    .publish = store_local_publish,
    .may_publish = store_local_may_publish,
    .see_links = store_local_see_links,
    .make_folder = store_local_make_folder,
    .abandon = store_local_abandon,
    .remove = local_remove,
    .remove_emptied = store_local_remove_emptied,
    .identity_of = local_identity_of,
    .misfits = local_misfits,
    .space = store_space,
    .set_reserve = local_set_reserve,
    .keep = store_local_keep,
    .kept_create = store_local_kept_create,
    .kept_open = store_local_kept_open,
    .kept_remove = store_local_kept_remove,
    .kept_drop = store_local_kept_drop,
    .kept_list = store_local_kept_list,
    .sync = store_local_sync,
    .truncate = store_local_truncate,
    .copy = store_local_copy,
    .discard = store_local_discard,
    .length = store_local_length,
    .watch = local_watch,
    .changed = local_changed,
    .is_changing = local_is_changing,
    .reports = local_reports,
    .look = store_local_look,
    .close = local_close,
};

static bool is_leftover(const char *name)
{
    return strncmp(name, STORE_UPLOAD_PREFIX, strlen(STORE_UPLOAD_PREFIX)) == 0 ||
           strncmp(name, STORE_PUBLISH_PREFIX, strlen(STORE_PUBLISH_PREFIX)) == 0;
}

static void remove_leftover(int root, const char *name)
{
    int descriptor = store_path_open_file(root, name, O_RDONLY | O_NOFOLLOW);

    if (descriptor < 0)
        return;
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        unlinkat(root, name, 0);
    close(descriptor);
}

/* Removes what crashes left in the root, except files that a living process has locked. */
static void sweep_root(int root)
{
    int descriptor = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = descriptor < 0 ? NULL : fdopendir(descriptor);
    const struct dirent *entry;

    if (stream == NULL) {
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    while ((entry = readdir(stream)) != NULL)
        if (is_leftover(entry->d_name))
            remove_leftover(root, entry->d_name);
    closedir(stream);
}

static enum zt_status fail_root(const char *root, int os_error, struct zt_error *error)
{
    enum zt_status status = os_error == ENOENT ? ZT_NOT_FOUND : ZT_IO;

    /* Only this message contains a path: it is for the person who starts the program. */
    zt_fail(error, status, NULL, ZT_NO_OFFSET, "cannot open the folder %.180s: %s", root,
            strerrordesc_np(os_error));
    if (error != NULL)
        error->os_error = os_error;
    return status;
}

/* Absolute, so that the folder can be found again when it is replaced. */
static char *absolute_path(const char *path)
{
    char *resolved = realpath(path, NULL);
    char *working;
    char *joined = NULL;

    if (path[0] == '/' || resolved == NULL) {
        free(resolved);
        return strdup(path);
    }
    working = getcwd(NULL, 0);
    if (working != NULL && asprintf(&joined, "%s/%s", working, path) < 0)
        joined = NULL;
    free(working);
    if (joined == NULL)
        return resolved;
    free(resolved);
    return joined;
}

static enum zt_status open_root(const char *root, int *out_descriptor, struct zt_error *error)
{
    const int descriptor = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (descriptor < 0)
        return fail_root(root, errno, error);
    /* In a folder that can be opened but not entered, every file would seem to be missing. */
    if (faccessat(descriptor, ".", R_OK | X_OK, AT_EACCESS) != 0) {
        int os_error = errno;

        close(descriptor);
        return fail_root(root, os_error, error);
    }
    *out_descriptor = descriptor;
    return ZT_OK;
}

enum zt_status store_local_check(const char *root, struct zt_error *error)
{
    int descriptor;
    const enum zt_status status = open_root(root, &descriptor, error);

    if (status == ZT_OK)
        close(descriptor);
    return status;
}

enum zt_status store_local_view(const char *root, struct store **out_store, struct zt_error *error)
{
    struct local_store *local;
    int descriptor;
    const enum zt_status status = open_root(root, &descriptor, error);

    if (status != ZT_OK)
        return status;
    local = calloc(1, sizeof(*local));
    if (local != NULL)
        local->root_path = absolute_path(root);
    if (local == NULL || local->root_path == NULL) {
        close(descriptor);
        free(local);
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for the store");
    }
    local->base.ops = &local_ops;
    local->root = descriptor;
    atomic_init(&local->reserve_bytes, 0);
    store_watch_init(&local->watch);
    pthread_mutex_init(&local->places_lock, NULL);
    *out_store = &local->base;
    return ZT_OK;
}

enum zt_status store_local_open(const char *root, uint64_t reserve_bytes, struct store **out_store,
                                struct zt_error *error)
{
    const enum zt_status status = store_local_view(root, out_store, error);

    if (status != ZT_OK)
        return status;
    local_set_reserve(*out_store, reserve_bytes);
    sweep_root(((const struct local_store *)*out_store)->root);
    return ZT_OK;
}

/* File systems can store times that do not fit into 64 bits of nanoseconds. */
static int64_t nanoseconds(const struct timespec *time)
{
    int64_t all;

    if (__builtin_mul_overflow((int64_t)time->tv_sec, INT64_C(1000000000), &all) ||
        __builtin_add_overflow(all, (int64_t)time->tv_nsec, &all))
        return time->tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return all;
}

struct file_identity store_identity_from(const struct stat *info)
{
    return (struct file_identity){
        .device = info->st_dev,
        .inode = info->st_ino,
        .size_bytes = (uint64_t)info->st_size,
        .modified_ns = nanoseconds(&info->st_mtim),
        .changed_ns = nanoseconds(&info->st_ctim),
    };
}

bool store_identity_equal(const struct file_identity *a, const struct file_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->size_bytes == b->size_bytes &&
           a->modified_ns == b->modified_ns && a->changed_ns == b->changed_ns;
}

const struct store_expected store_expects_anything = {.what = STORE_EXPECTS_ANYTHING};
const struct store_expected store_expects_nothing = {.what = STORE_EXPECTS_NOTHING};

bool store_root_is_bucket(const char *root)
{
    return config_root_is_bucket(root);
}
