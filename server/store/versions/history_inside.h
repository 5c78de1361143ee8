/* Shared by the files of the history: its structures, logs in memory and in the place, and the
 * files that must not be removed at the moment.
 *
 * Two locks. `lock` guards the logs in memory; no file is touched under it, so event loops may take
 * it. `changing` guards the locks of repositories and the set of fresh files; kept files are set
 * aside under it. Neither is taken under the other. */
#ifndef STORE_VERSIONS_HISTORY_INSIDE_H
#define STORE_VERSIONS_HISTORY_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/recency.h"
#include "base/record.h"
#include "store/versions/history.h"
#include "store/versions/history_place.h"

struct memo;

#define HISTORY_SHA1_BYTES   20
#define HISTORY_SHA256_BYTES 32
/* The name of a repository's folder, and NUL. */
#define HISTORY_KEY_SIZE 65
/* The folder of the place with a folder for each repository. */
#define HISTORY_REPOS "repos"

/* Bounds on things that clients can make grow, as is HISTORY_FILE_BYTES. */
#define HISTORY_COMMITS_MAX ((size_t)1000000)
#define HISTORY_REFS_MAX    ((size_t)10000)

/* --- one log in memory --- */

struct log_entry {
    uint64_t number;
    uint64_t parent; /* 0: none */
    int64_t time_ms;
    uint8_t id[HISTORY_SHA1_BYTES];
    uint32_t text_bytes; /* with the four NULs */
    char *texts;         /* branch, client, title, message, each with NUL; NULL: forgotten */
};

struct log_ref {
    char *name; /* followed by NUL and the message */
    const char *message;
    bool is_tag;
    uint64_t number; /* of an entry that the log has */
};

struct log_state {
    struct log_entry *entries; /* by number */
    size_t count;
    size_t capacity;
    struct log_ref *refs; /* by name, the branch first */
    size_t ref_count;
    size_t ref_capacity;
    uint64_t last;       /* number of the last change */
    uint64_t live_bytes; /* about the length of a rewritten log */
};

/* Applies one record without its hash, of the log's file or about to be written to it. Returns
 * ZT_INVALID if it does not fit the state, or ZT_NO_MEMORY; the state may then have changed in
 * part. */
enum zt_status log_state_apply(struct log_state *state, struct record_reader *reader);
/* Returns ZT_NO_MEMORY. */
enum zt_status log_state_copy(const struct log_state *state, struct log_state *out_copy);
void log_state_free(struct log_state *state);
/* Return NULL if there is none. */
const struct log_entry *log_state_entry(const struct log_state *state, uint64_t number);
const struct log_entry *log_state_commit(const struct log_state *state,
                                         const uint8_t id[HISTORY_SHA1_BYTES]); /* the youngest */
const struct log_ref *log_state_ref(const struct log_state *state, struct zt_text name,
                                    bool is_tag);

/* The operations of a record. A record begins with the number of the change. */
struct log_record {
    struct record_writer writer;
};

void log_record_begin(struct log_record *record, uint64_t change);
void log_record_entry(struct log_record *record, const struct history_commit *commit,
                      uint64_t parent);
void log_record_ref(struct log_record *record, const char *name, bool is_tag, uint64_t number,
                    const char *message);
void log_record_unref(struct log_record *record, const char *name, bool is_tag);
/* Entries by number, none of which a branch or tag has. */
void log_record_forget(struct log_record *record, const uint64_t *numbers, size_t count);
void log_record_free(struct log_record *record);

/* --- a log in the place --- */

struct log_file {
    char key[HISTORY_KEY_SIZE];
    char version[HISTORY_VERSION_SIZE];
    uint64_t length;
    bool must_be_replaced; /* there is no file, its end is wrong, or writing to it failed */
    bool is_damaged;       /* more than that an append was not completed */
};

/* Reads a log, unless it still has file->version. A missing one is empty, and its version too. Only
 * what precedes the first damaged record is taken. If more is missing than an append that was not
 * completed, a copy of the file is kept in its folder (history_has_damage). Returns ZT_IO, also if
 * the file is of another repository, ZT_UNAVAILABLE or ZT_NO_MEMORY. */
enum zt_status log_file_read(struct history *history, struct log_file *file,
                             const struct history_repo *repo, struct log_state *out_state,
                             bool *out_is_same, struct zt_error *error);
/* Reads which repository a key is of. Returns ZT_NOT_FOUND if there is no log. */
enum zt_status log_file_name(struct history *history, const char *key,
                             struct history_repo *out_repo, struct zt_error *error);
/* Returns false if the file must be replaced instead. state: before the record. */
bool log_file_may_grow(const struct history *history, const struct log_file *file,
                       const struct log_state *state, const struct log_record *record);
/* Makes a record durable by appending it. */
enum zt_status log_file_append(struct history *history, struct log_file *file,
                               const struct log_record *record, struct zt_error *error);
/* Replaces the file by one with just this state. Returns ZT_STALE if another server has changed
 * it. */
enum zt_status log_file_replace(struct history *history, struct log_file *file,
                                const struct history_repo *repo, const struct log_state *state,
                                struct zt_error *error);
enum zt_status history_repo_key(const struct history_repo *repo, char out_key[HISTORY_KEY_SIZE],
                                struct zt_error *error);

/* --- damaged logs --- */

/* Returns true if the rest of a log, from a wrong record on, is an append that was not completed.
 * last: the number of the change before it. */
bool log_is_incomplete(const uint8_t *bytes, size_t length, uint64_t last);
/* Keeps a copy of a damaged log in its folder, unless this server only reads, and warns. */
enum zt_status history_keep_damage(struct history *history, const char *key, const char *repo,
                                   const struct history_text *text, struct zt_error *error);
/* Returns true if there is such a copy, or that is unknown. Clients do not find the commits behind
 * the damage, but an operator may restore them, so their lists and files stay. */
bool history_has_damage(struct history *history, const char *key);
void history_forget_damage(struct history *history, const char *key);

/* --- the logs in memory --- */

struct log {
    struct recency_link link; /* in `idle` or `held` */
    struct log *next;         /* in its bucket */
    struct history_repo repo;
    unsigned users;
    unsigned pins;   /* users that change it */
    bool is_looking; /* one user reads the file */
    bool is_loaded;
    int64_t looked_ms; /* when the file was last read */
    int64_t again_ms;  /* begin of the second in which `again` is counted */
    unsigned again;    /* reads for revisions that were not found */
    size_t bytes;      /* that count */
    struct waiter *waiters;
    struct log_file file;
    struct log_state state;
};

#define HISTORY_BUCKETS 1024u
/* Repositories that are changed at the same moment; more wait. */
#define HISTORY_CHANGERS 256u

struct changer {
    bool is_used;
    struct changer_key {
        uint64_t words[2];
        bool is_root_model;
    } key;
    uint64_t generation; /* when it began */
    void *lock;          /* of the place; NULL: it needs none */
};

struct sha_set; /* history_shas.h */

struct history {
    struct history_place *place; /* owned */
    size_t file_bytes;           /* HISTORY_FILE_BYTES; tests set less, as for the next */
    int64_t wait_ms;             /* for another change of a repository */
    void (*keep)(void *context, struct history_keep *out_keep);
    void *context;
    struct memo *trees;

    pthread_mutex_t lock;
    pthread_cond_t loaded;
    pthread_cond_t watched; /* there is something to watch, or the end */
    pthread_t watcher;      /* of logs with waiters; if is_watching */
    bool is_watching;
    bool is_ending;
    struct log *buckets[HISTORY_BUCKETS];
    struct recency idle;
    struct recency held; /* with users or waiters */
    size_t log_bytes;

    pthread_mutex_t changing;
    pthread_cond_t changed;
    struct changer changers[HISTORY_CHANGERS];
    uint64_t generation;
    struct sha_set *fresh; /* kept or named lately: the value is the generation */
    size_t fresh_limit;    /* the count at which old ones are removed */
    bool is_collecting;
    uint64_t collection_generation; /* valid while collecting */

    struct collection
        *collection; /* in progress; this and the next two: of the collecting thread */
    bool has_swept_trees;
    uint64_t looked_bytes; /* that the last collection left */
    atomic_bool has_garbage;
    atomic_int_least64_t due_ms;     /* Unix time at which the next commit is too old */
    atomic_int_least64_t figures[5]; /* the members of struct history_report */
};

enum history_figure {
    FIGURE_REPOSITORIES,
    FIGURE_COMMITS,
    FIGURE_KEPT_FILES,
    FIGURE_KEPT_BYTES,
    FIGURE_REMOVED_FILES
};

/* Returns a loaded log with `lock` held. Reads the file if necessary; if other servers change it
 * too, also if that was more than a second ago. Returns ZT_UNAVAILABLE on an event loop if it would
 * have to wait for another machine. */
enum zt_status log_begin(struct history *history, const struct history_repo *repo,
                         struct log **out_log, struct zt_error *error);
/* Reads the log again for a revision that it does not have, if other servers change it too. Returns
 * false if that cannot help, or was done often in this second. With `lock` held, and released in
 * between. Never waits on an event loop. */
bool log_look_again(struct history *history, struct log *log);
/* Releases `lock`. */
void log_end(struct history *history, struct log *log);
/* The same without holding `lock`: for a caller that has locked the repository, and so is the only
 * one that changes the log. */
enum zt_status log_pin(struct history *history, const struct history_repo *repo,
                       struct log **out_log, struct zt_error *error);
void log_unpin(struct history *history, struct log *log);
/* Reads a log again if another server has changed it, and none of this one's threads does. */
enum zt_status log_refresh(struct history *history, const struct history_repo *repo,
                           struct zt_error *error);
/* Writes a record of a pinned log, applies it and wakes the waiters. Nothing changes on failure,
 * except that the log may have to be read again. */
enum zt_status log_change(struct history *history, struct log *log, struct log_record *record,
                          struct zt_error *error);
/* Replaces a pinned log by one without entries. */
enum zt_status log_clear(struct history *history, struct log *log, struct zt_error *error);
void logs_free(struct history *history);
void log_entry_read(const struct log_entry *entry, struct history_commit *out_commit);

/* --- trees --- */

/* Writes the file of a tree durably. */
enum zt_status history_tree_write(struct history *history, const char *key, const char *commit,
                                  const struct history_file *files, size_t count,
                                  struct zt_error *error);
/* Calls visit for each file of a tree in the place. Returns ZT_NOT_FOUND, ZT_IO, ZT_CORRUPT,
 * ZT_NO_MEMORY, or what visit returned if that was not ZT_OK. */
enum zt_status history_tree_visit(struct history *history, const char *key, const char *commit,
                                  enum zt_status (*visit)(void *context,
                                                          const struct history_file *file),
                                  void *context, struct zt_error *error);
/* Removes the trees that the log does not name. The repository must be locked. */
void history_trees_sweep(struct history *history, const struct log *log);
/* Counts the trees that the log does not name. */
enum zt_status history_trees_count_unnamed(struct history *history, const char *key,
                                           const struct log_state *state, size_t *out_count,
                                           struct zt_error *error);
void history_tree_remove(struct history *history, const char *key, const char *commit);
struct memo *history_trees_new(void);

/* Returns ZT_ARGUMENT unless the files are sorted and have usable paths. */
enum zt_status history_files_check(const struct history_file *files, size_t count,
                                   struct zt_error *error);

/* --- changes --- */

/* What a record does apart from forgetting. */
struct planned {
    const char *ref; /* the branch or tag that is made, moved or deleted; NULL: none */
    bool is_tag;
    uint64_t number; /* the entry that it will have; 0: it is deleted */
    size_t added;    /* entries */
};

struct numbers {
    uint64_t *numbers;
    size_t count;
    size_t capacity;
};

/* Finds the sorted numbers of the entries that branches and tags have after a change. planned may
 * be NULL. */
enum zt_status history_targets(const struct log_state *state, const struct planned *planned,
                               struct numbers *out_targets, struct zt_error *error);
bool numbers_have(const struct numbers *numbers, uint64_t number);
enum zt_status numbers_add(struct numbers *numbers, uint64_t number);
/* Forgets entries of a locked repository, none of which a branch or tag has, and removes their
 * trees. */
enum zt_status history_forget(struct history *history, struct log *log,
                              const struct numbers *forgotten, struct zt_error *error);

/* Returns true if any repository is locked. Under `changing`. */
bool history_is_changing(const struct history *history);

/* --- kept files --- */

/* Protects a file from collections while a repository is locked that is locked now, and until a
 * collection that is in progress ends. Returns false without memory. */
bool history_protect(struct history *history, const uint8_t sha256[HISTORY_SHA256_BYTES]);
/* Under `changing`. */
bool history_is_protected(struct history *history, const uint8_t sha256[HISTORY_SHA256_BYTES]);
void history_begin_collecting(struct history *history);
void history_end_collecting(struct history *history);

static inline enum zt_status history_refuse(struct zt_error *error)
{
    return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "this server does not keep versions");
}

static inline bool history_is_writing(const struct history *history)
{
    return !history->place->is_missing && history->place->is_writable;
}

void history_collection_free(struct history *history);

#endif
