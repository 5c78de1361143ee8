/* Folders that the removal of files leaves empty: which ones it will, before anything is removed,
 * and their end afterwards. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/store_local.h"

/* Each open folder takes a descriptor. What lies deeper is not looked at, and stays. */
#define DEPTH_MAX 32

struct emptying {
    int root;
    const struct store_leaving *leaving;
    char path[STORE_PATH_SIZE]; /* of the folder that is being read, then of an entry */
};

static bool empties(struct emptying *emptying, unsigned depth);

static bool entry_leaves(struct emptying *emptying, size_t folder_length, const char *name,
                         unsigned depth)
{
    const size_t left = sizeof(emptying->path) - folder_length;
    const int length = snprintf(emptying->path + folder_length, left, "/%s", name);
    const bool leaves = length >= 0 && (size_t)length < left &&
                        (emptying->leaving->leaves(emptying->leaving->context, emptying->path) ||
                         (depth < DEPTH_MAX && empties(emptying, depth + 1)));

    emptying->path[folder_length] = '\0';
    return leaves;
}

/* A folder that is empty already is nobody's to remove. */
static bool empties(struct emptying *emptying, unsigned depth)
{
    const size_t length = strlen(emptying->path);
    const int descriptor = store_path_open(emptying->root, emptying->path,
                                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = descriptor < 0 ? NULL : fdopendir(descriptor);
    const struct dirent *entry;
    bool is_left = true;
    size_t count = 0;

    if (stream == NULL) {
        if (descriptor >= 0)
            close(descriptor);
        return false;
    }
    while (is_left && (entry = readdir(stream)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        is_left = entry_leaves(emptying, length, entry->d_name, depth);
        count++;
    }
    closedir(stream);
    return is_left && count > 0;
}

bool store_folder_empties(const struct local_store *local, const char *path,
                          const struct store_leaving *leaving)
{
    struct emptying emptying = {.root = local->root, .leaving = leaving};

    snprintf(emptying.path, sizeof(emptying.path), "%s", path);
    return empties(&emptying, 0);
}

/* A link to a folder is none here. */
static bool remove_folder(int root, const char *path)
{
    const char *base;
    const int above = store_path_open_parent(root, path, false, &base);
    bool is_removed;

    if (above < 0)
        return false;
    is_removed = unlinkat(above, base, AT_REMOVEDIR) == 0;
    close(above);
    return is_removed;
}

/* Nothing is synced: an empty folder that a power cut brings back does no harm. */
void store_local_remove_emptied(struct store *store, const char *path, size_t kept_length)
{
    const struct local_store *local = (const struct local_store *)store;
    char folder[STORE_PATH_SIZE];
    char *slash;

    if (!store_path_is_clean(path))
        return;
    snprintf(folder, sizeof(folder), "%s", path);
    while ((slash = strrchr(folder, '/')) != NULL && (size_t)(slash - folder) > kept_length) {
        *slash = '\0';
        if (store_local_withholds(local, folder) || !remove_folder(local->root, folder))
            return;
    }
}
