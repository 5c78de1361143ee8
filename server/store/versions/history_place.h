/* Where a history is stored: in a folder (history_folder.c) or in a bucket (store/s3_versions/).
 * The names are the same in both, below ".ztserve/versions":
 *
 *   repos/<SHA-256 of the repository>/log, repos/<…>/trees/<commit>    small files
 *   objects/ab/<62 digits>                                             kept files
 *
 * All functions may wait; call them on a worker. Small files are complete at every moment, and
 * everything is durable when a call returns. */
#ifndef STORE_VERSIONS_HISTORY_PLACE_H
#define STORE_VERSIONS_HISTORY_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"
#include "zt/status.h"

struct zt_source;
struct staged_file;

/* The limit of a small file. */
#define HISTORY_FILE_BYTES ((size_t)1 << 28)

/* Names one version of a small file, and NUL. Empty: there is no such file. */
#define HISTORY_VERSION_SIZE 256

struct history_place;

/* A small file that was read. */
struct history_text {
    uint8_t *bytes; /* the caller frees them; not NULL if the file is empty */
    size_t length;
    char version[HISTORY_VERSION_SIZE];
};

struct history_object {
    uint8_t sha256[32];
    uint64_t size_bytes;
    bool is_young; /* it was made less than an hour before this collection began, so it may be of a
                    * commit that another server is about to record */
};

/* How a change and the collection of another server exclude each other
 * (tests/unit/server/test_history_shared_model.c tries all interleavings).
 *
 * A kept file is made and removed only under a claim of its own. keep, keep_staged, and find with
 * names_it need no claim if it was made in the last half hour; otherwise they make it again. A
 * collection looks at the file's age under the claim, and removes only files that were last made an
 * hour before the collection began. It never releases the claim of a removal without an answer: the
 * claim expires. A change is recorded long before the files that it keeps are an hour old. */
struct history_place_ops {
    /* --- small files --- */

    /* Reads one, or its first `most` bytes. known: a version, or NULL; if the file still has it,
     * out_text->bytes is NULL. Returns ZT_NOT_FOUND, ZT_LIMIT if a whole file was wanted (most:
     * HISTORY_FILE_BYTES) and it is longer, ZT_IO, ZT_UNAVAILABLE, ZT_NO_MEMORY. */
    enum zt_status (*read)(struct history_place *place, const char *name, const char *known,
                           size_t most, struct history_text *out_text, struct zt_error *error);
    /* Writes one, with the folders above, and sets text->version. expected: the version that it
     * must have now, "" if there must be none; NULL: any. Returns ZT_STALE if it has another one,
     * and nothing was written. */
    enum zt_status (*write)(struct history_place *place, const char *name,
                            struct history_text *text, const char *expected,
                            struct zt_error *error);
    /* Appends to one that has this length. NULL: write all of it. */
    enum zt_status (*append)(struct history_place *place, const char *name, uint64_t length,
                             const void *bytes, size_t count, struct zt_error *error);
    /* Removes one, or does nothing. Failures are ignored: the next collection tries again. */
    void (*remove)(struct history_place *place, const char *name);
    /* Calls visit for each name directly below a folder ("repos", "repos/<key>/trees"), which may
     * be missing. Returns false from visit to stop; then ZT_NO_MEMORY is returned. */
    enum zt_status (*list)(struct history_place *place, const char *folder,
                           bool (*visit)(void *context, const char *name), void *context,
                           struct zt_error *error);

    /* --- kept files --- */

    /* Keeps the file that a path of the store has. identity: of the file that was hashed; returns
     * ZT_STALE if it is another one now. If the SHA-256 is kept already, only makes sure that no
     * other server's collection removes it before it is recorded; but in a folder, replaces a kept
     * file of another size or time, into which another program may have written. *out_is_new: there
     * is one more kept file. Returns ZT_UNSUPPORTED, with a reason for the client, if it cannot. */
    enum zt_status (*keep)(struct history_place *place, const char *path,
                           const struct file_identity *identity, const uint8_t sha256[32],
                           bool *out_is_new, struct zt_error *error);
    /* The same for a file that is about to be removed, by moving it. NULL: keep never returns
     * ZT_UNSUPPORTED. */
    enum zt_status (*keep_removed)(struct history_place *place, const char *path,
                                   const struct file_identity *identity, const uint8_t sha256[32],
                                   bool *out_is_new, struct zt_error *error);
    /* Keeps an unpublished file, and closes it on success. */
    enum zt_status (*keep_staged)(struct history_place *place, struct staged_file *file,
                                  const uint8_t sha256[32], bool *out_is_new,
                                  struct zt_error *error);
    /* Finds a kept file. names_it: a commit will name it, so it must stay until then, as with keep.
     * Returns ZT_NOT_FOUND. */
    enum zt_status (*find)(struct history_place *place, const uint8_t sha256[32], bool names_it,
                           struct file_identity *out_identity, struct zt_error *error);
    /* Opens it for reading. Returns ZT_NOT_FOUND. */
    enum zt_status (*open)(struct history_place *place, const uint8_t sha256[32],
                           struct zt_source **out_source, struct file_identity *out_identity,
                           struct zt_error *error);
    /* Gives a kept file a path in the store, and replaces the file that has it. */
    enum zt_status (*restore)(struct history_place *place, const uint8_t sha256[32],
                              const char *path, struct zt_error *error);
    /* Removes the file that a path of the store has. identity: of the file that was kept. Returns
     * ZT_NOT_FOUND; ZT_STALE if it is another one now. */
    enum zt_status (*remove_path)(struct history_place *place, const char *path,
                                  const struct file_identity *identity, struct zt_error *error);
    /* Calls visit for each kept file whose SHA-256 begins with this byte. */
    enum zt_status (*list_objects)(struct history_place *place, uint8_t first,
                                   bool (*visit)(void *context,
                                                 const struct history_object *object),
                                   void *context, struct zt_error *error);
    /* Takes a kept file away from readers that come later; quick, because it is called under the
     * history's lock. Returns false if it could not be, or must stay (is_young).
     * NULL: drop does it all. */
    bool (*set_aside)(struct history_place *place, const uint8_t sha256[32]);
    /* Frees its space; slow. Returns false if it must stay: it is young, or kept again. */
    bool (*drop)(struct history_place *place, const uint8_t sha256[32]);

    /* --- other servers; NULL if there are none --- */

    /* Excludes other servers from changing a repository (its key), until unlock. Returns
     * ZT_ARGUMENT if another server still holds it at by_ms (clock_ms); ZT_UNAVAILABLE. */
    enum zt_status (*lock)(struct history_place *place, const char *key, int64_t by_ms,
                           void **out_lock, struct zt_error *error);
    void (*unlock)(struct history_place *place, void *lock);
    /* Makes this the only server that collects. Returns false if another one does now. End it
     * with end_collecting, also if it is lost meanwhile: drop then returns false. */
    bool (*begin_collecting)(struct history_place *place);
    void (*end_collecting)(struct history_place *place);

    /* Returns true if the store has a regular file at a path. asks: waits for another machine;
     * otherwise the answer may be as old as the last list of the store. */
    bool (*has_path)(struct history_place *place, const char *path, bool asks);
    void (*close)(struct history_place *place);
};

struct history_place {
    const struct history_place_ops *ops;
    /* Other servers change it too: logs are read again before each change, and at most a second
     * after they were last looked at for everything else. */
    bool is_shared;
    bool is_writable;
    bool is_missing; /* there is none, and this server writes none */
};

#endif
