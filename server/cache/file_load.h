/* The file of one version: opened with what its index claims, and closed. Neither needs the lock:
 * the file is busy. */
#ifndef CACHE_FILE_LOAD_H
#define CACHE_FILE_LOAD_H

#include "cache/cache_state.h"

/* ZT_NO_MEMORY. */
enum zt_status file_load(struct cached_file *file, struct zt_error *error);
void file_unload(struct cached_file *file);

#endif
