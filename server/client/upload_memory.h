/* Remembers where unfinished uploads are, so that another run of the program can resume them: one
 * small file for each below $XDG_STATE_HOME/ztserve/push (~/.local/state). Files older than a week
 * are removed. The memory is optional: without it, an upload starts again. */
#ifndef CLIENT_UPLOAD_MEMORY_H
#define CLIENT_UPLOAD_MEMORY_H

#include <stdbool.h>
#include <sys/stat.h>

#include "client/web_address.h"

struct upload_memory {
    char *path; /* NULL: uploads cannot be remembered */
};

/* Opens the memory for a file (its path and state) and the model that it is sent as. */
void upload_memory_open(struct upload_memory *memory, const char *model_url, const char *file_path,
                        const struct stat *file);
void upload_memory_close(struct upload_memory *memory);

bool upload_memory_read(const struct upload_memory *memory, struct web_address *out_upload);
void upload_memory_write(const struct upload_memory *memory, const struct web_address *upload);
void upload_memory_remove(const struct upload_memory *memory);

#endif
