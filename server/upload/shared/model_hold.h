/* One writer of a model's name at a time: in this process by a lock; and where the store is
 * elsewhere, on every server by the store's claim. */
#ifndef UPLOAD_SHARED_MODEL_HOLD_H
#define UPLOAD_SHARED_MODEL_HOLD_H

#include "store/store.h"
#include "upload/shared/failure.h"

struct server;

/* Writers of one name wait for each other; those of other names do not. name is borrowed while the
 * lock is held. */
struct name_lock {
    const char *name;
    struct name_lock *next;
};
void name_lock_take(struct name_lock *lock);
/* The same, but waits for at most so long. False: in vain. */
bool name_lock_take_within(struct name_lock *lock, int64_t limit_ms);
void name_lock_release(const struct name_lock *lock);

struct model_hold {
    struct store *store;
    struct name_lock lock;
    struct store_claim *claim; /* NULL for a folder */
};

/* Takes lock and claim; name is borrowed until the release. False with failure set: the store is
 * away, takes no writes, or another writer does not end. On a worker. */
bool model_hold_take(struct model_hold *hold, struct server *server, const char *name,
                     struct failure *failure);
void model_hold_release(struct model_hold *hold);

/* What is under a path now, to be what a write expects. False with failure set. While it is
 * held. */
bool model_hold_look(const struct model_hold *hold, const char *path,
                     struct store_expected *out_expected, struct failure *failure);

#endif
