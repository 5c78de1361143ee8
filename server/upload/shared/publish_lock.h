/* Locks a model's name, so that only one writer publishes or removes under it: with a lock in this
 * process, and for a bucket with a claim across servers. */
#ifndef UPLOAD_SHARED_PUBLISH_LOCK_H
#define UPLOAD_SHARED_PUBLISH_LOCK_H

#include "http/fields/conditional.h"
#include "store/store.h"
#include "upload/shared/failure.h"

struct server;

/* Writers of the same name wait for each other; writers of different names do not. */
struct publish_lock {
    struct store *store;
    const char *name;               /* borrowed, or model */
    char model[MODEL_NAME_MAX + 1]; /* by publish_lock_take_path: the path's model; empty: none */
    struct store_claim *claim;      /* NULL for a folder */
    int folder_lock;           /* the lock of a folder that several servers write to; -1: none */
    struct publish_lock *next; /* held by this process */
};

/* Takes the lock and the claim. name is borrowed until the release. Returns false with failure set
 * if the store cannot be reached, does not accept writes, or another writer holds the name too
 * long. On a worker. */
bool publish_lock_take(struct publish_lock *lock, struct server *server, const char *name,
                       struct failure *failure);
/* Locks the name of the model that a path belongs to, or could belong to; otherwise the path, which
 * is borrowed. Replicas of a bucket claim models by name, so writers of one model's files must wait
 * for each other. */
bool publish_lock_take_path(struct publish_lock *lock, struct server *server, const char *path,
                            struct failure *failure);
/* On the thread that took the lock, which meanwhile looks for files only in the store itself
 * (store/store_here.h). */
void publish_lock_release(struct publish_lock *lock);

/* --- a name that no file has, such as a repository --- */

/* Takes a lock that only writers of this process wait for. name is borrowed until the release. */
void publish_lock_take_here(struct publish_lock *lock, struct store *store, const char *name);
/* Makes writers of the name on other servers of this folder wait too, until the release;
 * folder_lock stays -1 if there are none. Returns false with failure set. On a worker. */
bool publish_lock_exclude(struct publish_lock *lock, struct failure *failure);

/* --- under the lock --- */

/* Finds the current version at a path, for a write that expects it. Returns false with failure
 * set. */
bool publish_lock_find(const struct publish_lock *lock, const char *path,
                       struct store_expected *out_expected, struct failure *failure);

/* Records why the store did not change a file under the lock: with ZT_ARGUMENT, because it had
 * another version than expected. done: "published" or "removed". Returns false. */
bool publish_lock_fail(const struct publish_lock *lock, const struct preconditions *preconditions,
                       const struct zt_error *error, const char *done, struct failure *failure);

#endif
