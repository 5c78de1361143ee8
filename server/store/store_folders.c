#include "store/store_folders.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

bool store_folders_visit(struct store_folders *folders, const char *path, size_t below)
{
    const char *slash = strchr(path + below, '/');

    assert(below <= strlen(path));
    for (; slash != NULL; slash = folders->is_deep ? strchr(slash + 1, '/') : NULL) {
        const size_t length = (size_t)(slash - path);

        if (strncmp(folders->above, path, length) == 0 &&
            (folders->above[length] == '\0' || folders->above[length] == '/'))
            continue;
        snprintf(folders->above, sizeof(folders->above), "%.*s", (int)length, path);
        if (!folders->visit(folders->context, folders->above, NULL))
            return false;
    }
    return true;
}
