/* Shared by the files of the local store: its structures, and functions that stay within the
 * root. */
#ifndef STORE_STORE_LOCAL_H
#define STORE_STORE_LOCAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "store/staging.h"
#include "store/store.h"
#include "store/store_path.h"
#include "store/store_skipped.h"
#include "store/store_watch.h"

/* Maximum number of paths: two for each withheld file, including files that later settings name. */
#define STORE_WITHHELD_MAX 64

/* Only grows. */
struct own_paths {
    char *paths[STORE_WITHHELD_MAX];
    atomic_uint count;
};

/* The server's own files, as they are now. */
struct own_files {
    unsigned count;
    struct {
        dev_t device;
        ino_t inode;
    } files[STORE_WITHHELD_MAX];
};

enum store_ownership { STORE_NOT_OWNED, STORE_OWNED_ALONE, STORE_OWNED_SHARED };

/* The longest name of a user that useradd makes, and NUL. */
#define STORE_USER_SIZE 33

struct local_store {
    struct store base;
    char user[STORE_USER_SIZE]; /* whose rights decide which files can be read; a number if it has
                                 * no name */
    enum store_ownership ownership; /* constant once there are other threads */
    char *root_path;
    /* The folder's descriptor. Its number never changes: if the folder is replaced, the new one
     * gets the same number. */
    int root;
    struct staging staging; /* in the root */
    struct store_watch *watch;
    bool has_links; /* store_list.c: the last list met symbolic links */
    /* Each warning is logged once, so that scans every other second do not fill the log. */
    atomic_bool logged_missing;
    atomic_bool logged_replaced;
    atomic_bool logged_crowded;
    /* store_list.c: what it leaves out, and how many files of the last list have unusable names. */
    struct skipped skipped;
    atomic_size_t misnamed_files;
    /* store_withheld.c. withheld has paths below the root, own has the paths of all such files. */
    struct own_paths withheld;
    struct own_paths own;
};

/* Returns true if a path is withheld, or is below a withheld folder (store_local_withhold). Links
 * are not followed, so this check alone does not protect a file. */
bool store_local_withholds(const struct local_store *local, const char *path);

/* Does the same for the target of a path when its links are followed. The target need not exist. */
bool store_local_withholds_place(const struct local_store *local, const char *path);

/* Looks up the server's own files. */
void own_files_find(const struct local_store *local, struct own_files *out_own);
bool own_files_have(const struct own_files *own, const struct stat *info);

/* Returns true if an open file or folder (also with O_PATH) is withheld, or is below a withheld
 * folder, by any path. */
bool store_local_withholds_opened(const struct local_store *local, const struct own_files *own,
                                  int descriptor, const struct stat *info);

/* Returns true if a name in an open folder is withheld. It need not exist. */
bool store_local_withholds_name(const struct local_store *local, int folder, const char *base);

void store_withheld_free(struct local_store *local);

struct file_identity store_identity_from(const struct stat *info);

/* Opens the folder that is a root. Returns ZT_NOT_FOUND or ZT_IO, with a message for the user at
 * the command line. */
enum zt_status store_root_open(const char *root, int *out_descriptor, struct zt_error *error);

/* store_list.c */
enum zt_status store_local_list(struct store *store, store_visit visit, void *context,
                                struct zt_error *error);

/* Visits the files below one new folder, and watches its folders. *out_unsure: the caller must list
 * everything, because the walk met something that it cannot judge from a part. */
enum zt_status store_local_list_new(struct local_store *local, const char *folder,
                                    store_visit visit, void *context, bool *out_unsure,
                                    struct zt_error *error);
/* store_walk.c: the operation `walk` of store.h. */
enum zt_status store_local_walk(struct store *store, const char *folder, bool is_deep,
                                store_visit visit, void *context, struct zt_error *error);
/* store_changes.c: the operation `look` of store.h. */
enum zt_status store_local_list_changes(struct store *store, store_visit visit, void *context,
                                        bool *out_whole, struct zt_error *error);

/* store_publish.c */
enum zt_status store_local_publish(struct store *store, struct staged_file *file, const char *path,
                                   const struct store_expected *expected, struct zt_error *error);
enum zt_status store_local_settle(struct store *store, const char *path, struct zt_error *error);
/* Gives an open file a name, also an unnamed one. Returns false with errno. */
bool store_link_open(int descriptor, int folder, const char *name);
/* store_place.c */
enum zt_status store_local_may_publish(struct store *store, const char *path,
                                       const struct store_leaving *leaving, struct zt_error *error);
void store_local_find_links(struct store *store, const char *folder, struct store_links *out_links);
enum zt_status store_local_make_folder(struct store *store, const char *path,
                                       struct zt_error *error);
/* store_own.c: the operation `exclude` of store.h. */
enum zt_status store_local_exclude(struct store *store, const char *name, int64_t by_ms,
                                   int *out_lock, struct zt_error *error);
/* Locks the folder that has replaced the root. */
void store_own_again(const struct local_store *local);
/* store_emptied.c */
void store_local_remove_emptied(struct store *store, const char *path, size_t kept_length);
/* Returns true if a folder, not a link to one, will become empty with all its subfolders: all their
 * files are leaving, and each folder has at least one. */
bool store_folder_empties(const struct local_store *local, const char *path,
                          const struct store_leaving *leaving);

#endif
