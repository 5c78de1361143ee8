/* Giving disk space back inside a file that goes on. */
#include <errno.h>
#include <fcntl.h>

#include "store/store_local.h"

bool store_local_discard(struct stored_upload *upload, uint64_t offset, uint64_t length)
{
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
