/* Where the files of a pull go. Paths are the caller's; NULL: no memory. */
#ifndef TRANSFERS_PULL_PATHS_H
#define TRANSFERS_PULL_PATHS_H

#include <stdbool.h>

/* Also what ends in '/' and is not there. */
bool pull_path_is_folder(const char *path);

/* Of these, what is not there. */
bool pull_path_is_absent_folder(const char *path);

/* Into the folder that -o (NULL: none) names, or beside the file that it names. */
char *pull_path_beside(const char *output, const char *name);

/* The model's own file, which -o may call otherwise. */
char *pull_path_main(const char *output, const char *name);

/* A shard of zTensor 2 is called after its model, whatever that is called here: "stem-name.zt". */
char *pull_path_of_shard(const char *main_path, const char *main_name, const char *name);

#endif
