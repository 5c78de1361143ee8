/* The content of the catalog: the index with its locks, and the only functions that change it. */
#ifndef CATALOG_CATALOG_CONTENT_H
#define CATALOG_CATALOG_CONTENT_H

#include "base/recency.h"
#include "base/server.h"
#include "catalog/catalog.h"
#include "catalog/catalog_index.h"
#include "catalog/store_folder.h"
#include "zt/verify.h"

#define PARKING_LOCKS 16

struct catalog_content {
    struct server *server;
    struct catalog_observer observer;
    pthread_mutex_t update; /* held while files are opened and the index is changed */
    pthread_rwlock_t index_lock;
    struct catalog_index index;
    struct shard_search search; /* under update */
    bool by_name;               /* value of server->shards_by_name at the last scan; under update */
    struct catalog_withheld *withheld; /* under update */
    unsigned not_models_logged;        /* log lines about files that are not models; under update */
    struct zt_progress hashing;
    atomic_bool loaded;     /* the first scan is done */
    atomic_bool stopping;   /* scans must end after the current batch */
    atomic_bool postponed;  /* no descriptors were left for a file: check again */
    atomic_bool unlisted;   /* the last list of the store failed */
    char unlisted_why[256]; /* as logged; for the scanning thread */
    /* For catalog_open.c: files that could not be opened and whose current state is unknown. */
    pthread_mutex_t unopened_lock;
    struct catalog_files unopened;
    /* For parking.c: */
    pthread_mutex_t opening[PARKING_LOCKS]; /* for opening files again: one lock per set of
                                             * generations */
    struct recency open;                    /* generations of the index whose files are open */
    size_t open_count;                      /* number of their open files */
    size_t park_above;                      /* search for files to close above this number */
    size_t open_most;                       /* constant: maximum of open files without readers */
    size_t open_limit;                      /* constant: maximum of open files */
};

typedef struct generation *catalog_finder(const struct catalog_index *index, struct zt_text key);

/* Initializes a zeroed structure; observer may be NULL. */
void catalog_content_init(struct catalog_content *content, struct server *server,
                          const struct catalog_observer *observer);
void catalog_content_clear(struct catalog_content *content);

/* Opens a batch of the files, which must be sorted by path, and publishes them. Returns how many
 * were processed, at least one unless count is 0. */
size_t catalog_content_update(struct catalog_content *content, const struct catalog_file *files,
                              size_t count);
/* Does the same for one file, and returns a reference to its generation, which a scan cannot drop
 * in between; NULL: there is none. */
struct generation *catalog_content_update_one(struct catalog_content *content,
                                              const struct catalog_file *file);

/* Finds the differences from a listing (catalog_files_compare). Logs broken files that are no
 * longer being written. */
bool catalog_content_compare(struct catalog_content *content, const struct catalog_files *files,
                             struct catalog_files *out_changed);

/* Keeps only the files that differ from the index (catalog_files_drop_known). */
void catalog_content_drop_known(struct catalog_content *content, struct catalog_files *files);

/* Compares the catalog with a list of the store (catalog_scans.c). For the catalog's thread. */
void catalog_content_scan(struct catalog_content *content);

/* Does the same for one name that is not in the catalog. Returns false if the store did not
 * answer. */
bool catalog_content_search(struct catalog_content *content, struct zt_text name);

/* Does the same for the changes that the store reports. Returns false if a scan is necessary. */
bool catalog_content_stat(struct catalog_content *content);

/* If shards_by_name has changed since the last call, finds all models with shards, in order of
 * path: each must be opened again. Returns false if out of memory. */
bool catalog_content_rejudge(struct catalog_content *content, struct catalog_files *out_models);

/* Finds the models of a local folder whose external data has changed, in order of path: each must
 * be opened again. Returns false if out of memory. */
bool catalog_content_find_new_data(struct catalog_content *content,
                                   struct catalog_files *out_models);

/* Records and reports that the first scan is complete. */
void catalog_content_loaded(struct catalog_content *content);

/* Returns a reference to a generation, which may be parked; NULL if none is found. */
struct generation *catalog_content_find(struct catalog_content *content, catalog_finder *finder,
                                        struct zt_text key);

/* Takes a reference for a reader of the files, in addition to the caller's reference. */
void catalog_content_hold(struct catalog_content *content, struct generation *generation);

/* Implements catalog_hold_all. */
struct generation **catalog_content_hold_all(struct catalog_content *content, size_t *out_count);

/* Implements catalog_list (catalog_pages.c). */
size_t catalog_content_list(struct catalog_content *content, const struct catalog_page *page,
                            struct generation **out_generations, struct catalog_page_end *out_end);

/* Implements catalog_part_of. */
bool catalog_content_part_of(struct catalog_content *content, const char *path,
                             struct name_filter filter, char out_name[MODEL_NAME_MAX + 1]);

/* Implement catalog_withhold and catalog_let_go. */
void catalog_content_withhold(struct catalog_content *content, struct catalog_withheld *withheld);
void catalog_content_let_go(struct catalog_content *content,
                            const struct catalog_withheld *withheld);

/* Implements catalog_has_shard_of. */
bool catalog_content_has_shard_of(struct catalog_content *content, struct zt_text path,
                                  struct name_filter filter);

#endif
