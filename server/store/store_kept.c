/* Kept uploads: one folder for each, in a hidden folder of the root, so that they outlive their
 * request and the process.
 *
 * A process that uses a place holds a lock on its folder, which ends with the process. So two
 * servers on one root (a rolling restart) never take or remove each other's places. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/store_local.h"

#define FILE_MODE    0644
#define FOLDER_MODE  0755
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/* Appended to the id of a place that is being removed. The name is then not an id, so that the next
 * start finishes what a crash interrupted. */
#define GONE_SUFFIX ".gone"

static bool id_is_valid(const char *id)
{
    return strlen(id) == STORE_KEPT_ID_SIZE - 1 &&
           strspn(id, "0123456789abcdef") == STORE_KEPT_ID_SIZE - 1;
}

static bool name_is_valid(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length <= STORE_KEPT_NAME_MAX && name[0] != '.' &&
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

/* --- the places of this process --- */

/* With the lock held. -1 if this process does not own the place. */
static int find_place(const struct local_store *local, const char *id)
{
    const struct kept_place *place = local->places;

    while (place != NULL && strcmp(place->id, id) != 0)
        place = place->next;
    return place != NULL ? place->folder : -1;
}

/* With the lock held. Takes over the descriptor, which is closed on failure. */
static enum zt_status add_place(struct local_store *local, const char *id, int folder,
                                struct zt_error *error)
{
    struct kept_place *place = calloc(1, sizeof(*place));

    if (place == NULL) {
        close(folder);
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for an upload");
    }
    assert(find_place(local, id) < 0);
    place->folder = folder;
    snprintf(place->id, sizeof(place->id), "%s", id);
    place->next = local->places;
    local->places = place;
    return ZT_OK;
}

static void forget_place(struct local_store *local, const char *id)
{
    pthread_mutex_lock(&local->places_lock);
    for (struct kept_place **at = &local->places; *at != NULL; at = &(*at)->next) {
        struct kept_place *place = *at;

        if (strcmp(place->id, id) != 0)
            continue;
        *at = place->next;
        close(place->folder);
        free(place);
        break;
    }
    pthread_mutex_unlock(&local->places_lock);
}

void store_kept_close(struct local_store *local)
{
    while (local->places != NULL)
        forget_place(local, local->places->id);
    pthread_mutex_destroy(&local->places_lock);
}

/* Locks an open folder. If locks do not work here, no other process can have one either, so that
 * counts as success. */
static bool take_lock(int folder)
{
    return flock(folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/* With the lock held. Takes over a place that an earlier process left. */
static enum zt_status adopt_place(struct local_store *local, const char *id, struct zt_error *error)
{
    char path[sizeof(STORE_KEPT_FOLDER) + STORE_KEPT_ID_SIZE];
    struct stat info;
    int folder;

    snprintf(path, sizeof(path), "%s/%s", STORE_KEPT_FOLDER, id);
    folder = openat(local->root, path, FOLDER_FLAGS);
    if (folder < 0)
        return fail_open(errno, "cannot open an upload", error);
    if (!take_lock(folder)) {
        close(folder);
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "another server on this folder owns the upload");
    }
    /* Its owner may have removed it before the lock was taken. */
    if (fstat(folder, &info) != 0 || info.st_nlink == 0) {
        close(folder);
        return not_found(error);
    }
    return add_place(local, id, folder, error);
}

/* Returns a descriptor of a place's folder, which the caller closes. Takes over a place that no
 * process owns. ZT_NOT_FOUND; ZT_ARGUMENT if another process owns it. */
static enum zt_status enter_place(struct local_store *local, const char *id, int *out_folder,
                                  struct zt_error *error)
{
    enum zt_status status = ZT_OK;
    int folder = -1;

    if (!id_is_valid(id))
        return not_found(error);
    pthread_mutex_lock(&local->places_lock);
    if (find_place(local, id) < 0)
        status = adopt_place(local, id, error);
    if (status == ZT_OK)
        folder = fcntl(find_place(local, id), F_DUPFD_CLOEXEC, 0);
    if (status == ZT_OK && folder < 0)
        status = store_fail_errno(error, errno, "cannot open an upload");
    pthread_mutex_unlock(&local->places_lock);
    assert((status == ZT_OK) == (folder >= 0));
    if (status == ZT_OK)
        *out_folder = folder;
    return status;
}

/* Opens the folder of all places and locks it, so that no process lists it while another makes a
 * place. -1 with errno. */
static int open_folder(int root)
{
    int folder = openat(root, STORE_KEPT_FOLDER, FOLDER_FLAGS);

    if (folder >= 0)
        (void)flock(folder, LOCK_EX);
    return folder;
}

/* --- making a place, and its files --- */

static enum zt_status make_place(struct local_store *local, int above, const char *id,
                                 struct zt_error *error)
{
    enum zt_status status;

    if (mkdirat(above, id, FOLDER_MODE) != 0)
        return store_fail_errno(error, errno, "cannot make an upload");
    pthread_mutex_lock(&local->places_lock);
    status = adopt_place(local, id, error);
    pthread_mutex_unlock(&local->places_lock);
    if (status != ZT_OK)
        unlinkat(above, id, AT_REMOVEDIR);
    return status;
}

enum zt_status store_local_keep(struct store *store, const char *id, struct zt_error *error)
{
    struct local_store *local = (struct local_store *)store;
    enum zt_status status;
    int above;

    if (!id_is_valid(id))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "not the id of an upload");
    if (mkdirat(local->root, STORE_KEPT_FOLDER, FOLDER_MODE) != 0 && errno != EEXIST)
        return store_fail_errno(error, errno, "cannot make the folder of uploads");
    above = open_folder(local->root);
    if (above < 0)
        return store_fail_errno(error, errno, "cannot open the folder of uploads");
    status = make_place(local, above, id, error);
    close(above);
    return status;
}

/* Syncs the folders from the place up to the root: none of them was synced before. */
enum zt_status store_kept_sync_place(const struct local_upload *upload, struct zt_error *error)
{
    int root = local_store_of(upload)->root;
    int above = openat(root, STORE_KEPT_FOLDER, FOLDER_FLAGS);
    bool synced = above >= 0 && fsync(upload->folder) == 0 && fsync(above) == 0 && fsync(root) == 0;
    int os_error = errno;

    assert(upload->folder >= 0 && !upload->is_named_durably);
    if (above >= 0)
        close(above);
    return synced ? ZT_OK : store_fail_errno(error, os_error, "cannot sync the folder");
}

struct kept_name {
    int folder;
    const char *name;
};

/* Makes an upload of an open file of a place and takes over its descriptors, which are closed on
 * failure. */
static enum zt_status hand_out(struct local_store *local, struct kept_name where, int descriptor,
                               struct stored_upload **out_upload, struct zt_error *error)
{
    struct local_upload *upload;
    enum zt_status status = store_upload_new(local, descriptor, &upload, error);

    assert(where.folder >= 0 && strlen(where.name) <= STORE_KEPT_NAME_MAX);
    if (status != ZT_OK) {
        close(where.folder);
        return status;
    }
    upload->folder = where.folder;
    snprintf(upload->hidden, sizeof(upload->hidden), "%s", where.name);
    *out_upload = &upload->base;
    return ZT_OK;
}

enum zt_status store_local_kept_create(struct store *store, const char *id, const char *name,
                                       uint64_t expected_bytes, struct stored_upload **out_upload,
                                       struct zt_error *error)
{
    struct local_store *local = (struct local_store *)store;
    enum zt_status status;
    int folder;
    int descriptor;

    if (!name_is_valid(name))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "not the name of an upload's file");
    status = store_check_space(local, expected_bytes, error);
    if (status == ZT_OK)
        status = enter_place(local, id, &folder, error);
    if (status != ZT_OK)
        return status;
    /* A request may still be writing to the older file. */
    unlinkat(folder, name, 0);
    descriptor =
        openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    if (descriptor < 0) {
        status = store_fail_errno(error, errno, "cannot make a file");
        close(folder);
        return status;
    }
    return hand_out(local, (struct kept_name){folder, name}, descriptor, out_upload, error);
}

enum zt_status store_local_kept_open(struct store *store, const char *id, const char *name,
                                     struct stored_upload **out_upload, struct zt_error *error)
{
    struct local_store *local = (struct local_store *)store;
    enum zt_status status;
    int folder;
    int descriptor;

    if (!name_is_valid(name))
        return not_found(error);
    status = enter_place(local, id, &folder, error);
    if (status != ZT_OK)
        return status;
    descriptor = store_path_open_file(folder, name, O_RDWR | O_NOFOLLOW);
    if (descriptor < 0) {
        status = fail_open(errno, "cannot open an upload's file", error);
        close(folder);
        return status;
    }
    return hand_out(local, (struct kept_name){folder, name}, descriptor, out_upload, error);
}

enum zt_status store_local_kept_remove(struct store *store, const char *id, const char *name,
                                       struct zt_error *error)
{
    enum zt_status status;
    int folder;

    if (!name_is_valid(name))
        return not_found(error);
    status = enter_place((struct local_store *)store, id, &folder, error);
    if (status != ZT_OK)
        return status;
    if (unlinkat(folder, name, 0) != 0)
        status = fail_open(errno, "cannot remove an upload's file", error);
    close(folder);
    return status;
}

/* --- removing --- */

/* Removes the files of a place, which has no folders. Closes the descriptor. */
static void empty_folder(int folder)
{
    DIR *stream = fdopendir(folder);
    const struct dirent *entry;

    if (stream == NULL) {
        close(folder);
        return;
    }
    while ((entry = readdir(stream)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(folder, entry->d_name, 0);
    closedir(stream);
}

enum zt_status store_local_kept_drop(struct store *store, const char *id, struct zt_error *error)
{
    struct local_store *local = (struct local_store *)store;
    char gone[STORE_KEPT_ID_SIZE + sizeof(GONE_SUFFIX)];
    enum zt_status status;
    int folder;
    int above;

    status = enter_place(local, id, &folder, error);
    if (status != ZT_OK)
        return status;
    above = openat(local->root, STORE_KEPT_FOLDER, FOLDER_FLAGS);
    snprintf(gone, sizeof(gone), "%s%s", id, GONE_SUFFIX);
    if (above < 0 || renameat(above, id, above, gone) != 0) {
        status = fail_open(errno, "cannot remove an upload", error);
        close(folder);
        goto out;
    }
    empty_folder(folder);
    if (unlinkat(above, gone, AT_REMOVEDIR) != 0 || fsync(above) != 0)
        status = store_fail_errno(error, errno, "cannot remove an upload");
    forget_place(local, id);
out:
    if (above >= 0)
        close(above);
    return status;
}

/* Removes something that is not a place: what is left of a removed place, or a stray file. */
static void remove_rest(int above, const char *name)
{
    int folder = openat(above, name, FOLDER_FLAGS);

    if (folder < 0) {
        unlinkat(above, name, 0);
        return;
    }
    if (!take_lock(folder)) {
        close(folder);
        return;
    }
    empty_folder(folder);
    unlinkat(above, name, AT_REMOVEDIR);
}

/* --- at start --- */

struct ids {
    char (*items)[STORE_KEPT_ID_SIZE];
    size_t count;
    size_t capacity;
};

static bool add_id(struct ids *ids, const char *id)
{
    if (zt_array_reserve(&ids->items, &ids->capacity, ids->count + 1, sizeof(ids->items[0]),
                         SIZE_MAX) != ZT_OK)
        return false;
    assert(ids->count < ids->capacity && id_is_valid(id));
    snprintf(ids->items[ids->count++], STORE_KEPT_ID_SIZE, "%s", id);
    return true;
}

/* Takes over every place that no process owns. False if out of memory. */
static bool take_places(struct local_store *local, DIR *stream, struct ids *ids)
{
    const struct dirent *entry;

    while ((entry = readdir(stream)) != NULL) {
        int folder;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (!id_is_valid(entry->d_name)) {
            remove_rest(dirfd(stream), entry->d_name);
            continue;
        }
        if (enter_place(local, entry->d_name, &folder, NULL) != ZT_OK)
            continue;
        close(folder);
        if (!add_id(ids, entry->d_name))
            return false;
    }
    return true;
}

enum zt_status store_local_kept_list(struct store *store,
                                     bool (*visit)(void *context, const char *id), void *context,
                                     struct zt_error *error)
{
    struct local_store *local = (struct local_store *)store;
    struct ids ids = {NULL, 0, 0};
    int folder = open_folder(local->root);
    enum zt_status status = ZT_OK;
    DIR *stream;

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
    if (!take_places(local, stream, &ids))
        status = zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for the uploads");
    closedir(stream);
    for (size_t i = 0; i < ids.count && status == ZT_OK && visit(context, ids.items[i]); i++)
        continue;
    free(ids.items);
    return status;
}
