/* Locks of names, and claims. */
#include "upload/shared/model_hold.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/server.h"

/* How long a writer of this process is waited for where publishing takes the network: as long as
 * the store waits for another server's. */
#define LOCK_WAIT_MS 15000
/* All that a store elsewhere is asked for one publication or removal, while a client waits: from
 * waiting for the name to its release. */
#define HOLD_MS 25000

/* --- locks of names --- */

static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t name_released = PTHREAD_COND_INITIALIZER;
static struct name_lock *locked_names;

static bool is_locked(const char *name)
{
    const struct name_lock *lock = locked_names;

    while (lock != NULL && strcmp(lock->name, name) != 0)
        lock = lock->next;
    return lock != NULL;
}

static void add(struct name_lock *lock)
{
    lock->next = locked_names;
    locked_names = lock;
}

void name_lock_take(struct name_lock *lock)
{
    pthread_mutex_lock(&names_lock);
    while (is_locked(lock->name))
        pthread_cond_wait(&name_released, &names_lock);
    add(lock);
    pthread_mutex_unlock(&names_lock);
}

bool name_lock_take_within(struct name_lock *lock, int64_t limit_ms)
{
    const int64_t until_ns = clock_ns() + limit_ms * CLOCK_NS_PER_MS;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / CLOCK_NS_PER_S),
                                   .tv_nsec = (long)(until_ns % CLOCK_NS_PER_S)};
    bool taken;

    pthread_mutex_lock(&names_lock);
    while (is_locked(lock->name) && pthread_cond_clockwait(&name_released, &names_lock,
                                                           CLOCK_MONOTONIC, &until) != ETIMEDOUT)
        continue;
    taken = !is_locked(lock->name);
    if (taken)
        add(lock);
    pthread_mutex_unlock(&names_lock);
    return taken;
}

void name_lock_release(const struct name_lock *lock)
{
    struct name_lock **at;

    pthread_mutex_lock(&names_lock);
    at = &locked_names;
    while (*at != NULL && *at != lock)
        at = &(*at)->next;
    assert(*at == lock);
    *at = lock->next;
    assert(!is_locked(lock->name));
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

static bool take_claim(struct model_hold *hold, int64_t by_ms, struct failure *failure)
{
    const struct zt_text name = zt_text_from(hold->lock.name);
    struct zt_error error;
    const enum zt_status status =
        hold->store->ops->claim(hold->store, name, by_ms, &hold->claim, &error);

    if (status == ZT_ARGUMENT)
        return fail_busy(failure);
    if (status == ZT_UNSUPPORTED)
        return failure_set(failure, PROBLEM_NOT_IMPLEMENTED, &error);
    return status == ZT_OK || failure_of_store(failure, &error);
}

bool model_hold_take(struct model_hold *hold, struct server *server, const char *name,
                     struct failure *failure)
{
    const int64_t by_ms = clock_ms() + HOLD_MS;

    *hold = (struct model_hold){.store = server->store, .lock = {.name = name}};
    if (!store_is_elsewhere(hold->store)) {
        name_lock_take(&hold->lock);
        return true;
    }
    if (!name_lock_take_within(&hold->lock, LOCK_WAIT_MS))
        return fail_busy(failure);
    if (take_claim(hold, by_ms, failure))
        return true;
    name_lock_release(&hold->lock);
    return false;
}

void model_hold_release(struct model_hold *hold)
{
    if (hold->claim != NULL)
        hold->store->ops->release(hold->claim);
    name_lock_release(&hold->lock);
}

bool model_hold_look(const struct model_hold *hold, const char *path,
                     struct store_expected *out_expected, struct failure *failure)
{
    struct store_expected expected = {.what = STORE_EXPECTS_VERSION};
    struct zt_source *source;
    struct zt_error error;
    const enum zt_status status =
        hold->store->ops->open(hold->store, path, &source, &expected.identity, &error);

    if (status == ZT_OK)
        zt_source_close(source);
    else if (status == ZT_NOT_FOUND)
        expected = store_expects_nothing;
    else
        return failure_of_store(failure, &error);
    *out_expected = expected;
    return true;
}
