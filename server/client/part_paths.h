/* The files of a pull: PATH, PATH.part and its journal; and the moment when the part gets its
 * name. */
#ifndef CLIENT_PART_PATHS_H
#define CLIENT_PART_PATHS_H

#include "client/download.h"
#include "client/web_file.h"

struct part_paths {
    const char *path; /* borrowed */
    char *part;
    char *journal;
};

/* ZT_NO_MEMORY; ZT_ARGUMENT if the path is there and no regular file. */
enum zt_status part_paths_make(struct part_paths *paths, const char *path, struct zt_error *error);
void part_paths_free(struct part_paths *paths);

/* Opens or makes the part file, which is then this process's alone until it is closed. ZT_IO, also
 * if another process has it. */
enum zt_status part_open(const struct part_paths *paths, int *out_descriptor,
                         struct zt_error *error);

/* Whether nothing has been written into it. */
bool part_is_blank(int descriptor);

/* Whether PATH has the bytes that the server has, as its digest of the whole says. */
bool part_is_there(struct client *client, const struct part_paths *paths, struct web_file *file);

/* Compares the whole with what the server says, which is asked if it has not said it yet and the
 * download wants to know, or the check found that the file does not tell. ZT_CORRUPT, ZT_STALE. */
enum zt_status part_digest_check(const struct download *download, struct web_file *file,
                                 const uint8_t sha256[32], struct zt_error *error);

/* Syncs the part, which part_open gave, and gives it the name. ZT_IO. */
enum zt_status part_publish(const struct part_paths *paths, int descriptor, struct zt_error *error);

/* Removes part and journal, before the part is closed: afterwards it may be another process's. */
void part_forget(const struct part_paths *paths);

#endif
