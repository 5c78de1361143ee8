/* Whether a file could have a path: what is there, folder by folder, before anything is written.
 * And folders that have no file yet. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "store/store_local.h"

enum place { PLACE_FREE, PLACE_FOLDER, PLACE_FILE, PLACE_OTHER };

static enum place place_of(const struct stat *info)
{
    return S_ISDIR(info->st_mode)   ? PLACE_FOLDER
           : S_ISREG(info->st_mode) ? PLACE_FILE
                                    : PLACE_OTHER;
}

/* What a link leads to, if that is below the root. */
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

/* What has a name in a folder that is there. */
static enum place look(int root, const char *path)
{
    const char *base;
    const int folder = store_path_open_parent(root, path, false, &base);
    enum place place = PLACE_OTHER;
    struct stat info;

    if (folder < 0)
        return PLACE_OTHER;
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

    if (!store_path_is_clean(path) || store_local_withholds(local, path))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the name cannot be used");
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
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                   place == PLACE_FOLDER ? "%s is a folder, and cannot be a file"
                   : place == PLACE_FILE
                       ? "%s is a file, and cannot be a folder"
                       : "there is something else of the name %s: a link out of the store, or what "
                         "is neither file nor folder",
                   part);
}

enum zt_status store_local_make_folder(struct store *store, const char *path,
                                       struct zt_error *error)
{
    const struct local_store *local = (const struct local_store *)store;
    int folder = -1;

    if (!store_path_is_clean(path) || store_local_withholds(local, path))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the name cannot be used");
    if (store_path_make_folders(local->root, path))
        folder = store_path_open(local->root, path, O_RDONLY | O_DIRECTORY);
    if (folder >= 0) {
        close(folder);
        return ZT_OK;
    }
    if (errno == ENOENT)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "%s, or what it lies in, is no folder", path);
    return store_fail_errno(error, errno, "cannot make the folder");
}
