/* The content of the catalog: the index behind its locks, and the only functions that change it. */
#ifndef CATALOG_CATALOG_CONTENT_H
#define CATALOG_CATALOG_CONTENT_H

#include "base/recency.h"
#include "base/server.h"
#include "catalog/catalog.h"
#include "catalog/catalog_index.h"
#include "zt/verify.h"

#define PARKING_LOCKS 16

struct catalog_content {
    struct server *server;
    struct catalog_observer observer;
    pthread_mutex_t update; /* held while files are opened and the index is changed */
    pthread_rwlock_t index_lock;
    struct catalog_index index;
    struct shard_search search; /* under update */
    bool by_name;               /* server->shards_by_name as of the last scan; under update */
    struct catalog_withheld *withheld; /* under update */
    unsigned foreign_logged;           /* files that are no models: lines so far; under update */
    struct zt_progress hashing;
    atomic_bool loaded;     /* the first scan is done */
    atomic_bool stopping;   /* scans end after the current batch */
    atomic_bool postponed;  /* a file could not be opened for want of descriptors: look again */
    atomic_bool unlisted;   /* the last list of the store failed */
    char unlisted_why[256]; /* as logged; of the thread that scans */
    /* catalog_open.c: files that could not be opened, and what they have now is not known. */
    pthread_mutex_t unopened_lock;
    struct catalog_files unopened;
    /* parking.c: */
    pthread_mutex_t opening[PARKING_LOCKS]; /* of opening again: one for each set of generations */
    struct recency open; /* parking.c: generations of the index whose files are open */
    size_t open_count;   /* their files */
    size_t park_above;   /* so many files are looked through */
    size_t open_most;    /* constant: what may be open and not in use */
    size_t open_limit;   /* constant: what may be open */
};

typedef struct generation *catalog_finder(const struct catalog_index *index, struct zt_text key);

/* For a cleared structure; observer may be NULL. */
void catalog_content_init(struct catalog_content *content, struct server *server,
                          const struct catalog_observer *observer);
void catalog_content_clear(struct catalog_content *content);

/* Opens a batch of the files, which are sorted by path, and shows them. Returns how many were done,
 * at least one unless count is 0. */
size_t catalog_content_update(struct catalog_content *content, const struct catalog_file *files,
                              size_t count);

/* Finds the differences from a listing (catalog_files_compare). Logs broken files that are no
 * longer being written to. */
bool catalog_content_compare(struct catalog_content *content, const struct catalog_files *files,
                             struct catalog_files *out_changed);

/* Leaves only the files that differ from the index (catalog_files_drop_known). */
void catalog_content_drop_known(struct catalog_content *content, struct catalog_files *files);

/* Compares the catalog with a list of the store (catalog_scans.c). For the catalog's thread. */
void catalog_content_scan(struct catalog_content *content);

/* The same for one name that the catalog does not have. False: the store did not tell. */
bool catalog_content_seek(struct catalog_content *content, struct zt_text name);

/* The same for what the store says has changed. False if a scan is necessary. */
bool catalog_content_look(struct catalog_content *content);

/* Finds the models with shards, in order of path, if shards_by_name has changed since the last
 * call: each must be opened again. False if out of memory. */
bool catalog_content_rejudge(struct catalog_content *content, struct catalog_files *out_models);

/* Finds the models of a folder whose external data is another than it was, in order of path: each
 * must be opened again. False if out of memory. */
bool catalog_content_find_new_data(struct catalog_content *content,
                                   struct catalog_files *out_models);

/* Records and reports that the first scan is done. */
void catalog_content_loaded(struct catalog_content *content);

/* Returns a reference to a generation, which may be parked; NULL if there is none. */
struct generation *catalog_content_find(struct catalog_content *content, catalog_finder *finder,
                                        struct zt_text key);

/* Takes a reference of one who will read the generation, beside one that the caller has. */
void catalog_content_hold(struct catalog_content *content, struct generation *generation);

/* catalog_hold_all. */
struct generation **catalog_content_hold_all(struct catalog_content *content, size_t *out_count);

/* catalog_list (catalog_pages.c). */
size_t catalog_content_list(struct catalog_content *content, const struct catalog_page *page,
                            struct generation **out_generations, struct catalog_page_end *out_end);

/* catalog_part_of. */
bool catalog_content_part_of(struct catalog_content *content, const char *path,
                             struct name_filter filter, char out_name[MODEL_NAME_MAX + 1]);

/* catalog_withhold, catalog_let_go. */
void catalog_content_withhold(struct catalog_content *content, struct catalog_withheld *withheld);
void catalog_content_let_go(struct catalog_content *content,
                            const struct catalog_withheld *withheld);

/* catalog_has_shard_of. */
bool catalog_content_has_shard_of(struct catalog_content *content, struct zt_text path,
                                  struct name_filter filter);

#endif
