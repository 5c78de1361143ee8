/* The folder of a file on the command line, local or on a server, in which the model's other files
 * are found (parts/part_folder.h). */
#ifndef FILES_PATH_FOLDER_H
#define FILES_PATH_FOLDER_H

#include "parts/part_folder.h"

struct part_folder path_folder(void);

/* Returns the last segment of a path, or of a URL without its query. */
struct zt_text path_last_segment(const char *path);

/* Returns the folder of a path or URL, with its '/'; empty if it has none. */
struct zt_text path_parent(const char *path);

#endif
