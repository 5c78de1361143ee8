/* The table of versions: opening, closing and removing their files. */
#ifndef CACHE_FILES_H
#define CACHE_FILES_H

#include "cache/cache_state.h"

/* With the lock. NULL: not known. */
struct cached_file *file_find(struct cache *cache, const uint8_t key[CACHE_KEY_BYTES]);

/* Without the lock. Opens the file of a version for one more user. A folder that cannot be used
 * gives a file without a view. ZT_NO_MEMORY; ZT_ARGUMENT: the version is known with another
 * size; ZT_LIMIT. */
enum zt_status file_acquire(struct cache *cache, const uint8_t key[CACHE_KEY_BYTES],
                            uint64_t size_bytes, struct cached_file **out_file,
                            struct zt_error *error);
/* With the lock. After the last user a lander closes it. */
void file_release(struct cached_file *file);

/* With the lock, which it gives up meanwhile: closes a file that is leaving, and deletes it if it
 * is not needed any more. */
void file_settle(struct cached_file *file);

/* With the lock: stops all reads from the file, and hides it from lookups. For a version of which
 * the store has other bytes than before. */
void file_lose(struct cached_file *file);

/* With the lock: takes a file out of the table that is not open, and frees it. */
void cached_file_remove(struct cached_file *file);

/* With the lock: what its blocks take on the disk now. */
void file_measured(struct cached_file *file, uint64_t disk_bytes);
/* Without the lock. What a file takes on the disk. */
uint64_t file_disk_bytes(int descriptor);

/* At start: takes over what an earlier process left. */
void files_scan(struct cache *cache);

#endif
