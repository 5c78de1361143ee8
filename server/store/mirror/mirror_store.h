/* The structures that the files of this room share. */
#ifndef STORE_MIRROR_MIRROR_STORE_H
#define STORE_MIRROR_MIRROR_STORE_H

#include "config/config.h"
#include "store/mirror/mirror.h"
#include "store/mirror/mirror_changes.h"
#include "store/mirror/mirror_index.h"
#include "store/mirror/mirror_name.h"
#include "store/mirror/mirror_turns.h"

struct cache;
struct remote;

/* One upstream with everything that is kept of it. */
struct mirror_upstream {
    struct mirror *mirror;
    const struct config_upstream *config; /* its numbers and flags may change */
    struct remote *remote;
    struct upstream *upstream;
    struct cache *cache;
    struct mirror_files *files;
    struct mirror_prefetches *prefetches;
    atomic_uint_least64_t wrong_files;
    atomic_uint_least64_t saved_bytes; /* as last reported */
    atomic_uint_least64_t hits;        /* files that were verified when they were opened */
    atomic_uint_least64_t misses;
};

/* Names that were looked for by the catalog, as hashes. */
#define MIRROR_SOUGHT 256u

/* Unknown repositories, and files of known ones, whose upstream did not answer. */
#define MIRROR_FAILURES 64u
/* How long a failure explains why a name is not found. */
#define MIRROR_FAILURE_MS 10000

struct mirror_failure {
    char name[MODEL_PATH_SIZE]; /* of the repository, or of the file's model */
    int64_t at_ms;              /* 0: none */
    struct zt_error error;
};

struct mirror {
    struct store base; /* first; base.inner is the store that it adds to */
    struct store_ops ops;
    struct store_search_ops search;
    struct store_claim_ops claims;
    struct mirror_upstream upstreams[CONFIG_UPSTREAMS_MAX];
    const char *urls[CONFIG_UPSTREAMS_MAX];
    unsigned upstream_count;
    int64_t opened_ms;
    struct mirror_index index;
    struct mirror_changes changes;
    struct workers *waiters;
    struct mirror_turns turns;
    pthread_mutex_t sought_lock;                     /* guards what follows */
    struct mirror_failure failures[MIRROR_FAILURES]; /* a ring */
    unsigned next_failure;
    struct {
        uint64_t hash;
        int64_t at_ms;
    } sought[MIRROR_SOUGHT], resolved[MIRROR_SOUGHT]; /* names of models; repositories */
    struct mirror_resolving *resolving;
    unsigned resolving_count;
};

static inline struct mirror *mirror_of(struct store *store)
{
    return (struct mirror *)store;
}

/* The index is locked even by those who only read. */
static inline struct mirror *mirror_of_const(const struct store *store)
{
    union {
        const struct store *given;
        struct mirror *own;
    } both = {.given = store};

    return both.own;
}

/* A file or folder of a mirrored repository. */
struct mirror_target {
    struct mirror_name name;
    struct mirror_version *version; /* a reference; NULL: not mirrored */
    unsigned upstream;
    char base[MODEL_PATH_SIZE]; /* the repository's folder in the store */
    struct zt_text path;        /* in the repository; borrowed */
};

/* Finds the mirrored repository of a path, and asks its upstream if necessary. is_file: the path is
 * a file's, so its last part is not a repository. Returns ZT_OK without a version if the path
 * belongs to the inner store. Otherwise returns ZT_STALE, ZT_UNAVAILABLE or ZT_NO_MEMORY. May
 * wait. */
enum zt_status mirror_find(struct mirror *mirror, const char *path, bool is_file,
                           struct mirror_target *out_target, struct zt_error *error);
/* Does the same without asking or waiting, using known versions. Returns false if the path belongs
 * to no known version of a mirrored repository. */
bool mirror_find_known(struct mirror *mirror, const char *path, struct mirror_target *out_target);
/* Splits a path at a repository that is known to be mirrored. Returns the number of its upstream,
 * or UINT_MAX if there is none. Never waits. */
unsigned mirror_split_known(struct mirror *mirror, struct zt_text path,
                            struct mirror_name *out_name);
/* Returns true if the path belongs to a repository that is known to be mirrored. Never waits. */
bool mirror_is_known(struct mirror *mirror, struct zt_text path);

/* Returns a reference to a known commit of a repository (empty: the current one), or NULL.
 * out_upstream: set to the number of its upstream; may be NULL. Never waits. */
struct mirror_version *mirror_hold_known(struct mirror *mirror, const char *repository,
                                         const char *commit, unsigned *out_upstream);

/* A revision of a mirrored repository. */
struct mirror_found {
    struct mirror_version *version; /* a reference */
    bool is_current;
    unsigned upstream;
};

/* Finds a revision of a repository by name, as store_revision_ops.find does. */
enum zt_status mirror_find_revision(struct mirror *mirror, const char *repository,
                                    struct zt_text revision, struct mirror_found *out_found,
                                    struct zt_error *error);

/* Returns the latest failure to look up an unknown repository or to read a model, unless it is old
 * or a later lookup succeeded. */
bool mirror_find_failure(struct mirror *mirror, const char *name, struct zt_error *out_error);

/* Asks in the background whether main has moved, if that is due. Never waits. */
void mirror_recheck(struct mirror *mirror, const char *repository);

/* Keeps or clears the failure of a repository or model. error: NULL after a success. */
void mirror_keep_failure(struct mirror *mirror, const char *name, const struct zt_error *error);

/* Lets the catalog open a file again that it may have failed to open, because all of it is here
 * now. Never waits. */
void mirror_seek_again(struct mirror *mirror, const struct upstream_place *place);

/* Returns true, and the name of the repository that a model would belong to, if its main branch is
 * unknown and an upstream may be asked. Never waits. */
bool mirror_unknown_repository(struct mirror *mirror, struct zt_text model,
                               char out_repository[UPSTREAM_REPOSITORY_SIZE]);

/* Returns the number of the upstream of a known repository, or UINT_MAX. */
unsigned mirror_known_upstream(struct mirror *mirror, struct zt_text name);
/* Returns the number of the first upstream whose globs match, or UINT_MAX. */
unsigned mirror_matching_upstream(const struct mirror *mirror, struct zt_text name);

/* The next request for this branch asks the upstream again. */
void mirror_doubt(struct mirror *mirror, const char *repository, struct zt_text revision);

/* Reports to the catalog the files of a version that it follows. Accepts NULL. */
void mirror_note_changes(struct mirror *mirror, const char *repository,
                         const struct mirror_version *version);

/* Forgets a repository, because the inner store has a folder of its name. */
void mirror_give_up(struct mirror *mirror, const char *repository);

/* Describes a file of a target; borrows its texts. */
struct mirror_place mirror_place_of(struct mirror *mirror, const struct mirror_target *target,
                                    const struct mirror_entry *entry);

/* The operations of store.h. */
bool mirror_resolve(struct store *store, struct zt_text name, struct waiter *waiter);
enum zt_status mirror_walk(struct store *store, const char *folder, bool is_deep, store_visit visit,
                           void *context, struct zt_error *error);
extern const struct store_revision_ops mirror_revision_ops;

/* Fill in the operations that read, and those that only the inner store carries out. */
void mirror_set_ops(struct mirror *mirror);
void mirror_set_inner_ops(struct mirror *mirror);

#endif
