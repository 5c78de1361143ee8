/* The catalog of models. Maps names and paths to generations, and follows changes (the store's
 * watch, SIGHUP, uploads). All functions may be called from any thread. */
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

#include "base/name_filter.h"
#include "base/server.h"
#include "catalog/generation.h"
#include "http/wire/loop.h"

/* Functions that the catalog calls when it changes: one at a time, on the thread that changes it.
 * They may take a long time, but must not change the catalog. A NULL function is not called. */
struct catalog_observer {
    void *context;
    /* A new generation with a model, which no other thread has seen yet. */
    void (*opened)(void *context, struct generation *generation);
    /* The generation is about to be found. */
    void (*showing)(void *context, struct generation *generation);
    /* The generation can be found from now on. */
    void (*shown)(void *context, struct generation *generation);
    /* The generation can no longer be found; after this call the catalog releases it. */
    void (*dropped)(void *context, struct generation *generation);
    /* The first scan is done; paths are those of all files. */
    void (*loaded)(void *context, const char *const *paths, size_t count);
};

/* observer may be NULL. NULL without memory or threads. */
struct catalog *catalog_new(struct server *server, const struct catalog_observer *observer);
/* Ends a running scan after the current file, and wakes all waiters. Takes NULL. */
void catalog_free(struct catalog *catalog);

/* Scans the store in the background, soon. Any number of calls during a scan cause one more scan.
 * Unchanged files keep their generation. */
void catalog_refresh(struct catalog *catalog);

/* Follows the store from now on: what it notices on the loop is scanned. False if that is not
 * possible. */
bool catalog_watch(struct catalog *catalog, struct loop *loop);

/* Notes a change of the store that waits to be read by the loop that watches it, so that files are
 * looked at again before their next answer. To be called on every loop before it answers what has
 * arrived. */
void catalog_heed(struct catalog *catalog);

/* Whether the first scan is done. */
bool catalog_is_loaded(const struct catalog *catalog);

enum catalog_answer { CATALOG_FOUND, CATALOG_NOT_FOUND, CATALOG_PENDING, CATALOG_UNAVAILABLE };

/* Find a model, or a file, and hand out a reference. PENDING if the file has changed since it was
 * opened, or if it was not found but the first scan is not done: waiter is woken once the catalog
 * has looked again. UNAVAILABLE if the store, which is elsewhere, cannot tell, or give the file.
 * Data shards are found by path only. */
enum catalog_answer catalog_find(struct catalog *catalog, struct zt_text name,
                                 struct waiter *waiter, struct generation **out_generation);
enum catalog_answer catalog_find_path(struct catalog *catalog, struct zt_text path,
                                      struct waiter *waiter, struct generation **out_generation);

/* Models whose names begin with prefix, come after the name `after` (empty: from the first) and
 * pass the filter; at most limit of them. looks: about so many files are looked at, however few of
 * them pass; 0: all. */
struct catalog_page {
    struct zt_text prefix;
    struct zt_text after;
    struct name_filter filter; /* what may be known at all */
    struct name_filter match;  /* and of that what is wanted */
    bool without_parts;        /* of joined models */
    size_t limit;
    size_t looks;
};

struct catalog_page_end {
    bool more; /* other models follow those of the page */
    /* NULL unless page->looks was too few: whether more follow is not known, and the page continues
     * after this one's name. With a reference; it need not be a model that passes. */
    struct generation *reached;
};

/* Lists models in order of name. Returns how many were written to out_generations, each with a
 * reference. */
size_t catalog_list(struct catalog *catalog, const struct catalog_page *page,
                    struct generation **out_generations, struct catalog_page_end *out_end);

/* The name of the joined model that a stored file is a part of, and that passes the filter. False
 * if there is none. */
bool catalog_part_of(struct catalog *catalog, const char *path, struct name_filter filter,
                     char out_name[MODEL_NAME_MAX + 1]);

/* The current generation of the split GGUF of that name (catalog/split_path.h), whether or not
 * another model stands before it; with a reference, NULL if there is none. To be called on a
 * worker. */
struct generation *catalog_update_split(struct catalog *catalog, struct zt_text name);

/* The current generation of a file of that name whose extension is in other letters than files are
 * written with (model_path_is_odd), the first of several; with a reference, NULL if there is none.
 * To be called on a worker. */
struct generation *catalog_update_odd(struct catalog *catalog, struct zt_text name);

/* The current generation of a joined model of that name before which another model stands; with a
 * reference, NULL if there is none. To be called on a worker. */
struct generation *catalog_update_behind(struct catalog *catalog, struct zt_text name);

/* What the index has for a name, which need not be current; with a reference, or NULL. */
struct generation *catalog_peek(struct catalog *catalog, struct zt_text name);

/* What the index has for a name and would be lost, or hidden, if the model of that name were
 * replaced: another file of the name, or a joined model behind it. With a reference; NULL if there
 * is none, or if it is not known to be current, as in a bucket. Never waits. */
struct generation *catalog_peek_in_way(struct catalog *catalog, struct zt_text name);

/* While a split GGUF is removed, part by part, it is not shown: from withhold until let_go. The
 * path is borrowed. To be called on a worker. */
struct catalog_withheld {
    const char *path;
    struct catalog_withheld *next;
};
void catalog_withhold(struct catalog *catalog, struct catalog_withheld *withheld);
void catalog_let_go(struct catalog *catalog, const struct catalog_withheld *withheld);

/* Whether a file is a part of a joined model that passes the filter, or, as "stem-….zt", a shard of
 * such a model "stem". The path ends with NUL. */
bool catalog_has_shard_of(struct catalog *catalog, struct zt_text path, struct name_filter filter);

/* All generations, each with a reference, in an array that the caller frees; NULL if out of memory.
 * Some may be parked. */
struct generation **catalog_hold_all(struct catalog *catalog, size_t *out_count);

/* A reference to a generation that the caller has, to read it. False if the file is gone or has
 * changed. */
bool catalog_hold_open(struct catalog *catalog, struct generation *generation);

/* How many files the catalog holds open, and may while nobody reads them. */
size_t catalog_open_files(struct catalog *catalog, size_t *out_most);

/* Updates a path that was just published or removed, at once. Returns its generation with a
 * reference; NULL if the file is gone. To be called on a worker. */
struct generation *catalog_update(struct catalog *catalog, const char *path);

#endif
