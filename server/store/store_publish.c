/* Publishes in a folder: gives an upload's file its name in one atomic and durable step. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "store/store_local.h"

/* Names are random: this many collisions in a row are not a coincidence. */
#define NAME_TRIES_MAX 16

bool store_link_open(int descriptor, int folder, const char *name)
{
    char path[64];

    assert(descriptor >= 0 && folder >= 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);
    if (linkat(AT_FDCWD, path, folder, name, AT_SYMLINK_FOLLOW) == 0)
        return true;
    /* For systems without /proc; needs a capability. */
    return errno == ENOENT && linkat(descriptor, "", folder, name, AT_EMPTY_PATH) == 0;
}

/* Gives an unnamed file a hidden name in the root, from which it can be renamed over another file.
 * Returns false with errno. */
static bool hide_unnamed(const struct staged_file *file, char out_name[STAGING_HIDDEN_NAME_SIZE])
{
    assert(file->hidden[0] == '\0');
    /* The lock makes sweeps leave the hidden name alone. */
    (void)flock(file->descriptor, LOCK_EX | LOCK_NB);
    for (int i = 0; i < NAME_TRIES_MAX; i++) {
        store_hidden_name(STAGING_PUBLISH_PREFIX, out_name);
        if (store_link_open(file->descriptor, file->staging->root, out_name))
            return true;
        if (errno != EEXIST)
            break;
    }
    return false;
}

/* Renames without replacing, also on file systems without RENAME_NOREPLACE. If the hidden name
 * cannot be removed there, the file keeps both names. */
static bool rename_new(int root, const char *hidden, int folder, const char *name)
{
    assert(hidden[0] != '\0' && folder >= 0);
    if (renameat2(root, hidden, folder, name, RENAME_NOREPLACE) == 0)
        return true;
    if ((errno != EINVAL && errno != ENOSYS) || linkat(root, hidden, folder, name, 0) != 0)
        return false;
    unlinkat(root, hidden, 0);
    return true;
}

/* An unnamed file that once had a name cannot get another one. It therefore keeps the hidden name
 * as long as publishing may be retried. */
static bool give_name(struct staged_file *file, int folder, const char *name, bool replace)
{
    char hidden[STAGING_HIDDEN_NAME_SIZE];
    int root = file->staging->root;
    int kept;

    assert(folder >= 0 && name[0] != '\0');
    if (file->hidden[0] != '\0')
        return replace ? renameat(staged_folder(file), file->hidden, folder, name) == 0
                       : rename_new(staged_folder(file), file->hidden, folder, name);
    if (!replace)
        return store_link_open(file->descriptor, folder, name);
    if (!hide_unnamed(file, hidden))
        return false;
    if (renameat(root, hidden, folder, name) == 0)
        return true;
    kept = errno;
    if (kept == ENOENT)
        strcpy(file->hidden, hidden);
    else
        unlinkat(root, hidden, 0);
    errno = kept;
    return false;
}

/* Returns true if this name belongs to the upload's own file. Keeps errno. */
static bool has_name(const struct staged_file *file, int folder, const char *name)
{
    const int os_error = errno;
    struct stat own;
    struct stat named;
    const bool is_same = fstat(file->descriptor, &own) == 0 &&
                         fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
                         own.st_dev == named.st_dev && own.st_ino == named.st_ino;

    assert(file->descriptor >= 0 && folder >= 0);
    errno = os_error;
    return is_same;
}

static enum zt_status fail_publish(int os_error, struct zt_error *error)
{
    static const char what[] = "cannot publish";

    switch (os_error) {
    case EEXIST:
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the name is taken");
    case ENOTDIR:
    case EISDIR:
    case ENOTEMPTY:
    case ENAMETOOLONG:
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the name cannot be used: %s",
                       strerrordesc_np(os_error));
    default:
        return store_fail_errno(error, os_error, what);
    }
}

/* Links to nothing or out of the root, FIFOs, sockets and devices are not files of the store. The
 * person who put them there did not mean a model to replace them. */
static bool may_replace(const struct local_store *local, const char *path, struct zt_error *error)
{
    if (!store_path_is_other(local->root, path))
        return true;
    (void)zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                  "%s exists, and is a link out of the store, or neither a file nor a folder",
                  path);
    return false;
}

/* Gives the file its name and returns the folder's descriptor, or -1 with errno. A folder that
 * another program removes before the file is in it is made again. A call that reports failure may
 * still have happened (NFS, FUSE), so the name itself is checked. */
static int name_below(const struct local_store *local, struct staged_file *file, const char *path,
                      bool replace, const char **out_base)
{
    for (unsigned tries = 1;; tries++) {
        const int folder = store_path_open_parent(local->root, path, true, out_base);
        const bool is_withheld =
            folder >= 0 && store_local_withholds_name(local, folder, *out_base);
        int os_error;

        if (folder < 0 || (!is_withheld && (give_name(file, folder, *out_base, replace) ||
                                            has_name(file, folder, *out_base))))
            return folder;
        os_error = is_withheld ? EISDIR : errno;
        close(folder);
        errno = os_error;
        if (os_error != ENOENT || tries == STORE_FOLDER_TRIES_MAX)
            return -1;
    }
}

enum zt_status store_local_publish(struct store *store, struct staged_file *file, const char *path,
                                   const struct store_expected *expected, struct zt_error *error)
{
    const struct local_store *local = (const struct local_store *)store;
    const bool replace = expected->what != STORE_EXPECTS_NOTHING;
    const char *base;
    int folder;
    enum zt_status status;

    if (!store_path_is_clean(path) || store_local_withholds_place(local, path))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the name cannot be used");
    if (replace && !may_replace(local, path, error))
        return ZT_ARGUMENT;
    status = staged_file_sync_whole(file, error);
    if (status != ZT_OK)
        return status;
    assert(!atomic_load(&file->is_unreliable) && file->transfer == NULL);
    folder = name_below(local, file, path, replace, &base);
    if (folder < 0)
        return fail_publish(errno, error);
    close(folder);
    file->hidden[0] = '\0';
    staged_file_close(file);
    return ZT_OK;
}

/* Opens the folder that contains a path, or the nearest one above it that still exists. Returns -1
 * with errno. */
static int open_nearest_folder(int root, const char *path)
{
    char part[STORE_PATH_SIZE];
    const char *base;
    int folder;

    snprintf(part, sizeof(part), "%s", path);
    for (;;) {
        char *slash = strrchr(part, '/');

        folder = store_path_open_parent(root, part, false, &base);
        if (folder >= 0 || errno != ENOENT || slash == NULL)
            return folder;
        *slash = '\0';
    }
}

enum zt_status store_local_settle(struct store *store, const char *path, struct zt_error *error)
{
    const int folder = open_nearest_folder(((const struct local_store *)store)->root, path);
    enum zt_status status = ZT_OK;
    int failed;

    if (folder < 0)
        return store_fail_errno(error, errno, "cannot open the folder to sync it");
    do {
        failed = fsync(folder);
    } while (failed != 0 && errno == EINTR);
    if (failed != 0)
        status = store_fail_errno(error, errno, "cannot sync the folder");
    close(folder);
    return status;
}
