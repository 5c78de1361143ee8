/* A folder as a store: opens the folder, removes leftovers of crashes, opens and removes files.
 * Listing, uploads, watching and opening paths are in other files. */
#include "store/store_local.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes of a line of /etc/passwd. */
#define USER_LINE_SIZE 4096

static enum zt_status not_found(struct zt_error *error)
{
    return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such file");
}

/* --- the user --- */

/* Reads the file of users itself: name services may load libraries and ask the network. */
static void find_user(char out_user[STORE_USER_SIZE])
{
    FILE *file = fopen("/etc/passwd", "re");
    char line[USER_LINE_SIZE];
    struct passwd room;
    struct passwd *found;

    snprintf(out_user, STORE_USER_SIZE, "%" PRIuMAX, (uintmax_t)geteuid());
    if (file == NULL)
        return;
    while (fgetpwent_r(file, &room, line, sizeof(line), &found) == 0) {
        if (found->pw_uid != geteuid())
            continue;
        snprintf(out_user, STORE_USER_SIZE, "%s", found->pw_name);
        break;
    }
    fclose(file);
}

/* Many programs write files that only their owner may read. The path comes last, because a long
 * message is cut. */
static enum zt_status fail_forbidden(const struct local_store *local, const char *path,
                                     struct zt_error *error)
{
    struct stat info;
    char mode[48] = "";

    if (fstatat(local->root, path, &info, 0) == 0)
        snprintf(mode, sizeof(mode), " (mode %04o%s)", (unsigned)info.st_mode & 07777,
                 (info.st_mode & S_IROTH) == 0 ? "; chmod a+r allows it" : "");
    zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "user %s may not read this file%s: %s", local->user,
            mode, path);
    if (error != NULL)
        error->os_error = EACCES;
    return ZT_IO;
}

/* --- opening and removing --- */

static enum zt_status local_open(struct store *store, const char *path,
                                 struct zt_source **out_source, struct file_identity *out_identity,
                                 struct zt_error *error)
{
    const struct local_store *local = (const struct local_store *)store;
    struct own_files own;
    struct stat info;
    enum zt_status status;
    int descriptor;

    if (!store_path_is_clean(path) || store_local_withholds(local, path))
        return not_found(error);
    descriptor = store_path_open_file(local->root, path, O_RDONLY);
    if (descriptor < 0 && errno == EACCES)
        return fail_forbidden(local, path, error);
    if (descriptor < 0)
        return errno == ENOENT ? not_found(error) : store_fail_errno(error, errno, "cannot open");
    if (fstat(descriptor, &info) != 0) {
        status = store_fail_errno(error, errno, "cannot stat");
        goto out;
    }
    own_files_find(local, &own);
    if (store_local_withholds_opened(local, &own, descriptor, &info)) {
        status = not_found(error);
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

/* Returns true if the error means that the store has no such file. A folder is not a file of the
 * store, and a name that is too long cannot exist. */
static bool is_absent(int os_error)
{
    return os_error == ENOENT || os_error == EISDIR || os_error == ENAMETOOLONG;
}

/* A removal that reports failure may still have happened. */
static bool remove_name(int folder, const char *base)
{
    struct stat info;
    int os_error;

    if (unlinkat(folder, base, 0) == 0)
        return true;
    os_error = errno;
    if (os_error != ENOENT && fstatat(folder, base, &info, AT_SYMLINK_NOFOLLOW) != 0 &&
        errno == ENOENT)
        return true;
    errno = os_error;
    return false;
}

/* Expectations are ignored here: writers exclude each other (hold), and other programs do not take
 * part in that. */
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
    if (store_local_withholds_name(local, folder, base))
        status = not_found(error);
    else if (!remove_name(folder, base))
        status =
            is_absent(errno) ? not_found(error) : store_fail_errno(error, errno, "cannot remove");
    close(folder);
    return status;
}

static size_t local_misnamed_files(const struct store *store)
{
    return atomic_load(&((const struct local_store *)store)->misnamed_files);
}

static int local_watch(struct store *store)
{
    return store_watch_descriptor(((struct local_store *)store)->watch);
}

static bool local_changed(struct store *store)
{
    return store_watch_drain(((struct local_store *)store)->watch);
}

static bool local_is_changing(struct store *store)
{
    return store_watch_is_waiting(((struct local_store *)store)->watch);
}

static bool local_reports(const struct store *store)
{
    return store_watch_is_complete(((const struct local_store *)store)->watch);
}

static void local_close(struct store *store)
{
    struct local_store *local = (struct local_store *)store;

    assert(local->root >= 0);
    store_watch_free(local->watch);
    skipped_free(&local->skipped);
    staging_end(&local->staging);
    close(local->root);
    store_withheld_free(local);
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
    .publish = store_local_publish,
    .may_publish = store_local_may_publish,
    .find_links = store_local_find_links,
    .make_folder = store_local_make_folder,
    .exclude = store_local_exclude,
    .remove = local_remove,
    .settle = store_local_settle,
    .remove_emptied = store_local_remove_emptied,
    .identity_of = local_identity_of,
    .misnamed_files = local_misnamed_files,
    .watch = local_watch,
    .changed = local_changed,
    .is_changing = local_is_changing,
    .reports = local_reports,
    .list_changes = store_local_list_changes,
    .close = local_close,
};

static enum zt_status fail_root(const char *root, int os_error, struct zt_error *error)
{
    enum zt_status status = os_error == ENOENT ? ZT_NOT_FOUND : ZT_IO;

    /* Only this message contains a path: it is for the user at the command line. */
    zt_fail(error, status, NULL, ZT_NO_OFFSET, "cannot open the folder %.180s: %s", root,
            strerrordesc_np(os_error));
    if (error != NULL)
        error->os_error = os_error;
    return status;
}

/* Makes a path absolute, so that the folder can be found again when it is replaced. */
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

enum zt_status store_root_open(const char *root, int *out_descriptor, struct zt_error *error)
{
    const int descriptor = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (descriptor < 0)
        return fail_root(root, errno, error);
    /* If a folder can be opened but not entered, every file would seem to be missing. */
    if (faccessat(descriptor, ".", R_OK | X_OK, AT_EACCESS) != 0) {
        int os_error = errno;

        close(descriptor);
        return fail_root(root, os_error, error);
    }
    *out_descriptor = descriptor;
    return ZT_OK;
}

int store_local_root(const struct store *store)
{
    assert(store->ops == &local_ops);
    return ((const struct local_store *)store)->root;
}

enum zt_status store_local_check(const char *root, struct zt_error *error)
{
    int descriptor;
    const enum zt_status status = store_root_open(root, &descriptor, error);

    if (status == ZT_OK)
        close(descriptor);
    return status;
}

enum zt_status store_local_view(const char *root, struct store **out_store, struct zt_error *error)
{
    struct local_store *local;
    int descriptor;
    const enum zt_status status = store_root_open(root, &descriptor, error);

    if (status != ZT_OK)
        return status;
    local = calloc(1, sizeof(*local));
    if (local != NULL) {
        local->root_path = absolute_path(root);
        local->watch = store_watch_new();
    }
    if (local == NULL || local->root_path == NULL || local->watch == NULL) {
        close(descriptor);
        if (local != NULL) {
            store_watch_free(local->watch);
            free(local->root_path);
        }
        free(local);
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for the store");
    }
    local->base.ops = &local_ops;
    local->root = descriptor;
    find_user(local->user);
    staging_init(&local->staging, descriptor);
    local->base.staging = &local->staging;
    *out_store = &local->base;
    return ZT_OK;
}

enum zt_status store_local_open(const char *root, uint64_t reserve_bytes, struct store **out_store,
                                struct zt_error *error)
{
    const enum zt_status status = store_local_view(root, out_store, error);

    if (status != ZT_OK)
        return status;
    staging_set_reserve((*out_store)->staging, reserve_bytes);
    staging_sweep((*out_store)->staging);
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
