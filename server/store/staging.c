/* Files that are being uploaded. They have no name, so a crash leaves nothing behind.
 *
 * A file is unnamed (O_TMPFILE) if the file system supports that; otherwise it is hidden in the
 * root. A hidden file is locked while its process lives, so that another process can recognise
 * leftovers of a crash. */
#include "store/staging.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk/open_files.h"
#include "store/store_path.h"

#define FILE_MODE 0644
/* Names are random: this many collisions in a row are not a coincidence. */
#define NAME_TRIES_MAX 16
/* Writing this much or more starts write-out, which may wait for the disk. Event loops, which must
 * not wait, write smaller pieces. */
#define WRITE_OUT_BYTES ((size_t)256 << 10)

/* --- the area --- */

void staging_init(struct staging *staging, int root)
{
    assert(root >= 0);
    *staging = (struct staging){.root = root, .locks_descriptor = -1};
    pthread_mutex_init(&staging->lock, NULL);
}

void staging_set_reserve(struct staging *staging, uint64_t reserve_bytes)
{
    if (staging == NULL)
        return;
    atomic_store(&staging->reserve_bytes, reserve_bytes);
    disk_space_set_reserve(staging->root, reserve_bytes);
}

static bool is_leftover(const char *name)
{
    return strncmp(name, STAGING_FILE_PREFIX, strlen(STAGING_FILE_PREFIX)) == 0 ||
           strncmp(name, STAGING_PUBLISH_PREFIX, strlen(STAGING_PUBLISH_PREFIX)) == 0;
}

static void remove_leftover(int root, const char *name)
{
    int descriptor = store_path_open_file(root, name, O_RDONLY | O_NOFOLLOW);

    assert(is_leftover(name));
    if (descriptor < 0)
        return;
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        unlinkat(root, name, 0);
    close(descriptor);
}

void staging_sweep(const struct staging *staging)
{
    int descriptor = openat(staging->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = descriptor < 0 ? NULL : fdopendir(descriptor);
    const struct dirent *entry;

    if (stream == NULL) {
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    while ((entry = readdir(stream)) != NULL)
        if (is_leftover(entry->d_name))
            remove_leftover(staging->root, entry->d_name);
    closedir(stream);
}

enum zt_status staging_refuse(struct zt_error *error)
{
    return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                   "this server does not accept uploads");
}

enum zt_status staging_explain(const struct staging *staging, enum zt_status status,
                               struct zt_error *error)
{
    if (!staging->is_beside_cache || status != ZT_IO || error == NULL)
        return status;
    return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                   "the folder of uploads in the cache cannot be written to: %s",
                   strerrordesc_np(error->os_error));
}

enum zt_status staging_space(const struct staging *staging, uint64_t *out_bytes,
                             struct zt_error *error)
{
    uint64_t reserve;
    uint64_t left;

    if (staging == NULL)
        return staging_refuse(error);
    reserve = atomic_load(&staging->reserve_bytes);
    if (!disk_space_left(staging->root, &left))
        return store_fail_errno(error, errno, "cannot find the free space");
    *out_bytes = left > reserve ? left - reserve : 0;
    return ZT_OK;
}

/* If the free space is unknown, the write itself will find out. */
bool staging_could_take(const struct staging *staging, uint64_t bytes)
{
    uint64_t space = 0;

    return staging_space(staging, &space, NULL) != ZT_OK || bytes <= space ||
           bytes - space <= disk_space_savable(staging->root);
}

enum zt_status staged_file_take_space(struct staged_file *file, uint64_t bytes,
                                      struct zt_error *error)
{
    assert(file->descriptor >= 0);
    return disk_claim_ahead(&file->space, bytes, atomic_load(&file->staging->reserve_bytes), error);
}

void staged_file_return_space(struct staged_file *file, uint64_t bytes)
{
    disk_claim_give_back(&file->space, bytes);
}

enum zt_status staged_file_cover(struct staged_file *file, uint64_t offset, uint64_t length,
                                 struct zt_error *error)
{
    const uint64_t reserve = atomic_load(&file->staging->reserve_bytes);

    assert(file->descriptor >= 0);
    if (file->is_record && disk_claim_cover(&file->space, offset, length, reserve, NULL) != ZT_OK)
        return disk_claim_cover(&file->space, offset, length, 0, error);
    return disk_claim_cover(&file->space, offset, length, reserve, error);
}

/* Creates a hidden file and locks it. Tries again if another process removes it as a leftover
 * before it is locked. */
static int create_hidden(int root, char out_name[STAGING_HIDDEN_NAME_SIZE])
{
    for (int i = 0; i < NAME_TRIES_MAX; i++) {
        struct stat info;
        int descriptor;

        store_hidden_name(STAGING_FILE_PREFIX, out_name);
        descriptor =
            openat(root, out_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
        if (descriptor < 0 && errno != EEXIST && errno != EINTR)
            return -1;
        if (descriptor < 0)
            continue;
        /* If locks do not work here, sweeps cannot lock the file either and leave it alone. */
        (void)flock(descriptor, LOCK_EX | LOCK_NB);
        if (fstat(descriptor, &info) == 0 && info.st_nlink > 0)
            return descriptor;
        close(descriptor);
    }
    errno = EEXIST;
    return -1;
}

static int create_file(int root, char out_name[STAGING_HIDDEN_NAME_SIZE])
{
    int descriptor;

    out_name[0] = '\0';
    do {
        descriptor = openat(root, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, FILE_MODE);
    } while (descriptor < 0 && errno == EINTR);
    if (descriptor >= 0)
        return descriptor;
    /* These errors mean that the kernel or the file system has no unnamed files. */
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT)
        return -1;
    return create_hidden(root, out_name);
}

enum zt_status staging_count_files(bool is_new, struct zt_error *error)
{
    if (is_new ? open_files_begin_upload(STAGED_FILE_DESCRIPTORS)
               : open_files_continue_upload(STAGED_FILE_DESCRIPTORS))
        return ZT_OK;
    zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "too many files are being uploaded at this moment");
    if (error != NULL)
        error->os_error = EMFILE;
    return ZT_IO;
}

/* A file of unknown length is refused at once if not even one byte fits. */
static enum zt_status claim_space(struct staged_file *file, uint64_t expected_bytes,
                                  struct zt_error *error)
{
    const bool is_known = expected_bytes != UINT64_MAX;
    struct stat info;

    disk_claim_init(&file->space, file->descriptor,
                    fstat(file->descriptor, &info) == 0 ? (uint64_t)info.st_size : 0);
    return staged_file_take_space(file, is_known ? expected_bytes : 1, error);
}

enum zt_status staged_file_new(struct staging *staging, int descriptor, uint64_t expected_bytes,
                               struct staged_file **out_file, struct zt_error *error)
{
    struct staged_file *file = calloc(1, sizeof(*file));
    enum zt_status status;

    if (file == NULL) {
        open_files_end_upload(STAGED_FILE_DESCRIPTORS);
        close(descriptor);
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for an upload");
    }
    assert(descriptor >= 0);
    file->staging = staging;
    file->descriptor = descriptor;
    file->folder = -1;
    status = claim_space(file, expected_bytes, error);
    if (status != ZT_OK) {
        open_files_end_upload(STAGED_FILE_DESCRIPTORS);
        close(descriptor);
        free(file);
        return status;
    }
    *out_file = file;
    return ZT_OK;
}

static enum zt_status create_unnamed(struct staging *staging, uint64_t expected_bytes,
                                     struct staged_file **out_file, struct zt_error *error)
{
    char hidden[STAGING_HIDDEN_NAME_SIZE];
    struct staged_file *file;
    enum zt_status status;
    int descriptor;

    status = staging_count_files(true, error);
    if (status != ZT_OK)
        return status;
    descriptor = create_file(staging->root, hidden);
    if (descriptor < 0) {
        status = store_fail_errno(error, errno, "cannot create a file");
        open_files_end_upload(STAGED_FILE_DESCRIPTORS);
        return status;
    }
    status = staged_file_new(staging, descriptor, expected_bytes, &file, error);
    if (status != ZT_OK) {
        if (hidden[0] != '\0')
            unlinkat(staging->root, hidden, 0);
        return status;
    }
    strcpy(file->hidden, hidden);
    *out_file = file;
    return ZT_OK;
}

enum zt_status staging_create(struct staging *staging, uint64_t expected_bytes,
                              struct staged_file **out_file, struct zt_error *error)
{
    if (staging == NULL)
        return staging_refuse(error);
    return staging_explain(staging, create_unnamed(staging, expected_bytes, out_file, error),
                           error);
}

/* --- a file --- */

/* Starts writing to disk, so that the final sync has little to wait for. An error reported here may
 * not be reported again by the sync. */
static bool begin_write_out(struct staged_file *file, uint64_t offset, size_t length)
{
    assert(length >= WRITE_OUT_BYTES);
    if (sync_file_range(file->descriptor, (off_t)offset, (off_t)length, SYNC_FILE_RANGE_WRITE) ==
            0 ||
        errno == ENOSYS || errno == ESPIPE || errno == EINVAL)
        return true;
    atomic_store(&file->is_unreliable, true);
    return false;
}

enum zt_status staged_file_write_at(struct staged_file *file, uint64_t offset, const void *bytes,
                                    size_t length, struct zt_error *error)
{
    const char *from = bytes;
    size_t left = length;
    enum zt_status status;

    if (offset > INT64_MAX || length > INT64_MAX - offset)
        return zt_fail(error, ZT_LIMIT, NULL, offset, "past the end of any file");
    status = staged_file_cover(file, offset, length, error);
    if (status != ZT_OK)
        return status;
    while (left > 0) {
        ssize_t put = pwrite(file->descriptor, from, left, (off_t)offset);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return store_fail_errno(error, put == 0 ? ENOSPC : errno, "cannot write");
        from += put;
        offset += (uint64_t)put;
        left -= (size_t)put;
    }
    disk_claim_spend(&file->space, offset - length, length);
    if (length >= WRITE_OUT_BYTES && !begin_write_out(file, offset - length, length))
        return store_fail_errno(error, errno, "cannot write");
    return ZT_OK;
}

enum zt_status staged_file_read_back(struct staged_file *file, struct zt_source **out_source,
                                     struct zt_error *error)
{
    struct zt_source *source;
    enum zt_status status;
    int descriptor = fcntl(file->descriptor, F_DUPFD_CLOEXEC, 0);

    if (descriptor < 0)
        return store_fail_errno(error, errno, "cannot read back");
    status = zt_source_from_descriptor(descriptor, &source, error);
    if (status != ZT_OK) {
        close(descriptor);
        return status;
    }
    zt_source_close(file->read_back);
    file->read_back = source;
    *out_source = source;
    return ZT_OK;
}

/* The kernel reports a failed write once and then treats the page as clean. After a failure, later
 * syncs are therefore not trusted. */
static enum zt_status sync_with(struct staged_file *file, int (*sync)(int descriptor),
                                struct zt_error *error)
{
    int failed;

    assert(file->descriptor >= 0);
    if (atomic_load(&file->is_unreliable))
        return store_fail_errno(error, EIO, "cannot sync");
    do {
        failed = sync(file->descriptor);
    } while (failed != 0 && errno == EINTR);
    if (failed == 0)
        return ZT_OK;
    atomic_store(&file->is_unreliable, true);
    return store_fail_errno(error, errno, "cannot sync");
}

enum zt_status staged_file_sync(struct staged_file *file, struct zt_error *error)
{
    enum zt_status status = sync_with(file, fdatasync, error);

    assert(file->folder >= 0 || !file->is_named_durably);
    if (status != ZT_OK || file->folder < 0 || file->is_named_durably)
        return status;
    status = staging_folder_sync(file, error);
    file->is_named_durably = status == ZT_OK;
    return status;
}

enum zt_status staged_file_sync_whole(struct staged_file *file, struct zt_error *error)
{
    return sync_with(file, fsync, error);
}

enum zt_status staged_file_truncate(struct staged_file *file, uint64_t length,
                                    struct zt_error *error)
{
    int failed;

    assert(file->descriptor >= 0);
    if (length > INT64_MAX)
        return zt_fail(error, ZT_LIMIT, NULL, length, "past the end of any file");
    do {
        failed = ftruncate(file->descriptor, (off_t)length);
    } while (failed != 0 && errno == EINTR);
    return failed == 0 ? ZT_OK : store_fail_errno(error, errno, "cannot cut");
}

uint64_t staged_file_length(const struct staged_file *file)
{
    struct stat info;

    return fstat(file->descriptor, &info) == 0 ? (uint64_t)info.st_size : 0;
}

static void end_file(struct staged_file *file)
{
    assert(file->descriptor >= 0);
    if (file->transfer != NULL)
        file->transfer->end(file->transfer);
    disk_claim_end(&file->space);
    open_files_end_upload(STAGED_FILE_DESCRIPTORS);
    zt_source_close(file->read_back);
    close(file->descriptor);
    if (file->folder >= 0)
        close(file->folder);
    free(file);
}

void staged_file_close(struct staged_file *file)
{
    if (file == NULL)
        return;
    if (file->hidden[0] != '\0' && file->folder < 0)
        unlinkat(file->staging->root, file->hidden, 0);
    end_file(file);
}

void staged_file_remove(struct staged_file *file)
{
    if (file->hidden[0] != '\0')
        unlinkat(staged_folder(file), file->hidden, 0);
    end_file(file);
}

bool staged_file_discard(struct staged_file *file, uint64_t offset, uint64_t length)
{
    int done;

    if (length == 0)
        return true;
    if (offset > INT64_MAX || length > INT64_MAX - offset)
        return false;
    do {
        done = fallocate(file->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                         (off_t)offset, (off_t)length);
    } while (done != 0 && errno == EINTR);
    return done == 0;
}
