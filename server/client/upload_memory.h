/* Remembers where unfinished uploads are, so that another run of the program can resume them: one
 * small file for each below $XDG_STATE_HOME/ztserve/push (~/.local/state). Files older than a week
 * are removed. The memory is optional: without it, an upload starts again. */
#ifndef CLIENT_UPLOAD_MEMORY_H
#define CLIENT_UPLOAD_MEMORY_H

#include <stdbool.h>
#include <sys/stat.h>

#include "client/web_address.h"

/* Returns the path of the memory for a file (its path and state) and the model that it is sent as,
 * which the caller frees; NULL if uploads cannot be remembered, which the others accept. */
char *upload_memory_path(const char *model_url, const char *file_path, const struct stat *file);

bool upload_memory_read(const char *memory, struct web_address *out_upload);
void upload_memory_write(const char *memory, const struct web_address *upload);
void upload_memory_remove(const char *memory);

#endif
