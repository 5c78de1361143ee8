/* Reading and writing whole ranges of local files. */
#ifndef DISK_DISK_FILE_H
#define DISK_DISK_FILE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "zt/status.h"

/* Bytes per write. The page cache allocates memory in pieces as large as the write. The kernel
 * keeps pieces of up to 32 KiB (PAGE_ALLOC_COSTLY_ORDER) ready from memory that was just freed.
 * Larger ones often come from memory that has not been used for long, which a virtual machine has
 * given back to its host. 1 GiB takes 0.35 to 0.4 s of processor time in pieces of 32 KiB, 0.3 to
 * 1.6 s in pieces of 128 KiB, depending on what ran before, and 1.2 to 1.5 s in pieces of 1 MiB and
 * more. */
#define DISK_WRITE_BYTES ((size_t)32 << 10)

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
        size_t piece = length < DISK_WRITE_BYTES ? length : DISK_WRITE_BYTES;
        ssize_t written = pwrite(descriptor, bytes, piece, (off_t)offset);

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

/* Fails with ZT_IO, a message "<what>: <reason>" from errno, and its number. */
static inline enum zt_status disk_fail(struct zt_error *error, const char *what)
{
    const int number = errno;

    zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "%s: %s", what, strerrordesc_np(number));
    error->os_error = number;
    return ZT_IO;
}

#endif
