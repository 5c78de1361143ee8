/* The folder of the cache: its lock, its names, its file system. For each version two files, named
 * after the key in hexadecimal: "<key>.blocks", sparse, as long as the remote file; "<key>.index"
 * (index_file.h). Other files are left alone. */
#ifndef CACHE_FOLDER_H
#define CACHE_FOLDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cache/cache.h"

#define FOLDER_NAME_SIZE (2 * CACHE_KEY_BYTES + 8)

struct folder {
    char *path;
    atomic_int descriptor; /* -1: cannot be used */
    int lock;              /* -1: none */
};

/* Makes the folder if it is not there, and takes its lock. ZT_IO: another process has it;
 * ZT_NO_MEMORY. ZT_OK with descriptor -1: it cannot be used (a warning in the log). */
enum zt_status folder_open(struct folder *folder, const char *path, struct zt_error *error);
void folder_close(struct folder *folder);

/* Makes a folder that was deleted again. Called by only one thread at once. */
void folder_restore(struct folder *folder);

enum folder_kind { FOLDER_BLOCKS, FOLDER_INDEX };
void folder_name(const uint8_t key[CACHE_KEY_BYTES], enum folder_kind kind,
                 char out_name[FOLDER_NAME_SIZE]);

/* Opens or makes a file of a version for reading and writing. -1 with errno. */
int folder_file(const struct folder *folder, const uint8_t key[CACHE_KEY_BYTES],
                enum folder_kind kind, int flags);
/* Removes both files of a version. */
void folder_remove(const struct folder *folder, const uint8_t key[CACHE_KEY_BYTES]);

/* One version that an earlier process left. */
struct folder_entry {
    uint8_t key[CACHE_KEY_BYTES];
    uint64_t size_bytes;
    uint64_t disk_bytes;
    int64_t modified_ms;
    int descriptor; /* of its blocks, for the time of the visit */
};
/* Visits all versions; removes files without their other half. */
void folder_scan(const struct folder *folder,
                 void (*visit)(void *context, const struct folder_entry *entry), void *context);

/* The free and unclaimed space of the file system, and the reserve: the cache's or, if larger, the
 * reserve for uploads. False: not known. */
bool folder_space(const struct folder *folder, uint64_t *out_free, uint64_t *out_reserve);

#endif
