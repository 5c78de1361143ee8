/* Writes files that appear only when they are complete: a file has no name at first, then is linked
 * and renamed, and its folder is synced. */
#include "conversion/output_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk/disk_file.h"
#include "disk/named_file.h"
#include "zt/model.h"

#define BUFFER_BYTES ((size_t)1 << 20)
/* Leaves room in a name of 255 bytes for the rest of a hidden one. */
#define ASIDE_NAME_MAX 200
#define FILE_MODE      0666 /* less the umask */

static enum zt_status fail_io(struct output_file *file, struct zt_error *error, const char *what)
{
    file->failed = true;
    return disk_fail(error, what);
}

static enum zt_status no_memory(struct output_file *file, struct zt_error *error)
{
    file->failed = true;
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
}

static enum zt_status fail_irregular(struct output_file *file, struct zt_error *error)
{
    file->failed = true;
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "it exists and is not a regular file");
}

/* --- names --- */

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (slash == NULL)
        return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* Random, so that a name is unique even if several machines or containers share the folder. */
static uint64_t random_number(void)
{
    uint64_t number;

    return getrandom(&number, sizeof(number), GRND_NONBLOCK) == (ssize_t)sizeof(number)
               ? number
               : (uint64_t)getpid();
}

static char *temporary_in(const char *folder)
{
    char *path = NULL;

    return asprintf(&path, "%s/.ztserve-%016" PRIx64 ".partial", folder, random_number()) < 0
               ? NULL
               : path;
}

/* A hidden name that says which file it is, even after the process was killed. */
static char *aside_of(const struct output_file *file)
{
    const char *slash = strrchr(file->target, '/');
    char *path = NULL;

    return asprintf(&path, "%s/.%.*s.%08" PRIx32 ".replaced", file->folder, ASIDE_NAME_MAX,
                    slash != NULL ? slash + 1 : file->target, (uint32_t)random_number()) < 0
               ? NULL
               : path;
}

/* Replaces a symbolic link by its target, if the target exists. */
static enum zt_status resolve(struct output_file *file, const char *path, struct zt_error *error)
{
    struct stat status;
    bool exists = stat(path, &status) == 0;

    assert(file->target == NULL && file->temporary == NULL);
    if (exists && !S_ISREG(status.st_mode))
        return fail_irregular(file, error);
    file->target = exists ? realpath(path, NULL) : strdup(path);
    file->folder = file->target != NULL ? folder_of(file->target) : NULL;
    file->temporary = file->folder != NULL ? temporary_in(file->folder) : NULL;
    return file->temporary != NULL ? ZT_OK : no_memory(file, error);
}

/* --- opening --- */

static enum zt_status open_descriptor(struct output_file *file, struct zt_error *error)
{
    assert(file->descriptor < 0 && !file->is_named);
    file->descriptor = open(file->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, FILE_MODE);
    if (file->descriptor >= 0)
        return ZT_OK;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL)
        return fail_io(file, error, "cannot write there");
    file->descriptor = open(file->temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, FILE_MODE);
    if (file->descriptor < 0)
        return fail_io(file, error, "cannot write there");
    file->is_named = true;
    return ZT_OK;
}

enum zt_status output_file_open(const char *path, struct output_file *out_file,
                                struct zt_error *error)
{
    struct output_file file = {.descriptor = -1};
    enum zt_status status = resolve(&file, path, error);

    if (status == ZT_OK) {
        file.buffer = malloc(BUFFER_BYTES);
        status = file.buffer != NULL ? open_descriptor(&file, error) : no_memory(&file, error);
    }
    if (status != ZT_OK) {
        output_file_discard(&file);
        return status;
    }
    *out_file = file;
    return ZT_OK;
}

/* --- writing --- */

static enum zt_status write_all(struct output_file *file, const uint8_t *bytes, size_t length,
                                struct zt_error *error)
{
    while (length > 0) {
        ssize_t written = write(file->descriptor, bytes, length);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return fail_io(file, error, "cannot write");
        bytes += written;
        length -= (size_t)written;
    }
    return ZT_OK;
}

enum zt_status output_file_flush(struct output_file *file, struct zt_error *error)
{
    size_t length = file->filled;

    file->filled = 0;
    return write_all(file, file->buffer, length, error);
}

enum zt_status output_file_write(void *context, const void *bytes, size_t length,
                                 struct zt_error *error)
{
    struct output_file *file = context;
    enum zt_status status = ZT_OK;

    assert(file->filled <= BUFFER_BYTES);
    if (length > BUFFER_BYTES - file->filled)
        status = output_file_flush(file, error);
    if (status == ZT_OK && length >= BUFFER_BYTES)
        return write_all(file, bytes, length, error);
    if (status == ZT_OK) {
        memcpy(file->buffer + file->filled, bytes, length);
        file->filled += length;
    }
    return status;
}

enum zt_status output_file_write_at(const struct output_file *file, uint64_t offset,
                                    const void *bytes, size_t length, struct zt_error *error)
{
    assert(file->descriptor >= 0);
    return disk_write(file->descriptor, bytes, length, offset) ? ZT_OK
                                                               : disk_fail(error, "cannot write");
}

enum zt_status output_file_rest(struct output_file *file, struct zt_error *error)
{
    enum zt_status status = output_file_flush(file, error);

    free(file->buffer);
    file->buffer = NULL;
    return status;
}

/* --- ending --- */

enum zt_status output_file_check(struct output_file *file, struct zt_error *error)
{
    struct zt_source *source = NULL;
    struct zt_model *model = NULL;
    int descriptor = dup(file->descriptor);
    enum zt_status status;

    assert(file->filled == 0);
    if (descriptor < 0)
        return fail_io(file, error, "cannot read the written file");
    status = zt_source_from_descriptor(descriptor, &source, error);
    if (status != ZT_OK)
        close(descriptor);
    else
        status = zt_model_open(source, &model, error);
    zt_model_free(model);
    zt_source_close(source);
    file->failed = status != ZT_OK;
    return status;
}

static enum zt_status give_name(struct output_file *file, struct zt_error *error)
{
    char unnamed[64];

    assert(file->descriptor >= 0 && file->filled == 0);
    if (file->is_named)
        return ZT_OK;
    snprintf(unnamed, sizeof(unnamed), "/proc/self/fd/%d", file->descriptor);
    if (linkat(AT_FDCWD, unnamed, AT_FDCWD, file->temporary, AT_SYMLINK_FOLLOW) != 0)
        return fail_io(file, error, "cannot name the file");
    file->is_named = true;
    return ZT_OK;
}

static enum zt_status sync_folder(struct output_file *file, const char *what,
                                  struct zt_error *error)
{
    return named_file_sync_folder(file->target) ? ZT_OK : fail_io(file, error, what);
}

static void release(struct output_file *file)
{
    if (file->descriptor >= 0)
        close(file->descriptor);
    free(file->buffer);
    free(file->temporary);
    free(file->aside);
    free(file->folder);
    free(file->target);
}

/* Gives the file the target's name in one step. */
static enum zt_status take_name(struct output_file *file, struct zt_error *error)
{
    const bool exists = faccessat(AT_FDCWD, file->target, F_OK, AT_SYMLINK_NOFOLLOW) == 0;

    if (!file->never_replaces && rename(file->temporary, file->target) == 0) {
        file->has_replaced = exists;
        return ZT_OK;
    }
    /* Not every file system supports renames that do not replace; nearly all support links. */
    if (file->never_replaces && link(file->temporary, file->target) == 0) {
        unlink(file->temporary);
        return ZT_OK;
    }
    if (file->never_replaces && errno == EEXIST) {
        file->failed = true;
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "it exists, and --no-clobber is set");
    }
    return fail_io(file, error, "cannot name the file");
}

/* What fails for lack of space fails here. */
static enum zt_status sync_data(struct output_file *file, struct zt_error *error)
{
    const enum zt_status status = output_file_flush(file, error);

    if (status == ZT_OK && fsync(file->descriptor) != 0)
        return fail_io(file, error, "cannot write to the disk");
    return status;
}

enum zt_status output_file_publish(struct output_file *file, struct zt_error *error)
{
    enum zt_status status = sync_data(file, error);

    if (status == ZT_OK)
        status = give_name(file, error);
    if (status == ZT_OK)
        status = take_name(file, error);
    if (status != ZT_OK) {
        output_file_discard(file);
        return status;
    }
    status = sync_folder(file,
                         "it was written, but a power failure may undo that, because its folder "
                         "cannot be synced",
                         error);
    release(file);
    return status;
}

void output_file_discard(struct output_file *file)
{
    if (file->is_named)
        unlink(file->temporary);
    release(file);
}

/* --- several files --- */

/* Moves the file that has the target's name to a hidden name. */
static enum zt_status set_aside(struct output_file *file, struct zt_error *error)
{
    struct stat status;

    if (file->never_replaces || lstat(file->target, &status) != 0)
        return ZT_OK;
    if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))
        return fail_irregular(file, error);
    file->aside = aside_of(file);
    if (file->aside == NULL)
        return no_memory(file, error);
    if (rename(file->target, file->aside) == 0)
        return ZT_OK;
    fail_io(file, error, "cannot move the file that it replaces");
    free(file->aside);
    file->aside = NULL;
    return ZT_IO;
}

/* Undoes take_name and set_aside. A file to which another process has given the name keeps it. */
static void take_back(struct output_file *file, struct zt_error *error)
{
    const bool is_ours = named_file_is_at(file->descriptor, file->target);
    const bool is_free =
        is_ours || faccessat(AT_FDCWD, file->target, F_OK, AT_SYMLINK_NOFOLLOW) != 0;

    if (is_ours && file->aside == NULL)
        unlink(file->target);
    if (file->aside == NULL || (is_free && rename(file->aside, file->target) == 0))
        return;
    /* The message may be cut at its end: the hidden name comes first. */
    zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET,
            "%s has the old file, which could not be restored: %s", strrchr(file->aside, '/') + 1,
            file->target);
}

/* The last file is set aside first and named last: it names the others. Sets *out_failed to the
 * number of the current file. */
static enum zt_status replace_all(struct output_file *files, uint32_t count, uint32_t *out_failed,
                                  struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    assert(count > 0);
    for (uint32_t i = 0; i < count && status == ZT_OK; i++) {
        *out_failed = i;
        status = sync_data(&files[i], error);
    }
    for (uint32_t i = 0; i < count && status == ZT_OK; i++) {
        *out_failed = i;
        status = give_name(&files[i], error);
    }
    for (uint32_t i = count; i > 0 && status == ZT_OK; i--) {
        *out_failed = i - 1;
        status = set_aside(&files[i - 1], error);
    }
    for (uint32_t i = 0; i < count && status == ZT_OK; i++) {
        *out_failed = i;
        status = take_name(&files[i], error);
    }
    for (uint32_t i = 0; i < count && status == ZT_OK; i++) {
        *out_failed = i;
        status = sync_folder(&files[i], "cannot sync the folder", error);
    }
    return status;
}

enum zt_status output_files_publish(struct output_file *files, uint32_t count, uint32_t *out_failed,
                                    struct zt_error *error)
{
    const enum zt_status status = replace_all(files, count, out_failed, error);

    for (uint32_t i = 0; i < count; i++) {
        struct output_file *file = &files[i];

        if (status != ZT_OK) {
            take_back(file, error);
            output_file_discard(file);
            continue;
        }
        file->has_replaced = file->has_replaced || file->aside != NULL;
        if (file->aside != NULL)
            unlink(file->aside);
        release(file);
    }
    return status;
}
