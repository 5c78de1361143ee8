/* A listing of a store's folder: its subfolders and the files of all kinds that may be served. */
#ifndef TREE_TREE_LISTING_H
#define TREE_TREE_LISTING_H

#include "base/memory.h"
#include "base/server.h"
#include "digests/file_hashes.h"
#include "zt/text.h"

#define TREE_ENTRIES_MAX 1000000

struct tree_entry {
    const char *path; /* relative to the listed folder, with '/' between parts */
    bool is_folder;
    bool has_sha256;
    uint8_t sha256[SHA256_BYTES];
    struct file_identity identity; /* of a file */
};

/* Immutable once tree_list has made it. */
struct tree_listing {
    char *folder; /* "": the root */
    size_t count;
    struct tree_entry *entries; /* sorted bytewise by path; a file comes before a folder with the
                                 * same path */
    uint64_t size_bytes;        /* of all files */
    /* private: memory for the paths */
    size_t capacity;
    struct zt_arena paths;
};

/* Lists a folder ("" is the root) with the known hashes; call it on a worker. is_deep: everything
 * below the folder, else one level. with_hashes: compute missing hashes in the background
 * (file_hashes_want). Fails with ZT_NOT_FOUND if the folder does not exist or is hidden, ZT_LIMIT
 * if there are more than TREE_ENTRIES_MAX entries, ZT_IO, ZT_UNAVAILABLE or ZT_NO_MEMORY. Release
 * the result with tree_listing_release. */
enum zt_status tree_list(struct server *server, const char *folder, bool is_deep, bool with_hashes,
                         struct tree_listing **out_listing, struct zt_error *error);

/* Does the same for the folder or bucket itself, below any mirror, without waiting for an upstream
 * and without computing hashes. */
enum zt_status tree_list_innermost(struct server *server, const char *folder, bool is_deep,
                                   struct tree_listing **out_listing, struct zt_error *error);

/* Accepts NULL; void * for request_hold. */
void tree_listing_release(void *listing);

#endif
