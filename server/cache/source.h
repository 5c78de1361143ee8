#ifndef CACHE_SOURCE_H
#define CACHE_SOURCE_H

#include "cache/runs.h"

/* ZT_IO if a file does not have these bytes. */
enum zt_status source_check_range(const struct cached_file *file, uint64_t offset, uint64_t length,
                                  struct zt_error *error);

/* Without the lock. Reads what is here from offset on, up to the end of its extent. Returns how
 * much. May wait for the disk. */
size_t source_read_here(struct cached_file *file, uint64_t offset, uint8_t *buffer, size_t length);

/* With the lock, which it gives up meanwhile. Copies from a run that is held and has the byte at
 * offset (run_has). Returns how much. */
size_t source_copy(struct run *run, uint64_t offset, uint8_t *buffer, size_t length);

#endif
