/* The folders of a sorted list of paths, for stores that have lists instead of folders. */
#ifndef STORE_STORE_FOLDERS_H
#define STORE_STORE_FOLDERS_H

#include "store/store.h"

struct store_folders {
    store_visit visit;
    void *context;
    bool is_deep;
    char above[MODEL_PATH_SIZE]; /* the folder that was visited last */
};

/* Visits the folders of a file that did not contain the file before. Files come in order. below:
 * where the path below the walked folder begins. Returns false to stop. */
bool store_folders_visit(struct store_folders *folders, const char *path, size_t below);

#endif
