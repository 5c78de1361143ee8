/* Kept files in a folder: they get another name, and are never copied. */
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
#include "store/store_local.h"
#include "store/versions/history_files.h"
#include "store/versions/history_folder.h"
#include "zt/source.h"

/* Names are random: this many collisions in a row are not a coincidence. */
#define NAME_TRIES_MAX 16
#define OBJECT_MODE    0644
#define SHA256_BYTES   32
/* "ab/", 62 digits and NUL. */
#define OBJECT_SIZE 66

/* --- names --- */

static void write_name(const uint8_t sha256[SHA256_BYTES], char out_name[OBJECT_SIZE])
{
    char *at = zt_hex_write(out_name, sha256, 1);

    *at++ = '/';
    zt_hex_write(at, sha256 + 1, SHA256_BYTES - 1);
    assert(out_name[2] == '/' && strlen(out_name) == OBJECT_SIZE - 1);
}

static bool find_object(const struct history_folder *place, const char *name, struct stat *out_info)
{
    if (fstatat(place->objects, name, out_info, AT_SYMLINK_NOFOLLOW) != 0)
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
static enum zt_status sync_object(const struct history_folder *place, const char *name,
                                  struct zt_error *error)
{
    char base[3] = {name[0], name[1]};
    const int folder =
        openat(place->objects, base, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    bool is_synced;

    assert(name[2] == '/');
    if (folder < 0)
        return fail_keep(error);
    is_synced = history_sync(folder, fsync);
    history_close_folder(folder);
    return is_synced ? ZT_OK : fail_keep(error);
}

/* Another program may have written into a kept file (versions_check.c), so one of another time or
 * size than the file to keep does not count: that file, whose SHA-256 is known, replaces it. */
static bool is_kept(const struct history_folder *place, const char *name, uint64_t size_bytes,
                    int64_t modified_ns)
{
    struct stat info;

    assert(name[2] == '/');
    return find_object(place, name, &info) && (uint64_t)info.st_size == size_bytes &&
           identity_of(&info).modified_ns == modified_ns;
}

/* --- keeping --- */

/* The kernel (fs.protected_hardlinks) or the file system refuses a link. */
static bool is_refusal(int os_error)
{
    return os_error == EPERM || os_error == EACCES || os_error == EMLINK ||
           os_error == EOPNOTSUPP || os_error == ENOSYS || os_error == EXDEV;
}

static int open_again(int file)
{
    char path[64];

    assert(file >= 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Makes a second file with the same blocks, where the file system can. */
static bool clone_file(int file, const struct stat *info, int folder, const char *name)
{
    const struct timespec times[2] = {info->st_atim, info->st_mtim};
    const int from = open_again(file);
    int to;
    bool is_made = false;

    assert(file >= 0 && folder >= 0);
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

static enum zt_status link_file(int file, const struct stat *info, int folder, const char *name,
                                bool *out_is_new, struct zt_error *error)
{
    int refusal;

    assert(file >= 0);
    *out_is_new = store_link_open(file, folder, name);
    if (*out_is_new || errno == EEXIST)
        return ZT_OK;
    refusal = errno;
    if (!is_refusal(refusal))
        return fail_keep(error);
    *out_is_new = clone_file(file, info, folder, name);
    if (*out_is_new || errno == EEXIST)
        return ZT_OK;
    return zt_fail(
        error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
        "the earlier version cannot be kept, because the system does not let this server "
        "link to the file (%s)",
        strerrordesc_np(refusal));
}

/* Readers that have the earlier object open are not affected. */
static enum zt_status replace_object(const struct history_folder *place, int file,
                                     const struct stat *info, const char *name,
                                     struct zt_error *error)
{
    char new_name[STAGING_HIDDEN_NAME_SIZE];
    bool is_made;
    enum zt_status status;

    store_hidden_name("", new_name);
    status = link_file(file, info, place->removed, new_name, &is_made, error);
    if (status != ZT_OK)
        return status;
    if (!is_made)
        return fail_keep(error);
    if (renameat(place->removed, new_name, place->objects, name) != 0)
        status = fail_keep(error);
    /* If another thread has kept this file meanwhile, renaming does nothing. */
    unlinkat(place->removed, new_name, 0);
    return status;
}

static enum zt_status keep_open(const struct history_folder *place, int file,
                                const struct stat *info, const char *name, bool *out_is_new,
                                struct zt_error *error)
{
    const enum zt_status status = link_file(file, info, place->objects, name, out_is_new, error);

    assert(file >= 0);
    return status != ZT_OK || *out_is_new ||
                   is_kept(place, name, (uint64_t)info->st_size, identity_of(info).modified_ns)
               ? status
               : replace_object(place, file, info, name, error);
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

/* Returns ZT_STALE if there is no such folder. */
static enum zt_status open_parent(const struct history_folder *place, const char *path,
                                  int *out_folder, const char **out_base, struct zt_error *error)
{
    *out_folder = store_path_open_parent(place->root, path, false, out_base);
    if (*out_folder >= 0)
        return ZT_OK;
    return errno == ENOENT ? fail_stale(error)
                           : store_fail_errno(error, errno, "cannot open the folder");
}

static enum zt_status link_path(const struct history_folder *place, const char *path,
                                const struct file_identity *identity, const char *name,
                                bool *out_is_new, struct zt_error *error)
{
    const char *base;
    struct stat info;
    int folder;
    int file;
    enum zt_status status = open_parent(place, path, &folder, &base, error);

    if (status != ZT_OK)
        return status;
    file = openat(folder, base, O_PATH | O_CLOEXEC);
    history_close_folder(folder);
    if (file < 0)
        return errno == ENOENT ? fail_stale(error) : fail_keep(error);
    if (fstat(file, &info) == 0 && has_identity(&info, identity))
        status = keep_open(place, file, &info, name, out_is_new, error);
    else
        status = fail_stale(error);
    close(file);
    return status;
}

enum zt_status history_folder_keep(struct history_place *base, const char *path,
                                   const struct file_identity *identity, const uint8_t sha256[32],
                                   bool *out_is_new, struct zt_error *error)
{
    const struct history_folder *place = history_folder_of(base);
    enum zt_status status = ZT_OK;
    char name[OBJECT_SIZE];

    *out_is_new = false;
    write_name(sha256, name);
    if (!is_kept(place, name, identity->size_bytes, identity->modified_ns))
        status = link_path(place, path, identity, name, out_is_new, error);
    return status == ZT_OK ? sync_object(place, name, error) : status;
}

/* Moves a file if it has the identity. Another program may replace the file at the same moment: its
 * file is then moved back. Returns false with errno. */
static bool move_file(const struct history_folder *place, int folder, const char *name,
                      const struct file_identity *identity, const char *object)
{
    struct stat info;

    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    if (!has_identity(&info, identity)) {
        errno = ENOENT;
        return false;
    }
    if (renameat(folder, name, place->objects, object) != 0)
        return false;
    if (fstatat(place->objects, object, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        info.st_ino == identity->inode)
        return true;
    (void)renameat2(place->objects, object, folder, name, RENAME_NOREPLACE);
    errno = ENOENT;
    return false;
}

enum zt_status history_folder_keep_removed(struct history_place *base, const char *path,
                                           const struct file_identity *identity,
                                           const uint8_t sha256[32], bool *out_is_new,
                                           struct zt_error *error)
{
    const struct history_folder *place = history_folder_of(base);
    char name[OBJECT_SIZE];
    struct stat earlier;
    const char *file;
    int folder;
    enum zt_status status = open_parent(place, path, &folder, &file, error);

    *out_is_new = false;
    if (status != ZT_OK)
        return status;
    write_name(sha256, name);
    if (!is_kept(place, name, identity->size_bytes, identity->modified_ns)) {
        *out_is_new = !find_object(place, name, &earlier);
        if (!move_file(place, folder, file, identity, name)) {
            *out_is_new = false;
            status = errno == ENOENT ? fail_stale(error) : fail_keep(error);
        }
    }
    if (status == ZT_OK)
        status = sync_object(place, name, error);
    if (status == ZT_OK && !history_sync(folder, fsync))
        status = fail_keep(error);
    close(folder);
    return status;
}

static enum zt_status name_staged(const struct history_folder *place, struct staged_file *file,
                                  const struct stat *info, const char *name, bool *out_is_new,
                                  struct zt_error *error)
{
    struct stat earlier;

    assert(file->descriptor >= 0);
    if (file->hidden[0] == '\0')
        return keep_open(place, file->descriptor, info, name, out_is_new, error);
    *out_is_new = !find_object(place, name, &earlier);
    if (renameat(staged_folder(file), file->hidden, place->objects, name) != 0)
        return fail_keep(error);
    file->hidden[0] = '\0';
    return ZT_OK;
}

enum zt_status history_folder_keep_staged(struct history_place *base, struct staged_file *file,
                                          const uint8_t sha256[32], bool *out_is_new,
                                          struct zt_error *error)
{
    const struct history_folder *place = history_folder_of(base);
    char name[OBJECT_SIZE];
    struct stat info;
    enum zt_status status;

    *out_is_new = false;
    write_name(sha256, name);
    if (fstat(file->descriptor, &info) != 0)
        return fail_keep(error);
    status = name_staged(place, file, &info, name, out_is_new, error);
    if (status == ZT_OK)
        status = sync_object(place, name, error);
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

enum zt_status history_folder_find(struct history_place *base, const uint8_t sha256[32],
                                   bool names_it, struct file_identity *out_identity,
                                   struct zt_error *error)
{
    char name[OBJECT_SIZE];
    struct stat info;

    (void)names_it;
    write_name(sha256, name);
    if (!find_object(history_folder_of(base), name, &info))
        return fail_missing(error);
    *out_identity = identity_of(&info);
    return ZT_OK;
}

enum zt_status history_folder_open_kept(struct history_place *base, const uint8_t sha256[32],
                                        struct zt_source **out_source,
                                        struct file_identity *out_identity, struct zt_error *error)
{
    char name[OBJECT_SIZE];
    struct stat info;
    int descriptor;
    enum zt_status status;

    write_name(sha256, name);
    descriptor = openat(history_folder_of(base)->objects, name,
                        O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0)
        return fail_missing(error);
    if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(descriptor);
        errno = ENOENT;
        return fail_missing(error);
    }
    status = zt_source_from_descriptor(descriptor, out_source, error);
    if (status != ZT_OK)
        close(descriptor);
    else
        *out_identity = identity_of(&info);
    return status;
}

/* --- going back --- */

static bool clone_object(const struct history_folder *place, const char *object, const char *name)
{
    const int file = openat(place->objects, object, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    struct stat info;
    bool is_made;

    if (file < 0)
        return false;
    is_made = fstat(file, &info) == 0 && clone_file(file, &info, place->root, name);
    history_close_folder(file);
    return is_made;
}

/* Gives a kept file, or a clone of it, a hidden name in the root. Returns false with errno. */
static bool hide(const struct history_folder *place, const char *object,
                 char out_name[STAGING_HIDDEN_NAME_SIZE])
{
    int refusal;

    for (int i = 0; i < NAME_TRIES_MAX; i++) {
        store_hidden_name(STAGING_PUBLISH_PREFIX, out_name);
        if (linkat(place->objects, object, place->root, out_name, 0) == 0)
            return true;
        if (errno != EEXIST)
            break;
    }
    refusal = errno;
    if (is_refusal(refusal) && clone_object(place, object, out_name))
        return true;
    errno = refusal;
    return false;
}

/* Gives the hidden name of the root a path. Returns false with errno. */
static bool rename_hidden(const struct history_folder *place, const char *hidden, const char *path)
{
    const char *base;
    const int folder = store_path_open_parent(place->root, path, true, &base);
    bool is_named = false;
    int os_error;

    if (folder >= 0) {
        is_named = renameat(place->root, hidden, folder, base) == 0 && history_sync(folder, fsync);
        history_close_folder(folder);
    }
    os_error = errno;
    /* If the name has this file already, renaming does nothing. */
    unlinkat(place->root, hidden, 0);
    errno = os_error;
    return is_named;
}

enum zt_status history_folder_restore(struct history_place *base, const uint8_t sha256[32],
                                      const char *path, struct zt_error *error)
{
    const struct history_folder *place = history_folder_of(base);
    char hidden[STAGING_HIDDEN_NAME_SIZE];
    char name[OBJECT_SIZE];
    struct stat info;

    write_name(sha256, name);
    if (!find_object(place, name, &info))
        return fail_missing(error);
    return hide(place, name, hidden) && rename_hidden(place, hidden, path)
               ? ZT_OK
               : store_fail_errno(error, errno, "cannot restore a kept file");
}

/* Keeping a file has changed its changed_ns, so that is not compared. */
enum zt_status history_folder_remove_path(struct history_place *base, const char *path,
                                          const struct file_identity *identity,
                                          struct zt_error *error)
{
    const struct history_folder *place = history_folder_of(base);
    struct file_identity found = {.size_bytes = 0};
    const char *file;
    struct stat info;
    int folder;
    enum zt_status status = open_parent(place, path, &folder, &file, error);

    if (status != ZT_OK)
        return status;
    if (fstatat(folder, file, &info, 0) != 0)
        status = errno == ENOENT
                     ? zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the file is gone")
                     : store_fail_errno(error, errno, "cannot remove a file");
    else {
        found = store_identity_from(&info);
        found.changed_ns = identity->changed_ns;
        if (!store_identity_equal(&found, identity))
            status = fail_stale(error);
        else if (unlinkat(folder, file, 0) != 0 || !history_sync(folder, fsync))
            status = store_fail_errno(error, errno, "cannot remove a file");
    }
    close(folder);
    return status;
}

/* --- collections --- */

struct listing {
    bool (*visit)(void *context, const struct history_object *object);
    void *context;
    uint8_t first;
    bool is_stopped;
};

static bool visit_object(void *context, int folder, const char *name)
{
    struct listing *listing = context;
    struct history_object object = {.sha256 = {listing->first}};
    struct stat info;

    if (!zt_hex_read_lower(zt_text_from(name), object.sha256 + 1, SHA256_BYTES - 1) ||
        fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode))
        return true;
    object.size_bytes = (uint64_t)info.st_size;
    listing->is_stopped = !listing->visit(listing->context, &object);
    return !listing->is_stopped;
}

enum zt_status history_folder_list_objects(struct history_place *base, uint8_t first,
                                           bool (*visit)(void *context,
                                                         const struct history_object *object),
                                           void *context, struct zt_error *error)
{
    struct listing listing = {.visit = visit, .context = context, .first = first};
    char name[3];

    zt_hex_write(name, &first, 1);
    if (history_folder_visit(history_folder_of(base)->objects, name, visit_object, &listing))
        return ZT_OK;
    return listing.is_stopped ? zt_fail_memory(error, "a collection of kept files")
                              : store_fail_errno(error, errno, "cannot list the kept files");
}

bool history_folder_set_aside(struct history_place *base, const uint8_t sha256[32])
{
    const struct history_folder *place = history_folder_of(base);
    char name[OBJECT_SIZE];

    write_name(sha256, name);
    return renameat(place->objects, name, place->removed, name + 3) == 0;
}

bool history_folder_drop(struct history_place *base, const uint8_t sha256[32])
{
    char name[OBJECT_SIZE];

    write_name(sha256, name);
    unlinkat(history_folder_of(base)->removed, name + 3, 0);
    return true;
}
