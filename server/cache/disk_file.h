/* Reading and writing whole ranges of local files. */
#ifndef CACHE_DISK_FILE_H
#define CACHE_DISK_FILE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

/* False with errno; EIO if the file is shorter. */
static inline bool disk_read(int descriptor, uint8_t *bytes, size_t length, uint64_t offset)
{
    while (length > 0) {
        ssize_t got = pread(descriptor, bytes, length, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = EIO;
        if (got <= 0)
            return false;
        bytes += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    return true;
}

/* False with errno; some of the bytes may have been written. */
static inline bool disk_write(int descriptor, const uint8_t *bytes, size_t length, uint64_t offset)
{
    while (length > 0) {
        ssize_t written = pwrite(descriptor, bytes, length, (off_t)offset);

        if (written < 0 && errno == EINTR)
            continue;
        if (written == 0)
            errno = ENOSPC;
        if (written <= 0)
            return false;
        bytes += written;
        offset += (uint64_t)written;
        length -= (size_t)written;
    }
    return true;
}

#endif
