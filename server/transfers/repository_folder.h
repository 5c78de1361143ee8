/* The files of a folder here that make up a repository, by the rules of the Hub's clients: every
 * regular file in it and below, also behind links to files, but not behind links to folders. Hidden
 * names are left out, which includes .git and .cache: no server serves them. So are files that pull
 * has not finished (repository_unfinished_name). */
#ifndef TRANSFERS_REPOSITORY_FOLDER_H
#define TRANSFERS_REPOSITORY_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "zt/status.h"

struct folder_file {
    char *path;       /* usable as a path */
    const char *name; /* relative to the folder; part of path */
    bool is_unfinished;
};

struct repository_folder {
    struct folder_file *files; /* in the order of their transfer */
    size_t count;
    size_t capacity;
    size_t skipped;    /* hidden files and folders, links to folders, and special files */
    size_t unfinished; /* files that were left out because they are unfinished downloads */
};

/* Returns ZT_IO if the folder or one below it cannot be read; ZT_INVALID if a file has a name that
 * no server can serve; ZT_LIMIT; ZT_NO_MEMORY. The caller frees the folder. */
enum zt_status repository_folder_list(const char *path, struct repository_folder *out_folder,
                                      struct zt_error *error);
void repository_folder_free(struct repository_folder *folder);

#endif
