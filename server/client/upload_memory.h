/* Remembers where uploads are that have begun, so that another run of the program can go on with
 * them: one small file each below $XDG_STATE_HOME/ztserve/push (~/.local/state). What is older than
 * a week is removed. Nothing depends on it: without it an upload begins anew. */
#ifndef CLIENT_UPLOAD_MEMORY_H
#define CLIENT_UPLOAD_MEMORY_H

#include <stdbool.h>
#include <sys/stat.h>

#include "client/web_address.h"

struct upload_memory {
    char *path; /* NULL: nothing can be remembered */
};

/* Of a file (its path and state) that is sent to be that model of a server. */
void upload_memory_open(struct upload_memory *memory, const char *model_url, const char *file_path,
                        const struct stat *file);
void upload_memory_close(struct upload_memory *memory);

bool upload_memory_read(const struct upload_memory *memory, struct web_address *out_upload);
void upload_memory_write(const struct upload_memory *memory, const struct web_address *upload);
void upload_memory_forget(const struct upload_memory *memory);

#endif
