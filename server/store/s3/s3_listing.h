/* What is known of the bucket's files: one entry for each path that can name a model, from the last
 * whole list and from what was learned since. Any thread. */
#ifndef STORE_S3_S3_LISTING_H
#define STORE_S3_S3_LISTING_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/s3/s3_store.h"
#include "store/store_skipped.h"

struct s3_entry {
    uint64_t size_bytes;
    int64_t modified_s;
    uint64_t noted;   /* the count of notes when it was learned after a list; 0: from a list */
    bool is_disputed; /* the list had other versions of it too */
    bool is_gone;     /* learned: there is no such file */
    bool is_lost;     /* this version cannot be had any more; what there is now is not known */
    const char *etag;
    char path[]; /* and behind it the ETag */
};

/* In order of path, each path once. */
struct s3_entries {
    struct s3_entry **items;
    size_t count;
    size_t capacity;
};

/* Names that were looked for, by their hash. */
#define S3_SOUGHT 1024

struct s3_sought {
    uint64_t hash;
    int64_t at_ms;
};

/* The facts that a whole list had, by hashes of their keys (s3_facts.c). */
struct s3_facts {
    uint64_t *names; /* in order once they are listed */
    size_t count;
    size_t capacity;
    bool is_incomplete; /* too many, or no memory */
    bool is_listed;     /* there are no others */
};

struct s3_listing {
    pthread_mutex_t lock; /* of all that is not atomic */
    struct s3_entries entries;
    struct s3_facts facts;
    uint64_t notes;
    bool has_list;
    int64_t listed_wall_ns; /* when the last whole list was begun */
    struct s3_sought sought[S3_SOUGHT];
    int64_t sought_since_ms; /* a second that is counted, and how many were sought in it */
    unsigned sought_count;
    atomic_size_t misfits;
    /* s3_poll.c */
    int timer; /* -1: none */
    int64_t next_poll_ns;
    bool is_poll_due;
    unsigned failures; /* one after another */
    struct skipped skipped;
    /* Of the thread that lists. */
    bool was_listed;     /* by this process */
    uint64_t saved_hash; /* of the list in the cache's folder */
};

/* NULL without memory. */
struct s3_listing *s3_listing_new(void);
void s3_listing_free(struct s3_listing *listing);

/* Adds an entry at the end; sort before any search. False without memory. */
bool s3_entries_add(struct s3_entries *entries, const char *path, const char *etag,
                    uint64_t size_bytes, int64_t modified_s);
/* Sorts; of several entries of a path the latest stays, disputed unless they are the same. */
void s3_entries_sort(struct s3_entries *entries);
/* Replaces what a list said of a path, in its place. False without memory. */
bool s3_entries_settle(struct s3_entries *entries, size_t at, const struct object_version *version);
void s3_entries_free(struct s3_entries *entries);

/* Notes a key of a list that is being read, if it is a fact's. */
void s3_facts_take(struct s3_facts *facts, const char *key);
/* Exchanges what a whole list had with what was known before, which the caller frees. */
void s3_facts_replace(struct s3_listing *listing, struct s3_facts *facts);
void s3_facts_free(struct s3_facts *facts);

/* Takes over a whole list that was begun when `notes` was the count of notes: what was learned
 * since stays. */
void s3_listing_replace(struct s3_listing *listing, struct s3_entries *entries, uint64_t notes,
                        int64_t begun_wall_ns);
uint64_t s3_listing_notes(struct s3_listing *listing);
bool s3_listing_has_list(struct s3_listing *listing);

/* What a path has now. NULL: nothing. */
void s3_listing_note(struct s3_listing *listing, const char *path, const char *etag,
                     uint64_t size_bytes, int64_t modified_s);
/* The same as a list of one name had it, which was begun when `notes` was the count of notes: what
 * was learned since stays. */
void s3_listing_note_listed(struct s3_listing *listing, const struct s3_entry *listed,
                            uint64_t notes);
/* A version cannot be had any more. */
void s3_listing_lose(struct s3_listing *listing, const char *path,
                     const struct file_identity *identity);

enum s3_known { S3_KNOWN, S3_KNOWN_ABSENT, S3_LOST, S3_UNKNOWN };

/* out_version may be NULL; it is filled if the answer is S3_KNOWN. S3_UNKNOWN: without a list. */
enum s3_known s3_listing_find(struct s3_listing *listing, const char *path,
                              struct object_version *out_version);

/* Calls visit for each file, until it returns false; on copies, without the lock. False without
 * memory. */
bool s3_listing_visit(struct s3_listing *listing,
                      bool (*visit)(void *context, const char *path,
                                    const struct file_identity *identity),
                      void *context);

/* Removes what a model's name has beyond these paths, which are all that a list of it found. */
void s3_listing_forget_others(struct s3_listing *listing, struct zt_text name,
                              const struct s3_entries *found, uint64_t notes);

/* --- the list in the cache's folder (s3_saved.c), for a start while the store is away --- */

/* Of a whole list, sorted, that was begun at this time; without the listing's lock, because it
 * takes long if there are very many files. */
void s3_saved_write(struct s3_store *store, const struct s3_entries *entries,
                    int64_t begun_wall_ns);
/* Takes over the saved list if it is of this bucket and undamaged. */
void s3_saved_read(struct s3_store *store);

/* --- s3_poll.c --- */

/* Plans the next list. */
void s3_poll_plan(struct s3_store *store, bool succeeded);
/* poll_s has changed: the next list comes no later than it says. */
void s3_poll_adjust(struct s3_store *store);

#endif
