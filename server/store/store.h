/* The interface of a store: list, open, publish and delete models. A store is a folder
 * (store_local.c) or a bucket of an object store (s3/). Callers may not assume that a file's bytes
 * are local; they read them through a source.
 *
 * Paths are relative to the store's root, with '/' between parts. They never start with '/' and
 * never contain "." or "..". */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "zt/source.h"

/* Distinguishes one version of a stored file from another. Files with equal identities have the
 * same bytes, as far as can be known without reading them. */
struct file_identity {
    uint64_t device;
    uint64_t inode;
    uint64_t size_bytes;
    int64_t modified_ns;
    int64_t changed_ns;
};

/* The state of a path that a writer saw, and that must not have changed since. */
enum store_expectation { STORE_EXPECTS_ANYTHING, STORE_EXPECTS_NOTHING, STORE_EXPECTS_VERSION };

struct store_expected {
    enum store_expectation what;
    struct file_identity identity; /* for STORE_EXPECTS_VERSION */
    const uint8_t *sha256;         /* of the file to be published; NULL: not known */
};

#define MODEL_NAME_MAX 1024
/* Size of the path of a model's file: a name, the longest extension and NUL, with room to spare. */
#define MODEL_PATH_SIZE (MODEL_NAME_MAX + 32)
/* Size of a sentence that says why something is refused. */
#define STORE_WHY_SIZE 512

extern const struct store_expected store_expects_anything;
extern const struct store_expected store_expects_nothing;

struct history;
struct staged_file; /* store/staging.h: an upload before its publication */
struct staging;
struct store;
struct store_links;
struct waiter; /* base/workers.h */

/* The files that a writer is going to remove. */
struct store_leaving {
    bool (*leaves)(const void *context, const char *path);
    const void *context;
};

/* Held by a writer while all others wait. The store's own structure begins with this. */
struct store_claim {
    /* A request got no answer, so it is not known whether it was or will be carried out. */
    bool outcome_is_unknown;
    /* The identity of the version last published under the claim, if known. */
    bool has_published;
    struct file_identity published;
};

/* The state of a remote store. */
struct store_report {
    bool is_unreachable; /* the last request to it failed */
    bool was_reached;    /* since the start */
    bool has_list;       /* a whole list was received since the start, or loaded from disk */
    double list_age_s;   /* age of the last whole list */
    uint64_t cache_used_bytes;
    uint64_t cache_limit_bytes;
    unsigned requests_running;
    char writes[256]; /* one sentence: how uploads are published, or why they are not */
};

/* Called for each file, with its path below the root. Returns false to stop. */
typedef bool (*store_visit)(void *context, const char *path, const struct file_identity *identity);

struct store_ops {
    /* Calls visit for every regular file whose path may name a model (extension and characters are
     * right, not hidden, no link out of the root), in no particular order, until it returns
     * false. */
    enum zt_status (*list)(struct store *store, store_visit visit, void *context,
                           struct zt_error *error);
    /* Visits the files below a folder ("" is the root) that may be served (store_path_is_served),
     * with any extension, and its folders (identity NULL). The order is arbitrary; visit returns
     * false to stop. Walks one level, or all if is_deep. Links are followed while they stay below
     * the root. Paths are relative to the root. Returns ZT_NOT_FOUND if there is no such folder; a
     * bucket has a folder if keys begin with it. Also ZT_IO, ZT_UNAVAILABLE, ZT_NO_MEMORY. Any
     * number of workers may call it concurrently; it may take long. Walked folders are not
     * watched. */
    enum zt_status (*walk)(struct store *store, const char *folder, bool is_deep, store_visit visit,
                           void *context, struct zt_error *error);
    /* Opens one file that list visits, or any other whose path may be served. Returns ZT_NOT_FOUND
     * or ZT_IO; ZT_UNAVAILABLE if the store cannot say anything about the file now: earlier
     * knowledge of it then stays valid. */
    enum zt_status (*open)(struct store *store, const char *path, struct zt_source **out_source,
                           struct file_identity *out_identity, struct zt_error *error);
    /* Gives the file its name and makes missing folders. The bytes are durable before that, the
     * name only after settle. (fsync, then link or rename; or one conditional write to the bucket.)
     * Once the file has its name the call succeeds, and neither is touched again. Returns
     * ZT_ARGUMENT if the path does not hold the expected version, which is checked atomically, or
     * if something other than a file has the name. A folder store treats STORE_EXPECTS_VERSION like
     * STORE_EXPECTS_ANYTHING, because its writers hold a lock. Returns ZT_UNAVAILABLE if the store
     * is not available; then the file was not published. Closes the file on success only. */
    enum zt_status (*publish)(struct store *store, struct staged_file *file, const char *path,
                              const struct store_expected *expected, struct zt_error *error);
    /* Checks whether files could be published at a path, for callers that publish several files or
     * none: the path must be free or a file, and the names above it free or folders, now or after
     * the leaving files and their emptied folders (remove_emptied) are gone. Returns ZT_ARGUMENT if
     * something is in the way. Returns ZT_NOT_FOUND if no removal could make room: because of the
     * name, a link out of the store, or something that is neither file nor folder. NULL: names
     * never conflict. */
    enum zt_status (*may_publish)(struct store *store, const char *path,
                                  const struct store_leaving *leaving, struct zt_error *error);
    /* Finds which links lead to a folder, which need not exist. NULL: there are no links. */
    void (*find_links)(struct store *store, const char *folder, struct store_links *out_links);
    /* Makes a folder and its missing parents durably, unless it exists. Returns ZT_ARGUMENT if
     * something else has its name or a parent's, ZT_LIMIT or ZT_IO. NULL: folders exist only with
     * files. */
    enum zt_status (*make_folder)(struct store *store, const char *path, struct zt_error *error);
    /* If several servers write to one folder (store_local_own): makes writers of this name on other
     * servers wait until store_local_release(*out_lock). The lock is -1 if there are no others.
     * Returns ZT_ARGUMENT if another server still holds the name at by_ms (clock_ms). NULL: claim
     * does this. */
    enum zt_status (*exclude)(struct store *store, const char *name, int64_t by_ms, int *out_lock,
                              struct zt_error *error);
    /* Durable only after settle. Returns ZT_NOT_FOUND; ZT_ARGUMENT and ZT_UNAVAILABLE as publish
     * does. */
    enum zt_status (*remove)(struct store *store, const char *path,
                             const struct store_expected *expected, struct zt_error *error);
    /* Makes the effect of publish and remove at a path durable (fsync of the folder). May be
     * retried. After ZT_IO or ZT_LIMIT the change is made, but may not survive a power failure.
     * NULL: changes are durable at once. */
    enum zt_status (*settle)(struct store *store, const char *path, struct zt_error *error);
    /* Called after the file at a path was removed: removes the empty folders that contained it,
     * innermost first. Folders within the first kept_length bytes of the path are
     * kept. publish may make the folders again at the same time. NULL: there are no folders. */
    void (*remove_emptied)(struct store *store, const char *path, size_t kept_length);
    /* Returns the current identity of a source's file, as far as that is known without waiting.
     * Returns false if the source is not from this store. */
    bool (*identity_of)(struct store *store, struct zt_source *source,
                        struct file_identity *out_identity);
    /* Returns how many files the last list left out because they have a model's extension but an
     * unusable name. From any thread. */
    size_t (*misnamed_files)(const struct store *store);
    /* A descriptor that becomes readable when something may have changed, or -1; borrowed from the
     * store. changed empties it and returns whether to look again. The folders that the last list
     * read are watched. */
    int (*watch)(struct store *store);
    bool (*changed)(struct store *store);
    /* Returns true if a change waits to be read by changed. From any thread. */
    bool (*is_changing)(struct store *store);
    /* Returns true if the descriptor becomes readable as soon as this machine writes to a listed
     * file through a descriptor, renames or removes it. From any thread. */
    bool (*reports)(const struct store *store);
    /* Calls visit for each file that has changed since the last call of this or list, perhaps more
     * than once, with identity NULL if it is gone. *out_whole: the changes are not all known, so
     * the caller must call list. On the thread that calls list. */
    enum zt_status (*list_changes)(struct store *store, store_visit visit, void *context,
                                   bool *out_whole, struct zt_error *error);

    void (*close)(struct store *store);
};

/* Additional operations of a store that other servers write to as well. */
struct store_claim_ops {
    /* Does the slow part of publishing an upload under a path, before claim, so that publish is
     * fast. sha256 is the whole file's. May be called again. Returns ZT_UNAVAILABLE, ZT_LIMIT or
     * ZT_IO. */
    enum zt_status (*prepare)(struct store *store, struct staged_file *file, const char *path,
                              const uint8_t sha256[32], struct zt_error *error);
    /* Makes all other writers of this model's name wait, on this machine and on others, and looks
     * up the files under the name. Until release, open and identity_of report the store's current
     * state. publish and remove need a claim. Everything done under the claim ends by by_ms
     * (clock_ms), even if the store hangs; the time to send a file's bytes is added. Returns
     * ZT_ARGUMENT if another writer holds the claim too long, ZT_UNSUPPORTED if the store cannot be
     * written to (refusal), or ZT_UNAVAILABLE. */
    enum zt_status (*claim)(struct store *store, struct zt_text name, int64_t by_ms,
                            struct store_claim **out_claim, struct zt_error *error);
    /* Accepts NULL. */
    void (*release)(struct store_claim *claim);
    /* Returns why the store cannot be written to (a sentence, for a 501), or NULL. Constant once
     * the store is open, or once it was first reached. */
    const char *(*refusal)(const struct store *store);
    /* Texts that all replicas share, kept with a version of a file: for example its digests. kind:
     * [a-z0-9-]. Returns ZT_NOT_FOUND. The caller frees *out_text. May wait. */
    enum zt_status (*read_fact)(struct store *store, const struct file_identity *identity,
                                const char *kind, char **out_text, size_t *out_length,
                                struct zt_error *error);
    enum zt_status (*write_fact)(struct store *store, const struct file_identity *identity,
                                 const char *kind, const char *text, size_t length,
                                 struct zt_error *error);
    /* Finds the SHA-256 that a server stored with a file when it published it. Returns ZT_NOT_FOUND
     * if there is none, or if the path has another version now. May wait. */
    enum zt_status (*find_sha256)(struct store *store, const char *path,
                                  const struct file_identity *identity, uint8_t out_sha256[32],
                                  struct zt_error *error);
};

/* Additional operations of a store whose files come from other machines, so that listing and
 * opening them may take long, or that has files which list does not visit. */
struct store_search_ops {
    /* Returns true if a name that the last list did not contain should be looked for: at most every
     * other second for one name, and ten times a second for all. Never waits. If true, call look_up
     * on a thread that may wait. */
    bool (*may_look_up)(struct store *store, struct zt_text name);
    /* Asks in the background whether a repository of an upstream has this model. Returns true if
     * the waiter will be woken afterwards, and false if an answer is known already. Never waits.
     * NULL: there are no upstreams. */
    bool (*resolve)(struct store *store, struct zt_text name, struct waiter *waiter);
    /* Visits the files that could belong to this model (its name and an extension), as list
     * does. */
    enum zt_status (*look_up)(struct store *store, struct zt_text name, store_visit visit,
                              void *context, struct zt_error *error);
    /* Returns true if the bytes of files with this path are on this machine and stay there. Never
     * waits. NULL: of none. */
    bool (*has_locally)(const struct store *store, struct zt_text path);
    void (*report)(struct store *store, struct store_report *out_report);
    /* Called when the configuration that the store was opened with has changed (SIGHUP). From any
     * thread. */
    void (*reconfigure)(struct store *store);
    /* Called before threads that may wait for the store end: all waiting calls return
     * ZT_UNAVAILABLE now, and so do all later ones. */
    void (*interrupt)(struct store *store);
};

/* The size of the name of a shared file's version, with NUL. */
#define STORE_SHARED_VERSION_SIZE 256

/* A file that is kept for all servers over a store. */
struct store_shared_file {
    uint8_t sha256[32];
    uint64_t size_bytes; /* above 0 */
    char version[STORE_SHARED_VERSION_SIZE];
};

struct cache_fetch; /* cache/cache.h */

/* Called once, from any thread, perhaps before the call that begins returns; never waits. error may
 * be NULL if status is ZT_OK. */
typedef void (*store_shared_done)(void *context, struct cache_fetch *fetch, enum zt_status status,
                                  const struct zt_error *error);

/* Additional operations of a store in which all servers over it keep files by their SHA-256, where
 * none is listed or served. Nobody has checked their bytes. */
struct store_shared_ops {
    /* Finds a file by SHA-256 and size, and fills in its version. Returns ZT_NOT_FOUND, or fails
     * within some seconds. */
    enum zt_status (*find)(struct store *store, struct store_shared_file *file,
                           struct zt_error *error);
    /* Fills fetch->bytes from the version that find found, and calls done instead of fetch->done.
     * The file is borrowed until then. */
    void (*fetch)(struct store *store, const struct store_shared_file *file,
                  struct cache_fetch *fetch, store_shared_done done, void *context);
    /* Keeps a file, and replaces one of this SHA-256. Returns ZT_IO if the bytes of the descriptor
     * have another SHA-256; ZT_UNSUPPORTED if the store cannot be written to; ZT_UNAVAILABLE. Takes
     * as long as sending the file. */
    enum zt_status (*keep)(struct store *store, const struct store_shared_file *file,
                           int descriptor, struct zt_error *error);
};

/* The size of a commit in hex: of SHA-1 or SHA-256, with NUL. */
#define STORE_COMMIT_SIZE 65

/* One state of a repository. */
struct store_revision {
    char commit[STORE_COMMIT_SIZE];
    char folder[MODEL_PATH_SIZE]; /* below which walk and open find its files */
    bool is_current;
    bool is_kept; /* by this server's history (store/versions); false: mirrored */
};

/* The digest of a file as its upstream states it. */
struct store_stated {
    bool has_sha256;
    uint8_t sha256[32];
    bool has_git_sha1; /* of git's blob */
    uint8_t git_sha1[20];
    bool is_verified; /* all bytes are on this machine and agree */
};

/* Additional operations of a store with mirrored repositories, whose commits another server names,
 * or with a history of its own (store/versions). */
struct store_revision_ops {
    /* Finds a revision of a repository: "main", a branch, a tag or a commit. Returns
     * ZT_NOT_FOUND if it is not a mirrored repository and the history does not have the revision;
     * the caller then continues as if there were no such operation. Returns ZT_STALE if a mirrored
     * repository has no such revision; ZT_UNAVAILABLE. May wait. */
    enum zt_status (*find)(struct store *store, const char *repository, struct zt_text revision,
                           struct store_revision *out_revision, struct zt_error *error);
    /* Returns false if the file is not mirrored. Never waits. */
    bool (*state)(struct store *store, const char *path, const struct file_identity *identity,
                  struct store_stated *out_stated);
    /* Returns true if a path cannot be written to, because it belongs to a mirrored repository;
     * out_why is a sentence that says so. Never waits for another machine. */
    bool (*refuses)(struct store *store, const char *path, char out_why[STORE_WHY_SIZE]);
    /* Returns true if bytes of this file were sent within the last hour that turned out to be
     * wrong, so that a client that resumes a download must get all of it. Never waits. */
    bool (*was_wrong)(struct store *store, const char *path, const struct file_identity *identity);
    /* Returns true if an earlier process sent bytes of this file, which it had not verified, so
     * that a client which continues after them must get all of it. NULL: never. Never waits. */
    bool (*may_be_wrong)(struct store *store, const char *path,
                         const struct file_identity *identity);
    /* Returns true if the state of a path, or of a model's name, is unknown because its upstream
     * did not answer lately; out_error says why, with a rule of upstream/upstream.h. Never waits.
     * NULL: never. */
    bool (*explain)(struct store *store, struct zt_text path, struct zt_error *out_error);
};

struct store {
    const struct store_ops *ops;
    const struct store_search_ops *search; /* NULL: list visits all that can be opened */
    bool is_here; /* all files are on this machine although there are search operations */
    const struct store_claim_ops *claims;       /* NULL: writers hold a lock (exclude) */
    const struct store_revision_ops *revisions; /* NULL: there is only the current state */
    const struct store_shared_ops *shared;      /* NULL: nothing is kept for other servers */
    struct store *inner;     /* the store that this one adds to; NULL: this is a folder or bucket */
    struct staging *staging; /* NULL: the store accepts no uploads */
    struct history *history; /* store/versions/history.h; NULL: earlier versions are not kept */
};

/* Returns the history of a store, or NULL. Accepts NULL. */
static inline struct history *store_history(const struct store *store)
{
    return store != NULL ? store->history : NULL;
}

/* Calls settle if the store has it. */
static inline enum zt_status store_settle(struct store *store, const char *path,
                                          struct zt_error *error)
{
    return store->ops->settle == NULL ? ZT_OK : store->ops->settle(store, path, error);
}

/* Returns true if listing or opening files may wait for another machine. */
static inline bool store_may_wait(const struct store *store)
{
    return store->search != NULL && !store->is_here;
}

/* Returns true if names that list did not visit may be looked for (search). */
static inline bool store_searches(const struct store *store)
{
    return store->search != NULL;
}

/* Returns true if writers need a claim, because other servers write to the store too. */
static inline bool store_needs_claims(const struct store *store)
{
    return store->claims != NULL;
}

/* Returns true if the bytes of a file with this path are on this machine and stay there. The path
 * may also be a folder's or a model's name. Never waits. */
static inline bool store_has_locally(const struct store *store, struct zt_text path)
{
    return !store_may_wait(store) ||
           (store->search->has_locally != NULL && store->search->has_locally(store, path));
}

/* Returns false if the file is not mirrored. Never waits. */
static inline bool store_state(struct store *store, const char *path,
                               const struct file_identity *identity,
                               struct store_stated *out_stated)
{
    return store->revisions != NULL && store->revisions->state(store, path, identity, out_stated);
}

/* Returns true if a file is mirrored and not verified yet. Never waits. */
static inline bool store_is_unverified(struct store *store, const char *path,
                                       const struct file_identity *identity)
{
    struct store_stated stated;

    return store_state(store, path, identity, &stated) && !stated.is_verified;
}

/* Returns true if a file is mirrored, and all of it is here and right. Never waits. */
static inline bool store_is_verified(struct store *store, const char *path,
                                     const struct file_identity *identity)
{
    struct store_stated stated;

    return store_state(store, path, identity, &stated) && stated.is_verified;
}

/* Returns true if an upstream was asked for a name lately and gave no answer. */
static inline bool store_explains(struct store *store, struct zt_text name)
{
    struct zt_error ignored;

    return store->revisions != NULL && store->revisions->explain != NULL &&
           store->revisions->explain(store, name, &ignored);
}

/* Returns true if the store adds repositories of upstreams. */
static inline bool store_mirrors(const struct store *store)
{
    return store != NULL && store->search != NULL && store->search->resolve != NULL;
}

/* The folder or bucket itself, below any mirror and history. */
static inline struct store *store_innermost(struct store *store)
{
    while (store->inner != NULL)
        store = store->inner;
    return store;
}

/* Checks whether a folder can be opened as a store. Fails with the same messages as
 * store_local_open. */
enum zt_status store_local_check(const char *root, struct zt_error *error);

/* Opens a folder as a store. reserve_bytes: space that uploads must leave free. Returns
 * ZT_NOT_FOUND or ZT_IO, with a message for the user at the command line. */
enum zt_status store_local_open(const char *root, uint64_t reserve_bytes, struct store **out_store,
                                struct zt_error *error);

/* Reserves the folder for writes of this process, or, if it is shared, for writes of the servers
 * that share it. The reservation ends with the process. Returns ZT_ARGUMENT, with a message for the
 * user at the command line, if another server writes to the folder. Call it before there are other
 * threads. */
enum zt_status store_local_own(struct store *store, bool is_shared, struct zt_error *error);
/* Returns the folder's descriptor, borrowed from the store. */
int store_local_root(const struct store *store);
/* Releases a lock from exclude. Accepts -1. */
void store_local_release(int lock);

/* Protects one of the server's own files or folders, which may be secret, and the target if it is a
 * link: no path of the store can open, walk, replace or remove it. Call it from one thread only.
 * Returns false without memory, or if there are too many. */
bool store_local_withhold(struct store *store, const char *path);

/* Opens a store for a command that only reads. Leftovers of crashes are not removed. */
enum zt_status store_local_view(const char *root, struct store **out_store, struct zt_error *error);

bool store_identity_equal(const struct file_identity *a, const struct file_identity *b);

/* --- names --- */

/* Maximum length of names that may be uploaded. */
#define MODEL_PLAIN_NAME_MAX 255
/* The result of find_links. */
struct store_links {
    /* The path up to the last part that is a link; empty if there is none. */
    char last[MODEL_PATH_SIZE];
    /* The path without links at which the folder's files are. */
    char real[MODEL_PATH_SIZE];
    bool is_known; /* false: real is unknown, or outside the store */
};

/* Returns true if a model that is read may have this name: UTF-8 without control characters; parts
 * joined by '/' that do not begin with a dot; at most MODEL_NAME_MAX bytes. */
bool model_name_is_valid(struct zt_text name);

/* Returns true if a segment of a URL below /v1/models/ names a resource of a model, so that it ends
 * the model's name, unless it is the name's first segment. */
bool model_segment_is_resource(struct zt_text segment);

/* Returns true if a served file may have this path: UTF-8 without control characters; parts joined
 * by '/' that do not begin with a dot, of 1 to FILE_PART_MAX bytes; at most MODEL_NAME_MAX
 * bytes. */
bool store_path_is_served(struct zt_text path);
/* The usual limit of file systems. */
#define FILE_PART_MAX 255

/* Returns true if a model of this name may be uploaded: parts of [A-Za-z0-9][A-Za-z0-9._-]* joined
 * by '/', at most MODEL_PLAIN_NAME_MAX bytes. Such names are valid. */
bool model_name_is_plain(struct zt_text name);

/* Splits a path into a model's name (its first name_length bytes) and the rank of its extension (0
 * for ".zt", …), in upper or lower case. Returns false if the extension is unknown or the name is
 * invalid.
 *
 * For an index with a variant (store/variant_index.h), the rank is higher than every extension's,
 * and the path does not begin with the model's name: name_length then covers everything but
 * ".json", and model_path_name returns the name. */
bool model_path_split(const char *path, size_t *out_name_length, unsigned *out_rank);

/* Writes the name of the model whose file has this path. Returns false as model_path_split does. */
bool model_path_name(const char *path, char out_name[MODEL_NAME_MAX + 1]);

/* Writes the path of a model's file of that rank. A model may have files of all ranks from 0 on.
 * Returns false if the name has no file of this rank, and then of any higher one. */
bool model_file_path(const char *name, unsigned rank, char out_path[MODEL_PATH_SIZE]);

/* Returns true if the path of any file, served or not, ends like an index, in upper or lower
 * case. */
bool model_path_is_index(struct zt_text path);

/* Returns true if a file's name has a stem and ends in the extension of that rank, in upper or
 * lower case. */
bool model_extension_ends(struct zt_text file_name, unsigned rank);

/* Returns true if the extension of a model's path is spelled differently from model_extension, the
 * spelling of files that are written: "a.NPY". */
bool model_path_has_noncanonical_extension(const char *path);

/* Returns true if a path has a model's extension, but cannot name a model. Its owner probably
 * expects it to be served. */
bool model_path_has_bad_name(const char *path);

/* Returns true if a path has an extension that PyTorch shares with many other programs (".pt",
 * ".pth", ".bin", ".ckpt"): only the content shows whether the file is a model. */
bool model_path_needs_sniffing(const char *path);

/* Returns true if a path has the extension of a weights format that the server does not read
 * ("weights.h5"). Its owner may expect it to be served. */
bool model_path_is_unsupported_format(const char *path);

/* Returns the extensions in order of precedence: ".zt", ".safetensors", ".gguf", ".mag", ".npz",
 * ".npy", ".pt", ".pth", ".bin", ".ckpt", ".onnx", then indices (model_rank_is_index); NULL past
 * the end. */
const char *model_extension(unsigned rank);

/* Returns true if the rank is an index, which lists the parts of a model (zt/join.h):
 * ".safetensors.index.json", ".bin.index.json". */
bool model_rank_is_index(unsigned rank);

/* Returns the extension of an index of that rank. For an index with a variant, that is the
 * extension of the same index without one. */
const char *model_index_extension(unsigned rank);

#endif
