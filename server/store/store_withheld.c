/* Protects the server's own files: the ones its configuration names, and everything in its folders.
 *
 * A path does not show which file it leads to, so opened files are compared by device and inode,
 * and by the link-free path that the kernel reports for the descriptor. The server's own files are
 * looked up each time, because editors often replace a file instead of changing it. */
#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_local.h"

/* The names of the server's own folders and files in the root begin with this. */
#define OWN_PREFIX ".ztserve"

/* Returns false if out of memory or room. */
static bool add(struct own_paths *own, const char *path)
{
    const unsigned count = atomic_load(&own->count);

    assert(path[0] != '\0' && count <= STORE_WITHHELD_MAX);
    for (unsigned i = 0; i < count; i++)
        if (strcmp(own->paths[i], path) == 0)
            return true;
    if (count == STORE_WITHHELD_MAX)
        return false;
    own->paths[count] = strdup(path);
    if (own->paths[count] == NULL)
        return false;
    atomic_store(&own->count, count + 1);
    return true;
}

/* Adds the path below the root to which a real path corresponds, if any. Returns false as add
 * does. */
static bool add_below(struct local_store *local, const char *root, const char *path)
{
    const size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);

    if (strncmp(path, root, length) != 0 || path[length] != '/' || path[length + 1] == '\0' ||
        store_local_withholds(local, path + length + 1))
        return true;
    return add(&local->withheld, path + length + 1);
}

/* Writes the path of a file whose folder exists, resolving the folder's links but not the file's
 * own. */
static bool place_of(const char *path, char out_path[PATH_MAX + NAME_MAX + 2])
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];
    char real[PATH_MAX];

    snprintf(folder, sizeof(folder), "%.*s", slash != NULL ? (int)(slash - path) : 1,
             slash != NULL ? path : ".");
    if (realpath(folder[0] != '\0' ? folder : "/", real) == NULL)
        return false;
    snprintf(out_path, PATH_MAX + NAME_MAX + 2, "%s/%.*s", strcmp(real, "/") == 0 ? "" : real,
             NAME_MAX, slash != NULL ? slash + 1 : path);
    return true;
}

bool store_local_withhold(struct store *store, const char *path)
{
    struct local_store *local = (struct local_store *)store;
    char root[PATH_MAX];
    char real[PATH_MAX];
    char place[PATH_MAX + NAME_MAX + 2];
    const bool is_placed = place_of(path, place);

    /* The folder may be made later, or be a link that will change. */
    if (!add(&local->own, path) || (is_placed && !add(&local->own, place)))
        return false;
    if (realpath(local->root_path, root) == NULL)
        return true;
    return (!is_placed || add_below(local, root, place)) &&
           (realpath(path, real) == NULL || add_below(local, root, real));
}

static void free_paths(struct own_paths *own)
{
    for (unsigned i = 0; i < own->count; i++)
        free(own->paths[i]);
}

void store_withheld_free(struct local_store *local)
{
    free_paths(&local->withheld);
    free_paths(&local->own);
}

/* --- by path --- */

bool store_local_withholds(const struct local_store *local, const char *path)
{
    const unsigned count = atomic_load(&local->withheld.count);

    for (unsigned i = 0; i < count; i++) {
        const char *withheld = local->withheld.paths[i];
        const size_t length = strlen(withheld);

        if (strncmp(path, withheld, length) == 0 && (path[length] == '\0' || path[length] == '/'))
            return true;
    }
    return false;
}

/* Does the same for a path without links, which may also be in the server's own hidden folders. */
static bool withholds_real(const struct local_store *local, const char *path)
{
    return strncmp(path, OWN_PREFIX, strlen(OWN_PREFIX)) == 0 || store_local_withholds(local, path);
}

bool store_local_withholds_place(const struct local_store *local, const char *path)
{
    char real[STORE_PATH_SIZE];
    char there[STORE_PATH_SIZE];
    size_t length = strlen(path);

    if (store_local_withholds(local, path))
        return true;
    /* Resolves the existing part; the missing part will be created below that. */
    while (length > 0) {
        snprintf(there, sizeof(there), "%.*s", (int)length, path);
        if (store_path_resolve(local->root, there, real))
            break;
        while (length > 0 && path[length - 1] != '/')
            length--;
        length -= length > 0;
    }
    if (length == 0)
        return false;
    length += real[0] == '\0' && path[length] == '/';
    snprintf(there, sizeof(there), "%s%s", real, path + length);
    return withholds_real(local, there);
}

/* --- by open file --- */

void own_files_find(const struct local_store *local, struct own_files *out_own)
{
    const unsigned count = atomic_load(&local->own.count);

    assert(count <= STORE_WITHHELD_MAX);
    out_own->count = 0;
    for (unsigned i = 0; i < count; i++) {
        struct stat info;

        if (stat(local->own.paths[i], &info) != 0)
            continue;
        out_own->files[out_own->count].device = info.st_dev;
        out_own->files[out_own->count++].inode = info.st_ino;
    }
}

bool own_files_have(const struct own_files *own, const struct stat *info)
{
    for (unsigned i = 0; i < own->count; i++)
        if (own->files[i].inode == info->st_ino && own->files[i].device == info->st_dev)
            return true;
    return false;
}

bool store_local_withholds_opened(const struct local_store *local, const struct own_files *own,
                                  int descriptor, const struct stat *info)
{
    char real[STORE_PATH_SIZE];

    assert(descriptor >= 0);
    return own_files_have(own, info) ||
           (store_path_of(local->root, descriptor, real) && withholds_real(local, real));
}

bool store_local_withholds_name(const struct local_store *local, int folder, const char *base)
{
    char real[STORE_PATH_SIZE];
    struct own_files own;
    struct stat info;
    size_t length;

    assert(folder >= 0 && base[0] != '\0');
    own_files_find(local, &own);
    if (fstatat(folder, base, &info, 0) == 0 && own_files_have(&own, &info))
        return true;
    if (!store_path_of(local->root, folder, real))
        return false;
    length = strlen(real);
    snprintf(real + length, sizeof(real) - length, "%s%s", length > 0 ? "/" : "", base);
    return withholds_real(local, real);
}
