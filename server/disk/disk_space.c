/* A list of accounts, which only grows. Each has a lock, which is held for less than a microsecond,
 * except for asking the file system. */
#include "disk/disk_space.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/clock.h"

/* The maximum age of the free space figure while space is plentiful. */
#define LOOK_MS 100
/* If less than this is free beyond the claims, every claim asks the file system. */
#define SCARCE_BYTES ((uint64_t)256 << 20)
/* Files use whole blocks; this is the size of a page and of most file systems' blocks. */
#define BLOCK_BYTES ((uint64_t)4096)
/* The automatic reserve: a twentieth of the disk, but at most 1 GiB. */
#define RESERVE_MAX_BYTES ((uint64_t)1 << 30)
#define RESERVE_SHARE     20
/* The maximum share to keep free of a disk without a configured reserve. */
#define MOST_SHARE 4
#define NOT_SET    UINT64_MAX

struct disk_space {
    struct disk_space *next;
    dev_t device;
    pthread_mutex_t lock; /* protects the members below */
    uint64_t reserve_bytes;
    /* Free space at the last check, minus what was written since. */
    uint64_t free_bytes;
    int64_t checked_ms;     /* time of the last check; 0: none */
    uint64_t claimed_bytes; /* claimed but not written */
    /* What savers could free when one of them last began to; read while one is at work. Without the
     * lock. */
    atomic_uint_fast64_t savable_bytes;
};

static pthread_mutex_t spaces_lock = PTHREAD_MUTEX_INITIALIZER;
static struct disk_space *spaces;

/* Held while savers are called, so that a removed saver is not called; for writing while they free
 * files. */
static pthread_rwlock_t savers_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct disk_saver *savers;

static uint64_t less(uint64_t from, uint64_t bytes)
{
    return from > bytes ? from - bytes : 0;
}

static uint64_t more(uint64_t to, uint64_t bytes)
{
    return bytes < UINT64_MAX - to ? to + bytes : UINT64_MAX;
}

static uint64_t whole_blocks(uint64_t bytes)
{
    return more(bytes, BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

/* --- accounts --- */

/* Some memory file systems have no limit and report that they have no blocks. */
static bool find_free(int descriptor, uint64_t *out_bytes)
{
    struct statvfs facts;

    if (fstatvfs(descriptor, &facts) != 0)
        return false;
    *out_bytes = facts.f_blocks > 0 ? (uint64_t)facts.f_bavail * facts.f_frsize : UINT64_MAX;
    return true;
}

/* Asks the file system; a figure that it does not report stays unchanged. The lock must be held. */
static void look(struct disk_space *space, int descriptor)
{
    (void)find_free(descriptor, &space->free_bytes);
    space->checked_ms = clock_ms();
}

/* The list's lock must be held. */
static struct disk_space *make_space(dev_t device)
{
    struct disk_space *space = calloc(1, sizeof(*space));

    if (space == NULL)
        return NULL;
    pthread_mutex_init(&space->lock, NULL);
    space->device = device;
    space->reserve_bytes = NOT_SET;
    space->free_bytes = UINT64_MAX;
    space->next = spaces;
    spaces = space;
    return space;
}

struct disk_space *disk_space_of(int descriptor)
{
    struct disk_space *space;
    struct stat info;

    if (fstat(descriptor, &info) != 0)
        return NULL;
    pthread_mutex_lock(&spaces_lock);
    space = spaces;
    while (space != NULL && space->device != info.st_dev)
        space = space->next;
    if (space == NULL)
        space = make_space(info.st_dev);
    pthread_mutex_unlock(&spaces_lock);
    return space;
}

void disk_space_set_reserve(int descriptor, uint64_t bytes)
{
    struct disk_space *space = disk_space_of(descriptor);

    if (space == NULL)
        return;
    pthread_mutex_lock(&space->lock);
    space->reserve_bytes = bytes;
    pthread_mutex_unlock(&space->lock);
}

static uint64_t size_of(const struct statvfs *facts)
{
    return (uint64_t)facts->f_blocks * facts->f_frsize;
}

static uint64_t automatic_reserve(const struct statvfs *facts)
{
    const uint64_t share = size_of(facts) / RESERVE_SHARE;

    return share < RESERVE_MAX_BYTES ? share : RESERVE_MAX_BYTES;
}

uint64_t disk_space_automatic_reserve(const char *path)
{
    struct statvfs facts;

    return statvfs(path, &facts) == 0 ? automatic_reserve(&facts) : RESERVE_MAX_BYTES;
}

uint64_t disk_space_reserve(int descriptor, uint64_t wanted_bytes)
{
    struct disk_space *space = disk_space_of(descriptor);
    uint64_t reserve = NOT_SET;
    struct statvfs facts;

    if (space != NULL) {
        pthread_mutex_lock(&space->lock);
        reserve = space->reserve_bytes;
        pthread_mutex_unlock(&space->lock);
    }
    if (reserve != NOT_SET)
        return reserve;
    if (fstatvfs(descriptor, &facts) != 0)
        return RESERVE_MAX_BYTES;
    if (wanted_bytes == DISK_RESERVE_AUTOMATIC)
        return automatic_reserve(&facts);
    return wanted_bytes < size_of(&facts) / MOST_SHARE ? wanted_bytes
                                                       : size_of(&facts) / MOST_SHARE;
}

bool disk_space_left(int descriptor, uint64_t *out_bytes)
{
    struct disk_space *space = disk_space_of(descriptor);

    if (!find_free(descriptor, out_bytes))
        return false;
    if (space == NULL)
        return true;
    pthread_mutex_lock(&space->lock);
    *out_bytes = less(*out_bytes, space->claimed_bytes);
    pthread_mutex_unlock(&space->lock);
    return true;
}

/* --- errors --- */

bool disk_space_is_short(const struct zt_error *error)
{
    return error->status == ZT_LIMIT && (error->os_error == ENOSPC || error->os_error == EDQUOT);
}

enum zt_status disk_space_fail(struct zt_error *error)
{
    zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
            "there is not enough free space beyond the reserve");
    if (error != NULL)
        error->os_error = ENOSPC;
    return ZT_LIMIT;
}

/* --- claims --- */

void disk_claim_init(struct disk_claim *claim, int descriptor, uint64_t length)
{
    *claim = (struct disk_claim){
        .space = disk_space_of(descriptor), .descriptor = descriptor, .end = whole_blocks(length)};
}

/* Returns true if the space suffices; a saturated sum never fits. The lock must be held. */
static bool fits(const struct disk_space *space, uint64_t need)
{
    return space->free_bytes >= need && need < UINT64_MAX;
}

/* Returns true if `need` bytes are free. Asks the file system if the last check is old or space is
 * scarce. The lock must be held. */
static bool is_free(struct disk_claim *claim, uint64_t need)
{
    struct disk_space *space = claim->space;

    assert(claim->space != NULL);
    if (space->checked_ms == 0 || clock_ms() - space->checked_ms >= LOOK_MS ||
        !fits(space, more(need, SCARCE_BYTES)))
        look(space, claim->descriptor);
    return fits(space, need);
}

/* Returns how much must be free for a claim of this many bytes, in addition to all other claims. */
static uint64_t need_of(const struct disk_claim *claim, uint64_t bytes, uint64_t reserve)
{
    assert(claim->ahead_bytes <= claim->space->claimed_bytes);
    return more(more(claim->space->claimed_bytes, bytes), reserve);
}

/* Claims the bytes if they are free, or would be free once savers have freed savable_bytes. */
static bool try_claim(struct disk_claim *claim, uint64_t bytes, uint64_t reserve,
                      uint64_t savable_bytes)
{
    struct disk_space *space = claim->space;
    uint64_t need;
    bool is_claimed;

    pthread_mutex_lock(&space->lock);
    need = need_of(claim, bytes, reserve);
    is_claimed = is_free(claim, need) ||
                 (need < UINT64_MAX && less(need, space->free_bytes) <= savable_bytes);
    if (is_claimed) {
        space->claimed_bytes += bytes;
        claim->ahead_bytes += bytes;
    }
    pthread_mutex_unlock(&space->lock);
    return is_claimed;
}

/* Returns how much the savers could free at most. Their lock must be held. */
static uint64_t savable(const struct disk_space *space)
{
    uint64_t bytes = 0;

    for (struct disk_saver *saver = savers; saver != NULL; saver = saver->next)
        bytes = more(bytes, saver->could_free(saver->context, space));
    return bytes;
}

/* Does the same without waiting for a saver that is at work, because an event loop may ask: returns
 * the last known figure then. */
static uint64_t savable_at_once(const struct disk_space *space)
{
    uint64_t bytes;

    if (pthread_rwlock_tryrdlock(&savers_lock) != 0)
        return atomic_load(&space->savable_bytes);
    bytes = savable(space);
    pthread_rwlock_unlock(&savers_lock);
    return bytes;
}

/* Notes for all file systems what savable_at_once returns while savers are at work. Their lock must
 * be held. */
static void note_savable(void)
{
    struct disk_space *space;

    /* Savers take the list's lock too. */
    pthread_mutex_lock(&spaces_lock);
    space = spaces;
    pthread_mutex_unlock(&spaces_lock);
    for (; space != NULL; space = space->next)
        atomic_store(&space->savable_bytes, savable(space));
}

uint64_t disk_space_savable(int descriptor)
{
    const struct disk_space *space = disk_space_of(descriptor);

    return space != NULL ? savable_at_once(space) : 0;
}

/* A claim that does not fit even without the caches does not empty them. */
static bool ask_savers(const struct disk_space *space, uint64_t missing)
{
    bool has_freed = false;

    assert(space != NULL);
    pthread_rwlock_wrlock(&savers_lock);
    note_savable();
    for (struct disk_saver *saver = atomic_load(&space->savable_bytes) >= missing ? savers : NULL;
         saver != NULL && !has_freed; saver = saver->next)
        has_freed = saver->free_some(saver->context, space, missing);
    pthread_rwlock_unlock(&savers_lock);
    return has_freed;
}

enum zt_status disk_claim_ahead(struct disk_claim *claim, uint64_t bytes, uint64_t reserve,
                                struct zt_error *error)
{
    if (claim->space == NULL || bytes == 0 || try_claim(claim, bytes, reserve, 0) ||
        try_claim(claim, bytes, reserve, savable_at_once(claim->space)))
        return ZT_OK;
    return disk_space_fail(error);
}

void disk_claim_note(struct disk_claim *claim, uint64_t bytes)
{
    if (claim->space == NULL)
        return;
    pthread_mutex_lock(&claim->space->lock);
    claim->space->claimed_bytes += bytes;
    claim->ahead_bytes += bytes;
    pthread_mutex_unlock(&claim->space->lock);
}

/* Returns how many bytes of a write are not claimed yet. Rewriting needs none. Claimed bytes are
 * used first, since only the writer knows about holes. The lock must be held. */
static uint64_t uncovered(const struct disk_claim *claim, uint64_t offset, uint64_t length)
{
    const uint64_t behind = less(more(offset, length), claim->end);
    const uint64_t grows = behind < length ? behind : length;

    return grows > claim->ahead_bytes ? whole_blocks(grows - claim->ahead_bytes) : 0;
}

/* Returns true if the claimed space of a write is free: savers may still have to make it, and other
 * processes may have used it. */
static bool is_there(struct disk_claim *claim, uint64_t length, uint64_t reserve,
                     uint64_t *out_missing)
{
    uint64_t ahead;
    bool is_there;

    pthread_mutex_lock(&claim->space->lock);
    assert(claim->ahead_bytes <= claim->space->claimed_bytes);
    ahead = claim->ahead_bytes < length ? claim->ahead_bytes : length;
    is_there = ahead == 0 || is_free(claim, more(ahead, reserve));
    *out_missing = less(more(ahead, reserve), claim->space->free_bytes);
    pthread_mutex_unlock(&claim->space->lock);
    return is_there;
}

enum zt_status disk_claim_cover(struct disk_claim *claim, uint64_t offset, uint64_t length,
                                uint64_t reserve, struct zt_error *error)
{
    enum zt_status status;
    uint64_t missing;

    if (claim->space == NULL)
        return ZT_OK;
    pthread_mutex_lock(&claim->space->lock);
    missing = uncovered(claim, offset, length);
    pthread_mutex_unlock(&claim->space->lock);
    status = disk_claim_ahead(claim, missing, reserve, error);
    while (status == ZT_OK && !is_there(claim, length, reserve, &missing))
        if (!ask_savers(claim->space, missing))
            status = disk_space_fail(error);
    return status;
}

/* The lock must be held. */
static void uncount(struct disk_claim *claim, uint64_t bytes)
{
    assert(bytes <= claim->ahead_bytes && claim->ahead_bytes <= claim->space->claimed_bytes);
    claim->ahead_bytes -= bytes;
    claim->space->claimed_bytes -= bytes;
}

void disk_claim_spend(struct disk_claim *claim, uint64_t offset, uint64_t length)
{
    uint64_t end;

    if (claim->space == NULL)
        return;
    pthread_mutex_lock(&claim->space->lock);
    assert(claim->end % BLOCK_BYTES == 0);
    end = whole_blocks(more(offset, length));
    if (length > claim->ahead_bytes)
        length = claim->ahead_bytes;
    uncount(claim, length);
    claim->space->free_bytes = less(claim->space->free_bytes, length);
    if (end > claim->end)
        claim->end = end;
    pthread_mutex_unlock(&claim->space->lock);
}

void disk_claim_give_back(struct disk_claim *claim, uint64_t bytes)
{
    if (claim->space == NULL)
        return;
    pthread_mutex_lock(&claim->space->lock);
    uncount(claim, bytes < claim->ahead_bytes ? bytes : claim->ahead_bytes);
    pthread_mutex_unlock(&claim->space->lock);
}

void disk_claim_end(struct disk_claim *claim)
{
    disk_claim_give_back(claim, UINT64_MAX);
    assert(claim->space == NULL || claim->ahead_bytes == 0);
}

/* --- savers --- */

void disk_saver_add(struct disk_saver *saver)
{
    assert(saver->free_some != NULL && saver->could_free != NULL);
    pthread_rwlock_wrlock(&savers_lock);
    saver->next = savers;
    savers = saver;
    pthread_rwlock_unlock(&savers_lock);
}

void disk_saver_remove(struct disk_saver *saver)
{
    struct disk_saver **at = &savers;

    pthread_rwlock_wrlock(&savers_lock);
    while (*at != NULL && *at != saver)
        at = &(*at)->next;
    if (*at != NULL)
        *at = saver->next;
    pthread_rwlock_unlock(&savers_lock);
}
