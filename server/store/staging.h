/* Uploaded files that are not published yet. They are always local. If the store is a folder, they
 * are in its root, so that publishing is a rename; for a bucket, they are in the cache's folder.
 *
 * An unnamed file ends with its process. A file in a folder of the staging area outlives the
 * request and the process, until it is published or the folder is dropped. Such a folder is named
 * by an id of 32 hex digits; its files have names of [a-z0-9.-] of at most 64 bytes. */
#ifndef STORE_STAGING_H
#define STORE_STAGING_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "disk/disk_space.h"
#include "zt/digest.h"
#include "zt/source.h"

struct zt_progress;

/* The prefixes of hidden files in the staging area, and of hidden files that publication makes. */
#define STAGING_FILE_PREFIX    ".ztserve-upload-"
#define STAGING_PUBLISH_PREFIX ".ztserve-publish-"
/* Either prefix, 16 hex digits, NUL. */
#define STAGING_HIDDEN_NAME_SIZE 40
/* The hidden folder that contains the folders of uploads. Everything else in it is removed. */
#define STAGING_FOLDERS  ".ztserve-uploads"
#define STAGING_ID_SIZE  33
#define STAGING_NAME_MAX 64

struct owned_folder;

struct staging {
    int root; /* borrowed */
    /* The area is not in the models' root. If it cannot be written to, it counts as full, and the
     * models are not reported as broken. */
    bool is_beside_cache;
    _Atomic uint64_t reserve_bytes;
    pthread_mutex_t lock; /* guards the following two */
    struct owned_folder *owned;
    int locks_descriptor; /* the folder of folders, which holds their locks; -1: not open yet */
};

/* A remote store's data about a file between prepare and publish. The store's own structure begins
 * with this. */
struct staged_transfer {
    void (*end)(struct staged_transfer *transfer);
};

struct staged_file {
    struct staging *staging;
    int descriptor;
    int folder;                        /* a descriptor of its folder; -1: it is in no folder */
    char hidden[STAGING_NAME_MAX + 1]; /* in the root or its folder; empty for an unnamed file */
    bool is_named_durably;             /* in a folder: the folder has been synced */
    bool is_record;                    /* see staging_folder_create */
    atomic_bool is_unreliable;         /* a write-out failed: later syncs cannot be trusted */
    struct zt_source *read_back;
    struct disk_claim space;
    struct staged_transfer *transfer; /* owned; NULL: none */
};

/* root is the descriptor of an open folder and is borrowed. */
void staging_init(struct staging *staging, int root);
void staging_end(struct staging *staging);

/* Removes the hidden files that crashes left, except those that a living process has locked. */
void staging_sweep(const struct staging *staging);

/* Changes the space that uploads must leave free. From any thread. */
void staging_set_reserve(struct staging *staging, uint64_t reserve_bytes);

/* The following functions accept NULL for a store that takes no uploads. Those that create then
 * return ZT_UNSUPPORTED, those that open or remove ZT_NOT_FOUND. */

/* Returns the disk space that uploads may still use: free space less the reserve and the claims. */
enum zt_status staging_space(const struct staging *staging, uint64_t *out_bytes,
                             struct zt_error *error);

/* Returns false if an upload of this length would not fit even if caches made room for it. */
bool staging_could_take(const struct staging *staging, uint64_t bytes);

/* Begins an unnamed file. Returns ZT_LIMIT if expected_bytes (UINT64_MAX: not known) would not
 * leave the reserve free. Otherwise the bytes are claimed until they are written or the file is
 * closed. */
enum zt_status staging_create(struct staging *staging, uint64_t expected_bytes,
                              struct staged_file **out_file, struct zt_error *error);

/* --- a file --- */

/* Returns ZT_LIMIT, and writes nothing, if the reserve would not be left free. */
enum zt_status staged_file_write_at(struct staged_file *file, uint64_t offset, const void *bytes,
                                    size_t length, struct zt_error *error);
/* Returns a source of the bytes written so far, for hashing and validation. It is borrowed from the
 * file, and the next call closes it. Its size does not change when more is written. */
enum zt_status staged_file_read_back(struct staged_file *file, struct zt_source **out_source,
                                     struct zt_error *error);
/* Makes the written bytes durable (fdatasync), and the file's name if it is in a folder. */
enum zt_status staged_file_sync(struct staged_file *file, struct zt_error *error);
/* Syncs with fsync, before a publication. The publication itself makes the name durable. */
enum zt_status staged_file_sync_whole(struct staged_file *file, struct zt_error *error);
enum zt_status staged_file_truncate(struct staged_file *file, uint64_t length,
                                    struct zt_error *error);
uint64_t staged_file_length(const struct staged_file *file);
/* Copies bytes from one file to another, inside the file system if possible. */
enum zt_status staged_file_copy(struct staged_file *from, uint64_t from_offset,
                                struct staged_file *to, uint64_t to_offset, uint64_t length,
                                struct zt_error *error);
/* Does the same with the bytes of a source, such as a stored file. On a worker. */
enum zt_status staged_file_copy_source(struct zt_source *source, uint64_t offset,
                                       struct staged_file *to, uint64_t to_offset, uint64_t length,
                                       struct zt_error *error);
/* Reads the file back and computes the digest of all its bytes. progress may be NULL. On a worker;
 * may take long. Fails like zt_source_digest. */
enum zt_status staged_file_digest(struct staged_file *file, enum zt_digest_algorithm algorithm,
                                  const struct zt_progress *progress, struct zt_digest *out_digest,
                                  struct zt_error *error);
/* Frees the disk space of a range, which then reads as zeros. Returns false, with the bytes
 * unchanged, if the file system cannot do that. */
bool staged_file_discard(struct staged_file *file, uint64_t offset, uint64_t length);
/* Claims disk space for bytes that will be written, in addition to earlier claims. Writing uses the
 * claim up. Returns ZT_LIMIT if there is too little space. */
enum zt_status staged_file_take_space(struct staged_file *file, uint64_t bytes,
                                      struct zt_error *error);
/* Releases this much of the space that is claimed and not written, or all of it. */
void staged_file_return_space(struct staged_file *file, uint64_t bytes);
/* Closes the file. A file in a folder is kept; any other is removed. Accepts NULL. */
void staged_file_close(struct staged_file *file);
/* Closes the file and removes it, even if it is in a folder. */
void staged_file_remove(struct staged_file *file);

/* --- the folders of uploads --- */

/* Makes a folder. It becomes durable with the first sync of a file in it. */
enum zt_status staging_folder_make(struct staging *staging, const char *id, struct zt_error *error);
/* Makes a new, empty file, which replaces an older one of that name. Returns ZT_LIMIT as
 * staging_create does. expected_bytes 0 is for the server's own small records, which may use the
 * reserve when the disk is full. */
enum zt_status staging_folder_create(struct staging *staging, const char *id, const char *name,
                                     uint64_t expected_bytes, struct staged_file **out_file,
                                     struct zt_error *error);
/* Opens a file that an earlier process left. Returns ZT_NOT_FOUND, or ZT_ARGUMENT if another
 * process owns the folder. */
enum zt_status staging_folder_open(struct staging *staging, const char *id, const char *name,
                                   struct staged_file **out_file, struct zt_error *error);
enum zt_status staging_folder_remove(struct staging *staging, const char *id, const char *name,
                                     struct zt_error *error);
/* Removes the files for which keeps returns false, as far as possible. */
typedef bool staging_keeps(const void *context, const char *name);
void staging_folder_clean(struct staging *staging, const char *id, staging_keeps *keeps,
                          const void *context);
/* Returns true if this process holds the lock of a folder. */
bool staging_folder_is_owned(struct staging *staging, const char *id);
/* Releases this process's lock and descriptor of a folder until it uses the folder again. Another
 * process may then take it over. */
void staging_folder_release(struct staging *staging, const char *id);
/* Removes a folder with all its files; this may take a long time. Returns ZT_NOT_FOUND if there is
 * none. */
enum zt_status staging_folder_drop(struct staging *staging, const char *id, struct zt_error *error);
/* Called at start: takes over and visits all folders that no process owns, and finishes the removal
 * of dropped ones. */
enum zt_status staging_folders_adopt(struct staging *staging,
                                     bool (*visit)(void *context, const char *id), void *context,
                                     struct zt_error *error);

/* --- shared by the files of this module --- */

/* Makes a staged file from an open descriptor, and claims expected_bytes (UINT64_MAX: not known).
 * Takes over the descriptor and closes it on failure. Returns ZT_LIMIT. The caller has counted the
 * descriptors (staging_count_files); they are uncounted when the file is closed, or on failure. */
enum zt_status staged_file_new(struct staging *staging, int descriptor, uint64_t expected_bytes,
                               struct staged_file **out_file, struct zt_error *error);
/* Claims the space that a write needs, before the write. Returns ZT_LIMIT. */
enum zt_status staged_file_cover(struct staged_file *file, uint64_t offset, uint64_t length,
                                 struct zt_error *error);
/* Counts the descriptors of a file that is created or reopened. Returns ZT_IO with EMFILE if there
 * are too many. */
enum zt_status staging_count_files(bool is_new, struct zt_error *error);
/* Descriptors per file: its own, and either its folder's or a second one for reading it back. */
#define STAGED_FILE_DESCRIPTORS 2u
/* Rewrites the error of a call that makes a file or folder for the client. */
enum zt_status staging_explain(const struct staging *staging, enum zt_status status,
                               struct zt_error *error);
enum zt_status staging_refuse(struct zt_error *error);
/* Makes a file's folder, and the file's name in it, durable. */
enum zt_status staging_folder_sync(const struct staged_file *file, struct zt_error *error);

/* Returns the descriptor of the folder that contains a named file. */
static inline int staged_folder(const struct staged_file *file)
{
    assert(file->hidden[0] != '\0');
    return file->folder >= 0 ? file->folder : file->staging->root;
}

/* staging_lock.c. folders is an open descriptor of the folder of folders, which holds the lock.
 * Returns false if another process has it. */
bool staging_lock(int folders, const char *id);
void staging_unlock(int folders, const char *id);

#endif
