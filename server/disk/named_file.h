/* The name of an open file in its folder. */
#ifndef DISK_NAMED_FILE_H
#define DISK_NAMED_FILE_H

#include <stdbool.h>

/* Returns true if the path, links not followed, is this open file and not another one. */
bool named_file_is_at(int descriptor, const char *path);

/* Makes the names in the folder of this path durable. Returns true also for file systems that
 * cannot sync folders; on failure returns false with errno. */
bool named_file_sync_folder(const char *path);

#endif
