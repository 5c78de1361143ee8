/* Opens the folder of a history, and reads and writes its small files. */
#include "store/versions/history_folder.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk/disk_file.h"
#include "disk/whole_file.h"
#include "store/store_path.h"
#include "store/versions/history_files.h"

#define ABOVE        ".ztserve"
#define VERSIONS     "versions"
#define REPOS        "repos"
#define OBJECTS      "objects"
#define REMOVED      "removed"
#define LOG_NEW      "log" HISTORY_NEW_SUFFIX
#define OBJECT_BYTES 256u

/* --- paths --- */

/* Returns -1 with errno. */
static int open_folder(int above, const char *name)
{
    return openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* Opens the folder of a small file. With make, folders below "repos" are made durably: also if they
 * exist, because a process that was killed may have made them. Returns -1 with errno. */
static int open_parent(const struct history_folder *place, const char *name, bool make,
                       const char **out_base)
{
    int folder = dup(place->folder);
    const char *slash;

    for (; folder >= 0 && (slash = strchr(name, '/')) != NULL; name = slash + 1) {
        const size_t length = (size_t)(slash - name);
        const int above = folder;
        char part[NAME_MAX + 1];

        assert(length > 0 && length < sizeof(part));
        memcpy(part, name, length);
        part[length] = '\0';
        folder = make && strcmp(part, REPOS) != 0 && !history_folder_make(above, part)
                     ? -1
                     : open_folder(above, part);
        history_close_folder(above);
    }
    *out_base = name;
    return folder;
}

/* --- small files --- */

static enum zt_status fail_read(struct zt_error *error)
{
    if (errno == ENOENT)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such file");
    return errno == ENOMEM
               ? zt_fail_memory(error, "the versions")
               : store_fail_errno(error, errno, "cannot read the commits of a repository");
}

static enum zt_status fail_write(struct zt_error *error)
{
    return store_fail_errno(error, errno, "cannot write the commits of a repository");
}

/* Returns NULL with errno. */
static uint8_t *read_beginning(int folder, const char *base, size_t most, size_t *out_length)
{
    const int descriptor = openat(folder, base, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    uint8_t *bytes = descriptor >= 0 ? malloc(most) : NULL;
    const ssize_t got = bytes != NULL ? pread(descriptor, bytes, most, 0) : -1;

    if (descriptor >= 0)
        history_close_folder(descriptor);
    if (got >= 0) {
        *out_length = (size_t)got;
        return bytes;
    }
    free(bytes);
    return NULL;
}

static enum zt_status read_file(struct history_place *place, const char *name, const char *known,
                                size_t most, struct history_text *out_text, struct zt_error *error)
{
    struct history_text text = {.version = "here"};
    const char *base;
    const int folder = open_parent(history_folder_of(place), name, false, &base);

    (void)known;
    assert(most > 0 && most <= HISTORY_FILE_BYTES);
    if (folder < 0)
        return fail_read(error);
    text.bytes = most == HISTORY_FILE_BYTES ? whole_file_read(folder, base, most, &text.length)
                                            : read_beginning(folder, base, most, &text.length);
    history_close_folder(folder);
    if (text.bytes == NULL)
        return fail_read(error);
    *out_text = text;
    return ZT_OK;
}

/* Only one server writes to a folder, so no version is compared except "". */
static enum zt_status write_file(struct history_place *place, const char *name,
                                 struct history_text *text, const char *expected,
                                 struct zt_error *error)
{
    const char *base;
    const int folder = open_parent(history_folder_of(place), name, true, &base);
    enum zt_status status = ZT_OK;

    if (folder < 0)
        return fail_write(error);
    if (expected != NULL && expected[0] == '\0' &&
        faccessat(folder, base, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        status = zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "there is such a file");
    else if (!history_file_replace(folder, base, text->bytes, text->length))
        status = fail_write(error);
    history_close_folder(folder);
    if (status == ZT_OK)
        strcpy(text->version, "here");
    return status;
}

/* Returns false with errno; the file is then as before, unless that fails too. */
static bool append_to(int descriptor, uint64_t length, const void *bytes, size_t count)
{
    struct stat info;
    int os_error;

    assert(count > 0);
    if (fstat(descriptor, &info) != 0)
        return false;
    if ((uint64_t)info.st_size != length) {
        errno = EIO;
        return false;
    }
    if (disk_write(descriptor, bytes, count, length) && history_sync(descriptor, fdatasync))
        return true;
    os_error = errno;
    if (ftruncate(descriptor, (off_t)length) == 0)
        (void)history_sync(descriptor, fdatasync);
    errno = os_error;
    return false;
}

static enum zt_status append(struct history_place *place, const char *name, uint64_t length,
                             const void *bytes, size_t count, struct zt_error *error)
{
    const char *base;
    const int folder = open_parent(history_folder_of(place), name, false, &base);
    bool is_written = false;
    int descriptor;

    if (folder < 0)
        return fail_write(error);
    descriptor = openat(folder, base, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    history_close_folder(folder);
    if (descriptor >= 0) {
        is_written = append_to(descriptor, length, bytes, count);
        history_close_folder(descriptor);
    }
    return is_written ? ZT_OK : fail_write(error);
}

static void remove_file(struct history_place *place, const char *name)
{
    const char *base;
    const int folder = open_parent(history_folder_of(place), name, false, &base);

    if (folder < 0)
        return;
    unlinkat(folder, base, 0);
    history_close_folder(folder);
}

struct listing {
    bool (*visit)(void *context, const char *name);
    void *context;
    bool is_stopped;
};

static bool visit_name(void *context, int folder, const char *name)
{
    struct listing *listing = context;

    (void)folder;
    listing->is_stopped = !listing->visit(listing->context, name);
    return !listing->is_stopped;
}

static enum zt_status list(struct history_place *place, const char *folder,
                           bool (*visit)(void *context, const char *name), void *context,
                           struct zt_error *error)
{
    struct listing listing = {.visit = visit, .context = context};
    const char *base;
    const int above = open_parent(history_folder_of(place), folder, false, &base);
    bool is_whole;

    if (above < 0 && errno == ENOENT)
        return ZT_OK;
    is_whole = above >= 0 && history_folder_visit(above, base, visit_name, &listing);
    if (above >= 0)
        history_close_folder(above);
    if (is_whole)
        return ZT_OK;
    if (listing.is_stopped)
        return zt_fail_memory(error, "the versions");
    return errno == ENOENT ? ZT_OK
                           : store_fail_errno(error, errno, "cannot list the files of versions");
}

static bool has_path(struct history_place *place, const char *path, bool asks)
{
    const struct history_folder *folder = history_folder_of(place);
    const int descriptor =
        store_path_is_clean(path) ? store_path_open_file(folder->root, path, O_PATH) : -1;

    (void)asks;
    if (descriptor < 0)
        return false;
    close(descriptor);
    return true;
}

/* --- opening --- */

/* Returns -1 with errno. */
static int make_folder(int above, const char *name, bool make)
{
    return make && !history_folder_make(above, name) ? -1 : open_folder(above, name);
}

static bool remove_name(void *context, int folder, const char *name)
{
    (void)context;
    unlinkat(folder, name, 0);
    return true;
}

/* What a killed process left in the folder of a repository. The trees' leftovers go with the first
 * collection. */
static bool remove_new_log(void *context, int folder, const char *name)
{
    const int repo = open_folder(folder, name);

    (void)context;
    if (repo < 0)
        return true;
    unlinkat(repo, LOG_NEW, 0);
    close(repo);
    return true;
}

/* All of them at once, so that no later link waits for a new folder. */
static bool make_object_folders(int objects)
{
    char name[3];

    assert(objects >= 0);
    for (unsigned i = 0; i < OBJECT_BYTES; i++) {
        snprintf(name, sizeof(name), "%02x", i);
        if (mkdirat(objects, name, 0700) != 0 && errno != EEXIST)
            return false;
    }
    return history_sync(objects, fsync);
}

static bool open_folders(struct history_folder *place)
{
    const bool make = place->base.is_writable;
    const int above = make_folder(place->root, ABOVE, make);

    if (above < 0)
        return false;
    place->folder = make_folder(above, VERSIONS, make);
    history_close_folder(above);
    if (place->folder < 0)
        return false;
    place->repos = make_folder(place->folder, REPOS, make);
    place->objects = make_folder(place->folder, OBJECTS, make);
    place->removed = make_folder(place->folder, REMOVED, make);
    return place->repos >= 0 && place->objects >= 0 && place->removed >= 0;
}

static void close_folders(struct history_folder *place)
{
    int *const folders[] = {&place->folder, &place->repos, &place->objects, &place->removed};

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        if (*folders[i] >= 0)
            close(*folders[i]);
        *folders[i] = -1;
    }
}

static void close_place(struct history_place *place)
{
    close_folders(history_folder_of(place));
    free(place);
}

static enum zt_status begin(struct history_folder *place, struct zt_error *error)
{
    const bool is_open = open_folders(place);
    const bool is_writable = place->base.is_writable;
    enum zt_status status;

    /* A server that only reads may have no versions. */
    if (!is_open && !is_writable && errno == ENOENT) {
        close_folders(place);
        place->base.is_missing = true;
        return ZT_OK;
    }
    if (is_open && !is_writable)
        return ZT_OK;
    if (!is_open || !make_object_folders(place->objects)) {
        status = store_fail_errno(error, errno, "cannot keep versions in " ABOVE "/" VERSIONS);
        if (error != NULL)
            error->status = ZT_IO;
        return status == ZT_LIMIT ? ZT_IO : status;
    }
    (void)history_folder_visit(place->removed, ".", remove_name, NULL);
    (void)history_folder_visit(place->repos, ".", remove_new_log, NULL);
    return ZT_OK;
}

enum zt_status history_folder_open(int root, bool is_writable, struct history_place **out_place,
                                   struct zt_error *error)
{
    static const struct history_place_ops ops = {
        .read = read_file,
        .write = write_file,
        .append = append,
        .remove = remove_file,
        .list = list,
        .keep = history_folder_keep,
        .keep_removed = history_folder_keep_removed,
        .keep_staged = history_folder_keep_staged,
        .find = history_folder_find,
        .open = history_folder_open_kept,
        .restore = history_folder_restore,
        .remove_path = history_folder_remove_path,
        .list_objects = history_folder_list_objects,
        .set_aside = history_folder_set_aside,
        .drop = history_folder_drop,
        .has_path = has_path,
        .close = close_place,
    };
    struct history_folder *place = calloc(1, sizeof(*place));
    enum zt_status status;

    if (place == NULL)
        return zt_fail_memory(error, "versions");
    place->base = (struct history_place){.ops = &ops, .is_writable = is_writable};
    place->root = root;
    place->folder = place->repos = place->objects = place->removed = -1;
    status = begin(place, error);
    if (status != ZT_OK) {
        close_place(&place->base);
        return status;
    }
    *out_place = &place->base;
    return ZT_OK;
}
