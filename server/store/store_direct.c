/* Writing past the page cache (O_DIRECT): a long file that is on its way to the disk anyway costs
 * neither a copy nor pages, and does not push out of memory what is being served. Only whole blocks
 * can be written so; what is left at both ends goes through the page cache, and the sync makes both
 * durable. The kernel keeps the two apart, since they never touch the same page. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "store/store_local.h"

void store_local_write_directly(struct stored_upload *upload)
{
    char path[64];

    assert(upload->direct < 0);
    /* Opened again, since the flag is one of the open file, and reading back has no blocks. */
    snprintf(path, sizeof(path), "/proc/self/fd/%d", upload->descriptor);
    upload->direct = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
}

static bool is_aligned(const void *bytes, off_t offset)
{
    return ((uintptr_t)bytes | (uintptr_t)offset) % STORE_ALIGNMENT == 0;
}

/* Of a write that begins in the middle of a block, the part up to the next block; otherwise all. */
static size_t up_to_block(size_t length, off_t offset)
{
    const size_t head = STORE_ALIGNMENT - (size_t)offset % STORE_ALIGNMENT;

    return head < STORE_ALIGNMENT && head < length ? head : length;
}

ssize_t store_direct_write(struct stored_upload *upload, const void *bytes, size_t length,
                           off_t offset)
{
    const size_t whole = length - length % STORE_ALIGNMENT;
    ssize_t put;

    if (upload->direct < 0)
        return pwrite(upload->descriptor, bytes, length, offset);
    if (!is_aligned(bytes, offset) || whole == 0)
        return pwrite(upload->descriptor, bytes, up_to_block(length, offset), offset);
    put = pwrite(upload->direct, bytes, whole, offset);
    if (put >= 0 || errno != EINVAL)
        return put;
    /* The file system wants larger blocks, or none at all. */
    close(upload->direct);
    upload->direct = -1;
    return pwrite(upload->descriptor, bytes, length, offset);
}
