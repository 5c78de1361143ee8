#include "cache/folder.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/log.h"
#include "disk/disk_space.h"

/* Space left to other programs on the same file system: a share of it, and never less than this. */
#define RESERVE_SHARE     20u
#define RESERVE_BYTES_MIN ((uint64_t)2 << 30)
/* st_blocks counts these, whatever the file system's blocks are. */
#define STAT_BLOCK_BYTES 512u
#define LOCK_NAME        "lock"
#define KEY_DIGITS       (2 * CACHE_KEY_BYTES)

static const char *const suffixes[] = {[FOLDER_BLOCKS] = ".blocks", [FOLDER_INDEX] = ".index"};

/* Makes the last two parts of the path if need be. -1 with errno. */
static int open_path(const char *path)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    int descriptor = open(path, flags);
    char *parent;
    char *slash;

    if (descriptor >= 0 || errno != ENOENT)
        return descriptor;
    parent = strdup(path);
    slash = parent != NULL ? strrchr(parent, '/') : NULL;
    if (slash != NULL && slash != parent) {
        *slash = '\0';
        mkdir(parent, 0700);
    }
    free(parent);
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return -1;
    return open(path, flags);
}

/* False: another process has it. *out_lock -1: there is none, because the folder cannot be
 * written to. */
static bool take_lock(int folder, int *out_lock)
{
    int lock = openat(folder, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    *out_lock = -1;
    if (lock < 0)
        return true;
    if (flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(lock);
        return false;
    }
    *out_lock = lock;
    return true;
}

enum zt_status folder_open(struct folder *folder, const char *path, struct zt_error *error)
{
    int descriptor;

    *folder = (struct folder){.lock = -1};
    atomic_init(&folder->descriptor, -1);
    folder->path = strdup(path);
    if (folder->path == NULL)
        return zt_fail_memory(error, "the block cache");
    descriptor = open_path(path);
    if (descriptor >= 0 && !take_lock(descriptor, &folder->lock)) {
        close(descriptor);
        folder_close(folder);
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "another process uses the cache folder %s",
                       path);
    }
    if (descriptor >= 0 && folder->lock < 0) {
        int reason = errno;

        close(descriptor);
        descriptor = -1;
        errno = reason;
    }
    if (descriptor < 0)
        log_write(LOG_LEVEL_WARN, "the cache folder %s cannot be used, so caching is off: %s", path,
                  strerrordesc_np(errno));
    atomic_store(&folder->descriptor, descriptor);
    return ZT_OK;
}

void folder_close(struct folder *folder)
{
    if (atomic_load(&folder->descriptor) >= 0)
        close(atomic_load(&folder->descriptor));
    if (folder->lock >= 0)
        close(folder->lock);
    free(folder->path);
    folder->path = NULL;
    folder->lock = -1;
    atomic_store(&folder->descriptor, -1);
}

void folder_restore(struct folder *folder)
{
    int old = atomic_load(&folder->descriptor);
    struct stat facts;
    int descriptor;
    int lock;

    assert(folder->path != NULL);
    if (old < 0 || fstat(old, &facts) != 0 || facts.st_nlink > 0)
        return;
    descriptor = open_path(folder->path);
    if (descriptor < 0)
        return;
    if (!take_lock(descriptor, &lock) || lock < 0) {
        close(descriptor);
        return;
    }
    log_write(LOG_LEVEL_WARN, "the cache folder %s was deleted and has been created again",
              folder->path);
    /* The old number continues to name the folder, for any thread that has just read it. */
    dup3(descriptor, old, O_CLOEXEC);
    close(descriptor);
    close(folder->lock);
    folder->lock = lock;
}

void folder_name(const uint8_t key[CACHE_KEY_BYTES], enum folder_kind kind,
                 char out_name[FOLDER_NAME_SIZE])
{
    assert(kind == FOLDER_BLOCKS || kind == FOLDER_INDEX);
    strcpy(zt_hex_write(out_name, key, CACHE_KEY_BYTES), suffixes[kind]);
}

int folder_file(const struct folder *folder, const uint8_t key[CACHE_KEY_BYTES],
                enum folder_kind kind, int flags)
{
    char name[FOLDER_NAME_SIZE];

    folder_name(key, kind, name);
    return openat(atomic_load(&folder->descriptor), name, flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY,
                  0600);
}

void folder_remove(const struct folder *folder, const uint8_t key[CACHE_KEY_BYTES])
{
    char name[FOLDER_NAME_SIZE];

    folder_name(key, FOLDER_BLOCKS, name);
    unlinkat(atomic_load(&folder->descriptor), name, 0);
    folder_name(key, FOLDER_INDEX, name);
    unlinkat(atomic_load(&folder->descriptor), name, 0);
}

/* --- what is there at start --- */

/* Whether it is the name of one of our files. */
static bool parse_name(const char *name, uint8_t out_key[CACHE_KEY_BYTES],
                       enum folder_kind *out_kind)
{
    const struct zt_text digits = {name, KEY_DIGITS};

    if (strnlen(name, FOLDER_NAME_SIZE) <= KEY_DIGITS ||
        !zt_hex_read_lower(digits, out_key, CACHE_KEY_BYTES))
        return false;
    for (unsigned kind = 0; kind < sizeof(suffixes) / sizeof(suffixes[0]); kind++)
        if (strcmp(name + KEY_DIGITS, suffixes[kind]) == 0) {
            *out_kind = (enum folder_kind)kind;
            return true;
        }
    return false;
}

static bool has_other_half(const struct folder *folder, const uint8_t key[CACHE_KEY_BYTES],
                           enum folder_kind kind)
{
    char other[FOLDER_NAME_SIZE];

    folder_name(key, kind == FOLDER_BLOCKS ? FOLDER_INDEX : FOLDER_BLOCKS, other);
    return faccessat(atomic_load(&folder->descriptor), other, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void visit_file(const struct folder *folder, struct folder_entry *entry,
                       void (*visit)(void *context, const struct folder_entry *entry),
                       void *context)
{
    struct stat facts;

    assert(entry->descriptor < 0);
    entry->descriptor = folder_file(folder, entry->key, FOLDER_BLOCKS, O_RDONLY | O_NONBLOCK);
    if (entry->descriptor < 0)
        return;
    if (fstat(entry->descriptor, &facts) == 0 && S_ISREG(facts.st_mode)) {
        entry->size_bytes = (uint64_t)facts.st_size;
        entry->disk_bytes = (uint64_t)facts.st_blocks * STAT_BLOCK_BYTES;
        entry->modified_ms =
            (int64_t)facts.st_mtim.tv_sec * 1000 + facts.st_mtim.tv_nsec / (long)CLOCK_NS_PER_MS;
        visit(context, entry);
    }
    close(entry->descriptor);
}

void folder_scan(const struct folder *folder,
                 void (*visit)(void *context, const struct folder_entry *entry), void *context)
{
    int descriptor =
        openat(atomic_load(&folder->descriptor), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = descriptor >= 0 ? fdopendir(descriptor) : NULL;
    struct dirent *found;

    assert(atomic_load(&folder->descriptor) >= 0);
    if (listing == NULL) {
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    while ((found = readdir(listing)) != NULL) {
        struct folder_entry entry = {.descriptor = -1};
        enum folder_kind kind;

        if (!parse_name(found->d_name, entry.key, &kind))
            continue;
        if (!has_other_half(folder, entry.key, kind))
            unlinkat(descriptor, found->d_name, 0);
        else if (kind == FOLDER_BLOCKS)
            visit_file(folder, &entry, visit, context);
    }
    closedir(listing);
}

bool folder_space(const struct folder *folder, uint64_t *out_free, uint64_t *out_reserve)
{
    const int descriptor = atomic_load(&folder->descriptor);
    struct statvfs facts;
    uint64_t reserve;
    uint64_t least;

    if (descriptor < 0 || fstatvfs(descriptor, &facts) != 0 ||
        !disk_space_left(descriptor, out_free))
        return false;
    reserve = (uint64_t)facts.f_blocks * facts.f_frsize / RESERVE_SHARE;
    least = disk_space_reserve(descriptor, DISK_RESERVE_AUTOMATIC);
    least = least > RESERVE_BYTES_MIN ? least : RESERVE_BYTES_MIN;
    *out_reserve = reserve > least ? reserve : least;
    return true;
}
