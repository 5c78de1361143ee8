#include "download/part_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk/disk_file.h"
#include "disk/named_file.h"
#include "download/replaceable.h"

/* How many times another process may rename or remove the part file between our opening and locking
 * it. */
#define OPENINGS_MOST 8

enum zt_status part_file_init(struct part_file *file, const char *path, bool replaces_any,
                              struct zt_error *error)
{
    struct stat status;

    *file = (struct part_file){.path = path, .replaces_any = replaces_any, .descriptor = -1};
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "it exists and is not a regular file");
    if (asprintf(&file->part, "%s.part", path) < 0)
        file->part = NULL;
    if (asprintf(&file->journal, "%s.part.json", path) < 0)
        file->journal = NULL;
    return file->part != NULL && file->journal != NULL ? ZT_OK : zt_fail_memory(error, "a path");
}

void part_file_free(struct part_file *file)
{
    assert(file->descriptor < 0);
    free(file->part);
    free(file->journal);
}

/* --- the open file --- */

/* Returns ZT_STALE if the opened file no longer has the name. */
static enum zt_status open_locked(const char *path, int *out_descriptor, struct zt_error *error)
{
    const int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    enum zt_status status = ZT_OK;
    struct stat file;

    if (descriptor < 0 && errno != ELOOP)
        return disk_fail(error, "the part file cannot be created");
    if (descriptor < 0)
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the part file is a symbolic link");
    if (fstat(descriptor, &file) != 0 || !S_ISREG(file.st_mode))
        status = zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the part file is not a regular file");
    else if (flock(descriptor, LOCK_EX | LOCK_NB) != 0)
        status = zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET,
                         "another process is already downloading to this file");
    else if (!named_file_is_at(descriptor, path))
        status = ZT_STALE;
    if (status == ZT_OK)
        *out_descriptor = descriptor;
    else
        close(descriptor);
    return status;
}

enum zt_status part_file_open(struct part_file *file, struct zt_error *error)
{
    assert(file->part != NULL && file->descriptor < 0);
    for (unsigned i = 0; i < OPENINGS_MOST; i++) {
        const enum zt_status status = open_locked(file->part, &file->descriptor, error);

        if (status != ZT_STALE)
            return status;
    }
    return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET,
                   "other processes are already downloading to this file");
}

void part_file_close(struct part_file *file)
{
    assert(file->descriptor >= 0);
    close(file->descriptor);
    file->descriptor = -1;
}

bool part_file_is_blank(const struct part_file *file)
{
    struct stat status;

    return fstat(file->descriptor, &status) == 0 && status.st_blocks == 0;
}

enum zt_status part_file_write(const struct part_file *file, uint64_t offset, const void *bytes,
                               size_t length, struct zt_error *error)
{
    assert(file->descriptor >= 0);
    return disk_write(file->descriptor, bytes, length, offset)
               ? ZT_OK
               : disk_fail(error, "the part file cannot be written");
}

enum zt_status part_file_truncate(const struct part_file *file, uint64_t size_bytes,
                                  struct zt_error *error)
{
    assert(file->descriptor >= 0);
    return ftruncate(file->descriptor, (off_t)size_bytes) == 0
               ? ZT_OK
               : disk_fail(error, "the part file cannot be written");
}

/* --- the end --- */

enum zt_status part_file_publish(const struct part_file *file, struct zt_error *error)
{
    assert(file->descriptor >= 0);
    if (!named_file_is_at(file->descriptor, file->part))
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET,
                       "the part file has been moved, removed or replaced meanwhile");
    if (!file->replaces_any && replaceable_check(file->path, error) != ZT_OK)
        return error->status;
    if (fsync(file->descriptor) != 0 || rename(file->part, file->path) != 0)
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the file cannot be completed: %s",
                       strerrordesc_np(errno));
    unlink(file->journal);
    if (!named_file_sync_folder(file->path))
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET,
                       "it was written, but a power failure may undo that, because its folder "
                       "cannot be synced: %s",
                       strerrordesc_np(errno));
    return ZT_OK;
}

void part_file_remove(const struct part_file *file)
{
    assert(file->descriptor >= 0);
    if (!named_file_is_at(file->descriptor, file->part)) {
        if (faccessat(AT_FDCWD, file->part, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
            unlink(file->journal);
        return;
    }
    unlink(file->part);
    unlink(file->journal);
}
