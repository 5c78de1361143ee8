/* What the files of the local store share: the structure, and opening paths without leaving the root. */
#ifndef MODEL_STORE_LOCAL_H
#define MODEL_STORE_LOCAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "model/store.h"
#include "model/store_watch.h"

/* Hidden files in the root while an upload lives; what a crash left of them is removed when the store is opened. */
#define STORE_UPLOAD_PREFIX  ".ztserve-upload-"
#define STORE_PUBLISH_PREFIX ".ztserve-publish-"
/* Either prefix, 16 hex digits, NUL. */
#define STORE_HIDDEN_NAME_SIZE 40

/* A part of a path is copied out to open it. */
#define STORE_PATH_SIZE 1024

struct local_store {
    struct store base;
    char *root_path;
    /* The folder's descriptor. Its number never changes: when the folder was replaced, the new one is put in its place.
     */
    int root;
    uint64_t reserve_bytes;
    struct store_watch watch;
    /* Told once each, so that a scan every other second does not fill the log. */
    atomic_bool told_missing;
    atomic_bool told_crowded;
    /* store_list.c's: files of the last list whose names do not fit, and which names were told. */
    atomic_size_t misfits;
    uint64_t told_misfits;
};

/* A path of this store: relative, clean, short enough. */
bool store_path_is_clean(const char *path);

/* Opens a path below the root, with open's flags; symbolic links are followed as long as they stay below it. -1 with
 * errno: ENOENT for what leads out too. */
int store_path_open(int root, const char *path, int flags);

/* Opens the folder a path lies in; *out_base is its last part (within path). With make, folders that are missing are
 * made durably. -1 with errno. */
int store_path_open_parent(int root, const char *path, bool make, const char **out_base);

/* For tests: behaves as on a kernel, or in a sandbox, without openat2. */
void store_path_forbid_openat2(bool forbidden);

/* "<prefix>0123456789abcdef", from random bytes. */
void store_hidden_name(const char *prefix, char out_name[STORE_HIDDEN_NAME_SIZE]);

struct file_identity store_identity_from(const struct stat *facts);

/* Fails with errno's words behind what was attempted; ENOSPC and EDQUOT are ZT_LIMIT. */
enum zt_status store_fail_errno(struct zt_error *error, int os_error, const char *what);

/* store_list.c */
enum zt_status store_local_list(struct store *store,
                                bool (*visit)(void *context, const char *path, const struct file_identity *identity),
                                void *context, struct zt_error *error);

/* store_upload.c */
enum zt_status store_local_create(struct store *store, uint64_t expected_bytes, struct stored_upload **out_upload,
                                  struct zt_error *error);
enum zt_status store_local_write_at(struct stored_upload *upload, uint64_t offset, const void *bytes, size_t length,
                                    struct zt_error *error);
enum zt_status store_local_read_back(struct stored_upload *upload, struct zt_source **out_source,
                                     struct zt_error *error);
enum zt_status store_local_publish(struct stored_upload *upload, const char *path, bool replace,
                                   struct zt_error *error);
void store_local_abandon(struct stored_upload *upload);
/* Removes what crashes left in the root and no living process holds. */
void store_local_sweep(int root);

#endif
