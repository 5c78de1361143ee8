/* Uploads that outlive their request and the process: the streaming writer's sessions, resumable
 * uploads, and files that wait for a commit. This is what they share: references, a table by id,
 * places in the store, and expiry. Each kind of upload defines how it is opened again and how it
 * ends. Safe from any thread. */
#ifndef UPLOAD_SHARED_KEPT_UPLOADS_H
#define UPLOAD_SHARED_KEPT_UPLOADS_H

#include "upload/shared/registry.h"

/* How long an outcome can be requested again, in case the answer was lost. */
#define KEPT_OUTCOME_S 600

struct kept_upload;

enum kept_opened {
    KEPT_OPENED,
    KEPT_OUTCOME,   /* opened: it became a model, and only the answer is left */
    KEPT_NOT_OURS,  /* of another kind, or never acknowledged */
    KEPT_UNREADABLE /* it may be ours: it stays on disk for the next start */
};

/* A kind of upload; constant. */
struct kept_kind {
    enum upload_kind kind;
    /* Opens the upload in the place of that id, as an earlier process left it, with one
     * reference. */
    enum kept_opened (*open)(struct server *server, const char *id,
                             struct kept_upload **out_upload);
    /* When it expires unless it is touched. May be called with the table's lock held. */
    time_t (*expires)(struct kept_upload *upload);
    /* Ends an expired upload: from then on no request can use it. False while a request uses it. On
     * a worker. */
    bool (*end)(struct kept_upload *upload);
    /* Frees the memory; what is on disk stays. */
    void (*free)(struct kept_upload *upload);
};

/* The first member of every kind's structure. */
struct kept_upload {
    const struct kept_kind *kind;
    struct server *server;
    struct registry_entry entry;
    atomic_uint references; /* the table's, and one for each request or job */
    bool is_listed;         /* in the table; with the table's lock */
    bool is_outcome_kept;   /* counts toward the maximum number of outcomes */
    struct kept_upload *next;
};

/* Initialises a cleared structure, with one reference. */
void kept_upload_init(struct kept_upload *upload, const struct kept_kind *kind,
                      struct server *server, const char *id);
void kept_upload_hold(struct kept_upload *upload);
/* Takes NULL; void * for request_hold. */
void kept_upload_release(void *upload);
/* Postpones expiry, since the upload is in use. */
void kept_upload_touch(struct kept_upload *upload);

/* --- the table --- */

/* kinds: ended by NULL, borrowed. NULL if out of memory. */
struct kept_uploads *kept_uploads_new(struct server *server, const struct kept_kind *const *kinds);
/* To be called after the workers have stopped. What is on disk stays. Takes NULL. */
void kept_uploads_free(struct kept_uploads *kept);

/* At start: takes over uploads that an earlier process left in the store, and removes those that no
 * kind can continue. */
void kept_uploads_restore(struct kept_uploads *kept);
/* Has a worker look for expired uploads every second. To be called after the loops have started. */
void kept_uploads_watch(struct kept_uploads *kept);
/* Removes expired uploads. On a worker. */
void kept_uploads_expire(struct kept_uploads *kept);

/* Finds and holds an upload; NULL if there is none of that kind. */
struct kept_upload *kept_uploads_find(struct kept_uploads *kept, enum upload_kind kind,
                                      struct zt_text id);
/* Finds and holds any upload of which is_it says so; NULL if there is none. is_it must not wait. */
struct kept_upload *kept_uploads_search(struct kept_uploads *kept,
                                        bool (*is_it)(const void *context,
                                                      const struct kept_upload *upload),
                                        const void *context);
/* The same as find, but also takes over an upload that another process has left since this one
 * started. */
struct kept_upload *kept_uploads_find_or_adopt(struct kept_uploads *kept, enum upload_kind kind,
                                               struct zt_text id);

/* Adds an upload to the table and the registry, with a reference of its own. False, without effect,
 * if the client has too many. */
bool kept_uploads_add(struct kept_upload *upload);
/* Removes an upload and its place. The caller has ended it, so no request uses it any more. On a
 * worker. */
void kept_uploads_drop(struct kept_upload *upload);
/* Removes an upload that has no place. */
void kept_uploads_forget(struct kept_upload *upload);
/* To be called when the upload has become a model. It stays in the table for a while, and so does
 * its place, unless there are too many such places: so even the next process can repeat the
 * outcome. */
void kept_uploads_finish(struct kept_upload *upload);

/* Which of the table's 256 lists an id is in. */
unsigned kept_uploads_list_of(const char *id);

#endif
