/* Folders that become empty when files are removed: predicts which, and removes them afterwards. */
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/store_local.h"

/* Each open folder takes a descriptor. Deeper folders are not examined, and are kept. */
#define DEPTH_MAX 32

struct emptying {
    int root;
    const struct store_leaving *leaving;
    char path[STORE_PATH_SIZE]; /* the folder that is being read, then one of its entries */
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

    assert(folder_length < sizeof(emptying->path));
    emptying->path[folder_length] = '\0';
    return leaves;
}

/* A folder that was empty before is kept. */
static bool empties(struct emptying *emptying, unsigned depth)
{
    const size_t length = strlen(emptying->path);
    const int descriptor = store_path_open(emptying->root, emptying->path,
                                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = descriptor < 0 ? NULL : fdopendir(descriptor);
    const struct dirent *entry;
    bool is_left = true;
    size_t count = 0;

    assert(depth <= DEPTH_MAX);
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

/* Does not treat a link to a folder as a folder. */
static bool remove_folder(int root, const char *path)
{
    const char *base;
    const int above = store_path_open_parent(root, path, false, &base);
    bool is_removed;

    assert(root >= 0);
    if (above < 0)
        return false;
    is_removed = unlinkat(above, base, AT_REMOVEDIR) == 0;
    close(above);
    return is_removed;
}

/* Does not sync: an empty folder that reappears after a power cut does no harm. */
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
        if (store_local_withholds_place(local, folder) || !remove_folder(local->root, folder))
            return;
    }
}
