/* Decides where the files of a pull go, and which format is requested. The caller frees the paths;
 * NULL means no memory. */
#ifndef TRANSFERS_PULL_PATHS_H
#define TRANSFERS_PULL_PATHS_H

#include "client/model_address.h"

/* Returns true for a folder, and for a path that ends in '/' even if it does not exist. */
bool pull_path_is_folder(const char *path);

/* Makes the folder that -o names, and the folders above it, if the path ends in '/'. Accepts NULL.
 * Returns ZT_IO. */
enum zt_status pull_path_make_output(const char *output, struct zt_error *error);

/* Makes a folder and the folders above it, as the user named them. Returns ZT_IO, ZT_NO_MEMORY. */
enum zt_status pull_path_make_folder(const char *path, struct zt_error *error);

/* Returns a path in the folder that -o names, or next to the file that it names. output NULL: no
 * -o. */
char *pull_path_beside(const char *output, const char *name);

/* Returns the path of the model's own file, which -o may rename. */
char *pull_path_main(const char *output, const char *name);

/* Returns the path of a zTensor 2 shard, which is named after its model's local name:
 * "stem-name.zt". */
char *pull_path_of_shard(const char *main_path, const char *main_name, const char *name);

/* Makes the folders of a name with which the path ends ("sub/m.safetensors"). Returns ZT_IO if one
 * cannot be made, or is a link or not a folder, because the server chose its name; ZT_NO_MEMORY. */
enum zt_status pull_path_make_folders(const char *path, const char *name, struct zt_error *error);

/* Returns the format for the extension in -o, as for convert's OUT, if the server can convert the
 * model to it; NULL otherwise. */
const char *pull_format_of(const char *path);

/* Returns true if the extension in -o needs a conversion by the server: the URL names a model whose
 * file has another extension. */
bool pull_format_differs(const char *url, const char *path, const struct model_file *file);

#endif
