/* Folders of uploads. Each upload has one, in a hidden folder of the staging area, so that it
 * outlives its request and the process.
 *
 * A process that uses a folder holds its lock, which ends with the process. So two servers on one
 * root (a rolling restart) never take or remove each other's folders. A folder without open files
 * holds no descriptor. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/memory.h"
#include "disk/open_files.h"
#include "store/staging.h"
#include "store/store_path.h"

#define FILE_MODE    0644
#define FOLDER_MODE  0755
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/* Appended to the id of a folder that is being removed. The name is then not an id, so that the
 * next start finishes what a crash interrupted. */
#define GONE_SUFFIX ".gone"

/* A folder that this process owns. */
struct owned_folder {
    struct owned_folder *next;
    char id[STAGING_ID_SIZE];
};

static bool id_is_valid(const char *id)
{
    return zt_hex_is_lower(zt_text_from(id), STAGING_ID_SIZE - 1);
}

static bool name_is_valid(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length <= STAGING_NAME_MAX && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") == length;
}

static enum zt_status not_found(struct zt_error *error)
{
    return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such upload");
}

static enum zt_status fail_open(int os_error, const char *what, struct zt_error *error)
{
    return os_error == ENOENT || os_error == ENOTDIR || os_error == ELOOP
               ? not_found(error)
               : store_fail_errno(error, os_error, what);
}

/* --- the folders of this process --- */

/* The lock must be held. */
static bool owns_folder(const struct staging *staging, const char *id)
{
    const struct owned_folder *owned = staging->owned;

    while (owned != NULL && strcmp(owned->id, id) != 0)
        owned = owned->next;
    return owned != NULL;
}

/* The lock must be held. */
static enum zt_status add_owned(struct staging *staging, const char *id, struct zt_error *error)
{
    struct owned_folder *owned = calloc(1, sizeof(*owned));

    if (owned == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for an upload");
    assert(!owns_folder(staging, id));
    snprintf(owned->id, sizeof(owned->id), "%s", id);
    owned->next = staging->owned;
    staging->owned = owned;
    return ZT_OK;
}

/* The lock must be held. A process that owns no folder needs no locks. */
static void close_locks(struct staging *staging)
{
    if (staging->owned != NULL || staging->locks_descriptor < 0)
        return;
    close(staging->locks_descriptor);
    staging->locks_descriptor = -1;
}

bool staging_folder_is_owned(struct staging *staging, const char *id)
{
    bool is_owned;

    if (staging == NULL)
        return false;
    pthread_mutex_lock(&staging->lock);
    is_owned = owns_folder(staging, id);
    pthread_mutex_unlock(&staging->lock);
    return is_owned;
}

void staging_folder_release(struct staging *staging, const char *id)
{
    if (staging == NULL)
        return;
    pthread_mutex_lock(&staging->lock);
    for (struct owned_folder **at = &staging->owned; *at != NULL; at = &(*at)->next) {
        struct owned_folder *owned = *at;

        if (strcmp(owned->id, id) != 0)
            continue;
        *at = owned->next;
        staging_unlock(staging->locks_descriptor, id);
        free(owned);
        break;
    }
    close_locks(staging);
    pthread_mutex_unlock(&staging->lock);
}

void staging_end(struct staging *staging)
{
    while (staging->owned != NULL)
        staging_folder_release(staging, staging->owned->id);
    close_locks(staging);
    pthread_mutex_destroy(&staging->lock);
}

/* The lock must be held. Opens the folder that holds the locks. If it was removed, the upload
 * folders went with it, and it is opened again. */
static bool open_locks(struct staging *staging)
{
    struct stat info;

    if (staging->locks_descriptor >= 0 &&
        (fstat(staging->locks_descriptor, &info) != 0 || info.st_nlink == 0)) {
        close(staging->locks_descriptor);
        staging->locks_descriptor = -1;
    }
    if (staging->locks_descriptor < 0)
        staging->locks_descriptor = openat(staging->root, STAGING_FOLDERS, FOLDER_FLAGS);
    return staging->locks_descriptor >= 0;
}

/* Locks an open folder, as servers before release 3 do. If locks do not work here, no
 * other process can have one either, so that counts as success. */
static bool take_lock(int folder)
{
    return flock(folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/* The lock must be held. The caller closes *out_folder. */
static enum zt_status open_folder(const struct staging *staging, const char *id, int *out_folder,
                                  struct zt_error *error)
{
    char path[sizeof(STAGING_FOLDERS) + STAGING_ID_SIZE];

    assert(id_is_valid(id));
    snprintf(path, sizeof(path), "%s/%s", STAGING_FOLDERS, id);
    *out_folder = openat(staging->root, path, FOLDER_FLAGS);
    return *out_folder >= 0 ? ZT_OK : fail_open(errno, "cannot open an upload", error);
}

/* The lock must be held. Takes over a folder that an earlier process left. */
static enum zt_status adopt_folder(struct staging *staging, const char *id, int folder,
                                   struct zt_error *error)
{
    enum zt_status status = ZT_OK;
    struct stat info;

    assert(folder >= 0 && !owns_folder(staging, id));
    if (!open_locks(staging))
        return fail_open(errno, "cannot open an upload", error);
    if (!take_lock(folder) || !staging_lock(staging->locks_descriptor, id))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "another server on this folder owns the upload");
    (void)flock(folder, LOCK_UN);
    /* Its owner may have removed it before the lock was taken. */
    if (fstat(folder, &info) != 0 || info.st_nlink == 0)
        status = not_found(error);
    if (status == ZT_OK)
        status = add_owned(staging, id, error);
    if (status != ZT_OK)
        staging_unlock(staging->locks_descriptor, id);
    return status;
}

/* Returns a descriptor of an upload's folder, which the caller closes. Takes over a folder that no
 * process owns. ZT_NOT_FOUND; ZT_ARGUMENT if another process owns it. */
static enum zt_status enter_folder(struct staging *staging, const char *id, int *out_folder,
                                   struct zt_error *error)
{
    enum zt_status status;
    int folder;

    if (!id_is_valid(id))
        return not_found(error);
    pthread_mutex_lock(&staging->lock);
    status = open_folder(staging, id, &folder, error);
    if (status == ZT_OK && !owns_folder(staging, id)) {
        status = adopt_folder(staging, id, folder, error);
        if (status != ZT_OK)
            close(folder);
    }
    close_locks(staging);
    pthread_mutex_unlock(&staging->lock);
    if (status == ZT_OK)
        *out_folder = folder;
    return status;
}

/* Opens the folder of folders and locks it, so that no process lists it while another makes a
 * folder. -1 with errno. */
static int open_folders(int root)
{
    int folder = openat(root, STAGING_FOLDERS, FOLDER_FLAGS);

    if (folder >= 0)
        (void)flock(folder, LOCK_EX);
    return folder;
}

/* --- making a folder, and its files --- */

static enum zt_status make_in(struct staging *staging, int above, const char *id,
                              struct zt_error *error)
{
    enum zt_status status;
    int folder;

    assert(above >= 0 && id_is_valid(id));
    if (mkdirat(above, id, FOLDER_MODE) != 0)
        return store_fail_errno(error, errno, "cannot create an upload");
    status = enter_folder(staging, id, &folder, error);
    if (status == ZT_OK)
        close(folder);
    else
        unlinkat(above, id, AT_REMOVEDIR);
    return status;
}

static enum zt_status make_folder(struct staging *staging, const char *id, struct zt_error *error)
{
    enum zt_status status;
    int above;

    if (!id_is_valid(id))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "not the id of an upload");
    if (mkdirat(staging->root, STAGING_FOLDERS, FOLDER_MODE) != 0 && errno != EEXIST)
        return store_fail_errno(error, errno, "cannot create the folder of uploads");
    above = open_folders(staging->root);
    if (above < 0)
        return store_fail_errno(error, errno, "cannot open the folder of uploads");
    status = make_in(staging, above, id, error);
    close(above);
    return status;
}

enum zt_status staging_folder_make(struct staging *staging, const char *id, struct zt_error *error)
{
    if (staging == NULL)
        return staging_refuse(error);
    return staging_explain(staging, make_folder(staging, id, error), error);
}

/* Syncs the folders from the upload's up to the root: none of them was synced before. */
enum zt_status staging_folder_sync(const struct staged_file *file, struct zt_error *error)
{
    int root = file->staging->root;
    int above = openat(root, STAGING_FOLDERS, FOLDER_FLAGS);
    bool synced = above >= 0 && fsync(file->folder) == 0 && fsync(above) == 0 && fsync(root) == 0;
    int os_error = errno;

    assert(file->folder >= 0 && !file->is_named_durably);
    if (above >= 0)
        close(above);
    return synced ? ZT_OK : store_fail_errno(error, os_error, "cannot sync the folder");
}

static void put_in_folder(struct staged_file *file, int folder, const char *name)
{
    assert(folder >= 0 && file->folder < 0 && strlen(name) <= STAGING_NAME_MAX);
    file->folder = folder;
    snprintf(file->hidden, sizeof(file->hidden), "%s", name);
}

/* Checks the space first, so that a file that does not fit does not replace an older one. Makes
 * room as the file's own claim would. */
static enum zt_status check_space(const struct staging *staging, uint64_t expected_bytes,
                                  struct zt_error *error)
{
    const uint64_t wanted = expected_bytes == UINT64_MAX ? 1 : expected_bytes;
    uint64_t left;
    enum zt_status status = staging_space(staging, &left, error);
    struct disk_claim claim;

    if (status != ZT_OK || left >= wanted)
        return status;
    disk_claim_init(&claim, staging->root, 0);
    status = disk_claim_ahead(&claim, wanted, atomic_load(&staging->reserve_bytes), error);
    disk_claim_end(&claim);
    return status;
}

static enum zt_status create_file(struct staging *staging, const char *id, const char *name,
                                  uint64_t expected_bytes, struct staged_file **out_file,
                                  struct zt_error *error)
{
    struct staged_file *file;
    enum zt_status status;
    int folder;
    int descriptor;

    if (!name_is_valid(name))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "not the name of an upload's file");
    status = check_space(staging, expected_bytes, error);
    if (status == ZT_OK)
        status = staging_count_files(expected_bytes > 0, error);
    if (status != ZT_OK)
        return status;
    status = enter_folder(staging, id, &folder, error);
    if (status != ZT_OK) {
        open_files_end_upload(STAGED_FILE_DESCRIPTORS);
        return status;
    }
    /* A request may still be writing to the older file. */
    unlinkat(folder, name, 0);
    descriptor =
        openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    if (descriptor < 0) {
        status = store_fail_errno(error, errno, "cannot create a file");
        open_files_end_upload(STAGED_FILE_DESCRIPTORS);
        close(folder);
        return status;
    }
    status = staged_file_new(staging, descriptor, expected_bytes, &file, error);
    if (status != ZT_OK) {
        unlinkat(folder, name, 0);
        close(folder);
        return status;
    }
    put_in_folder(file, folder, name);
    file->is_record = expected_bytes == 0;
    *out_file = file;
    return ZT_OK;
}

enum zt_status staging_folder_create(struct staging *staging, const char *id, const char *name,
                                     uint64_t expected_bytes, struct staged_file **out_file,
                                     struct zt_error *error)
{
    if (staging == NULL)
        return staging_refuse(error);
    return staging_explain(staging, create_file(staging, id, name, expected_bytes, out_file, error),
                           error);
}

enum zt_status staging_folder_open(struct staging *staging, const char *id, const char *name,
                                   struct staged_file **out_file, struct zt_error *error)
{
    struct staged_file *file;
    enum zt_status status;
    int folder;
    int descriptor;

    if (staging == NULL || !name_is_valid(name))
        return not_found(error);
    status = enter_folder(staging, id, &folder, error);
    if (status != ZT_OK)
        return status;
    descriptor = store_path_open_file(folder, name, O_RDWR | O_NOFOLLOW);
    if (descriptor < 0) {
        status = fail_open(errno, "cannot open an upload's file", error);
        close(folder);
        return status;
    }
    status = staging_count_files(false, error);
    if (status != ZT_OK) {
        close(descriptor);
        close(folder);
        return status;
    }
    status = staged_file_new(staging, descriptor, 0, &file, error);
    if (status != ZT_OK) {
        close(folder);
        return status;
    }
    put_in_folder(file, folder, name);
    *out_file = file;
    return ZT_OK;
}

enum zt_status staging_folder_remove(struct staging *staging, const char *id, const char *name,
                                     struct zt_error *error)
{
    enum zt_status status;
    int folder;

    if (staging == NULL || !name_is_valid(name))
        return not_found(error);
    status = enter_folder(staging, id, &folder, error);
    if (status != ZT_OK)
        return status;
    if (unlinkat(folder, name, 0) != 0)
        status = fail_open(errno, "cannot remove an upload's file", error);
    close(folder);
    return status;
}

/* --- removing --- */

/* Removes the files of a folder that are not kept (NULL: all). Closes the descriptor. */
static void empty_folder(int folder, staging_keeps *keeps, const void *context)
{
    DIR *stream = fdopendir(folder);
    const struct dirent *entry;

    assert(folder >= 0);
    if (stream == NULL) {
        close(folder);
        return;
    }
    while ((entry = readdir(stream)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            (keeps == NULL || !keeps(context, entry->d_name)))
            unlinkat(folder, entry->d_name, 0);
    closedir(stream);
}

void staging_folder_clean(struct staging *staging, const char *id, staging_keeps *keeps,
                          const void *context)
{
    int folder;

    if (staging != NULL && enter_folder(staging, id, &folder, NULL) == ZT_OK)
        empty_folder(folder, keeps, context);
}

enum zt_status staging_folder_drop(struct staging *staging, const char *id, struct zt_error *error)
{
    char gone[STAGING_ID_SIZE + sizeof(GONE_SUFFIX)];
    enum zt_status status;
    int folder;
    int above;

    if (staging == NULL)
        return not_found(error);
    status = enter_folder(staging, id, &folder, error);
    if (status != ZT_OK)
        return status;
    above = openat(staging->root, STAGING_FOLDERS, FOLDER_FLAGS);
    snprintf(gone, sizeof(gone), "%s%s", id, GONE_SUFFIX);
    if (above < 0 || renameat(above, id, above, gone) != 0) {
        status = fail_open(errno, "cannot remove an upload", error);
        close(folder);
        goto out;
    }
    empty_folder(folder, NULL, NULL);
    if (unlinkat(above, gone, AT_REMOVEDIR) != 0 || fsync(above) != 0)
        status = store_fail_errno(error, errno, "cannot remove an upload");
    staging_folder_release(staging, id);
out:
    if (above >= 0)
        close(above);
    return status;
}

/* Returns true if another process is removing the folder with this name. */
static bool is_being_removed(struct staging *staging, const char *name)
{
    char id[STAGING_ID_SIZE];
    bool is_locked;

    snprintf(id, sizeof(id), "%.*s", STAGING_ID_SIZE - 1, name);
    if (!id_is_valid(id) || strcmp(name + strlen(id), GONE_SUFFIX) != 0)
        return false;
    pthread_mutex_lock(&staging->lock);
    is_locked = open_locks(staging) && !staging_lock(staging->locks_descriptor, id);
    if (!is_locked && staging->locks_descriptor >= 0)
        staging_unlock(staging->locks_descriptor, id);
    close_locks(staging);
    pthread_mutex_unlock(&staging->lock);
    return is_locked;
}

/* Removes the rest of a dropped folder, or a stray file. */
static void remove_rest(struct staging *staging, int above, const char *name)
{
    int folder = openat(above, name, FOLDER_FLAGS);

    assert(above >= 0 && !id_is_valid(name));
    if (folder < 0) {
        unlinkat(above, name, 0);
        return;
    }
    if (!take_lock(folder) || is_being_removed(staging, name)) {
        close(folder);
        return;
    }
    empty_folder(folder, NULL, NULL);
    unlinkat(above, name, AT_REMOVEDIR);
}

/* --- at start --- */

struct ids {
    char (*items)[STAGING_ID_SIZE];
    size_t count;
    size_t capacity;
};

static bool add_id(struct ids *ids, const char *id)
{
    if (zt_array_reserve(&ids->items, &ids->capacity, ids->count + 1, sizeof(ids->items[0]),
                         SIZE_MAX) != ZT_OK)
        return false;
    assert(ids->count < ids->capacity && id_is_valid(id));
    memcpy(ids->items[ids->count++], id, STAGING_ID_SIZE);
    return true;
}

/* Finds all folders. Returns false if out of memory. */
static bool find_folders(struct staging *staging, DIR *stream, struct ids *ids)
{
    const struct dirent *entry;

    while ((entry = readdir(stream)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (!id_is_valid(entry->d_name))
            remove_rest(staging, dirfd(stream), entry->d_name);
        else if (!add_id(ids, entry->d_name))
            return false;
    }
    return true;
}

/* Takes over a folder unless another process owns it. */
static bool take_folder(struct staging *staging, const char *id)
{
    int folder;

    if (enter_folder(staging, id, &folder, NULL) != ZT_OK)
        return false;
    close(folder);
    return true;
}

enum zt_status staging_folders_adopt(struct staging *staging,
                                     bool (*visit)(void *context, const char *id), void *context,
                                     struct zt_error *error)
{
    struct ids ids = {NULL, 0, 0};
    enum zt_status status = ZT_OK;
    int folder;
    DIR *stream;

    if (staging == NULL)
        return ZT_OK;
    folder = open_folders(staging->root);
    if (folder < 0)
        return errno == ENOENT
                   ? ZT_OK
                   : store_fail_errno(error, errno, "cannot open the folder of uploads");
    stream = fdopendir(folder);
    if (stream == NULL) {
        status = store_fail_errno(error, errno, "cannot read the folder of uploads");
        close(folder);
        return status;
    }
    if (!find_folders(staging, stream, &ids))
        status = zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for the uploads");
    closedir(stream);
    /* Adopts them one by one: the visitor may release a folder, and there may be more folders than
     * descriptors. */
    for (size_t i = 0; i < ids.count && status == ZT_OK; i++)
        if (take_folder(staging, ids.items[i]) && !visit(context, ids.items[i]))
            break;
    free(ids.items);
    return status;
}
