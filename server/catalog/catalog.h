/* The catalog of models: maps names and paths to generations and follows changes (reported by the
 * store, SIGHUP, uploads). All functions may be called on any thread. */
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

#include "base/name_filter.h"
#include "base/server.h"
#include "catalog/generation.h"

/* Functions that the catalog calls when it changes, never concurrently, on the thread that changes
 * it. They may take long, but must not change the catalog. Any of them may be NULL. */
struct catalog_observer {
    void *context;
    /* A new generation with a model was opened; no other thread has seen it yet. */
    void (*opened)(void *context, struct generation *generation);
    /* Lookups are about to find the generation. */
    void (*showing)(void *context, struct generation *generation);
    /* Lookups find the generation from now on. */
    void (*shown)(void *context, struct generation *generation);
    /* Lookups no longer find the generation; after this call the catalog releases it. */
    void (*dropped)(void *context, struct generation *generation);
    /* The first scan is complete; paths has the paths of all files. */
    void (*loaded)(void *context, const char *const *paths, size_t count);
};

/* observer may be NULL. Returns NULL if out of memory or threads. */
struct catalog *catalog_new(struct server *server, const struct catalog_observer *observer);
/* Ends a running scan after the current file, and wakes all waiters. Accepts NULL. */
void catalog_free(struct catalog *catalog);

/* Schedules a background scan of the store. Any number of calls during a scan cause one more scan.
 * Unchanged files keep their generation. */
void catalog_refresh(struct catalog *catalog);

/* Starts to follow the store's changes. Returns the store's descriptor; a loop must call
 * catalog_read_changes whenever it is readable. Returns -1 if the store cannot be watched. */
int catalog_watch(struct catalog *catalog);

/* Schedules a check of the changes that the store has noticed. For the loop that watches the
 * descriptor; void * for loop_watch. */
void catalog_read_changes(void *catalog);

/* Notes a store change that the watching loop has not read yet, so that files are checked again
 * before their next answer. Each loop must call it before it answers the requests that have
 * arrived. */
void catalog_poll_changes(struct catalog *catalog);

/* Returns true once the first scan is complete. */
bool catalog_is_loaded(const struct catalog *catalog);

enum catalog_answer { CATALOG_FOUND, CATALOG_NOT_FOUND, CATALOG_PENDING, CATALOG_UNAVAILABLE };

/* Find a model, or a file, and return a reference. They return PENDING if the file has changed
 * since it was opened, or if it was not found and the first scan is not complete: waiter is woken
 * once the catalog has checked again. They return UNAVAILABLE if a remote store cannot say whether
 * the file exists, or cannot provide it. Data shards are found by path only. */
enum catalog_answer catalog_find(struct catalog *catalog, struct zt_text name,
                                 struct waiter *waiter, struct generation **out_generation);
enum catalog_answer catalog_find_path(struct catalog *catalog, struct zt_text path,
                                      struct waiter *waiter, struct generation **out_generation);

/* Selects at most limit models whose names begin with prefix, sort after the name `after` (empty:
 * start with the first) and pass the filters. looks: examine about this many files, even if few of
 * them pass; 0: all. */
struct catalog_page {
    struct zt_text prefix;
    struct zt_text after;
    struct name_filter filter; /* names that the client may see */
    struct name_filter match;  /* names that the client asks for */
    bool without_parts;        /* omit parts of joined models */
    size_t limit;
    size_t looks;
};

struct catalog_page_end {
    bool more; /* more models follow after the page */
    /* NULL unless page->looks was too small. It is then unknown whether more models follow, and the
     * page continues after this generation's name. With a reference; it need not pass the
     * filters. */
    struct generation *reached;
};

/* Lists models in order of name. Returns the number of generations written, each with a
 * reference. */
size_t catalog_list(struct catalog *catalog, const struct catalog_page *page,
                    struct generation **out_generations, struct catalog_page_end *out_end);

/* Finds the name of the joined model that contains a stored file as a part and passes the filter.
 * Returns false if there is none. */
bool catalog_part_of(struct catalog *catalog, const char *path, struct name_filter filter,
                     char out_name[MODEL_NAME_MAX + 1]);

/* Returns the current generation of the split GGUF with this name (parts/split_path.h), even if
 * another model hides it. With a reference; NULL if there is none. Call it on a worker. */
struct generation *catalog_update_split(struct catalog *catalog, struct zt_text name);

/* Returns the current generation of the first file with this name whose extension is not in lower
 * case, the form in which files are written (model_path_has_noncanonical_extension). With a
 * reference; NULL if there is none. Call it on a worker. */
struct generation *catalog_update_uppercase(struct catalog *catalog, struct zt_text name);

/* Returns the current generation of a joined model with this name that another model hides. With a
 * reference; NULL if there is none. Call it on a worker. */
struct generation *catalog_update_shadowed(struct catalog *catalog, struct zt_text name);

/* Return the index's generation for a name or a path, which may be outdated and parked; with a
 * reference, or NULL. */
struct generation *catalog_peek(struct catalog *catalog, struct zt_text name);
struct generation *catalog_peek_path(struct catalog *catalog, struct zt_text path);

/* Returns the file that would be lost or hidden if the model with this name were replaced: another
 * file with the name, or a joined model that the model hides. With a reference; NULL if there is
 * none, or if the index may be outdated, as for a bucket. Never waits. */
struct generation *catalog_peek_in_way(struct catalog *catalog, struct zt_text name);

/* Hides a split GGUF while its parts are removed one by one: from withhold until let_go. The path
 * must stay valid. Call these functions on a worker. */
struct catalog_withheld {
    const char *path;
    struct catalog_withheld *next;
};
void catalog_withhold(struct catalog *catalog, struct catalog_withheld *withheld);
void catalog_let_go(struct catalog *catalog, const struct catalog_withheld *withheld);

/* Returns true if a file is a part of a joined model that passes the filter, or has a name
 * "stem-….zt" and is a shard of such a model "stem". The path must end with NUL. */
bool catalog_has_shard_of(struct catalog *catalog, struct zt_text path, struct name_filter filter);

/* Returns all generations, each with a reference, in an array that the caller frees; NULL if out of
 * memory. Some may be parked. */
struct generation **catalog_hold_all(struct catalog *catalog, size_t *out_count);

/* Takes another reference to a generation that the caller holds, in order to read it. Returns false
 * if the file is gone or has changed. */
bool catalog_hold_open(struct catalog *catalog, struct generation *generation);

/* Returns how many files the catalog holds open. *out_most: how many it may keep open without
 * readers. */
size_t catalog_open_files(struct catalog *catalog, size_t *out_most);

/* Updates a path that was just published or removed, at once. Returns its generation with a
 * reference; NULL if the file is gone. Call it on a worker. */
struct generation *catalog_update(struct catalog *catalog, const char *path);

#endif
