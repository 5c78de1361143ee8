/* Reading and writing whole ranges of local files. */
#ifndef CACHE_DISK_FILE_H
#define CACHE_DISK_FILE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

/* Written at a time. The page cache takes memory in pieces as large as what is written: for pieces
 * of 1 MiB and more it finds only memory that nobody has used for long, which on virtual machines
 * is not there yet. 1 GiB takes 0.3 s of processor time in pieces of 64 to 512 KiB, 1.2 to 1.5 s in
 * pieces of 1 to 8 MiB. */
#define DISK_WRITE_BYTES ((size_t)128 << 10)

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

#endif
