/* Files on their way into the store: written without a name, then published in one step that is
 * atomic and durable.
 *
 * The file is unnamed (O_TMPFILE) if the file system supports that, else hidden in the root. A
 * hidden file is locked as long as its process lives, so that another process can recognise what a
 * crash left behind. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "store/store_local.h"

#define FILE_MODE 0644
/* Names are random: so many collisions in a row are no accident. */
#define NAME_TRIES_MAX 16
/* How much may be written between two checks of the free space. */
#define RESERVE_STEP_BYTES ((uint64_t)256 << 20)
/* Writing this much or more starts write-out, which may wait for the disk. Event loops, which must
 * not wait, write smaller pieces. */
#define WRITE_OUT_BYTES ((size_t)256 << 10)

static enum zt_status find_free(const struct local_store *local, uint64_t *out_bytes,
                                struct zt_error *error)
{
    struct statvfs disk;

    if (fstatvfs(local->root, &disk) != 0)
        return store_fail_errno(error, errno, "cannot find the free space");
    *out_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    return ZT_OK;
}

enum zt_status store_space(const struct store *store, uint64_t *out_bytes, struct zt_error *error)
{
    const struct local_store *local = (const struct local_store *)store;
    uint64_t free_bytes = 0;
    const uint64_t reserve = atomic_load(&local->reserve_bytes);
    enum zt_status status = find_free(local, &free_bytes, error);

    if (status == ZT_OK)
        *out_bytes = free_bytes > reserve ? free_bytes - reserve : 0;
    return status;
}

enum zt_status store_check_space(const struct local_store *local, uint64_t expected_bytes,
                                 struct zt_error *error)
{
    uint64_t wanted_bytes = expected_bytes == UINT64_MAX ? 0 : expected_bytes;
    uint64_t reserve = atomic_load(&local->reserve_bytes);
    uint64_t free_bytes = 0;
    enum zt_status status = find_free(local, &free_bytes, error);

    if (status != ZT_OK)
        return status;
    if (free_bytes < reserve || free_bytes - reserve < wanted_bytes)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "there is not enough free space beyond the reserve");
    return ZT_OK;
}

/* A hidden file, locked. If another process removes it as a leftover before it is locked, tries
 * again. */
static int create_hidden(int root, char out_name[STORE_HIDDEN_NAME_SIZE])
{
    for (int i = 0; i < NAME_TRIES_MAX; i++) {
        struct stat info;
        int descriptor;

        store_hidden_name(STORE_UPLOAD_PREFIX, out_name);
        descriptor =
            openat(root, out_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
        if (descriptor < 0 && errno != EEXIST && errno != EINTR)
            return -1;
        if (descriptor < 0)
            continue;
        /* If locks do not work here, a sweep cannot get one either and leaves the file alone. */
        (void)flock(descriptor, LOCK_EX | LOCK_NB);
        if (fstat(descriptor, &info) == 0 && info.st_nlink > 0)
            return descriptor;
        close(descriptor);
    }
    errno = EEXIST;
    return -1;
}

static int create_file(int root, char out_name[STORE_HIDDEN_NAME_SIZE])
{
    int descriptor;

    out_name[0] = '\0';
    do {
        descriptor = openat(root, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, FILE_MODE);
    } while (descriptor < 0 && errno == EINTR);
    if (descriptor >= 0)
        return descriptor;
    /* The errors of kernels and file systems without unnamed files. */
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT)
        return -1;
    return create_hidden(root, out_name);
}

enum zt_status store_upload_new(struct local_store *local, int descriptor,
                                struct local_upload **out_upload, struct zt_error *error)
{
    struct local_upload *upload = calloc(1, sizeof(*upload));

    if (upload == NULL) {
        close(descriptor);
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for an upload");
    }
    assert(descriptor >= 0);
    upload->base.store = &local->base;
    upload->descriptor = descriptor;
    upload->folder = -1;
    atomic_init(&upload->next_look, RESERVE_STEP_BYTES);
    *out_upload = upload;
    return ZT_OK;
}

enum zt_status store_local_create(struct store *store, uint64_t expected_bytes,
                                  struct stored_upload **out_upload, struct zt_error *error)
{
    struct local_store *local = (struct local_store *)store;
    enum zt_status status = store_check_space(local, expected_bytes, error);
    char hidden[STORE_HIDDEN_NAME_SIZE];
    struct local_upload *upload;
    int descriptor;

    if (status != ZT_OK)
        return status;
    descriptor = create_file(local->root, hidden);
    if (descriptor < 0)
        return store_fail_errno(error, errno, "cannot make a file");
    status = store_upload_new(local, descriptor, &upload, error);
    if (status != ZT_OK) {
        if (hidden[0] != '\0')
            unlinkat(local->root, hidden, 0);
        return status;
    }
    strcpy(upload->hidden, hidden);
    *out_upload = &upload->base;
    return ZT_OK;
}

/* A body of unknown length must not use up the reserve, so the free space is checked now and
 * then. */
enum zt_status store_account(struct local_upload *upload, uint64_t length, struct zt_error *error)
{
    uint64_t written = atomic_fetch_add(&upload->written, length) + length;

    if (written < atomic_load(&upload->next_look))
        return ZT_OK;
    atomic_store(&upload->next_look, written + RESERVE_STEP_BYTES);
    return store_check_space(local_store_of(upload), 0, error);
}

/* Starts writing to disk, so that the sync at the end has little to wait for. An error reported
 * here may not be reported again by the sync. */
static bool begin_write_out(struct local_upload *upload, uint64_t offset, size_t length)
{
    if (sync_file_range(upload->descriptor, (off_t)offset, (off_t)length, SYNC_FILE_RANGE_WRITE) ==
            0 ||
        errno == ENOSYS || errno == ESPIPE || errno == EINVAL)
        return true;
    atomic_store(&upload->is_doubtful, true);
    return false;
}

enum zt_status store_local_write_at(struct stored_upload *stored, uint64_t offset,
                                    const void *bytes, size_t length, struct zt_error *error)
{
    struct local_upload *upload = local_upload_of(stored);
    const char *from = bytes;
    size_t left = length;

    if (offset > INT64_MAX || length > INT64_MAX - offset)
        return zt_fail(error, ZT_LIMIT, NULL, offset, "past the end of any file");
    while (left > 0) {
        ssize_t put = pwrite(upload->descriptor, from, left, (off_t)offset);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return store_fail_errno(error, put == 0 ? ENOSPC : errno, "cannot write");
        from += put;
        offset += (uint64_t)put;
        left -= (size_t)put;
    }
    if (length >= WRITE_OUT_BYTES && !begin_write_out(upload, offset - length, length))
        return store_fail_errno(error, errno, "cannot write");
    return store_account(upload, length, error);
}

enum zt_status store_local_read_back(struct stored_upload *stored, struct zt_source **out_source,
                                     struct zt_error *error)
{
    struct local_upload *upload = local_upload_of(stored);
    struct zt_source *source;
    enum zt_status status;
    int descriptor = fcntl(upload->descriptor, F_DUPFD_CLOEXEC, 0);

    if (descriptor < 0)
        return store_fail_errno(error, errno, "cannot read back");
    status = zt_source_from_descriptor(descriptor, &source, error);
    if (status != ZT_OK) {
        close(descriptor);
        return status;
    }
    zt_source_close(upload->read_back);
    upload->read_back = source;
    *out_source = source;
    return ZT_OK;
}

/* Gives an unnamed file a name. False with errno. */
static bool link_unnamed(int descriptor, int folder, const char *name)
{
    char path[64];

    assert(descriptor >= 0 && folder >= 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);
    if (linkat(AT_FDCWD, path, folder, name, AT_SYMLINK_FOLLOW) == 0)
        return true;
    /* For systems without /proc; needs a capability. */
    return errno == ENOENT && linkat(descriptor, "", folder, name, AT_EMPTY_PATH) == 0;
}

/* Gives an unnamed file a hidden name in the root, from which it can be renamed to replace another
 * file. False with errno. */
static bool hide_unnamed(const struct local_upload *upload, char out_name[STORE_HIDDEN_NAME_SIZE])
{
    assert(upload->hidden[0] == '\0');
    /* The lock tells sweeps to leave the hidden name alone. */
    (void)flock(upload->descriptor, LOCK_EX | LOCK_NB);
    for (int i = 0; i < NAME_TRIES_MAX; i++) {
        store_hidden_name(STORE_PUBLISH_PREFIX, out_name);
        if (link_unnamed(upload->descriptor, local_store_of(upload)->root, out_name))
            return true;
        if (errno != EEXIST)
            break;
    }
    return false;
}

/* A rename that replaces nothing, also on file systems without RENAME_NOREPLACE. */
static bool rename_new(int root, const char *hidden, int folder, const char *name)
{
    if (renameat2(root, hidden, folder, name, RENAME_NOREPLACE) == 0)
        return true;
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    return linkat(root, hidden, folder, name, 0) == 0 && unlinkat(root, hidden, 0) == 0;
}

/* The folder that a named upload is in. */
static int folder_of(const struct local_upload *upload)
{
    assert(upload->hidden[0] != '\0');
    return upload->folder >= 0 ? upload->folder : local_store_of(upload)->root;
}

/* An unnamed file that has had a name cannot get another: while it may be tried again, it keeps the
 * hidden one. */
static bool give_name(struct local_upload *upload, int folder, const char *name, bool replace)
{
    char hidden[STORE_HIDDEN_NAME_SIZE];
    int root = local_store_of(upload)->root;
    int kept;

    if (upload->hidden[0] != '\0')
        return replace ? renameat(folder_of(upload), upload->hidden, folder, name) == 0
                       : rename_new(folder_of(upload), upload->hidden, folder, name);
    if (!replace)
        return link_unnamed(upload->descriptor, folder, name);
    if (!hide_unnamed(upload, hidden))
        return false;
    if (renameat(root, hidden, folder, name) == 0)
        return true;
    kept = errno;
    if (kept == ENOENT)
        strcpy(upload->hidden, hidden);
    else
        unlinkat(root, hidden, 0);
    errno = kept;
    return false;
}

/* Undoes give_name: a file whose name may not survive a power cut must not be visible. A file that
 * had a hidden name before gets it back. */
static void take_name_back(const struct local_upload *upload, int folder, const char *name)
{
    if (upload->hidden[0] != '\0')
        renameat(folder, name, folder_of(upload), upload->hidden);
    else
        unlinkat(folder, name, 0);
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

static void end_upload(struct local_upload *upload)
{
    assert(upload->descriptor >= 0);
    zt_source_close(upload->read_back);
    close(upload->descriptor);
    if (upload->folder >= 0)
        close(upload->folder);
    free(upload);
}

/* The kernel reports a failed write once and then treats the page as clean, so after a failure no
 * later sync is believed. */
static enum zt_status sync_with(struct local_upload *upload, int (*sync)(int descriptor),
                                struct zt_error *error)
{
    if (atomic_load(&upload->is_doubtful))
        return store_fail_errno(error, EIO, "cannot sync");
    if (sync(upload->descriptor) == 0)
        return ZT_OK;
    atomic_store(&upload->is_doubtful, true);
    return store_fail_errno(error, errno, "cannot sync");
}

enum zt_status store_local_sync(struct stored_upload *stored, struct zt_error *error)
{
    struct local_upload *upload = local_upload_of(stored);
    enum zt_status status = sync_with(upload, fdatasync, error);

    assert(upload->folder >= 0 || !upload->is_named_durably);
    if (status != ZT_OK || upload->folder < 0 || upload->is_named_durably)
        return status;
    status = store_kept_sync_place(upload, error);
    upload->is_named_durably = status == ZT_OK;
    return status;
}

enum zt_status store_local_truncate(struct stored_upload *stored, uint64_t length,
                                    struct zt_error *error)
{
    struct local_upload *upload = local_upload_of(stored);
    if (length > INT64_MAX)
        return zt_fail(error, ZT_LIMIT, NULL, length, "past the end of any file");
    return ftruncate(upload->descriptor, (off_t)length) == 0
               ? ZT_OK
               : store_fail_errno(error, errno, "cannot cut");
}

uint64_t store_local_length(struct stored_upload *stored)
{
    struct local_upload *upload = local_upload_of(stored);
    struct stat info;

    return fstat(upload->descriptor, &info) == 0 ? (uint64_t)info.st_size : 0;
}

/* Links out of the root, links that lead nowhere, FIFOs, sockets and devices are no files of the
 * store. Who put them there did not mean them to be replaced by a model. */
static bool may_replace(const struct local_upload *upload, const char *path, struct zt_error *error)
{
    if (!store_path_is_other(local_store_of(upload)->root, path))
        return true;
    (void)zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                  "there is something else of the name %s: a link out of the store, or what is "
                  "neither file nor folder",
                  path);
    return false;
}

/* The folder that the file is in now, with its name in it; -1 with errno. A folder that somebody
 * else removes before the file is in it is made again. */
static int name_below(struct local_upload *upload, const char *path, bool replace,
                      const char **out_base)
{
    for (unsigned tries = 1;; tries++) {
        const int folder =
            store_path_open_parent(local_store_of(upload)->root, path, true, out_base);
        int os_error;

        if (folder < 0 || give_name(upload, folder, *out_base, replace))
            return folder;
        os_error = errno;
        close(folder);
        errno = os_error;
        if (os_error != ENOENT || tries == STORE_FOLDER_TRIES_MAX)
            return -1;
    }
}

enum zt_status store_local_publish(struct stored_upload *stored, const char *path,
                                   const struct store_expected *expected, struct zt_error *error)
{
    struct local_upload *upload = local_upload_of(stored);
    const bool replace = expected->what != STORE_EXPECTS_NOTHING;
    const char *base;
    int folder;
    enum zt_status status;

    if (!store_path_is_clean(path) || store_local_withholds(local_store_of(upload), path))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the name cannot be used");
    if (replace && !may_replace(upload, path, error))
        return ZT_ARGUMENT;
    status = sync_with(upload, fsync, error);
    if (status != ZT_OK)
        return status;
    assert(!atomic_load(&upload->is_doubtful));
    folder = name_below(upload, path, replace, &base);
    if (folder < 0)
        return fail_publish(errno, error);
    if (fsync(folder) != 0) {
        status = store_fail_errno(error, errno, "cannot sync the folder");
        /* A file that was replaced cannot be brought back. */
        if (!replace)
            take_name_back(upload, folder, base);
        goto out;
    }
    end_upload(upload);
out:
    close(folder);
    return status;
}

void store_local_abandon(struct stored_upload *stored)
{
    struct local_upload *upload = local_upload_of(stored);

    if (upload == NULL)
        return;
    if (upload->hidden[0] != '\0' && upload->folder < 0)
        unlinkat(local_store_of(upload)->root, upload->hidden, 0);
    end_upload(upload);
}

void store_local_finish(struct stored_upload *stored)
{
    struct local_upload *upload = local_upload_of(stored);

    if (upload->hidden[0] != '\0')
        unlinkat(folder_of(upload), upload->hidden, 0);
    end_upload(upload);
}

bool store_local_discard(struct stored_upload *stored, uint64_t offset, uint64_t length)
{
    struct local_upload *upload = local_upload_of(stored);
    int done;

    if (length == 0)
        return true;
    if (offset > INT64_MAX || length > INT64_MAX - offset)
        return false;
    do {
        done = fallocate(upload->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                         (off_t)offset, (off_t)length);
    } while (done != 0 && errno == EINTR);
    return done == 0;
}
