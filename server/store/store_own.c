/* Decides which servers may write to a folder. A single writer holds an exclusive lock of the
 * folder (flock). If several servers share it, each name that is written is locked in a hidden
 * file, as a range of one byte whose offset is a hash of the name. All locks end with their
 * process, and servers that only read take none. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/store_local.h"
#include "zt/digest.h"

#define LOCK_FILE ".ztserve-lock"
#define FILE_MODE 0644
#define PAUSE_MS  5

/* Network file systems may not support such locks. */
static enum zt_status lock_folder(const struct local_store *local, struct zt_error *error)
{
    int failed;

    assert(local->ownership != STORE_NOT_OWNED);
    do {
        failed = flock(local->root,
                       (local->ownership == STORE_OWNED_SHARED ? LOCK_SH : LOCK_EX) | LOCK_NB);
    } while (failed != 0 && errno == EINTR);
    if (failed == 0)
        return ZT_OK;
    if (errno == EWOULDBLOCK)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "another server writes to the folder %.180s: stop it first, or start all "
                       "servers that write to it with --shared",
                       local->root_path);
    log_write(LOG_LEVEL_WARN,
              "the folder of models cannot be locked (%s): make sure that no other server writes "
              "to it",
              strerrordesc_np(errno));
    return ZT_OK;
}

enum zt_status store_local_own(struct store *store, bool is_shared, struct zt_error *error)
{
    struct local_store *local = (struct local_store *)store;

    local->ownership = is_shared ? STORE_OWNED_SHARED : STORE_OWNED_ALONE;
    return lock_folder(local, error);
}

void store_own_again(const struct local_store *local)
{
    struct zt_error error;

    if (local->ownership != STORE_NOT_OWNED && lock_folder(local, &error) != ZT_OK)
        log_write(LOG_LEVEL_ERROR, "%s", error.message);
}

/* Waits for another server's lock. Returns false with errno. */
static bool lock_range(int descriptor, const struct flock *range, int64_t by_ms)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * CLOCK_NS_PER_MS};

    assert(descriptor >= 0 && range->l_len == 1);
    while (fcntl(descriptor, F_OFD_SETLK, range) != 0) {
        if (errno != EINTR && ((errno != EAGAIN && errno != EACCES) || clock_ms() >= by_ms))
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

enum zt_status store_local_exclude(struct store *store, const char *name, int64_t by_ms,
                                   int *out_lock, struct zt_error *error)
{
    const struct local_store *local = (const struct local_store *)store;
    const struct flock range = {
        .l_type = F_WRLCK,
        .l_whence = SEEK_SET,
        .l_start = (off_t)(zt_xxh3(name, strlen(name)) & INT64_MAX),
        .l_len = 1,
    };
    enum zt_status status;
    int lock;

    *out_lock = -1;
    if (local->ownership != STORE_OWNED_SHARED)
        return ZT_OK;
    do {
        lock = openat(local->root, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    } while (lock < 0 && errno == EINTR);
    if (lock < 0)
        return store_fail_errno(error, errno, "cannot open the file of locks");
    if (lock_range(lock, &range, by_ms)) {
        *out_lock = lock;
        return ZT_OK;
    }
    status = errno == EAGAIN || errno == EACCES
                 ? zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                           "a writer of another server has the name")
                 : store_fail_errno(error, errno, "cannot lock a name");
    close(lock);
    return status;
}

void store_local_release(int lock)
{
    if (lock >= 0)
        close(lock);
}
