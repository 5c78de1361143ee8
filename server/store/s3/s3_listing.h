/* Remembers the bucket's files: one entry for each path that can name a model, from the last whole
 * list and from later requests. Any thread may call these functions. */
#ifndef STORE_S3_S3_LISTING_H
#define STORE_S3_S3_LISTING_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/s3/s3_store.h"
#include "store/store_skipped.h"

struct s3_entry {
    uint64_t size_bytes;
    int64_t modified_s;
    uint64_t noted;   /* value of the note counter when this was learned after a list; 0: from a
                       * list */
    bool is_disputed; /* the list also contained other versions */
    bool is_gone;     /* known to be deleted */
    bool is_lost;     /* this version is no longer available, and the current one is unknown */
    const char *etag;
    char path[]; /* followed by the ETag */
};

/* Sorted by path, each path once. */
struct s3_entries {
    struct s3_entry **items;
    size_t count;
    size_t capacity;
};

/* Hashes of names that were looked for. */
#define S3_SOUGHT 1024

struct s3_sought {
    uint64_t hash;
    int64_t at_ms;
};

/* The facts in a whole list, as hashes of their keys (s3_facts.c). */
struct s3_facts {
    uint64_t *names; /* sorted once they are listed */
    size_t count;
    size_t capacity;
    bool is_incomplete; /* there were too many, or too little memory */
    bool is_listed;     /* the set is complete */
};

struct s3_listing {
    pthread_mutex_t lock; /* guards everything that is not atomic */
    struct s3_entries entries;
    struct s3_facts facts;
    uint64_t notes;
    bool has_list;
    int64_t listed_wall_ns; /* when the last whole list began */
    struct s3_sought sought[S3_SOUGHT];
    int64_t sought_since_ms; /* the current second, and the number of lookups in it */
    unsigned sought_count;
    atomic_size_t misnamed_files;
    /* s3_poll.c */
    int timer; /* -1: none */
    int64_t next_poll_ns;
    bool is_poll_due;
    unsigned failures; /* in a row */
    struct skipped skipped;
    /* Used only by the thread that lists. */
    bool was_listed;     /* by this process */
    uint64_t saved_hash; /* hash of the list in the cache's folder */
};

/* Returns NULL without memory. */
struct s3_listing *s3_listing_new(void);
void s3_listing_free(struct s3_listing *listing);

/* Adds an entry at the end. Sort before searching. Returns false without memory. */
bool s3_entries_add(struct s3_entries *entries, const char *path, const char *etag,
                    uint64_t size_bytes, int64_t modified_s);
/* Sorts the entries. If a path has several entries, the latest is kept, and is disputed unless they
 * are equal. */
void s3_entries_sort(struct s3_entries *entries);
/* Replaces the entry at an index. Returns false without memory. */
bool s3_entries_settle(struct s3_entries *entries, size_t at, const struct object_version *version);
void s3_entries_free(struct s3_entries *entries);

/* Notes a key from a list that is being read, if it is a fact's, or the config.json of a folder. */
void s3_facts_take(struct s3_facts *facts, const char *key);
/* Swaps the new facts of a whole list with the old ones, which the caller then frees. */
void s3_facts_replace(struct s3_listing *listing, struct s3_facts *facts);
void s3_facts_free(struct s3_facts *facts);

/* Takes over a whole list. notes is the note counter when the list began; entries learned since
 * then are kept. */
void s3_listing_replace(struct s3_listing *listing, struct s3_entries *entries, uint64_t notes,
                        int64_t begun_wall_ns);
uint64_t s3_listing_notes(struct s3_listing *listing);
bool s3_listing_has_list(struct s3_listing *listing);

/* Notes the current version of a path. etag NULL: the path has no file. */
void s3_listing_note(struct s3_listing *listing, const char *path, const char *etag,
                     uint64_t size_bytes, int64_t modified_s);
/* Notes an object from a list of one name or folder. notes is the note counter when the list began;
 * an entry learned since then is kept. */
void s3_listing_note_listed(struct s3_listing *listing, const struct listed_object *listed,
                            uint64_t notes);
/* Notes that a version is no longer available. */
void s3_listing_lose(struct s3_listing *listing, const char *path,
                     const struct file_identity *identity);

enum s3_known { S3_KNOWN, S3_KNOWN_ABSENT, S3_LOST, S3_UNKNOWN };

/* Fills out_version, which may be NULL, if it returns S3_KNOWN. Returns S3_UNKNOWN if there is no
 * list. */
enum s3_known s3_listing_find(struct s3_listing *listing, const char *path,
                              struct object_version *out_version);

/* Calls visit for each file until it returns false. Works on copies, without the lock. Returns
 * false without memory. */
bool s3_listing_visit(struct s3_listing *listing, store_visit visit, void *context);

/* Removes the entries of a model's name that are not in found, which is a complete list of the
 * name. */
void s3_listing_drop_others(struct s3_listing *listing, struct zt_text name,
                            const struct s3_entries *found, uint64_t notes);

/* --- the list in the cache's folder (s3_saved.c), for a start while the store is away --- */

/* Saves a whole, sorted list that began at this time. Runs without the listing's lock, because it
 * takes long with very many files. */
void s3_saved_write(struct s3_store *store, const struct s3_entries *entries,
                    int64_t begun_wall_ns);
/* Loads the saved list if it belongs to this bucket and is undamaged. */
void s3_saved_read(struct s3_store *store);

/* --- s3_poll.c --- */

/* Schedules the next list. */
void s3_poll_plan(struct s3_store *store, bool succeeded);
/* Called when poll_s has changed: moves the next list forward if needed. */
void s3_poll_adjust(struct s3_store *store);

#endif
