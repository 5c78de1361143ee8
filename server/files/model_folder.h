/* Lists the models below a folder, as a server would, for commands that take folders. */
#ifndef FILES_MODEL_FOLDER_H
#define FILES_MODEL_FOLDER_H

#include <stdbool.h>

#include "zt/status.h"

struct folder_model {
    char *path;        /* usable as a path: the folder's path, '/', and the path below the folder */
    const char *below; /* the path below the folder; part of path */
    char *name;        /* the model's name, with the folders below the folder */
    unsigned rank;     /* of its extension (store.h) */
};

struct model_folder {
    struct folder_model *files; /* sorted by name; if several files have one name, only the served
                               * one */
    size_t count;
    size_t capacity;
    size_t misnamed_files; /* files whose names cannot be served */
    size_t shadowed;       /* files hidden by another file of the same name */
};

bool is_folder(const char *path);

/* Lists the folder and its subfolders. The parts of a model in several files are left out if its
 * index, or its first part, exists and represents them. Fails as store_local_open does. The caller
 * frees the folder. */
enum zt_status model_folder_list(const char *path, struct model_folder *out_folder,
                                 struct zt_error *error);
/* Accepts a cleared folder. */
void model_folder_free(struct model_folder *folder);

/* Returns true if a file that could not be opened is not one of the folder's models: a data shard
 * of zTensor 2, or a file whose ambiguous extension (".bin") did not mean a model. */
bool folder_model_is_hidden(const struct folder_model *file, const struct zt_error *error);

#endif
