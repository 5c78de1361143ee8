/* The mirrored repositories: which commits of them are known, on disk and in memory. Any thread may
 * call these functions. */
#ifndef STORE_MIRROR_MIRROR_INDEX_H
#define STORE_MIRROR_MIRROR_INDEX_H

#include <pthread.h>

#include "base/recency.h"
#include "store/mirror/mirror_version.h"
#include "upstream/upstream.h"

/* Commits of one repository that are kept, the current one included. */
#define MIRROR_VERSIONS_MAX 17
/* Branches and tags of one repository that are remembered. */
#define MIRROR_BRANCHES_MAX 8
/* The maximum number of files in all repositories, about 150 bytes each. A commit counts as some
 * files more, for its repository. The repository used least recently is forgotten first; its files
 * leave the cache when room is needed. */
#define MIRROR_ENTRIES_MAX    ((size_t)1000000)
#define MIRROR_VERSION_CHARGE ((size_t)32)
#define MIRROR_BUCKETS        1024u

/* A branch or tag, and the commit that it named. */
struct mirror_branch {
    char name[UPSTREAM_REVISION_SIZE];
    char commit[STORE_COMMIT_SIZE];
    int64_t believed_until_ms;
};

struct mirror_repository {
    struct recency_link link; /* first */
    struct mirror_repository *next;
    char name[UPSTREAM_REPOSITORY_SIZE];
    unsigned upstream;                                    /* its number */
    struct mirror_version *versions[MIRROR_VERSIONS_MAX]; /* the current one first */
    unsigned version_count;
    bool has_current;          /* false: only other commits were asked for */
    int64_t believed_until_ms; /* how long the current commit counts as current */
    int64_t checked_s;         /* when the upstream last named it; 0: before the start */
    int64_t doubted_ms;        /* when that was last cut short */
    bool is_being_checked;     /* a thread asks the upstream what is current */
    bool is_gone_upstream;     /* the upstream has it no more */
    struct mirror_branch branches[MIRROR_BRANCHES_MAX];
    unsigned next_branch;
    bool is_unsaved; /* flags of files have changed since the last save */
    int64_t saved_ms;
    size_t saved_bytes;
};

struct mirror_index {
    pthread_mutex_t lock;
    struct mirror_repository *buckets[MIRROR_BUCKETS];
    struct recency recency;
    size_t entry_count;
    pthread_mutex_t saving;       /* held while a file is written, so that the latest state stays */
    int folder;                   /* of the saved repositories; -1: they are not saved */
    const char *const *upstreams; /* their URLs, which name them in files */
    unsigned upstream_count;
    /* Saved repositories whose upstream is not configured, and the URL of one of them. */
    size_t foreign_count;
    char foreign_url[256];
};

/* Opens the folder and reads the saved repositories. upstreams outlive the index. */
void mirror_index_open(struct mirror_index *index, const char *folder, const char *const *upstreams,
                       unsigned upstream_count);
void mirror_index_close(struct mirror_index *index);

/* --- with the lock --- */

/* Returns NULL if there is no such repository. */
struct mirror_repository *mirror_index_find(struct mirror_index *index, struct zt_text name);
/* Finds or adds a repository. Returns NULL if out of memory. */
struct mirror_repository *mirror_index_add(struct mirror_index *index, const char *name,
                                           unsigned upstream);
/* Adds a version, of which it takes a reference, or keeps the one with the same commit.
 * is_current: it becomes the current one. May forget other repositories. */
void mirror_index_put(struct mirror_index *index, struct mirror_repository *repository,
                      struct mirror_version *version, bool is_current);
/* Borrowed; NULL if it is not known. */
struct mirror_version *mirror_repository_current(const struct mirror_repository *repository);
struct mirror_version *mirror_repository_version(const struct mirror_repository *repository,
                                                 struct zt_text commit);
/* Returns true if a repository has this owner. */
bool mirror_index_has_owner(const struct mirror_index *index, struct zt_text owner);

/* --- without the lock --- */

/* Writes the repository to disk, so that it survives the process. Failing is harmless: it will be
 * asked for again. */
void mirror_index_save(struct mirror_index *index, const char *name);
/* Notes that clients may have bytes of a file that is not verified, and returns once that is on
 * disk. */
void mirror_index_begin(struct mirror_index *index, const char *name, struct mirror_entry *entry);
/* Does the same as mirror_index_save for a flag of a file, which may be lost by a crash. Large
 * repositories are written less often than they change; mirror_index_close writes what is left. */
void mirror_index_save_soon(struct mirror_index *index, const char *name);

/* Forgets a repository, on disk too. The caller releases the versions. Returns false if there is no
 * such repository. */
bool mirror_index_remove(struct mirror_index *index, const char *name,
                         struct mirror_version *out_versions[MIRROR_VERSIONS_MAX],
                         unsigned *out_count);

/* Notes of all files of a repository with these bytes whether they are verified, which
 * mirror_index_save_soon saves. proof: NULL if they are not. */
void mirror_index_mark(struct mirror_index *index, const struct mirror_place *place,
                       const uint8_t *proof);

/* Notes that wrong bytes were found, also on disk: clients may have some of them. */
void mirror_index_note_wrong(struct mirror_index *index, const struct mirror_place *place);

/* Does the same at an open, by what its source says now, if that differs from the place: the cache
 * may have lost bytes that were verified, or another repository's file had the same bytes. */
void mirror_index_agree(struct mirror_index *index, const struct mirror_place *place,
                        const struct zt_source *source);

/* Makes the next request ask for the current commit, because a file differs from its list. Does so
 * at most once a second: readers of older commits find such files, too. */
void mirror_index_doubt(struct mirror_index *index, const char *name);

/* Holds the current versions of all repositories. The caller releases them and frees both arrays.
 * Returns false if out of memory. */
struct mirror_current {
    char name[UPSTREAM_REPOSITORY_SIZE];
    unsigned upstream;
    int64_t checked_s;
    bool is_gone_upstream;
    struct mirror_version *version;
};
bool mirror_index_list(struct mirror_index *index, struct mirror_current **out_list,
                       size_t *out_count);
void mirror_current_free(struct mirror_current *list, size_t count);

#endif
