/* A version of a repository: the files of a folder at one moment, and the commit that names them.
 *
 * The commit is the SHA-1 of all paths and SHA-256s, in order, so that servers with the same files
 * name the same commit. While some SHA-256 is still being found it is that of all paths and
 * versions of files: a provisional commit, which goes on to name this version afterwards. */
#ifndef HUB_VERSION_H
#define HUB_VERSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hub/hub_names.h"
#include "store/store.h"

struct model_view;
struct server;

/* A SHA-256 or SHA-1 in hex, or "v" and a number, and NUL: what clients name files by. */
#define HUB_ETAG_SIZE 65

struct hub_file {
    const char *path; /* below the repository */
    struct file_identity identity;
    char etag[HUB_ETAG_SIZE];
    bool has_sha256;
    /* The etag is the file's git SHA-1: so the Hub's own cache calls small files. */
    bool is_git;
    /* The SHA-256 is what a Hub's cache calls it, and nobody has looked at the bytes. */
    bool is_stated;
    uint8_t sha256[32];
    /* The model that the file is a view of, with the model's identity but its own size; NULL: it is
     * stored. Borrowed from the version. */
    struct model_view *view;
    uint32_t part; /* of the view */
};

/* Immutable and reference-counted. */
struct hub_version {
    atomic_uint references;
    char commit[HUB_COMMIT_SIZE];
    char provisional[HUB_COMMIT_SIZE]; /* names it too */
    bool is_provisional;
    /* So few bytes are to be hashed until it is not that a request can wait for them. */
    bool can_be_final;
    bool is_outdated;  /* a file has changed while the version was made */
    bool is_stated;    /* the commit is what a Hub's cache calls it */
    int64_t listed_ms; /* clock_ms, before it was */
    char *folder;      /* of the files, below the root */
    bool has_folders;  /* with or without files */
    size_t count;
    struct hub_file *files; /* by path, bytewise */
    uint64_t size_bytes;    /* of all files */
    int64_t modified_ns;    /* of the youngest file; 0: there is none */
    /* private */
    char *paths;
    struct model_view **views; /* also of models that have none */
    size_t view_count;
    char **view_paths;
    size_t view_path_count;
};

/* What is to be listed. */
struct hub_listing {
    const char *folder;
    /* What names the version according to the layout of a Hub's cache, in which blobs is the folder
     * of its contents; or NULL both. */
    const char *commit;
    const char *blobs;
    const struct hub_version *previous; /* of the same folder, or NULL */
    /* Whether to hash what a request can wait for, not only what takes no time. */
    bool may_take_long;
};

/* Lists a folder, with views of its models unless they are off; not of a commit of a Hub's cache,
 * which would not say what they are made of. On a worker. ZT_NOT_FOUND: there is no such folder;
 * ZT_NO_MEMORY, ZT_LIMIT, ZT_IO, ZT_UNAVAILABLE. */
enum zt_status hub_version_make(struct server *server, const struct hub_listing *wanted,
                                struct hub_version **out_version, struct zt_error *error);

/* The version of a repository that has no files so far. ZT_NO_MEMORY. */
enum zt_status hub_version_make_empty(const char *folder, struct hub_version **out_version,
                                      struct zt_error *error);

/* Whether a folder is there, whatever is in it: ZT_OK, or ZT_NOT_FOUND and the like. On a
 * worker. */
enum zt_status hub_folder_look(struct server *server, const char *folder, struct zt_error *error);

struct hub_version *hub_version_hold(struct hub_version *version);
/* Takes NULL; void * for request_hold. */
void hub_version_release(void *version);

/* Whether this commit names it. */
bool hub_version_is(const struct hub_version *version, struct zt_text commit);

/* NULL if the version has no such file. */
const struct hub_file *hub_version_find(const struct hub_version *version, struct zt_text path);

/* The index of the first file at or behind a path, in order. */
size_t hub_version_seek(const struct hub_version *version, struct zt_text path);

/* The file as git and LFS name it: its git SHA-1, or that of the pointer to its SHA-256, or of its
 * etag if neither is known. length: of the pointer, 0 if there is none. */
void hub_file_oid(const struct hub_file *file, char out_oid[HUB_COMMIT_SIZE], size_t *out_length);

#endif
