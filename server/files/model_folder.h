/* The models below a folder, for commands that take folders: those that a server would list. */
#ifndef FILES_MODEL_FOLDER_H
#define FILES_MODEL_FOLDER_H

#include <stdbool.h>

#include "zt/status.h"

struct model_file {
    char *path;         /* can be opened from here: the folder's path, '/', and the path below it */
    const char *below;  /* the path below the folder; part of path */
    size_t name_length; /* of the model's name, with which below begins */
    unsigned rank;      /* of its extension (store.h) */
};

struct model_folder {
    struct model_file *files; /* by name; of files with one name only the one that is served */
    size_t count;
    size_t capacity;
    size_t misfits;  /* files whose names cannot be served */
    size_t shadowed; /* files behind another of their name */
};

bool is_folder(const char *path);

/* Lists the folder, and what is below it. The parts of a model in several files are left out where
 * its index, or its first part, is there: that stands for all. Fails as store_local_open does. The
 * caller frees the folder. */
enum zt_status model_folder_list(const char *path, struct model_folder *out_folder,
                                 struct zt_error *error);
/* Takes a cleared folder. */
void model_folder_free(struct model_folder *folder);

/* Whether a file that could not be opened is none of the folder's models: a data shard of zTensor
 * 2, or content that an extension shared with much else (".bin") did not promise. */
bool model_file_is_hidden(const struct model_file *file, const struct zt_error *error);

#endif
