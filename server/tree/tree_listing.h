/* What a folder of the store has: files of every kind that may be served, and folders. */
#ifndef TREE_TREE_LISTING_H
#define TREE_TREE_LISTING_H

#include <stdatomic.h>

#include "base/memory.h"
#include "base/server.h"
#include "tree/file_hashes.h"
#include "zt/text.h"

#define TREE_ENTRIES_MAX 1000000

struct tree_entry {
    const char *path; /* below the listed folder, '/' between parts */
    bool is_folder;
    bool has_sha256;
    uint8_t sha256[FILE_SHA256_BYTES];
    struct file_identity identity; /* of a file */
};

/* Immutable once tree_list has made it. */
struct tree_listing {
    atomic_uint references;
    char *folder; /* "": the root */
    size_t count;
    struct tree_entry *entries; /* by path, bytewise; of one path a file before a folder */
    uint64_t size_bytes;        /* of all files */
    /* private: the paths */
    size_t capacity;
    struct zt_arena paths;
};

/* Lists a folder ("": the root) with what is known of hashes, on a worker. is_deep: all below it,
 * else one level. with_hashes: those that are missing are to be found (file_hashes_want).
 * ZT_NOT_FOUND: there is no such folder, or it is hidden; ZT_LIMIT: more than TREE_ENTRIES_MAX
 * entries; ZT_IO, ZT_UNAVAILABLE, ZT_NO_MEMORY. Released by tree_listing_release. */
enum zt_status tree_list(struct server *server, const char *folder, bool is_deep, bool with_hashes,
                         struct tree_listing **out_listing, struct zt_error *error);

struct tree_listing *tree_listing_hold(struct tree_listing *listing);
/* Takes NULL; void * for request_hold. */
void tree_listing_release(void *listing);

/* The entry of a path: the file, if a file and a folder have it. NULL: there is none. */
const struct tree_entry *tree_listing_find(const struct tree_listing *listing, struct zt_text path);

#endif
