/* Makes a value once per key and shares it between all callers that request it.
 *
 *   value = memo_hold(memo, key);      held until memo_release
 *   switch (memo_ask(value, 1, waiter, &error))
 *     MEMO_READY    read the value
 *     MEMO_PENDING  another caller is making it; waiter is woken at the end, then call again
 *     MEMO_FAILED   error has the reason
 *     MEMO_MAKE     make it: here, or in a job (memo_submit); then memo_done or memo_fail
 *
 * A value can be made in stages, counted from 1; most have one. Finished values are kept after
 * their last holder has released them. When their charges exceed the limits, the least recently
 * used values without a holder are freed. All functions may be called on any thread. */
#ifndef BASE_MEMO_H
#define BASE_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/workers.h"
#include "zt/status.h"

struct memo;

/* The cost of a finished value. A value without cost is not kept. */
struct memo_charge {
    uint64_t bytes;
    size_t count;
};

#define MEMO_NOT_KEPT ((struct memo_charge){0, 0})

struct memo_rules {
    size_t value_bytes; /* size of a value; a new value is zeroed */
    /* Frees the contents of a value; called without a lock. NULL: no contents to free. */
    void (*free_value)(void *value);
    /* Called with the memo's lock when another client waits for a value whose maker has called
     * memo_await. May be NULL. */
    void (*share)(void *value, uint64_t client);
    struct memo_charge most; /* the limits */
    /* Fills in the limits if they can change. NULL: `most` applies. */
    void (*bounds)(void *context, struct memo_charge *out_most);
    void *context; /* for bounds */
    /* Keep the newest value even if it exceeds a limit by itself, unless no bytes may be kept. */
    bool keeps_newest;
};

enum memo_answer { MEMO_READY, MEMO_PENDING, MEMO_FAILED, MEMO_MAKE };

/* Returns NULL if out of memory. */
struct memo *memo_new(const struct memo_rules *rules);
/* No value may still be held. Accepts NULL. */
void memo_free(struct memo *memo);
/* Makes memo_is_wanted return false, so that makers give up soon. Accepts NULL. */
void memo_stop(struct memo *memo);
bool memo_is_stopping(const struct memo *memo);
/* Takes no lock. */
bool memo_is_empty(const struct memo *memo);

/* --- holding values --- */

/* Returns the value of a key, made or not, and holds it for the caller. Returns NULL if out of
 * memory. */
void *memo_hold(struct memo *memo, struct zt_text key);
/* Does the same if the value is finished and has not failed; else returns NULL. */
void *memo_find(struct memo *memo, struct zt_text key);
/* Accepts NULL; void * for request_hold. An unfinished value is freed with its last holder. */
void memo_release(void *value);
/* Makes sure that later calls of memo_hold do not find this held value. */
void memo_drop(void *value);
/* Returns the key, which is part of the value. */
struct zt_text memo_key(void *value);
/* Changes the charge of a finished value. */
void memo_recharge(void *value, struct memo_charge charge);

/* Called with the lock. */
typedef bool (*memo_choice)(void *context, const void *value, bool is_held);

/* Drops the finished values that choose accepts, least recently used first. Returns true if there
 * were any. */
bool memo_sweep(struct memo *memo, memo_choice choose, void *context);

/* --- making values --- */

/* Requests a stage of a held value. After MEMO_MAKE the caller is the maker and holds the value a
 * second time: it must call memo_release after memo_done or memo_fail. waiter and error may be
 * NULL. */
enum memo_answer memo_ask(void *value, unsigned stage, struct waiter *waiter,
                          struct zt_error *error);

/* Does the same on a thread that may block: takes over from a job that has not begun, and waits for
 * any other maker. Never returns MEMO_PENDING. */
enum memo_answer memo_get(void *value, unsigned stage, struct zt_error *error);

/* Returns true if a stage of a held value has been made. Never waits. */
bool memo_is_ready(void *value, unsigned stage);

/* A job that makes a value; bytes is as for workers_submit_sized. */
struct memo_job {
    struct workers *workers;
    struct job *job;
    uint64_t bytes;
};

/* For the maker: adds its own waiter, and queues a job that becomes the maker. */
void memo_submit(void *value, struct waiter *waiter, const struct memo_job *job);
/* The job's first call. Returns false if another thread has taken over; the job must then only call
 * memo_release. */
bool memo_begin(void *value, const struct job *job);
/* For a maker without such a job: adds its own waiter. */
void memo_await(void *value, struct waiter *waiter);

/* Tells the maker whether to continue. Returns false if the memo is stopping, if no request holds
 * the value, or if the clients of all holders are gone; later requests then do not find the value.
 * Takes a void pointer to a value, so that it can be a callback. */
bool memo_is_wanted(void *value);

/* Ends a stage and wakes all waiters. The charge counts from now on. */
void memo_done(void *value, struct memo_charge charge);

#define MEMO_LASTING INT64_MAX

/* Ends the value with a failure and wakes all waiters. Callers that already hold it get the
 * failure. Callers of memo_hold get it for lasts_ms, if it has a charge. */
void memo_fail(void *value, const struct zt_error *error, struct memo_charge charge,
               int64_t lasts_ms);

#endif
