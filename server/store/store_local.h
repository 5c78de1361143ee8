/* Shared by the files of the local store: its structures, and opening paths without leaving the
 * root. */
#ifndef STORE_STORE_LOCAL_H
#define STORE_STORE_LOCAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "store/store.h"
#include "store/store_skipped.h"
#include "store/store_watch.h"

/* Prefixes of hidden files in the root, which exist during an upload. Opening the store removes
 * those that a crash left behind. */
#define STORE_UPLOAD_PREFIX  ".ztserve-upload-"
#define STORE_PUBLISH_PREFIX ".ztserve-publish-"
/* Either prefix, 16 hex digits, NUL. */
#define STORE_HIDDEN_NAME_SIZE 40
/* The hidden folder of kept uploads. Each has a folder in it, named by its id (32 hex digits) and
 * locked as long as its process lives. Anything else in it is removed. */
#define STORE_KEPT_FOLDER   ".ztserve-uploads"
#define STORE_KEPT_ID_SIZE  33
#define STORE_KEPT_NAME_MAX 64

/* So often a folder is made again that somebody else removes at the same time: it takes a removal
 * for each, so more in a row are no accident. */
#define STORE_FOLDER_TRIES_MAX 8

/* Longer paths are not opened. */
#define STORE_PATH_SIZE MODEL_PATH_SIZE

/* The place of a kept upload that belongs to this process: the descriptor holds the lock. */
struct kept_place {
    struct kept_place *next;
    int folder;
    char id[STORE_KEPT_ID_SIZE];
};

/* Paths: two for each that is withheld. */
#define STORE_WITHHELD_MAX 16

struct local_store {
    struct store base;
    char *root_path;
    /* The folder's descriptor. Its number never changes: if the folder is replaced, the new one
     * gets the same number. */
    int root;
    _Atomic uint64_t reserve_bytes;
    struct store_watch watch;
    bool has_links; /* store_list.c's: the last list met symbolic links */
    /* Each is logged once, so that scans every other second do not fill the log. */
    atomic_bool logged_missing;
    atomic_bool logged_replaced;
    atomic_bool logged_crowded;
    /* store_list.c's: what it leaves out, and how many files of the last list have unusable
     * names. */
    struct skipped skipped;
    atomic_size_t misfits;
    pthread_mutex_t places_lock;
    struct kept_place *places;
    /* store_withheld.c's: constant once there are other threads. */
    char *withheld[STORE_WITHHELD_MAX];
    unsigned withheld_count;
};

/* A file that is not published yet: unnamed, hidden in the root, or in the place of a kept
 * upload. */
struct local_upload {
    struct stored_upload base;
    int descriptor;
    int folder;                           /* a descriptor of a kept upload's place; else -1 */
    char hidden[STORE_KEPT_NAME_MAX + 1]; /* in the root or the place; empty for an unnamed file */
    bool is_named_durably;                /* of a kept upload: the place has been synced */
    atomic_bool is_doubtful;              /* a write-out failed: later syncs are not believed */
    struct zt_source *read_back;
    atomic_uint_fast64_t written;
    atomic_uint_fast64_t next_look;
};

static inline struct local_upload *local_upload_of(struct stored_upload *upload)
{
    return (struct local_upload *)upload;
}

static inline struct local_store *local_store_of(const struct local_upload *upload)
{
    return (struct local_store *)upload->base.store;
}

/* Whether a text can be a path of this store: relative, without empty, "." and ".." parts, and not
 * too long. */
bool store_path_is_clean(const char *path);

/* Whether a path is one that is withheld, or lies in a folder that is (store_local_withhold). */
bool store_local_withholds(const struct local_store *local, const char *path);

/* Opens a path below the root, with open's flags. Symbolic links are followed as long as they stay
 * below it. -1 with errno: ENOENT also for links that leave it. */
int store_path_open(int root, const char *path, int flags);

/* Where a path leads when its links are followed, as a path of its own below the root ("": the
 * root). False: out of the root, nowhere, or the system does not tell. */
bool store_path_resolve(int root, const char *path, char out_path[STORE_PATH_SIZE]);

/* Opens a regular file below the root, with open's flags. What else has the name (a device, a FIFO)
 * is not opened, not even for a moment, whatever takes its place meanwhile. -1 with errno; ENOENT
 * for what is not a regular file. With O_NOFOLLOW, symbolic links are not regular files. */
int store_path_open_file(int root, const char *path, int flags);

/* Whether something has this name that is neither a folder nor a file that store_path_open_file
 * would open: a FIFO, a socket, a device, a link that leads out of the root or nowhere. */
bool store_path_is_other(int root, const char *path);

/* Opens the folder that a path is in; *out_base is the path's last part. With make, missing folders
 * are made durably, again if they are removed meanwhile. -1 with errno. */
int store_path_open_parent(int root, const char *path, bool make, const char **out_base);

/* Makes every folder of a path durably, from the root down, unless something has the name already.
 * False with errno. */
bool store_path_make_folders(int root, const char *path);

/* "<prefix>0123456789abcdef", from random bytes. */
void store_hidden_name(const char *prefix, char out_name[STORE_HIDDEN_NAME_SIZE]);

struct file_identity store_identity_from(const struct stat *info);

/* Fails with what ("cannot write") and the text of os_error. ENOSPC, EDQUOT and EFBIG are
 * ZT_LIMIT. */
enum zt_status store_fail_errno(struct zt_error *error, int os_error, const char *what);

/* store_list.c */
enum zt_status store_local_list(struct store *store,
                                bool (*visit)(void *context, const char *path,
                                              const struct file_identity *identity),
                                void *context, struct zt_error *error);

/* Visits the files below one folder, which is new, and watches its folders. *out_unsure: something
 * was met that only a list of everything treats rightly. */
enum zt_status store_local_list_new(struct local_store *local, const char *folder,
                                    bool (*visit)(void *context, const char *path,
                                                  const struct file_identity *identity),
                                    void *context, bool *out_unsure, struct zt_error *error);
/* store_walk.c: the operation `walk` of store.h. */
enum zt_status store_local_walk(struct store *store, const char *folder, bool is_deep,
                                bool (*visit)(void *context, const char *path,
                                              const struct file_identity *identity),
                                void *context, struct zt_error *error);
/* store_look.c: the operation `look` of store.h. */
enum zt_status store_local_look(struct store *store,
                                bool (*visit)(void *context, const char *path,
                                              const struct file_identity *identity),
                                void *context, bool *out_whole, struct zt_error *error);

/* store_upload.c */
enum zt_status store_local_create(struct store *store, uint64_t expected_bytes,
                                  struct stored_upload **out_upload, struct zt_error *error);
enum zt_status store_local_write_at(struct stored_upload *upload, uint64_t offset,
                                    const void *bytes, size_t length, struct zt_error *error);
enum zt_status store_local_read_back(struct stored_upload *upload, struct zt_source **out_source,
                                     struct zt_error *error);
enum zt_status store_local_publish(struct stored_upload *upload, const char *path,
                                   const struct store_expected *expected, struct zt_error *error);
void store_local_abandon(struct stored_upload *upload);
enum zt_status store_local_sync(struct stored_upload *upload, struct zt_error *error);
enum zt_status store_local_truncate(struct stored_upload *upload, uint64_t length,
                                    struct zt_error *error);
uint64_t store_local_length(struct stored_upload *upload);
/* Ends an upload whose bytes are needed no longer, and removes its file even if it is a kept
 * one. */
void store_local_finish(struct stored_upload *upload);
bool store_local_discard(struct stored_upload *upload, uint64_t offset, uint64_t length);
/* store_place.c */
enum zt_status store_local_may_publish(struct store *store, const char *path,
                                       const struct store_leaving *leaving, struct zt_error *error);
void store_local_see_links(struct store *store, const char *folder, struct store_links *out_links);
enum zt_status store_local_make_folder(struct store *store, const char *path,
                                       struct zt_error *error);
/* store_emptied.c */
void store_local_remove_emptied(struct store *store, const char *path, size_t kept_length);
/* Whether a folder, and no link to one, will be empty, and with it all folders in it: some file in
 * each is leaving, and all are. */
bool store_folder_empties(const struct local_store *local, const char *path,
                          const struct store_leaving *leaving);
/* store_copy.c */
enum zt_status store_local_copy(struct stored_upload *from, uint64_t from_offset,
                                struct stored_upload *to, uint64_t to_offset, uint64_t length,
                                struct zt_error *error);
/* The operation `space` of store.h. */
enum zt_status store_space(const struct store *store, uint64_t *out_bytes, struct zt_error *error);
/* Whether expected_bytes (UINT64_MAX: not known) fit. ZT_LIMIT, ZT_IO. */
enum zt_status store_check_space(const struct local_store *local, uint64_t expected_bytes,
                                 struct zt_error *error);
/* Counts written bytes, and checks the free space now and then. */
enum zt_status store_account(struct local_upload *upload, uint64_t length, struct zt_error *error);
/* Makes an upload of an open file and takes over the descriptor, which is closed on failure. */
enum zt_status store_upload_new(struct local_store *local, int descriptor,
                                struct local_upload **out_upload, struct zt_error *error);

/* store_kept.c */
enum zt_status store_local_keep(struct store *store, const char *id, struct zt_error *error);
enum zt_status store_local_kept_create(struct store *store, const char *id, const char *name,
                                       uint64_t expected_bytes, struct stored_upload **out_upload,
                                       struct zt_error *error);
enum zt_status store_local_kept_open(struct store *store, const char *id, const char *name,
                                     struct stored_upload **out_upload, struct zt_error *error);
enum zt_status store_local_kept_remove(struct store *store, const char *id, const char *name,
                                       struct zt_error *error);
enum zt_status store_local_kept_drop(struct store *store, const char *id, struct zt_error *error);
enum zt_status store_local_kept_list(struct store *store,
                                     bool (*visit)(void *context, const char *id), void *context,
                                     struct zt_error *error);
/* Makes the place of an upload, and the upload's name in it, durable. */
enum zt_status store_kept_sync_place(const struct local_upload *upload, struct zt_error *error);
/* Releases the places, which stay in the file system. */
void store_kept_close(struct local_store *local);

#endif
