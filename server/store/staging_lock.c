/* Locks by which processes on one root recognise whose an upload folder is. Each folder locks one
 * byte of the folder of folders, chosen by its id, so one descriptor holds the locks of all folders
 * of a process.
 *
 * The descriptor of a folder can only be locked for reading, which excludes no process. But a
 * process that asks whether it could lock for writing learns about locks of others. If two
 * processes lock a folder at the same moment, both may see the other and give up, but never do both
 * believe that they own it. */
#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "store/staging.h"

/* Number of hex digits of an id that choose the byte: as many as an offset holds. */
#define DIGITS 15

static off_t byte_of(const char *id)
{
    off_t at = 0;

    assert(strlen(id) >= DIGITS);
    for (size_t i = 0; i < DIGITS; i++) {
        assert(zt_hex_value(id[i]) >= 0);
        at = at << 4 | zt_hex_value(id[i]);
    }
    return at;
}

static bool set_lock(int folders, const char *id, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte_of(id), .l_len = 1};

    return fcntl(folders, F_OFD_SETLK, &lock) == 0;
}

static bool has_other(int folders, const char *id)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte_of(id), .l_len = 1};

    return fcntl(folders, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool staging_lock(int folders, const char *id)
{
    assert(folders >= 0);
    /* If locks do not work here, no other process can have one either. */
    if (!set_lock(folders, id, F_RDLCK) || !has_other(folders, id))
        return true;
    (void)set_lock(folders, id, F_UNLCK);
    return false;
}

void staging_unlock(int folders, const char *id)
{
    (void)set_lock(folders, id, F_UNLCK);
}
