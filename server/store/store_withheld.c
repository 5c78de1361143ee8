/* What lies below the root and is the server's own: the files that its configuration names. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_local.h"

/* Adds what a real path is below the root's; others cannot be reached. False without memory. */
static bool add_below(struct local_store *local, const char *root, const char *path)
{
    const size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    char *copy;

    if (strncmp(path, root, length) != 0 || path[length] != '/' || path[length + 1] == '\0' ||
        store_local_withholds(local, path + length + 1))
        return true;
    assert(local->withheld_count < STORE_WITHHELD_MAX);
    copy = strdup(path + length + 1);
    if (copy != NULL)
        local->withheld[local->withheld_count++] = copy;
    return copy != NULL;
}

/* The path of a file whose folder exists, with the folder's links resolved but not its own. */
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

    if (realpath(local->root_path, root) == NULL)
        return true;
    return (!place_of(path, place) || add_below(local, root, place)) &&
           (realpath(path, real) == NULL || add_below(local, root, real));
}

bool store_local_withholds(const struct local_store *local, const char *path)
{
    for (unsigned i = 0; i < local->withheld_count; i++) {
        const size_t length = strlen(local->withheld[i]);

        if (strncmp(path, local->withheld[i], length) == 0 &&
            (path[length] == '\0' || path[length] == '/'))
            return true;
    }
    return false;
}
