/* What the catalog holds: the index behind its locks, and the one way to change it. */
#ifndef CATALOG_CATALOG_CONTENT_H
#define CATALOG_CATALOG_CONTENT_H

#include "base/server.h"
#include "catalog/blob_index.h"
#include "catalog/catalog_scan.h"
#include "catalog/shard_search.h"
#include "zt/verify.h"

struct catalog_content {
    struct server *server;
    pthread_mutex_t update; /* held by whoever opens files and changes the index */
    pthread_rwlock_t index_lock;
    struct catalog_index index;
    struct blob_index blobs;
    struct shard_search search; /* under update */
    struct zt_progress hashing;
    atomic_bool loaded; /* the first scan is done */
    pthread_mutex_t parking;
    atomic_size_t open_count; /* generations of the index that hold their file open, about */
    size_t open_most;
};

typedef struct generation *catalog_finder(const struct catalog_index *index, struct zt_text key);

/* Of a cleared structure. */
void catalog_content_init(struct catalog_content *content, struct server *server);
void catalog_content_clear(struct catalog_content *content);

/* Opens files, sorted by path, for a while and shows them; returns how many were dealt with, at
 * least one of any. */
size_t catalog_content_update(struct catalog_content *content, const struct catalog_file *files,
                              size_t count);

/* What differs from a listing (catalog_files_compare); tells the log of broken files that have
 * settled. */
bool catalog_content_compare(struct catalog_content *content, const struct catalog_files *files,
                             struct catalog_files *out_changed);

/* The first scan is done; the verifier learns what there is, so that it can forget the rest. */
void catalog_content_loaded(struct catalog_content *content);

/* Opens the file of a held generation again, if it was parked. False when it is gone or no longer
 * the same. */
bool catalog_content_unpark(struct catalog_content *content, struct generation *generation);

/* Held; NULL when there is none. It may be parked. */
struct generation *catalog_content_find(struct catalog_content *content, catalog_finder *finder,
                                        struct zt_text key);

/* Makes the index of blobs complete, which it is from then on. May take long the first time. */
void catalog_content_fill_blobs(struct catalog_content *content);

/* catalog_find_decoded. */
bool catalog_content_find_decoded(struct catalog_content *content, const uint8_t sha256[32],
                                  struct component_place *out_place);

/* catalog_list. */
size_t catalog_content_list(struct catalog_content *content, struct zt_text prefix,
                            struct zt_text after, size_t limit, struct generation **out_generations,
                            bool *out_more);

#endif
