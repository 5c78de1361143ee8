/* The history of a store: per repository a log of commits with branches and tags, the list of files
 * of each commit, and the files that are no longer in the store, by SHA-256.
 *
 * All of it is in a place (history_place.h): the hidden folder ".ztserve/versions" of the store. A
 * file that the store still has is usually not kept: readers of a commit look for it among the kept
 * files first, then in the store (versions_store.h).
 *
 * Changes are durable when a call returns, and atomic if the process is killed. Any thread may call
 * these functions; those that read or write a file say so, and belong on a worker. */
#ifndef STORE_VERSIONS_HISTORY_H
#define STORE_VERSIONS_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"
#include "zt/status.h"
#include "zt/text.h"

struct history;
struct history_place;
struct waiter;

/* SHA-1 in hex, and NUL. */
#define HISTORY_COMMIT_SIZE 41
/* The name of a branch or a tag, and NUL. */
#define HISTORY_REF_SIZE 256
#define HISTORY_MAIN     "main"
/* The rule of an error (ZT_IO) if an operator must repair the history (docs/versions.md). */
#define HISTORY_DAMAGED "versions §damaged"

/* A repository has a log. It is a folder ("org/model"), or the files in the root that belong to one
 * model ("tiny" for tiny.safetensors). Both may have the same name. */
struct history_repo {
    bool is_root_model;
    char name[MODEL_NAME_MAX + 1];
};

/* A file of a commit. */
struct history_file {
    const char *path; /* below the repository's folder; below the root for a root model */
    uint8_t sha256[32];
    uint64_t size_bytes;
    int64_t modified_ns;
};

/* Immutable, reference-counted, sorted bytewise by path. */
struct history_tree {
    size_t count;
    const struct history_file *files;
    uint64_t size_bytes; /* of all files */
};

/* An entry of a log. The identity of a commit is the SHA-1 over its paths and SHA-256s, so the same
 * state has the same identity on every server, and may occur more than once in a log. */
struct history_commit {
    char id[HISTORY_COMMIT_SIZE];
    char parent[HISTORY_COMMIT_SIZE]; /* empty: the first that is kept */
    uint64_t number;                  /* of the change in the repository's log; grows */
    int64_t time_ms;                  /* Unix time */
    char branch[HISTORY_REF_SIZE];    /* that it was made on */
    char client[128];   /* name of the token; empty: unknown, or found in the folder */
    char title[256];    /* the first line of the message */
    char message[2048]; /* the rest */
};

struct history_ref {
    char name[HISTORY_REF_SIZE];
    bool is_tag;
    char commit[HISTORY_COMMIT_SIZE];
    char message[512]; /* of a tag */
};

/* How much is kept, read again each time. 0: no such limit. All 0: keeping is off, so callers do
 * not record commits; earlier ones stay. A commit that a branch or tag points to is always kept. */
struct history_keep {
    uint64_t commits; /* the last ones of each repository, the present one included */
    uint64_t age_s;
    uint64_t bytes; /* of all kept files; the oldest commits go first */
};

struct history_options {
    struct history_place *place; /* taken over, also on failure */
    void (*keep)(void *context, struct history_keep *out_keep);
    void *context;
};

/* Opens a history. Returns ZT_NO_MEMORY. */
enum zt_status history_open(const struct history_options *options, struct history **out_history,
                            struct zt_error *error);
/* Accepts NULL. */
void history_close(struct history *history);

/* Returns true if other servers change it too. Their changes are found within about a second. */
bool history_is_shared(const struct history *history);

/* --- names --- */

/* Writes the repository that the file of a path belongs to: the first two parts of "a/b/c…", the
 * first part of "a/b" or of a folder with a config.json, the model of a file in the root. Reads the
 * folder. */
void history_repo_of_path(struct history *history, const char *path, struct history_repo *out_repo);
/* The same for the name of a model, which is a path without its extension. */
void history_repo_of_model(struct history *history, struct zt_text model,
                           struct history_repo *out_repo);

/* A path of the form REPOSITORY@COMMIT or REPOSITORY@COMMIT/REST, which names a file or folder of a
 * commit in the store. */
struct history_path {
    struct zt_text repo; /* borrowed, as the others */
    char commit[HISTORY_COMMIT_SIZE];
    struct zt_text rest; /* may be empty */
};

/* Returns false for every other path. The commit is 40 lower-case hex digits. */
bool history_path_split(struct zt_text path, struct history_path *out_path);

/* Returns true if a branch or tag may have this name (git check-ref-format, at most 255 bytes, not
 * 40 hex digits). */
bool history_ref_is_valid(struct zt_text name);

/* Computes a commit's identity from its files in order. Returns ZT_NO_MEMORY. */
enum zt_status history_commit_id(const struct history_file *files, size_t count,
                                 char out_id[HISTORY_COMMIT_SIZE], struct zt_error *error);

/* --- reading --- */

struct history_found {
    char commit[HISTORY_COMMIT_SIZE];
    bool is_branch;
    bool is_tag; /* neither: named by its commit */
    char ref[HISTORY_REF_SIZE];
};

/* If other servers change the history too, a revision that is not found is looked for in the place,
 * a few times a second for each repository, except on event loops. */

/* Finds a revision: a branch, a tag (also as refs/heads/… and refs/tags/…; branches win), or a
 * commit that is kept. "main" and "HEAD" are the last recorded state of the folder. Returns
 * ZT_NOT_FOUND. From memory once the repository's log was read; reads that log otherwise. */
enum zt_status history_find(struct history *history, const struct history_repo *repo,
                            struct zt_text revision, struct history_found *out_found,
                            struct zt_error *error);

/* Returns the files of a commit that is kept; ZT_NOT_FOUND, ZT_IO, ZT_NO_MEMORY. Reads. */
enum zt_status history_tree_get(struct history *history, const struct history_repo *repo,
                                const char *commit, const struct history_tree **out_tree,
                                struct zt_error *error);
/* Accepts NULL. */
void history_tree_release(const struct history_tree *tree);
/* Returns NULL if there is no such file. */
const struct history_file *history_tree_find(const struct history_tree *tree, struct zt_text path);

/* Up to limit commits of a branch, tag or commit, the youngest first, beginning with the first one
 * whose number is below `below` (UINT64_MAX: the youngest). */
struct history_range {
    struct zt_text revision;
    uint64_t below;
    size_t limit;
};

/* The caller frees the array. Returns ZT_NOT_FOUND for an unknown revision. */
enum zt_status history_list(struct history *history, const struct history_repo *repo,
                            const struct history_range *range, struct history_commit **out_commits,
                            size_t *out_count, struct zt_error *error);

/* Calls visit for each commit that is kept, the youngest first, until it returns false. visit is
 * called under a lock: it must not call the history, and never waits. */
enum zt_status history_visit(struct history *history, const struct history_repo *repo,
                             bool (*visit)(void *context, const uint8_t id[20]), void *context,
                             struct zt_error *error);

/* Returns branches and tags sorted by name; main is one of them once something was recorded. The
 * caller frees the array. */
enum zt_status history_refs(struct history *history, const struct history_repo *repo,
                            struct history_ref **out_refs, size_t *out_count,
                            struct zt_error *error);

/* Returns the number of the repository's last change: a commit, or a branch or tag that was made,
 * moved or deleted; 0 if there is none. */
enum zt_status history_last_change(struct history *history, const struct history_repo *repo,
                                   uint64_t *out_number, struct zt_error *error);
/* Returns true if the waiter will be woken when the repository has a change with a number above
 * `above` (history_last_change). Returns false if it has one already or that is not known at the
 * moment: the caller then looks again. Never waits. */
bool history_wait(struct history *history, const struct history_repo *repo, uint64_t above,
                  struct waiter *waiter);
/* Returns true if it was waiting; it then will not be woken. */
bool history_forget_waiter(struct history *history, struct waiter *waiter);

/* --- changing --- */

/* Only one caller changes a repository, on all servers; others wait here. Returns ZT_UNAVAILABLE
 * if they wait for longer than 30 s, or if the place cannot be reached; ZT_IO, ZT_NO_MEMORY. Not
 * recursive: the functions below that say "Locks" do this themselves. Files that are kept and
 * commits that are recorded in between are safe from collections, also before a commit names the
 * files. */
enum zt_status history_lock(struct history *history, const struct history_repo *repo,
                            struct zt_error *error);
void history_unlock(struct history *history, const struct history_repo *repo);

/* What a client says about a commit. */
struct history_note {
    const char *client;  /* or NULL */
    const char *title;   /* never NULL */
    const char *message; /* or NULL */
};

/* A new state of a branch. */
struct history_head {
    const char *branch;
    const struct history_file *files; /* sorted by path */
    size_t count;
};

/* Records a commit as the head of a branch, which it makes if necessary.
 * Records nothing if the head has the same files. For a branch other than main, all files must be
 * kept or in the folder. Then forgets the commits that are beyond what is kept. The repository must
 * be locked. Writes. */
enum zt_status history_record(struct history *history, const struct history_repo *repo,
                              const struct history_head *head, const struct history_note *note,
                              struct history_commit *out_commit, struct zt_error *error);

/* Makes a branch or tag, or moves it. expected: the commit it must have; NULL: any or none; "":
 * it must not exist yet. Returns ZT_ARGUMENT if that does not hold, ZT_NOT_FOUND for an unknown
 * commit. main cannot be moved with this, since the folder would not follow. Locks. Writes. */
enum zt_status history_set_ref(struct history *history, const struct history_repo *repo,
                               const struct history_ref *ref, const char *expected,
                               struct zt_error *error);
/* Returns ZT_NOT_FOUND, or ZT_ARGUMENT for main. Locks. Writes. */
enum zt_status history_delete_ref(struct history *history, const struct history_repo *repo,
                                  const char *name, bool is_tag, struct zt_error *error);

/* Replaces the commits of a branch by one with the same files. Locks. Writes. */
enum zt_status history_squash(struct history *history, const struct history_repo *repo,
                              const char *branch, const struct history_note *note,
                              struct zt_error *error);

/* Forgets all commits, branches and tags of a repository. Kept files that no other commit names go
 * with the next collection. The repository must be locked. Writes. */
enum zt_status history_purge(struct history *history, const struct history_repo *repo,
                             struct zt_error *error);

/* Removes the log of a repository if not even its beginning can be read, before a purge. Locks.
 * Writes. */
enum zt_status history_remove_unreadable(struct history *history, const struct history_repo *repo,
                                         struct zt_error *error);

/* --- kept files --- */

/* The following functions that keep a file are called with its repository locked. */

/* Keeps the file that a path of the store has, which is about to be replaced or removed. Does
 * nothing if a file of this SHA-256 is kept already; but in a folder, it must have the same size
 * and time of modification, and is replaced otherwise. identity: of the file that was hashed;
 * ZT_STALE if it is another one now. Returns ZT_UNSUPPORTED, with a reason for the client, if the
 * system does not permit it. In a folder this changes the file's changed_ns. */
enum zt_status history_keep_file(struct history *history, const char *path,
                                 const struct file_identity *identity, const uint8_t sha256[32],
                                 struct zt_error *error);
/* Keeps a file that is about to be removed by moving it, for systems where history_keep_file
 * returns ZT_UNSUPPORTED. Afterwards the store no longer has it, unless it was kept already.
 * Otherwise it is the same. */
enum zt_status history_keep_removed(struct history *history, const char *path,
                                    const struct file_identity *identity, const uint8_t sha256[32],
                                    struct zt_error *error);
/* Keeps an unpublished, synced file, and closes it on success (commits to branches). */
enum zt_status history_keep_staged(struct history *history, struct staged_file *file,
                                   const uint8_t sha256[32], struct zt_error *error);
/* Opens a kept file for reading. Returns ZT_NOT_FOUND. changed_ns of the identity is modified_ns,
 * because other names of the file come and go. */
enum zt_status history_open_kept(struct history *history, const uint8_t sha256[32],
                                 struct zt_source **out_source, struct file_identity *out_identity,
                                 struct zt_error *error);
/* The same without opening it, for a commit that will name it. */
enum zt_status history_stat_kept(struct history *history, const uint8_t sha256[32],
                                 struct file_identity *out_identity, struct zt_error *error);
/* Gives a kept file a path in the store, and replaces the file that has it (going back to an
 * earlier commit), which the caller has kept. */
enum zt_status history_restore(struct history *history, const uint8_t sha256[32], const char *path,
                               struct zt_error *error);
/* Removes the file that a path of the store has. identity: of the file that the caller has kept.
 * Returns ZT_NOT_FOUND; ZT_STALE if it is another one now. */
enum zt_status history_remove_path(struct history *history, const char *path,
                                   const struct file_identity *identity, struct zt_error *error);
/* Returns true if the store has a regular file at a path. asks: may wait for another machine;
 * otherwise the answer may be as old as the last list of the store. */
bool history_has_path(const struct history *history, const char *path, bool asks);

/* Removes kept files that no kept commit names, at most so many, and forgets commits whose age is
 * above the limit. Files that are being read stay readable. *out_more: there may be more to remove:
 * call again, and the lists of files are not read again. Does nothing while keeping is off. Call
 * it from one thread; it may take long. */
enum zt_status history_collect(struct history *history, unsigned most, bool *out_more,
                               struct zt_error *error);

/* Returns true if a commit has become too old since the last collection. */
bool history_is_due(const struct history *history);

struct history_report {
    uint64_t repositories; /* at the last collection; the next three: and what changed since */
    uint64_t commits;
    uint64_t kept_files;
    uint64_t kept_bytes;
    uint64_t removed_files; /* by collections since the start */
};

void history_report(struct history *history, struct history_report *out_report);

#endif
