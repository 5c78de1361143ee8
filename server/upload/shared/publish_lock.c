/* Implements locks of names, and claims. */
#include "upload/shared/publish_lock.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/server.h"
#include "store/store_here.h"

/* How long to wait for another writer of this process if publishing uses the network: as long as
 * the store waits for another server's writer. */
#define LOCK_WAIT_MS 15000
/* Limits all requests to a remote store for one publication or removal while a client waits, from
 * waiting for the name to its release. */
#define HOLD_MS 25000

/* --- locks of names --- */

static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t name_released = PTHREAD_COND_INITIALIZER;
static struct publish_lock *held;

static bool is_held(const char *name)
{
    const struct publish_lock *lock = held;

    while (lock != NULL && strcmp(lock->name, name) != 0)
        lock = lock->next;
    return lock != NULL;
}

/* Waits for the name for at most limit_ms; without a limit if it is negative. Returns false if the
 * time is up. */
static bool take_name(struct publish_lock *lock, int64_t limit_ms)
{
    const int64_t until_ns = clock_ns() + limit_ms * CLOCK_NS_PER_MS;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / CLOCK_NS_PER_S),
                                   .tv_nsec = (long)(until_ns % CLOCK_NS_PER_S)};
    int waited = 0;
    bool taken;

    assert(lock->next == NULL);
    pthread_mutex_lock(&names_lock);
    while (is_held(lock->name) && waited != ETIMEDOUT)
        waited = limit_ms < 0
                     ? pthread_cond_wait(&name_released, &names_lock)
                     : pthread_cond_clockwait(&name_released, &names_lock, CLOCK_MONOTONIC, &until);
    taken = !is_held(lock->name);
    if (taken) {
        lock->next = held;
        held = lock;
    }
    pthread_mutex_unlock(&names_lock);
    return taken;
}

static void release_name(const struct publish_lock *lock)
{
    struct publish_lock **at;

    pthread_mutex_lock(&names_lock);
    at = &held;
    while (*at != NULL && *at != lock)
        at = &(*at)->next;
    assert(*at == lock);
    *at = lock->next;
    assert(!is_held(lock->name));
    pthread_cond_broadcast(&name_released);
    pthread_mutex_unlock(&names_lock);
}

/* --- locks and claims --- */

static bool fail_busy(struct failure *failure)
{
    (void)failure_refuse(failure, PROBLEM_CONFLICT, "another writer is publishing under this name");
    failure->is_passing = true;
    return false;
}

static bool take_claim(struct publish_lock *lock, int64_t by_ms, struct failure *failure)
{
    const struct zt_text name = zt_text_from(lock->name);
    struct zt_error error;
    const enum zt_status status =
        lock->store->claims->claim(lock->store, name, by_ms, &lock->claim, &error);

    assert(store_needs_claims(lock->store));
    assert((status == ZT_OK) == (lock->claim != NULL));
    if (status == ZT_ARGUMENT)
        return fail_busy(failure);
    if (status == ZT_UNSUPPORTED)
        return failure_set(failure, PROBLEM_NOT_IMPLEMENTED, &error);
    return status == ZT_OK || failure_of_store(failure, &error);
}

bool publish_lock_exclude(struct publish_lock *lock, struct failure *failure)
{
    struct zt_error error;
    enum zt_status status;

    assert(lock->folder_lock < 0);
    if (lock->store->ops->exclude == NULL)
        return true;
    status = lock->store->ops->exclude(lock->store, lock->name, clock_ms() + LOCK_WAIT_MS,
                                       &lock->folder_lock, &error);
    if (status == ZT_ARGUMENT)
        return fail_busy(failure);
    return status == ZT_OK || failure_of_store(failure, &error);
}

void publish_lock_take_here(struct publish_lock *lock, struct store *store, const char *name)
{
    *lock = (struct publish_lock){.store = store, .name = name, .folder_lock = -1};
    (void)take_name(lock, -1);
    store_here_begin();
}

/* Checks again: the repository may have been mirrored since the request began. */
static bool is_writable(const struct publish_lock *lock, const char *path, struct failure *failure)
{
    struct store *store = lock->store;
    char why[STORE_WHY_SIZE];

    if (store->revisions == NULL || !store->revisions->refuses(store, path, why))
        return true;
    return failure_refuse(failure, PROBLEM_CONFLICT, "%s", why);
}

/* The lock names what it locks. */
static bool take(struct publish_lock *lock, struct failure *failure)
{
    const int64_t by_ms = clock_ms() + HOLD_MS;

    assert(lock->claim == NULL && lock->folder_lock < 0);
    if (!store_needs_claims(lock->store)) {
        (void)take_name(lock, -1);
        if (publish_lock_exclude(lock, failure))
            return true;
        release_name(lock);
        return false;
    }
    if (!take_name(lock, LOCK_WAIT_MS))
        return fail_busy(failure);
    if (take_claim(lock, by_ms, failure))
        return true;
    release_name(lock);
    return false;
}

static bool begin(struct publish_lock *lock, const char *path, struct failure *failure)
{
    if (!is_writable(lock, path, failure) || !take(lock, failure))
        return false;
    store_here_begin();
    return true;
}

bool publish_lock_take(struct publish_lock *lock, struct server *server, const char *name,
                       struct failure *failure)
{
    char path[MODEL_PATH_SIZE];

    *lock = (struct publish_lock){.store = server->store, .name = name, .folder_lock = -1};
    snprintf(path, sizeof(path), "%s.zt", name);
    return begin(lock, path, failure);
}

bool publish_lock_take_path(struct publish_lock *lock, struct server *server, const char *path,
                            struct failure *failure)
{
    *lock = (struct publish_lock){.store = server->store, .name = path, .folder_lock = -1};
    if (model_path_name(path, lock->model))
        lock->name = lock->model;
    else
        lock->model[0] = '\0';
    return begin(lock, path, failure);
}

void publish_lock_release(struct publish_lock *lock)
{
    assert(lock->claim == NULL || (lock->folder_lock < 0 && store_needs_claims(lock->store)));
    if (lock->claim != NULL)
        lock->store->claims->release(lock->claim);
    store_local_release(lock->folder_lock);
    release_name(lock);
    store_here_end();
}

bool publish_lock_find(const struct publish_lock *lock, const char *path,
                       struct store_expected *out_expected, struct failure *failure)
{
    struct store_expected expected = {.what = STORE_EXPECTS_VERSION};
    struct zt_source *source;
    struct zt_error error;
    const enum zt_status status =
        lock->store->ops->open(lock->store, path, &source, &expected.identity, &error);

    if (status == ZT_OK)
        zt_source_close(source);
    else if (status == ZT_NOT_FOUND)
        expected = store_expects_nothing;
    else
        return failure_of_store(failure, &error);
    *out_expected = expected;
    return true;
}

bool publish_lock_fail(const struct publish_lock *lock, const struct preconditions *preconditions,
                       const struct zt_error *error, const char *done, struct failure *failure)
{
    assert(error->status != ZT_OK);
    if (error->status == ZT_UNAVAILABLE && lock->claim != NULL && lock->claim->outcome_is_unknown)
        return failure_refuse(
            failure, PROBLEM_STORE_UNAVAILABLE,
            "the object store did not respond, so it is unknown whether the model was %s", done);
    if (error->status != ZT_ARGUMENT)
        return failure_of_store(failure, error);
    if (preconditions_are_given(preconditions))
        return failure_refuse(failure, PROBLEM_PRECONDITION_FAILED,
                              "the model was changed meanwhile");
    (void)failure_set(failure, PROBLEM_CONFLICT, error);
    failure->is_passing = true;
    return false;
}
