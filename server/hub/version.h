/* A version of a repository: the files of a folder at one moment, and the commit that names them.
 *
 * The commit is the SHA-1 of all paths and SHA-256s, in order, so that servers with the same files
 * have the same commit. With views, it consists of the first HUB_STORED_DIGITS of the commit of the
 * stored files, by which the history finds them, and the beginning of a SHA-1 over that commit and
 * the views. Until all SHA-256s are known, the commit is provisional: it is computed from all paths
 * and file identities. It remains valid for this version afterwards. */
#ifndef HUB_VERSION_H
#define HUB_VERSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hub/hub_names.h"
#include "store/store.h"

struct model_view;
struct server;

/* How many digits a commit shares with the commit of its stored files. */
#define HUB_STORED_DIGITS 16

/* The name by which clients know a file: a SHA-256 or SHA-1 in hex, or "v" and a number; and
 * NUL. */
#define HUB_ETAG_SIZE 65

struct hub_file {
    const char *path; /* relative to the repository */
    struct file_identity identity;
    char etag[HUB_ETAG_SIZE];
    bool has_sha256;
    /* The etag is the file's git SHA-1, which the Hub's own cache uses for small files. */
    bool is_git;
    /* The SHA-256 comes from a file name in a Hub client's cache, or from the upstream of a
     * mirrored repository; the bytes were not hashed. */
    bool is_stated;
    uint8_t sha256[32];
    /* The view that the file belongs to. It then has the model's identity, except for its size.
     * NULL: a stored file. Borrowed from the version. */
    struct model_view *view;
    uint32_t part; /* of the view */
};

/* Immutable and reference-counted. */
struct hub_version {
    atomic_uint references;
    char commit[HUB_COMMIT_SIZE];
    char provisional[HUB_COMMIT_SIZE]; /* an additional, valid name */
    char stored[HUB_COMMIT_SIZE];      /* the commit without views; empty if not known */
    bool is_provisional;
    /* So few bytes are left to hash that a request can wait for them. */
    bool can_be_final;
    bool is_outdated;  /* a file has changed while the version was made */
    bool is_stated;    /* the commit comes from a Hub client's cache or from an upstream */
    bool is_mirrored;  /* from an upstream */
    bool is_kept;      /* from the history, and immutable */
    int64_t listed_ms; /* clock_ms before the listing */
    char *folder;      /* the folder below the root */
    bool has_folders;  /* with or without files */
    size_t count;
    struct hub_file *files; /* by path, bytewise */
    uint64_t size_bytes;    /* of all files */
    int64_t modified_ns;    /* of the youngest file; 0: there are no files */
    /* private */
    char *paths;
    struct model_view **views; /* includes models without views */
    size_t view_count;
    char **view_paths;
    size_t view_path_count;
};

/* Describes what to list. */
struct hub_listing {
    const char *folder;
    /* For a Hub client's cache: the commit, and the folder of its blobs. Otherwise both are
     * NULL. */
    const char *commit;
    const char *blobs;
    /* A commit of a mirrored repository: commit is set, and the upstream states the hashes. */
    bool is_mirrored;
    /* A commit that the history keeps. If commit is set, there are no views. */
    bool is_kept;
    const struct hub_version *previous; /* of the same folder, or NULL */
    /* Allows hashing that takes time but that a request can wait for; otherwise only quick
     * hashing. */
    bool may_take_long;
};

/* Lists a folder, with views of its models unless they are off. If the commit is given, there are
 * no views, because the commit does not cover them. On a worker. Returns ZT_NOT_FOUND if there is
 * no such folder; ZT_NO_MEMORY, ZT_LIMIT, ZT_IO, ZT_UNAVAILABLE. */
enum zt_status hub_version_make(struct server *server, const struct hub_listing *wanted,
                                struct hub_version **out_version, struct zt_error *error);

/* Makes the version of a repository without files. Returns ZT_NO_MEMORY. */
enum zt_status hub_version_make_empty(const char *folder, struct hub_version **out_version,
                                      struct zt_error *error);

/* Checks that a folder exists, with any content: returns ZT_OK, ZT_NOT_FOUND or another error. On a
 * worker. */
enum zt_status hub_folder_check(struct server *server, const char *folder, struct zt_error *error);

struct hub_version *hub_version_hold(struct hub_version *version);
/* Accepts NULL. Takes a void pointer for request_hold. */
void hub_version_release(void *version);

/* Returns true if this commit names the version. */
bool hub_version_is(const struct hub_version *version, struct zt_text commit);

/* Returns NULL if the version has no such file. */
const struct hub_file *hub_version_find(const struct hub_version *version, struct zt_text path);

/* Returns the index of the first file whose path is equal or greater. */
size_t hub_version_lower_bound(const struct hub_version *version, struct zt_text path);

/* Writes the file's name in git and LFS: its git SHA-1, or the git SHA-1 of the pointer to its
 * SHA-256, or to its etag if neither is known. length is the pointer's, 0 if there is none. */
void hub_file_oid(const struct hub_file *file, char out_oid[HUB_COMMIT_SIZE], size_t *out_length);

#endif
