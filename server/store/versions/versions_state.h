/* Shared by the files of the store of versions: its structure, and the files of commits. */
#ifndef STORE_VERSIONS_VERSIONS_STATE_H
#define STORE_VERSIONS_VERSIONS_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/versions/versions_store.h"
#include "zt/source.h"

/* Number of names of models whose last search in vain is remembered. */
#define VERSIONS_SOUGHT 256

/* Number of kept files that are known to be right although their times differ from the commit's. */
#define VERSIONS_CHECKED 256

struct versions_checked {
    struct file_identity identity;
    uint8_t sha256[32];
};

struct versions {
    struct store base; /* first */
    struct store_ops ops;
    struct store_claim_ops claims;
    struct versions_options options;
    struct versions_sharing *sharing;                  /* NULL: none */
    pthread_mutex_t lock;                              /* protects what follows */
    struct versions_checked checked[VERSIONS_CHECKED]; /* a ring */
    unsigned next_checked;
    struct {
        uint64_t hash;
        int64_t at_ms;
    } sought[VERSIONS_SOUGHT];
};

static inline struct versions *versions_of(struct store *store)
{
    return (struct versions *)store;
}

/* --- paths of commits (versions_path.c) --- */

/* A file or folder of a commit. */
struct versions_place {
    struct history_repo repo;
    char commit[HISTORY_COMMIT_SIZE];
    struct zt_text base; /* REPOSITORY@COMMIT; borrowed from the path */
    struct zt_text rest;
    const struct history_tree *tree; /* held until versions_place_release */
};

/* Returns ZT_NOT_FOUND for every path that does not begin with a repository and a commit of it. */
enum zt_status versions_place_find(struct versions *versions, struct zt_text path,
                                   struct versions_place *out_place, struct zt_error *error);
void versions_place_release(struct versions_place *place);

/* Returns true if the repository of the path has that commit, or its log was not read yet and
 * cannot be now. From memory once it was read. */
bool versions_knows(struct versions *versions, struct zt_text path);

/* The identity of a commit's file: its bytes never change, wherever they are. */
struct file_identity versions_identity(const struct history_file *file);

/* Writes the path that the file has in the folder. Returns false if it is too long. */
bool versions_current_path(const struct history_repo *repo, const struct history_file *file,
                           char out_path[MODEL_PATH_SIZE]);

/* Opens a kept file (versions_check.c). Returns ZT_NOT_FOUND; ZT_IO if its bytes are not those of
 * the commit. */
enum zt_status versions_open_kept(struct versions *versions, const struct history_file *file,
                                  struct zt_source **out_source, struct file_identity *out_identity,
                                  struct zt_error *error);

/* --- files of commits (versions_source.c) --- */

/* Opens a file of a commit: a kept file, or the folder's if it is the same. */
enum zt_status versions_open_file(struct versions *versions, const struct versions_place *place,
                                  const struct history_file *file, struct zt_source **out_source,
                                  struct zt_error *error);
/* Returns false if the source is not one of these files. A file that was written to gets a size
 * that no file has; a file whose commit was forgotten gets a time of change that no file has. */
bool versions_source_identity(struct versions *versions, struct zt_source *source,
                              struct file_identity *out_identity);

/* --- extents (versions_share.c) --- */

struct versions_sharing *versions_sharing_new(void);
/* Accepts NULL. */
void versions_sharing_free(struct versions_sharing *sharing);
/* Notes that a path has another file now; the earlier one, of this size, was kept. */
void versions_share_later(struct versions *versions, const char *path, uint64_t size_bytes,
                          const uint8_t sha256[32]);
/* For versions_may_share and versions_share. */
bool versions_has_pairs(const struct versions *versions);
bool versions_share_pairs(struct versions *versions, uint64_t most_bytes, const atomic_bool *stop);

/* --- operations (versions_walk.c) --- */

enum zt_status versions_walk(struct store *store, const char *folder, bool is_deep,
                             store_visit visit, void *context, struct zt_error *error);
bool versions_may_look_up(struct store *store, struct zt_text name);
enum zt_status versions_look_up(struct store *store, struct zt_text name, store_visit visit,
                                void *context, struct zt_error *error);

#endif
