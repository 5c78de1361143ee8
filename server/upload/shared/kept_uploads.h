/* Uploads that outlive their request, and the process: the streaming writer's sessions and
 * resumable uploads. Here are what they share (references, a table by id, their place in the store)
 * and their expiry; a kind of upload says how one is opened again and how it ends. Safe from any
 * thread. */
#ifndef UPLOAD_SHARED_KEPT_UPLOADS_H
#define UPLOAD_SHARED_KEPT_UPLOADS_H

#include "upload/shared/registry.h"

/* How long an outcome can be asked for again: its answer may have been lost. */
#define KEPT_OUTCOME_S 600

struct kept_upload;

enum kept_opened {
    KEPT_OPENED,
    KEPT_OUTCOME,   /* opened: it became a model, and only the answer is left */
    KEPT_NOT_OURS,  /* another kind's, or what is there was never acknowledged */
    KEPT_UNREADABLE /* it may be ours: it stays on disk, for another start */
};

/* A kind of upload; constant. */
struct kept_kind {
    enum upload_kind kind;
    /* Opens the place of that id as an earlier process left it, with one reference. */
    enum kept_opened (*open)(struct server *server, const char *id,
                             struct kept_upload **out_upload);
    /* When it expires unless it is touched. May be called with the table's lock held. */
    time_t (*expires)(struct kept_upload *upload);
    /* Ends it because it has expired: from then on no request can work on it. False while one does.
     * On a worker. */
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
    bool is_outcome_kept;   /* counted: only so many are */
    struct kept_upload *next;
};

/* Of a cleared structure, with one reference. */
void kept_upload_init(struct kept_upload *upload, const struct kept_kind *kind,
                      struct server *server, const char *id);
void kept_upload_hold(struct kept_upload *upload);
/* Takes NULL. void *, so that it fits request_hold. */
void kept_upload_release(void *upload);
/* Somebody works with it: it does not expire for now. */
void kept_upload_touch(struct kept_upload *upload);

/* --- the table --- */

/* kinds: ended by NULL, borrowed. NULL when memory is out. */
struct kept_uploads *kept_uploads_new(struct server *server, const struct kept_kind *const *kinds);
/* After the workers have stopped. What is kept on disk stays. Takes NULL. */
void kept_uploads_free(struct kept_uploads *kept);

/* At start: takes over what an earlier process left in the store. What no kind of upload can
 * continue is removed. */
void kept_uploads_restore(struct kept_uploads *kept);
/* Lets a worker look for expired uploads every second. After the loops have started. */
void kept_uploads_watch(struct kept_uploads *kept);
/* What that worker does. */
void kept_uploads_expire(struct kept_uploads *kept);

/* Held; NULL when there is none of that kind. */
struct kept_upload *kept_uploads_find(struct kept_uploads *kept, enum upload_kind kind,
                                      struct zt_text id);
/* The same; one that another process left since this one started is taken over. */
struct kept_upload *kept_uploads_find_or_adopt(struct kept_uploads *kept, enum upload_kind kind,
                                               struct zt_text id);

/* Registers it, and takes a reference of its own. False, and nothing happened, when the client has
 * too many. */
bool kept_uploads_add(struct kept_upload *upload);
/* Removes it and its place. The caller has ended it: no request works on it any more. On a
 * worker. */
void kept_uploads_drop(struct kept_upload *upload);
/* Removes one that has no place. */
void kept_uploads_forget(struct kept_upload *upload);
/* It has become a model. It stays in the table for a while, and its place does too, so that even
 * the next process can repeat the outcome, unless there are many such places. */
void kept_uploads_finish(struct kept_upload *upload);

/* Which of the table's 256 lists an id is in. */
unsigned kept_uploads_list_of(const char *id);

#endif
