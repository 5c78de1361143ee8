#include "base/timed_waits.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"

/* How often to look for clients that are gone. */
#define LOOK_MS 1000

struct timed_waits {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct timed_wait *first;
    bool has_thread;
    bool has_ended;
    bool stopping;
    pthread_t thread;
};

static void unlink_wait(struct timed_waits *waits, struct timed_wait *wait)
{
    assert(wait->is_listed && lock_is_held(&waits->lock));
    if (wait->before != NULL)
        wait->before->after = wait->after;
    else
        waits->first = wait->after;
    if (wait->after != NULL)
        wait->after->before = wait->before;
    wait->is_listed = false;
}

static bool is_over(const struct timed_waits *waits, const struct timed_wait *wait, int64_t now_ms)
{
    return waits->has_ended || now_ms >= wait->due_ms ||
           (wait->waiter->is_gone != NULL && wait->waiter->is_gone(wait->waiter));
}

/* Returns how long to wait before the next call. The lock protects the waiters: a woken request
 * removes its wait before it is freed. */
static int64_t end_due(struct timed_waits *waits)
{
    const int64_t now_ms = clock_ms();
    int64_t pause_ms = LOOK_MS;
    struct timed_wait *after;

    for (struct timed_wait *wait = waits->first; wait != NULL; wait = after) {
        after = wait->after;
        if (is_over(waits, wait, now_ms)) {
            unlink_wait(waits, wait);
            if (wait->forget(wait->context, wait->waiter))
                wait->waiter->wake(wait->waiter);
        } else if (wait->due_ms - now_ms < pause_ms) {
            pause_ms = wait->due_ms - now_ms;
        }
    }
    return pause_ms;
}

static void *run(void *argument)
{
    struct timed_waits *waits = argument;

    pthread_mutex_lock(&waits->lock);
    while (!waits->stopping) {
        const int64_t pause_ms = end_due(waits);

        if (waits->first == NULL)
            pthread_cond_wait(&waits->changed, &waits->lock);
        else
            thread_wait_ms(&waits->changed, &waits->lock, (unsigned)pause_ms);
    }
    pthread_mutex_unlock(&waits->lock);
    return NULL;
}

struct timed_waits *timed_waits_new(void)
{
    struct timed_waits *waits = calloc(1, sizeof(*waits));

    if (waits == NULL)
        return NULL;
    pthread_mutex_init(&waits->lock, NULL);
    pthread_cond_init(&waits->changed, NULL);
    return waits;
}

void timed_waits_free(struct timed_waits *waits)
{
    if (waits == NULL)
        return;
    assert(waits->first == NULL);
    pthread_mutex_lock(&waits->lock);
    waits->stopping = true;
    pthread_cond_signal(&waits->changed);
    pthread_mutex_unlock(&waits->lock);
    if (waits->has_thread)
        pthread_join(waits->thread, NULL);
    pthread_cond_destroy(&waits->changed);
    pthread_mutex_destroy(&waits->lock);
    free(waits);
}

bool timed_waits_add(struct timed_waits *waits, struct timed_wait *wait)
{
    bool is_added;

    assert(!wait->is_listed && wait->waiter != NULL && wait->forget != NULL);
    pthread_mutex_lock(&waits->lock);
    if (!waits->has_thread && !waits->has_ended)
        waits->has_thread = thread_start(&waits->thread, "timed waits", run, waits) == 0;
    is_added = waits->has_thread && !waits->has_ended;
    if (is_added) {
        wait->before = NULL;
        wait->after = waits->first;
        if (wait->after != NULL)
            wait->after->before = wait;
        waits->first = wait;
        wait->is_listed = true;
        pthread_cond_signal(&waits->changed);
    }
    pthread_mutex_unlock(&waits->lock);
    /* The wait may have ended by now. */
    return is_added;
}

void timed_waits_remove(struct timed_waits *waits, struct timed_wait *wait)
{
    pthread_mutex_lock(&waits->lock);
    if (wait->is_listed)
        unlink_wait(waits, wait);
    pthread_mutex_unlock(&waits->lock);
}

void timed_waits_end(struct timed_waits *waits)
{
    if (waits == NULL)
        return;
    pthread_mutex_lock(&waits->lock);
    waits->has_ended = true;
    pthread_cond_signal(&waits->changed);
    pthread_mutex_unlock(&waits->lock);
}
