/* Decides whether a file could have a path, by looking at it folder by folder before anything is
 * written. Also makes folders that have no file yet. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/store_local.h"

enum place { PLACE_FREE, PLACE_FOLDER, PLACE_FILE, PLACE_OTHER };

static enum place place_of(const struct stat *info)
{
    return S_ISDIR(info->st_mode)   ? PLACE_FOLDER
           : S_ISREG(info->st_mode) ? PLACE_FILE
                                    : PLACE_OTHER;
}

/* Examines the target of a link, if it is below the root. */
static enum place follow(int root, const char *path)
{
    const int descriptor = store_path_open(root, path, O_PATH);
    enum place place = PLACE_OTHER;
    struct stat info;

    if (descriptor < 0)
        return PLACE_OTHER;
    if (fstat(descriptor, &info) == 0)
        place = place_of(&info);
    close(descriptor);
    return place;
}

/* Examines a name in a folder that existed a moment ago. If the folder has been removed, the name
 * is free. */
static enum place look(int root, const char *path)
{
    const char *base;
    const int folder = store_path_open_parent(root, path, false, &base);
    enum place place = PLACE_OTHER;
    struct stat info;

    if (folder < 0)
        return errno == ENOENT ? PLACE_FREE : PLACE_OTHER;
    if (fstatat(folder, base, &info, AT_SYMLINK_NOFOLLOW) == 0)
        place = S_ISLNK(info.st_mode) ? follow(root, path) : place_of(&info);
    else if (errno == ENOENT)
        place = PLACE_FREE;
    close(folder);
    return place;
}

enum zt_status store_local_may_publish(struct store *store, const char *path,
                                       const struct store_leaving *leaving, struct zt_error *error)
{
    const struct local_store *local = (const struct local_store *)store;
    char part[STORE_PATH_SIZE];
    enum place place = PLACE_FOLDER;

    if (!store_path_is_clean(path) || store_local_withholds_place(local, path))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the name cannot be used");
    for (size_t at = 1; place == PLACE_FOLDER && path[at - 1] != '\0'; at++) {
        if (path[at] != '/' && path[at] != '\0')
            continue;
        snprintf(part, sizeof(part), "%.*s", (int)at, path);
        place = look(local->root, part);
        if (path[at] == '\0' && (place == PLACE_FILE || place == PLACE_FREE))
            return ZT_OK;
        if (path[at] == '\0' ? store_folder_empties(local, part, leaving)
                             : leaving->leaves(leaving->context, part))
            return ZT_OK;
    }
    if (place == PLACE_FREE)
        return ZT_OK;
    if (place == PLACE_OTHER)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                       "%s exists, and is a link out of the store, or neither a file nor a folder",
                       part);
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                   place == PLACE_FOLDER ? "%s is a folder, and cannot be a file"
                                         : "%s is a file, and cannot be a folder",
                   part);
}

/* --- links --- */

/* Returns false if the name does not exist. */
static bool look_at_name(int root, const char *path, struct stat *out_info)
{
    const char *base;
    const int folder = store_path_open_parent(root, path, false, &base);
    bool is_there;

    if (folder < 0)
        return false;
    is_there = fstatat(folder, base, out_info, AT_SYMLINK_NOFOLLOW) == 0;
    close(folder);
    return is_there;
}

/* Resolves the existing part; the missing part will be created below that. */
static bool resolve(int root, const char *folder, size_t there, char out_path[STORE_PATH_SIZE])
{
    const char *rest = folder + there;
    char part[STORE_PATH_SIZE];
    size_t length;

    assert(there > 0 && there <= strlen(folder));
    snprintf(part, sizeof(part), "%.*s", (int)there, folder);
    if (!store_path_resolve(root, part, out_path))
        return false;
    length = strlen(out_path);
    rest += length == 0 && *rest == '/';
    return (size_t)snprintf(out_path + length, STORE_PATH_SIZE - length, "%s", rest) <
           STORE_PATH_SIZE - length;
}

void store_local_find_links(struct store *store, const char *folder, struct store_links *out_links)
{
    const int root = ((const struct local_store *)store)->root;
    char part[STORE_PATH_SIZE];
    size_t there = 0;

    out_links->last[0] = '\0';
    out_links->is_known = store_path_is_clean(folder);
    if (!out_links->is_known)
        return;
    for (size_t at = 1; folder[at - 1] != '\0'; at++) {
        struct stat info;

        if (folder[at] != '/' && folder[at] != '\0')
            continue;
        snprintf(part, sizeof(part), "%.*s", (int)at, folder);
        if (!look_at_name(root, part, &info))
            break;
        there = at;
        if (S_ISLNK(info.st_mode))
            strcpy(out_links->last, part);
    }
    if (out_links->last[0] != '\0')
        out_links->is_known = resolve(root, folder, there, out_links->real);
    else
        strcpy(out_links->real, folder);
}

enum zt_status store_local_make_folder(struct store *store, const char *path,
                                       struct zt_error *error)
{
    const struct local_store *local = (const struct local_store *)store;
    int folder = -1;

    if (!store_path_is_clean(path) || store_local_withholds_place(local, path))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the name cannot be used");
    if (store_path_make_folders(local->root, path))
        folder = store_path_open(local->root, path, O_RDONLY | O_DIRECTORY);
    if (folder >= 0) {
        close(folder);
        return ZT_OK;
    }
    if (errno == ENOENT)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s, or its parent, is not a folder",
                       path);
    return store_fail_errno(error, errno, "cannot create the folder");
}
