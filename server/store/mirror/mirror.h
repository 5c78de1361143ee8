/* A mirror: a store that adds the repositories of upstreams to another store. */
#ifndef STORE_MIRROR_MIRROR_H
#define STORE_MIRROR_MIRROR_H

#include "config/config.h"
#include "store/store.h"
#include "upstream/upstream.h"

struct mirror_prefetches;
struct workers;

struct mirror_options {
    /* Borrowed, with all its upstreams. What reloads is read each time, or in reconfigure. */
    const struct config *config;
    const char *folder; /* exists; only one process may use it */
    struct workers *workers;
    struct workers *waiters;   /* for jobs that may wait for another machine */
    const char *const *tokens; /* one for each upstream, or NULL; copied */
};

/* Wraps a store, which is closed with the mirror, but remains the caller's on failure. An upstream
 * that is away is not an error. Call it after the sandbox, because it starts threads. Returns
 * ZT_ARGUMENT or ZT_IO, with a one-line message for the user at the command line. */
enum zt_status mirror_open(struct store *inner, const struct mirror_options *options,
                           struct store **out_store, struct zt_error *error);

/* Returns true if a store is a mirror. The functions below are for mirrors; index counts the
 * configuration's upstreams. */
bool mirror_is(const struct store *store);

/* Changes the token of an upstream, at a reload; NULL: none. ZT_ARGUMENT: it is not valid, and the
 * old one stays. */
enum zt_status mirror_set_token(struct store *store, unsigned index, const char *token,
                                struct zt_error *error);

/* Returns the upstream that a repository comes from or would be looked up in, or UINT_MAX. */
unsigned mirror_upstream_of(struct store *store, struct zt_text repository);

struct mirror_report {
    struct upstream_report upstream;
    uint64_t cache_used_bytes;
    uint64_t cache_limit_bytes;
    uint64_t repositories; /* known here */
    uint64_t hits;         /* files that were opened and were here, as a whole */
    uint64_t misses;       /* files that were opened and were not */
    uint64_t saved_bytes;  /* read from files beyond those fetched */
    uint64_t wrong_files;  /* files whose digest differed */
};

/* Never waits. Any thread. */
void mirror_report(struct store *store, unsigned index, struct mirror_report *out_report);

/* A mirrored repository, as of the current commit of its main branch. */
struct mirror_repository_report {
    char name[UPSTREAM_REPOSITORY_SIZE];
    char commit[UPSTREAM_COMMIT_SIZE];
    int64_t modified_ns; /* 0: not stated */
    int64_t checked_s;   /* when the upstream last confirmed the commit; 0: before the start */
    bool is_gone;        /* the upstream has it no more */
    size_t file_count;
    size_t verified_count; /* all of the file is here, and its digest agrees */
    uint64_t size_bytes;
    uint64_t verified_bytes;
};

/* Describes the repositories of an upstream, sorted by name. The caller frees the array. Returns
 * false if out of memory. Never waits for an upstream. */
bool mirror_repositories(struct store *store, unsigned index,
                         struct mirror_repository_report **out_list, size_t *out_count);

/* Forgets a repository and discards its files, except for bytes that other repositories have too.
 * Downloads in progress are cut off. The next request asks the upstream again. ZT_NOT_FOUND;
 * ZT_NO_MEMORY: forgotten, but its files stay until there is no room. May wait for a disk. */
enum zt_status mirror_remove(struct store *store, unsigned index, const char *repository,
                             struct zt_error *error);

/* The prefetches of one upstream; they live as long as the store. */
struct mirror_prefetches *mirror_prefetches_of(struct store *store, unsigned index);

#endif
