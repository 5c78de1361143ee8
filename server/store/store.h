/* Where models are kept: list, open, create, publish, delete. A folder (store_local.c) or a bucket
 * of an object store (s3/): no caller may assume that bytes are in a local file; it reads them
 * through a source.
 *
 * Paths are relative to the store's root, with '/' between parts, never starting with '/', never
 * with "." or "..". */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "zt/source.h"

/* Distinguishes one version of a stored file from another. Two files with equal identities have the
 * same bytes, as far as can be known without reading them. */
struct file_identity {
    uint64_t device;
    uint64_t inode;
    uint64_t size_bytes;
    int64_t modified_ns;
    int64_t changed_ns;
};

/* What a writer has seen under a path, and wants to find there still. */
enum store_expectation { STORE_EXPECTS_ANYTHING, STORE_EXPECTS_NOTHING, STORE_EXPECTS_VERSION };

struct store_expected {
    enum store_expectation what;
    struct file_identity identity; /* of STORE_EXPECTS_VERSION */
};

extern const struct store_expected store_expects_anything;
extern const struct store_expected store_expects_nothing;

struct store;
struct store_links;

/* The files that a writer is going to remove. */
struct store_leaving {
    bool (*leaves)(const void *context, const char *path);
    const void *context;
};

/* What a writer has while all others wait; the store's own structure begins with this. */
struct store_claim {
    /* A request was not answered, so nobody knows whether it was done, or will be. */
    bool has_doubt;
    /* The identity of what was last published under the claim, if that could be learned. */
    bool has_published;
    struct file_identity published;
};

/* A file on its way into a store, whose own structure begins with this. */
struct stored_upload {
    struct store *store;
};

/* How a store that is elsewhere is doing. */
struct store_report {
    bool is_away;      /* the last request to it failed */
    bool was_reached;  /* since the start */
    bool has_list;     /* a list came whole since the start, or was kept from before */
    double list_age_s; /* of the last whole list */
    uint64_t cache_used_bytes;
    uint64_t cache_limit_bytes;
    unsigned requests_running;
    char writes[256]; /* how uploads are published, or why there are none: one sentence */
};

struct store_ops {
    /* Calls visit, in no particular order, for every regular file whose path may name a model
     * (extension, characters; no hidden files, no links out of the root), until it returns
     * false. */
    enum zt_status (*list)(struct store *store,
                           bool (*visit)(void *context, const char *path,
                                         const struct file_identity *identity),
                           void *context, struct zt_error *error);
    /* Visits the files below a folder ("" is the root) that may be served (store_path_is_served),
     * whatever their names end in, and its folders (identity NULL), in no particular order, until
     * visit returns false; one level, or all (is_deep). Links are followed as long as they stay
     * below the root. Paths are relative to the root. ZT_NOT_FOUND if there is no such folder; a
     * bucket has those that keys lie below. ZT_IO, ZT_UNAVAILABLE, ZT_NO_MEMORY. From any worker,
     * several at a time; may take long. What is walked is not watched. */
    enum zt_status (*walk)(struct store *store, const char *folder, bool is_deep,
                           bool (*visit)(void *context, const char *path,
                                         const struct file_identity *identity),
                           void *context, struct zt_error *error);
    /* Opens one file: one that list visits, or any other whose path may be served. ZT_NOT_FOUND,
     * ZT_IO; ZT_UNAVAILABLE: nothing can be said of the file now, and what is known of it stays. */
    enum zt_status (*open)(struct store *store, const char *path, struct zt_source **out_source,
                           struct file_identity *out_identity, struct zt_error *error);
    /* Begins an unnamed file in the store's own file system. ZT_LIMIT if expected_bytes
     * (UINT64_MAX: not known) would not leave the reserve free. */
    enum zt_status (*create)(struct store *store, uint64_t expected_bytes,
                             struct stored_upload **out_upload, struct zt_error *error);
    enum zt_status (*write_at)(struct stored_upload *upload, uint64_t offset, const void *bytes,
                               size_t length, struct zt_error *error);
    /* A source of what has been written so far, for hashing and validation. Borrowed from the
     * upload; its size is that at the time of the call. The next call closes the source. */
    enum zt_status (*read_back)(struct stored_upload *upload, struct zt_source **out_source,
                                struct zt_error *error);
    /* Gives the file its name durably (fsync, link or rename, fsync of the folder; or one
     * conditional write to the bucket); makes missing folders. ZT_ARGUMENT if the path does not
     * hold what is expected, which is decided atomically, or if something other than a file has the
     * name. A folder takes STORE_EXPECTS_VERSION for anything: its writers have a lock.
     * ZT_UNAVAILABLE: not now, and nothing was published. Ends the upload on success only. */
    enum zt_status (*publish)(struct stored_upload *upload, const char *path,
                              const struct store_expected *expected, struct zt_error *error);
    /* Whether nothing but a file has the path, and nothing but folders stands before it, now or
     * once the files are gone that are leaving, with their folders (remove_emptied): for who
     * publishes several files or none. ZT_ARGUMENT: something is in the way; ZT_NOT_FOUND: whatever
     * is removed, no file can be there, because of the name, of a link out of the store, or of what
     * is neither file nor folder. NULL: no name is in another's way. */
    enum zt_status (*may_publish)(struct store *store, const char *path,
                                  const struct store_leaving *leaving, struct zt_error *error);
    /* Which links lead to a folder, be it there or not. NULL: there are no links. */
    void (*see_links)(struct store *store, const char *folder, struct store_links *out_links);
    /* Makes a folder durably, with those before it, unless it is there. ZT_ARGUMENT: something else
     * has the name, or that of one before it; ZT_LIMIT, ZT_IO. NULL: there are no folders without
     * files. */
    enum zt_status (*make_folder)(struct store *store, const char *path, struct zt_error *error);
    /* Ends an upload and removes its file, unless it is a kept one. Takes NULL. */
    void (*abandon)(struct stored_upload *upload);
    /* Durable. ZT_NOT_FOUND; ZT_ARGUMENT, ZT_UNAVAILABLE as for publish. */
    enum zt_status (*remove)(struct store *store, const char *path,
                             const struct store_expected *expected, struct zt_error *error);
    /* For who has removed the file at a path: removes the folders that it was in, from the
     * innermost on, as long as nothing else is in them, and none that the first kept_length bytes
     * of the path name or lie in. publish makes them again, also at the same time. NULL: there are
     * no folders. */
    void (*remove_emptied)(struct store *store, const char *path, size_t kept_length);
    /* The identity that the file of a source has now, as far as that is known without waiting.
     * False for a source that is not of this store. */
    bool (*identity_of)(struct store *store, struct zt_source *source,
                        struct file_identity *out_identity);
    /* Number of files with a model's extension but an unusable name, which the last list left out.
     * From any thread. */
    size_t (*misfits)(const struct store *store);
    /* Disk space that uploads may still use, the reserve deducted. */
    enum zt_status (*space)(const struct store *store, uint64_t *out_bytes, struct zt_error *error);

    /* Kept uploads: unpublished files that outlive their request and the process. Each kept upload
     * is a hidden place (a folder) in the store's own file system, so that publish is atomic, and
     * is named by an id of 32 hex digits. The files in it have names of [a-z0-9.-], of 64 bytes at
     * most, and live until they are published or the place is dropped. write_at, read_back, publish
     * and sync work on them as on any other upload; abandon closes such a file and leaves it where
     * it is. */
    /* Makes the place; durable with the first sync of a file in it. */
    enum zt_status (*keep)(struct store *store, const char *id, struct zt_error *error);
    /* Makes a new, empty file, which replaces an older one of that name. ZT_LIMIT as for create. */
    enum zt_status (*kept_create)(struct store *store, const char *id, const char *name,
                                  uint64_t expected_bytes, struct stored_upload **out_upload,
                                  struct zt_error *error);
    /* Opens a file as an earlier process left it. ZT_NOT_FOUND; ZT_ARGUMENT if another process owns
     * the place. */
    enum zt_status (*kept_open)(struct store *store, const char *id, const char *name,
                                struct stored_upload **out_upload, struct zt_error *error);
    enum zt_status (*kept_remove)(struct store *store, const char *id, const char *name,
                                  struct zt_error *error);
    /* Removes the place with all its files. ZT_NOT_FOUND. May take a long time. */
    enum zt_status (*kept_drop)(struct store *store, const char *id, struct zt_error *error);
    /* At start: takes over and visits all places that no process owns, and removes what is left of
     * dropped ones. */
    enum zt_status (*kept_list)(struct store *store, bool (*visit)(void *context, const char *id),
                                void *context, struct zt_error *error);
    /* Makes durable what was written to an upload (fdatasync), and the names of a kept one. */
    enum zt_status (*sync)(struct stored_upload *upload, struct zt_error *error);
    /* Cuts an upload's file to this length. */
    enum zt_status (*truncate)(struct stored_upload *upload, uint64_t length,
                               struct zt_error *error);
    /* Copies bytes from one upload into another, inside the file system if it can. */
    enum zt_status (*copy)(struct stored_upload *from, uint64_t from_offset,
                           struct stored_upload *to, uint64_t to_offset, uint64_t length,
                           struct zt_error *error);
    /* Frees the disk space of a range of an upload's file, which then reads as zeros. False, with
     * the bytes unchanged, if the file system cannot do that. */
    bool (*discard)(struct stored_upload *upload, uint64_t offset, uint64_t length);
    /* Current length of an upload's file. */
    uint64_t (*length)(struct stored_upload *upload);

    /* Changes the space that uploads must leave free. From any thread. */
    void (*set_reserve)(struct store *store, uint64_t reserve_bytes);

    /* A descriptor that becomes readable when something may have changed, or -1; borrowed from the
     * store. changed empties it and returns whether to look again. The folders that the last list
     * read are watched. */
    int (*watch)(struct store *store);
    bool (*changed)(struct store *store);
    /* Whether a change waits to be read by changed. From any thread. */
    bool (*is_changing)(struct store *store);
    /* Whether the descriptor becomes readable as soon as this machine writes to any listed file
     * through a descriptor, renames or removes it. From any thread. */
    bool (*reports)(const struct store *store);
    /* Looks only at what has changed since the last list or look: calls visit for each such file,
     * perhaps more than once, with identity NULL if it is gone. *out_whole: that is not known, or
     * not all, and only list will do. On the thread that calls list. */
    enum zt_status (*look)(struct store *store,
                           bool (*visit)(void *context, const char *path,
                                         const struct file_identity *identity),
                           void *context, bool *out_whole, struct zt_error *error);

    /* --- of stores that others write to as well; NULL for a folder --- */

    /* Does what takes long about publishing an upload under a path: afterwards publish is short.
     * Before claim. sha256: of the whole file. May be called again. ZT_UNAVAILABLE, ZT_LIMIT,
     * ZT_IO. */
    enum zt_status (*prepare)(struct stored_upload *upload, const char *path,
                              const uint8_t sha256[32], struct zt_error *error);
    /* Makes all other writers of this model's name wait, on this machine and on others, and looks
     * up what is there under the name: until release, open and identity_of tell what the store has
     * now. publish and remove need it. by_ms (clock_ms): whatever the store does, all that is done
     * under the claim ends by then, or later by the time that sending the bytes of a file takes.
     * ZT_ARGUMENT: another writer has it for too long; ZT_UNSUPPORTED: nothing can be written
     * (refusal); ZT_UNAVAILABLE. */
    enum zt_status (*claim)(struct store *store, struct zt_text name, int64_t by_ms,
                            struct store_claim **out_claim, struct zt_error *error);
    /* Takes NULL. */
    void (*release)(struct store_claim *claim);
    /* Why nothing can be written (a sentence, for a 501), or NULL. Constant once the store is
     * open, or until it was first reached. */
    const char *(*refusal)(const struct store *store);
    /* Whether a name that the last list did not have should be looked for: asks the store at most
     * every other second for one name, and ten times a second for all. Never waits: true means that
     * seek should be called, on a thread that may wait. */
    bool (*may_seek)(struct store *store, struct zt_text name);
    /* Visits the files that could be this model's (name and an extension), as list does. */
    enum zt_status (*seek)(struct store *store, struct zt_text name,
                           bool (*visit)(void *context, const char *path,
                                         const struct file_identity *identity),
                           void *context, struct zt_error *error);
    /* Texts that all replicas share, kept with a version of a file: found digests. kind:
     * [a-z0-9-]. ZT_NOT_FOUND. *out_text is freed by the caller. May wait. */
    enum zt_status (*read_fact)(struct store *store, const struct file_identity *identity,
                                const char *kind, char **out_text, size_t *out_length,
                                struct zt_error *error);
    enum zt_status (*write_fact)(struct store *store, const struct file_identity *identity,
                                 const char *kind, const char *text, size_t length,
                                 struct zt_error *error);
    void (*report)(struct store *store, struct store_report *out_report);
    /* The configuration that the store was opened with has changed (SIGHUP). From any thread. */
    void (*reconfigure)(struct store *store);
    /* Before threads end that may wait for the store: all who do get ZT_UNAVAILABLE now, as does
     * whatever is asked of it from then on. */
    void (*interrupt)(struct store *store);

    void (*close)(struct store *store);
};

struct store {
    const struct store_ops *ops;
};

/* Whether the files are elsewhere: opening one may take long, and all of the above exists. */
static inline bool store_is_elsewhere(const struct store *store)
{
    return store->ops->claim != NULL;
}

/* Whether a folder can be opened as a store; the message is that of store_local_open. */
enum zt_status store_local_check(const char *root, struct zt_error *error);

/* Opens a folder as a store. reserve_bytes: space that uploads must leave free. ZT_NOT_FOUND or
 * ZT_IO, with a message for the person who starts the program. */
enum zt_status store_local_open(const char *root, uint64_t reserve_bytes, struct store **out_store,
                                struct zt_error *error);

/* Keeps a file or folder (and what it leads to, if it is a link) from being opened, walked,
 * replaced or removed, should it lie below the folder of the store: one that is the server's own,
 * and perhaps secret. At most eight; before there are other threads. False without memory. */
bool store_local_withhold(struct store *store, const char *path);

/* store_local_open for a command that only reads: nothing that a crash left is removed. */
enum zt_status store_local_view(const char *root, struct store **out_store, struct zt_error *error);

/* Whether a root names a bucket: "s3://bucket" or "s3://bucket/prefix". */
bool store_root_is_bucket(const char *root);

bool store_identity_equal(const struct file_identity *a, const struct file_identity *b);

/* --- names --- */

#define MODEL_NAME_MAX 1024
/* Of names to be uploaded. */
#define MODEL_PLAIN_NAME_MAX 255
/* Of the path of a model's file: a name, the longest extension, and NUL, with room. */
#define MODEL_PATH_SIZE (MODEL_NAME_MAX + 32)

/* What see_links finds. */
struct store_links {
    /* The path up to the last part that is a link; empty: there is none. */
    char last[MODEL_PATH_SIZE];
    /* Where the files of the folder are, by a path without links. */
    char real[MODEL_PATH_SIZE];
    bool is_known; /* false: real is not, or is out of the store */
};

/* Whether a text can be the name of a model that is read: UTF-8 without control characters, parts
 * that do not begin with a dot, joined by '/', at most MODEL_NAME_MAX bytes. */
bool model_name_is_valid(struct zt_text name);

/* Whether a text can be the path of a file that is served: UTF-8 without control characters, parts
 * joined by '/' that do not begin with a dot, 1 to FILE_PART_MAX bytes each, at most
 * MODEL_NAME_MAX bytes in all. */
bool store_path_is_served(struct zt_text path);
/* What file systems allow. */
#define FILE_PART_MAX 255

/* Whether a model of this name may be uploaded: parts of [A-Za-z0-9][A-Za-z0-9._-]* joined by '/',
 * at most MODEL_PLAIN_NAME_MAX bytes. Such names are valid. */
bool model_name_is_plain(struct zt_text name);

/* Splits a path into a model's name (its first name_length bytes) and the rank of its extension (0
 * for ".zt", …), whatever its case. False if the extension is unknown or the name is invalid. */
bool model_path_split(const char *path, size_t *out_name_length, unsigned *out_rank);

/* Whether a file's name ends in the extension of that rank, in any case, and begins before it. */
bool model_extension_ends(struct zt_text file_name, unsigned rank);

/* Whether the extension of a model's path is spelled otherwise than model_extension has it, in
 * which files are written: "a.NPY". */
bool model_path_is_odd(const char *path);

/* Whether a path has a model's extension, but cannot name a model. Its owner probably expects it
 * to be served. */
bool model_path_is_misfit(const char *path);

/* Whether a path has an extension that PyTorch shares with much else (".pt", ".pth", ".bin",
 * ".ckpt"): only the content says whether the file is a model. */
bool model_path_is_vague(const char *path);

/* Whether a path has an extension of weights in a format that is not read ("weights.h5"). Its
 * owner may expect it to be served. */
bool model_path_is_foreign(const char *path);

/* Extensions in order of precedence: ".zt", ".safetensors", ".gguf", ".mag", ".npz", ".npy",
 * ".pt", ".pth", ".bin", ".ckpt", ".onnx", then those of indices (model_rank_is_index); NULL past
 * the end. */
const char *model_extension(unsigned rank);

/* Whether it is the extension of an index, which lists the parts of a model (zt/join.h):
 * ".safetensors.index.json", ".bin.index.json". */
bool model_rank_is_index(unsigned rank);

#endif
