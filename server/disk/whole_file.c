/* Reads and replaces small files as a whole. */
#include "disk/whole_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk/disk_file.h"

#define FILE_MODE 0600
#define NAME_SIZE (NAME_MAX + sizeof(WHOLE_FILE_NEW_SUFFIX))

/* *out_written: how much was written, even on failure. */
static bool write_all(int descriptor, const uint8_t *bytes, size_t length, size_t *out_written)
{
    size_t at = 0;

    assert(descriptor >= 0);
    while (at < length) {
        const ssize_t put = write(descriptor, bytes + at, length - at);

        if (put < 0 && errno == EINTR)
            continue;
        if (put == 0)
            errno = ENOSPC;
        if (put <= 0)
            break;
        at += (size_t)put;
    }
    assert(at <= length);
    *out_written = at;
    return at == length;
}

static void close_keeping_errno(int descriptor)
{
    const int os_error = errno;

    close(descriptor);
    errno = os_error;
}

uint8_t *whole_file_read(int folder, const char *name, uint64_t most_bytes, size_t *out_length)
{
    const int descriptor = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    uint8_t *bytes = NULL;
    size_t length = 0;
    struct stat info;

    assert(most_bytes < SIZE_MAX);
    if (descriptor < 0)
        return NULL;
    if (fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) &&
        (uint64_t)info.st_size <= most_bytes) {
        length = (size_t)info.st_size;
        bytes = malloc(length + 1);
    } else
        errno = EFBIG;
    if (bytes != NULL && !disk_read(descriptor, bytes, length, 0)) {
        free(bytes);
        bytes = NULL;
    }
    close_keeping_errno(descriptor);
    if (bytes == NULL)
        return NULL;
    bytes[length] = '\0';
    *out_length = length;
    return bytes;
}

bool whole_file_replace(int folder, const char *name, const void *bytes, size_t length)
{
    char new_name[NAME_SIZE];
    size_t written;
    int descriptor;
    bool is_written;

    assert(folder >= 0 && name[0] != '\0');
    if ((size_t)snprintf(new_name, sizeof(new_name), "%s" WHOLE_FILE_NEW_SUFFIX, name) >=
        sizeof(new_name)) {
        errno = ENAMETOOLONG;
        return false;
    }
    descriptor =
        openat(folder, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    if (descriptor < 0)
        return false;
    is_written = write_all(descriptor, bytes, length, &written);
    if (is_written)
        is_written = close(descriptor) == 0;
    else
        close_keeping_errno(descriptor);
    if (!is_written || renameat(folder, new_name, folder, name) != 0) {
        const int os_error = errno;

        unlinkat(folder, new_name, 0);
        errno = os_error;
        return false;
    }
    return true;
}

bool whole_file_append(int folder, const char *name, uint64_t old_bytes, const void *bytes,
                       size_t length)
{
    const int descriptor =
        openat(folder, name, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat info;
    size_t written;

    if (descriptor < 0)
        return false;
    if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode) ||
        (old_bytes != WHOLE_FILE_ANY_LENGTH && (uint64_t)info.st_size != old_bytes)) {
        close(descriptor);
        errno = ESTALE;
        return false;
    }
    if (!write_all(descriptor, bytes, length, &written)) {
        const int os_error = errno;

        /* Part of a record would shift all that follow. If nothing was written, nothing is cut:
         * another thread may have appended meanwhile. */
        if (written > 0 && ftruncate(descriptor, info.st_size) != 0)
            unlinkat(folder, name, 0);
        errno = os_error;
        close_keeping_errno(descriptor);
        return false;
    }
    return close(descriptor) == 0;
}
