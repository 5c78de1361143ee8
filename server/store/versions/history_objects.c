/* Kept files: they get another name, and are never copied. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/thread.h"
#include "store/store_local.h"
#include "store/versions/history_files.h"
#include "store/versions/history_inside.h"
#include "store/versions/history_shas.h"

/* Names are random: this many collisions in a row are not a coincidence. */
#define NAME_TRIES_MAX 16
#define OBJECT_MODE    0644
/* More fresh files than this are looked through between collections. */
#define FRESH_COUNT 65536u

/* --- files that stay --- */

/* The generation from which on fresh files stay. */
static uint64_t least_generation(const struct history *history)
{
    uint64_t least = history->generation + 1;

    if (history->is_collecting && history->collection_generation < least)
        least = history->collection_generation;
    for (unsigned i = 0; i < HISTORY_CHANGERS; i++)
        if (history->changers[i].is_used && history->changers[i].generation < least)
            least = history->changers[i].generation;
    return least;
}

bool history_protect(struct history *history, const uint8_t sha256[HISTORY_SHA256_BYTES])
{
    uint64_t *generation;

    pthread_mutex_lock(&history->changing);
    if (history->fresh->count >= history->fresh_limit) {
        sha_set_keep_from(history->fresh, least_generation(history));
        history->fresh_limit = 2 * history->fresh->count + FRESH_COUNT;
    }
    generation = sha_set_put(history->fresh, sha256);
    if (generation != NULL)
        *generation = history->generation;
    pthread_mutex_unlock(&history->changing);
    return generation != NULL;
}

bool history_is_protected(struct history *history, const uint8_t sha256[HISTORY_SHA256_BYTES])
{
    const uint64_t *generation = sha_set_find(history->fresh, sha256);

    assert(lock_is_held(&history->changing));
    return generation != NULL && *generation >= least_generation(history);
}

/* A change that is in progress now may have looked at its files before. */
void history_begin_collecting(struct history *history)
{
    pthread_mutex_lock(&history->changing);
    history->is_collecting = false;
    history->generation++;
    history->collection_generation = least_generation(history);
    assert(history->collection_generation <= history->generation + 1);
    history->is_collecting = true;
    pthread_mutex_unlock(&history->changing);
}

void history_end_collecting(struct history *history)
{
    pthread_mutex_lock(&history->changing);
    history->is_collecting = false;
    history->generation++;
    sha_set_keep_from(history->fresh, least_generation(history));
    pthread_mutex_unlock(&history->changing);
}

/* --- names --- */

void history_object_name(const uint8_t sha256[HISTORY_SHA256_BYTES],
                         char out_name[HISTORY_OBJECT_SIZE])
{
    char *at = zt_hex_write(out_name, sha256, 1);

    *at++ = '/';
    zt_hex_write(at, sha256 + 1, HISTORY_SHA256_BYTES - 1);
    assert(out_name[2] == '/' && strlen(out_name) == HISTORY_OBJECT_SIZE - 1);
}

static bool find_object(const struct history *history, const char *name, struct stat *out_info)
{
    if (fstatat(history->objects, name, out_info, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    if (S_ISREG(out_info->st_mode))
        return true;
    errno = ENOENT;
    return false;
}

/* Links and removed names change a file's changed_ns, so it is useless here. */
static struct file_identity identity_of(const struct stat *info)
{
    struct file_identity identity = store_identity_from(info);

    identity.changed_ns = identity.modified_ns;
    return identity;
}

static enum zt_status fail_keep(struct zt_error *error)
{
    return store_fail_errno(error, errno, "cannot keep a file");
}

/* Makes the name of a kept file durable. An earlier name needs this too: another thread may have
 * made it a moment ago. */
static enum zt_status sync_object(const struct history *history, const char *name,
                                  struct zt_error *error)
{
    char base[3] = {name[0], name[1]};
    const int folder =
        openat(history->objects, base, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    bool is_synced;

    assert(name[2] == '/');
    if (folder < 0)
        return fail_keep(error);
    is_synced = history_sync(folder, fsync);
    history_close_folder(folder);
    return is_synced ? ZT_OK : fail_keep(error);
}

static void count_kept(struct history *history, uint64_t bytes)
{
    atomic_fetch_add(&history->figures[FIGURE_KEPT_FILES], 1);
    atomic_fetch_add(&history->figures[FIGURE_KEPT_BYTES], (int64_t)bytes);
}

/* Moves away what has the name of a kept file and cannot be it. */
static bool remove_wrong(const struct history *history, const char *name)
{
    assert(name[2] == '/');
    return renameat(history->objects, name, history->removed, name + 3) == 0 &&
           unlinkat(history->removed, name + 3, 0) == 0;
}

/* Returns true if there is such a file of the right size. One of another size is removed. */
static bool is_kept(const struct history *history, const char *name, uint64_t size_bytes)
{
    struct stat info;

    assert(name[2] == '/');
    if (!find_object(history, name, &info))
        return false;
    if ((uint64_t)info.st_size == size_bytes)
        return true;
    (void)remove_wrong(history, name);
    return false;
}

/* --- keeping --- */

/* The kernel (fs.protected_hardlinks) or the file system refuses a link. */
static bool is_refusal(int os_error)
{
    return os_error == EPERM || os_error == EACCES || os_error == EMLINK ||
           os_error == EOPNOTSUPP || os_error == ENOSYS || os_error == EXDEV;
}

static int open_again(int place)
{
    char path[64];

    assert(place >= 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Makes a second file with the same blocks, where the file system can. */
static bool clone_file(int place, const struct stat *info, int folder, const char *name)
{
    const struct timespec times[2] = {info->st_atim, info->st_mtim};
    const int from = open_again(place);
    int to;
    bool is_made = false;

    assert(place >= 0 && folder >= 0);
    if (from < 0)
        return false;
    to = openat(folder, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, OBJECT_MODE);
    if (to >= 0) {
        is_made = ioctl(to, FICLONE, from) == 0 && futimens(to, times) == 0 &&
                  history_sync(to, fsync) && store_link_open(to, folder, name);
        history_close_folder(to);
    }
    history_close_folder(from);
    return is_made;
}

static enum zt_status link_place(struct history *history, int place, const struct stat *info,
                                 const char *name, struct zt_error *error)
{
    int refusal;

    assert(place >= 0);
    if (store_link_open(place, history->objects, name)) {
        count_kept(history, (uint64_t)info->st_size);
        return ZT_OK;
    }
    if (errno == EEXIST)
        return ZT_OK;
    refusal = errno;
    if (!is_refusal(refusal))
        return fail_keep(error);
    if (clone_file(place, info, history->objects, name)) {
        count_kept(history, (uint64_t)info->st_size);
        return ZT_OK;
    }
    if (errno == EEXIST)
        return ZT_OK;
    return zt_fail(
        error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
        "the earlier version cannot be kept, because the system does not let this server "
        "link to the file (%s)",
        strerrordesc_np(refusal));
}

static enum zt_status fail_stale(struct zt_error *error)
{
    return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET,
                   "the file has changed since its SHA-256 was computed");
}

static bool has_identity(const struct stat *info, const struct file_identity *identity)
{
    const struct file_identity found = store_identity_from(info);

    return S_ISREG(info->st_mode) && store_identity_equal(&found, identity);
}

enum zt_status history_keep_file(struct history *history, int folder, const char *name,
                                 const struct file_identity *identity, const uint8_t sha256[32],
                                 struct zt_error *error)
{
    char object[HISTORY_OBJECT_SIZE];
    struct stat info;
    enum zt_status status;
    int place;

    if (!history_is_writing(history))
        return history_refuse(error);
    if (!history_protect(history, sha256))
        return zt_fail_memory(error, "a kept file");
    history_object_name(sha256, object);
    assert(history->objects >= 0 && folder >= 0);
    if (is_kept(history, object, identity->size_bytes))
        return sync_object(history, object, error);
    place = openat(folder, name, O_PATH | O_CLOEXEC);
    if (place < 0 && errno != ENOENT)
        return fail_keep(error);
    if (place < 0)
        return fail_stale(error);
    if (fstat(place, &info) == 0 && has_identity(&info, identity))
        status = link_place(history, place, &info, object, error);
    else
        status = fail_stale(error);
    close(place);
    return status == ZT_OK ? sync_object(history, object, error) : status;
}

/* Moves a file if it has the identity. Another program may replace the file at the same moment: its
 * file is then moved back. Returns false with errno. */
static bool move_file(const struct history *history, int folder, const char *name,
                      const struct file_identity *identity, const char *object)
{
    struct stat info;

    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    if (!has_identity(&info, identity)) {
        errno = ENOENT;
        return false;
    }
    if (renameat(folder, name, history->objects, object) != 0)
        return false;
    if (fstatat(history->objects, object, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        info.st_ino == identity->inode)
        return true;
    (void)renameat2(history->objects, object, folder, name, RENAME_NOREPLACE);
    errno = ENOENT;
    return false;
}

enum zt_status history_keep_removed(struct history *history, int folder, const char *name,
                                    const struct file_identity *identity, const uint8_t sha256[32],
                                    struct zt_error *error)
{
    char object[HISTORY_OBJECT_SIZE];
    enum zt_status status;

    if (!history_is_writing(history))
        return history_refuse(error);
    if (!history_protect(history, sha256))
        return zt_fail_memory(error, "a kept file");
    history_object_name(sha256, object);
    assert(history->objects >= 0 && folder >= 0);
    if (!is_kept(history, object, identity->size_bytes)) {
        if (!move_file(history, folder, name, identity, object))
            return errno == ENOENT ? fail_stale(error) : fail_keep(error);
        count_kept(history, identity->size_bytes);
    }
    status = sync_object(history, object, error);
    if (status == ZT_OK && !history_sync(folder, fsync))
        return fail_keep(error);
    return status;
}

/* Returns false with errno. */
static bool name_staged(const struct history *history, const struct staged_file *file,
                        const char *name)
{
    return file->hidden[0] != '\0'
               ? renameat(staged_folder(file), file->hidden, history->objects, name) == 0
               : store_link_open(file->descriptor, history->objects, name);
}

enum zt_status history_keep_staged(struct history *history, struct staged_file *file,
                                   const uint8_t sha256[32], struct zt_error *error)
{
    const uint64_t length = staged_file_length(file);
    char object[HISTORY_OBJECT_SIZE];
    enum zt_status status;

    if (!history_is_writing(history))
        return history_refuse(error);
    if (!history_protect(history, sha256))
        return zt_fail_memory(error, "a kept file");
    atomic_store(&history->has_garbage, true);
    history_object_name(sha256, object);
    assert(history->objects >= 0);
    if (is_kept(history, object, length)) {
        status = sync_object(history, object, error);
        if (status == ZT_OK)
            staged_file_remove(file);
        return status;
    }
    if (name_staged(history, file, object)) {
        file->hidden[0] = '\0';
        count_kept(history, length);
    } else if (errno != EEXIST)
        return fail_keep(error);
    status = sync_object(history, object, error);
    if (status == ZT_OK)
        staged_file_close(file);
    return status;
}

/* --- reading --- */

static enum zt_status fail_missing(struct zt_error *error)
{
    return errno == ENOENT
               ? zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the file is not kept")
               : store_fail_errno(error, errno, "cannot read a kept file");
}

enum zt_status history_stat_kept(struct history *history, const uint8_t sha256[32],
                                 struct file_identity *out_identity, struct zt_error *error)
{
    char name[HISTORY_OBJECT_SIZE];
    struct stat info;

    errno = ENOENT;
    history_object_name(sha256, name);
    if (history->folder < 0 || !find_object(history, name, &info))
        return fail_missing(error);
    *out_identity = identity_of(&info);
    return ZT_OK;
}

enum zt_status history_open_kept(struct history *history, const uint8_t sha256[32],
                                 int *out_descriptor, struct file_identity *out_identity,
                                 struct zt_error *error)
{
    char name[HISTORY_OBJECT_SIZE];
    struct stat info;
    int descriptor = -1;

    errno = ENOENT;
    history_object_name(sha256, name);
    if (history->folder >= 0)
        descriptor = openat(history->objects, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0)
        return fail_missing(error);
    if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(descriptor);
        errno = ENOENT;
        return fail_missing(error);
    }
    assert(descriptor >= 0);
    *out_descriptor = descriptor;
    *out_identity = identity_of(&info);
    return ZT_OK;
}

/* --- going back --- */

static bool clone_object(const struct history *history, const char *object, const char *name)
{
    const int place = openat(history->objects, object, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    struct stat info;
    bool is_made;

    if (place < 0)
        return false;
    is_made = fstat(place, &info) == 0 && clone_file(place, &info, history->root, name);
    history_close_folder(place);
    return is_made;
}

/* Gives a kept file, or a clone of it, a hidden name in the root. Returns false with errno. */
static bool hide(const struct history *history, const char *object,
                 char out_name[STAGING_HIDDEN_NAME_SIZE])
{
    int refusal;

    for (int i = 0; i < NAME_TRIES_MAX; i++) {
        store_hidden_name(STAGING_PUBLISH_PREFIX, out_name);
        if (linkat(history->objects, object, history->root, out_name, 0) == 0)
            return true;
        if (errno != EEXIST)
            break;
    }
    refusal = errno;
    if (is_refusal(refusal) && clone_object(history, object, out_name))
        return true;
    errno = refusal;
    return false;
}

enum zt_status history_restore(struct history *history, const uint8_t sha256[32], int folder,
                               const char *name, struct zt_error *error)
{
    char hidden[STAGING_HIDDEN_NAME_SIZE];
    char object[HISTORY_OBJECT_SIZE];
    struct stat info;
    bool is_named;
    int os_error;

    if (!history_is_writing(history))
        return history_refuse(error);
    history_object_name(sha256, object);
    assert(history->objects >= 0 && folder >= 0);
    if (!find_object(history, object, &info))
        return fail_missing(error);
    if (!hide(history, object, hidden))
        return store_fail_errno(error, errno, "cannot restore a kept file");
    is_named = renameat(history->root, hidden, folder, name) == 0;
    os_error = errno;
    /* If the name has this file already, renaming does nothing. */
    unlinkat(history->root, hidden, 0);
    errno = os_error;
    if (is_named && history_sync(folder, fsync))
        return ZT_OK;
    return store_fail_errno(error, errno, "cannot restore a kept file");
}
