/* Uploads that outlive their request and the process: the streaming writer's sessions, resumable
 * uploads, and files that wait for a commit. They share what is here: references, a table by id,
 * folders in the store, and expiry. Each kind of upload defines how it is opened again and how it
 * ends. Any thread may call these functions. */
#ifndef UPLOAD_SHARED_KEPT_UPLOADS_H
#define UPLOAD_SHARED_KEPT_UPLOADS_H

#include "upload/shared/registry.h"

/* How long the outcome can be requested again if the response was lost. */
#define KEPT_OUTCOME_S 600

struct kept_upload;

enum kept_opened {
    KEPT_OPENED,
    KEPT_OUTCOME,   /* opened: the upload became a model, and only its outcome remains */
    KEPT_NOT_OURS,  /* another kind, or an upload that was never acknowledged */
    KEPT_UNREADABLE /* it may be ours, and stays on disk for the next start */
};

/* A kind of upload; constant. */
struct kept_kind {
    enum upload_kind kind;
    /* Where struct config has the number of such uploads that a client may have. */
    size_t limit_offset;
    /* Opens the upload that an earlier process left in the folder of that id. Returns it with one
     * reference. */
    enum kept_opened (*open)(struct server *server, const char *id,
                             struct kept_upload **out_upload);
    /* Returns how long it lives unless it is touched; 0 or less if it has expired. Changes of the
     * system's clock do not matter. May be called with the table's lock held. */
    int64_t (*left_ms)(struct kept_upload *upload);
    /* Ends an expired upload, so that no request can use it any more. Returns false while a request
     * uses it. On a worker. */
    bool (*end)(struct kept_upload *upload);
    /* Frees the memory, but nothing on disk. */
    void (*free)(struct kept_upload *upload);
};

/* The first member of every kind's structure. */
struct kept_upload {
    const struct kept_kind *kind;
    struct server *server;
    struct registry_entry entry;
    atomic_uint references; /* one for the table, and one for each request or job */
    bool is_listed;         /* in the table; guarded by the table's lock */
    struct kept_upload *next;
};

/* Initialises a cleared structure, with one reference. */
void kept_upload_init(struct kept_upload *upload, const struct kept_kind *kind,
                      struct server *server, const char *id);
void kept_upload_hold(struct kept_upload *upload);
/* Accepts NULL. Takes a void pointer for request_hold. */
void kept_upload_release(void *upload);
/* Postpones expiry because the upload is in use. */
void kept_upload_touch(struct kept_upload *upload);
/* Returns the rest of limit_s since the upload was last touched. */
int64_t kept_upload_left_ms(const struct kept_upload *upload, int64_t limit_s);
/* Converts a time of day that an earlier process noted to clock_ms. Returns the current clock_ms if
 * the time is in the future. */
int64_t kept_upload_ms_of(time_t when);
/* Returns the time of day that is left_ms from now. */
time_t kept_upload_time_in(int64_t left_ms);

/* --- the table --- */

/* kinds ends with NULL and is borrowed. Returns NULL if out of memory. */
struct kept_uploads *kept_uploads_new(struct server *server, const struct kept_kind *const *kinds);
/* Call it after the workers have stopped. Keeps everything on disk. Accepts NULL. */
void kept_uploads_free(struct kept_uploads *kept);

/* Called at start: takes over the uploads that an earlier process left in the store, and removes
 * those that no kind can continue. */
void kept_uploads_restore(struct kept_uploads *kept);
/* Starts looking for expired uploads on a worker every second. Call it after the loops have
 * started. */
void kept_uploads_watch(struct kept_uploads *kept);
/* Removes expired uploads. On a worker. */
void kept_uploads_expire(struct kept_uploads *kept);

/* Finds and holds an upload. Returns NULL if there is none of that kind. */
struct kept_upload *kept_uploads_find(struct kept_uploads *kept, enum upload_kind kind,
                                      struct zt_text id);
/* Finds and holds any upload for which is_it returns true, or returns NULL. is_it must not wait. */
struct kept_upload *kept_uploads_search(struct kept_uploads *kept,
                                        bool (*is_it)(const void *context,
                                                      const struct kept_upload *upload),
                                        const void *context);
/* Does the same as find, but also takes over an upload that another process has left since this
 * process started. *out_unreadable: the upload may exist, but cannot be read now, or another
 * process owns it. */
struct kept_upload *kept_uploads_find_or_adopt(struct kept_uploads *kept, enum upload_kind kind,
                                               struct zt_text id, bool *out_unreadable);

/* Returns true if another process with the same root owns the upload of an id. */
bool kept_uploads_is_of_other_process(struct kept_uploads *kept, struct zt_text id);

/* Adds an upload, whose folder was made before, to the table and the registry, with a separate
 * reference. Returns false if the client has too many; the folder is then removed. */
bool kept_uploads_add(struct kept_upload *upload);
/* Removes an upload and its folder. The caller has ended it, so that no request uses it any more.
 * On a worker. */
void kept_uploads_drop(struct kept_upload *upload);
/* Removes an upload from memory; its folder, if it has one, is kept. */
void kept_uploads_remove(struct kept_upload *upload);
/* Reads a forgotten upload from its folder and adds it again, so that it expires even if no client
 * asks for it. On a worker. */
void kept_uploads_reopen(const struct kept_upload *forgotten);
/* Called when the upload has become a model. It stays in the table for KEPT_OUTCOME_S, and its
 * folder stays too, without a descriptor, so that even the next process can repeat the outcome. */
void kept_uploads_finish(struct kept_upload *upload);

/* Returns which of the table's 256 lists contains an id. */
unsigned kept_uploads_list_of(const char *id);

#endif
