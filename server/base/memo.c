/* A hash table of entries. Entries that are finished and kept are also in a list in order of last
 * use. An entry is freed when it is in neither and has no holder.
 *
 * One lock protects everything except the values: the maker writes a value before memo_done, and
 * others read it after memo_ask. */
#include "base/memo.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/recency.h"
#include "zt/digest.h"

#define BUCKETS_AT_FIRST 64
/* How often to check whether the waiting clients still exist; this takes a system call per
 * client. */
#define WAITERS_CHECK_MS 250

struct entry {
    struct recency_link link; /* first: a link of the list is its entry */
    struct memo *memo;
    struct entry *chain; /* in its bucket, or in a list of entries to be freed */
    uint64_t hash;
    size_t key_length; /* the key follows the value */
    bool is_listed;    /* in the table */
    bool is_kept;      /* in the list, and counted */
    bool is_making;
    bool is_awaited; /* memo_await was called, so rules.share may be called */
    bool has_failed;
    unsigned stages; /* number of stages made */
    unsigned holders;
    struct memo_charge charge;
    struct workers *workers; /* for the job */
    struct job *job;         /* queued to make the value; NULL once it has begun */
    struct waiter *waiters;
    int64_t waiters_checked_ms;
    int64_t fails_until_ms;
    struct zt_error *error; /* of a failure; NULL: no memory for it */
    max_align_t value[];
};

struct memo {
    struct memo_rules rules;
    pthread_mutex_t lock;
    pthread_cond_t ended; /* some value is no longer being made, or a job is to make it */
    struct entry **buckets;
    size_t bucket_count; /* a power of two */
    atomic_size_t count; /* number of entries in the table */
    struct recency kept;
    struct memo_charge charged;
    atomic_bool is_stopping;
};

static struct entry *entry_of(void *value)
{
    assert(value != NULL);
    return (struct entry *)(void *)((char *)value - offsetof(struct entry, value));
}

static char *key_of(struct entry *entry)
{
    return (char *)entry->value + entry->memo->rules.value_bytes;
}

struct memo *memo_new(const struct memo_rules *rules)
{
    struct memo *memo = calloc(1, sizeof(*memo));

    if (memo == NULL)
        return NULL;
    memo->rules = *rules;
    memo->bucket_count = BUCKETS_AT_FIRST;
    memo->buckets = calloc(memo->bucket_count, sizeof(struct entry *));
    if (memo->buckets == NULL) {
        free(memo);
        return NULL;
    }
    pthread_mutex_init(&memo->lock, NULL);
    pthread_cond_init(&memo->ended, NULL);
    return memo;
}

void memo_stop(struct memo *memo)
{
    if (memo != NULL)
        atomic_store(&memo->is_stopping, true);
}

bool memo_is_stopping(const struct memo *memo)
{
    return atomic_load(&memo->is_stopping);
}

bool memo_is_empty(const struct memo *memo)
{
    return atomic_load_explicit(&memo->count, memory_order_relaxed) == 0;
}

struct zt_text memo_key(void *value)
{
    struct entry *entry = entry_of(value);

    return (struct zt_text){key_of(entry), entry->key_length};
}

/* --- the table and the list; the lock is held --- */

static struct entry **find_link(const struct memo *memo, struct zt_text key, uint64_t hash)
{
    struct entry **link = &memo->buckets[hash & (memo->bucket_count - 1)];

    while (*link != NULL &&
           ((*link)->hash != hash ||
            !zt_text_equal((struct zt_text){key_of(*link), (*link)->key_length}, key)))
        link = &(*link)->chain;
    return link;
}

/* Doubles the number of buckets. If out of memory, lookups become slower. */
static void grow(struct memo *memo)
{
    const size_t count = memo->bucket_count * 2;
    struct entry **buckets = calloc(count, sizeof(*buckets));

    if (buckets == NULL)
        return;
    for (size_t i = 0; i < memo->bucket_count; i++)
        while (memo->buckets[i] != NULL) {
            struct entry *entry = memo->buckets[i];

            memo->buckets[i] = entry->chain;
            entry->chain = buckets[entry->hash & (count - 1)];
            buckets[entry->hash & (count - 1)] = entry;
        }
    free(memo->buckets);
    memo->buckets = buckets;
    memo->bucket_count = count;
}

/* Adds an entry without a holder. Returns NULL if out of memory. */
static struct entry *add(struct memo *memo, struct zt_text key, uint64_t hash)
{
    struct entry *entry = calloc(1, sizeof(*entry) + memo->rules.value_bytes + key.length);
    struct entry **bucket;

    if (entry == NULL)
        return NULL;
    if (atomic_load(&memo->count) >= memo->bucket_count)
        grow(memo);
    entry->memo = memo;
    entry->hash = hash;
    entry->key_length = key.length;
    if (key.length > 0)
        memcpy(key_of(entry), key.bytes, key.length);
    entry->is_listed = true;
    bucket = &memo->buckets[hash & (memo->bucket_count - 1)];
    entry->chain = *bucket;
    *bucket = entry;
    atomic_fetch_add(&memo->count, 1);
    return entry;
}

static void charge(struct entry *entry, struct memo_charge charged)
{
    struct memo *memo = entry->memo;

    assert(entry->is_listed && !entry->is_kept);
    if (charged.bytes == 0 && charged.count == 0)
        return;
    entry->is_kept = true;
    entry->charge = charged;
    memo->charged.bytes += charged.bytes;
    memo->charged.count += charged.count;
    recency_add(&memo->kept, &entry->link);
}

static void uncharge(struct entry *entry)
{
    struct memo *memo = entry->memo;

    if (!entry->is_kept)
        return;
    assert(memo->charged.bytes >= entry->charge.bytes &&
           memo->charged.count >= entry->charge.count);
    entry->is_kept = false;
    memo->charged.bytes -= entry->charge.bytes;
    memo->charged.count -= entry->charge.count;
    recency_remove(&memo->kept, &entry->link);
}

/* Removes an entry from the table and the list. If it has no holder, it is added to *freed. */
static void unlist(struct entry *entry, struct entry **freed)
{
    struct memo *memo = entry->memo;
    struct entry **link = &memo->buckets[entry->hash & (memo->bucket_count - 1)];

    if (!entry->is_listed)
        return;
    uncharge(entry);
    while (*link != entry)
        link = &(*link)->chain;
    *link = entry->chain;
    entry->is_listed = false;
    atomic_fetch_sub(&memo->count, 1);
    if (entry->holders == 0) {
        entry->chain = *freed;
        *freed = entry;
    }
}

/* Frees entries without a holder, least recently used first, until the rest is within the
 * limits. */
static void shrink(struct memo *memo, struct entry **freed)
{
    struct memo_charge most = memo->rules.most;
    struct recency_link *link = memo->kept.oldest;

    if (memo->rules.bounds != NULL)
        memo->rules.bounds(memo->rules.context, &most);
    while (link != NULL && (memo->charged.bytes > most.bytes || memo->charged.count > most.count)) {
        struct entry *entry = (struct entry *)link;

        link = link->newer;
        if (entry->holders == 0 && (link != NULL || !memo->rules.keeps_newest || most.bytes == 0))
            unlist(entry, freed);
    }
}

/* Ends a change: releases the lock and then frees the entries. */
static void unlock_and_free(struct memo *memo, struct entry *freed)
{
    pthread_mutex_unlock(&memo->lock);
    while (freed != NULL) {
        struct entry *next = freed->chain;

        assert(!freed->is_listed && !freed->is_kept && !freed->is_making);
        assert(freed->holders == 0 && freed->waiters == NULL);
        if (memo->rules.free_value != NULL)
            memo->rules.free_value(freed->value);
        free(freed->error);
        free(freed);
        freed = next;
    }
}

void memo_free(struct memo *memo)
{
    struct entry *freed = NULL;

    if (memo == NULL)
        return;
    pthread_mutex_lock(&memo->lock);
    while (memo->kept.oldest != NULL)
        unlist((struct entry *)memo->kept.oldest, &freed);
    unlock_and_free(memo, freed);
    assert(memo_is_empty(memo) && memo->charged.bytes == 0 && memo->charged.count == 0);
    pthread_cond_destroy(&memo->ended);
    pthread_mutex_destroy(&memo->lock);
    free(memo->buckets);
    free(memo);
}

/* --- holding values --- */

static void *hold(struct entry *entry)
{
    assert(entry->is_listed);
    entry->holders++;
    if (entry->is_kept)
        recency_touch(&entry->memo->kept, &entry->link);
    return entry->value;
}

void *memo_hold(struct memo *memo, struct zt_text key)
{
    const uint64_t hash = zt_xxh3(key.bytes, key.length);
    struct entry *freed = NULL;
    struct entry *entry;
    void *value = NULL;

    pthread_mutex_lock(&memo->lock);
    entry = *find_link(memo, key, hash);
    if (entry != NULL && entry->has_failed && clock_coarse_ms() >= entry->fails_until_ms) {
        unlist(entry, &freed);
        entry = NULL;
    }
    if (entry == NULL)
        entry = add(memo, key, hash);
    if (entry != NULL)
        value = hold(entry);
    unlock_and_free(memo, freed);
    return value;
}

void *memo_find(struct memo *memo, struct zt_text key)
{
    const uint64_t hash = zt_xxh3(key.bytes, key.length);
    struct entry *entry;
    void *value = NULL;

    if (memo_is_empty(memo))
        return NULL;
    pthread_mutex_lock(&memo->lock);
    entry = *find_link(memo, key, hash);
    if (entry != NULL && entry->is_kept && !entry->has_failed)
        value = hold(entry);
    pthread_mutex_unlock(&memo->lock);
    return value;
}

void memo_release(void *value)
{
    struct entry *entry = value != NULL ? entry_of(value) : NULL;
    struct entry *freed = NULL;
    struct memo *memo;

    if (entry == NULL)
        return;
    memo = entry->memo;
    pthread_mutex_lock(&memo->lock);
    assert(entry->holders > 0);
    entry->holders--;
    if (entry->holders == 0 && !entry->is_listed) {
        entry->chain = NULL;
        freed = entry;
    } else if (entry->holders == 0 && !entry->is_kept) {
        unlist(entry, &freed);
    }
    shrink(memo, &freed);
    unlock_and_free(memo, freed);
}

void memo_drop(void *value)
{
    struct entry *entry = entry_of(value);
    struct entry *freed = NULL;

    pthread_mutex_lock(&entry->memo->lock);
    assert(entry->holders > 0);
    unlist(entry, &freed);
    assert(freed == NULL);
    pthread_mutex_unlock(&entry->memo->lock);
}

void memo_recharge(void *value, struct memo_charge charged)
{
    struct entry *entry = entry_of(value);
    struct memo *memo = entry->memo;
    struct entry *freed = NULL;

    pthread_mutex_lock(&memo->lock);
    assert(entry->holders > 0);
    if (entry->is_kept) {
        memo->charged.bytes += charged.bytes - entry->charge.bytes;
        memo->charged.count += charged.count - entry->charge.count;
        entry->charge = charged;
        shrink(memo, &freed);
    }
    unlock_and_free(memo, freed);
}

bool memo_sweep(struct memo *memo, memo_choice choose, void *context)
{
    struct recency_link *link;
    struct entry *freed = NULL;
    bool any = false;

    pthread_mutex_lock(&memo->lock);
    link = memo->kept.oldest;
    while (link != NULL) {
        struct entry *entry = (struct entry *)link;

        link = link->newer;
        if (entry->has_failed || !choose(context, entry->value, entry->holders > 0))
            continue;
        unlist(entry, &freed);
        any = true;
    }
    unlock_and_free(memo, freed);
    return any;
}

/* --- making values --- */

/* Returns the answer without waiting. The lock must be held. */
static enum memo_answer answer(struct entry *entry, unsigned stage, struct zt_error *error)
{
    assert(entry->holders > 0 && stage <= entry->stages + 1);
    if (entry->has_failed) {
        if (error != NULL && entry->error != NULL)
            *error = *entry->error;
        else if (error != NULL)
            zt_fail_memory(error, "a result");
        return MEMO_FAILED;
    }
    if (entry->stages >= stage)
        return MEMO_READY;
    if (entry->is_making)
        return MEMO_PENDING;
    entry->is_making = true;
    entry->holders++;
    entry->waiters_checked_ms = clock_coarse_ms();
    return MEMO_MAKE;
}

static void add_waiter(struct entry *entry, struct waiter *waiter)
{
    assert(entry->is_making);
    waiter->next = entry->waiters;
    entry->waiters = waiter;
}

enum memo_answer memo_ask(void *value, unsigned stage, struct waiter *waiter,
                          struct zt_error *error)
{
    struct entry *entry = entry_of(value);
    struct memo *memo = entry->memo;
    enum memo_answer given;

    pthread_mutex_lock(&memo->lock);
    given = answer(entry, stage, error);
    if (given == MEMO_PENDING && waiter != NULL) {
        if (entry->job != NULL)
            workers_share(entry->workers, entry->job, waiter->client);
        else if (memo->rules.share != NULL && entry->is_awaited)
            memo->rules.share(value, waiter->client);
        add_waiter(entry, waiter);
    }
    pthread_mutex_unlock(&memo->lock);
    return given;
}

enum memo_answer memo_get(void *value, unsigned stage, struct zt_error *error)
{
    struct entry *entry = entry_of(value);
    struct memo *memo = entry->memo;
    enum memo_answer given;

    pthread_mutex_lock(&memo->lock);
    while ((given = answer(entry, stage, error)) == MEMO_PENDING && entry->job == NULL)
        pthread_cond_wait(&memo->ended, &memo->lock);
    if (given == MEMO_PENDING) {
        entry->job = NULL;
        entry->holders++;
        given = MEMO_MAKE;
    }
    pthread_mutex_unlock(&memo->lock);
    return given;
}

bool memo_is_ready(void *value, unsigned stage)
{
    struct entry *entry = entry_of(value);
    bool is_ready;

    pthread_mutex_lock(&entry->memo->lock);
    assert(entry->holders > 0);
    is_ready = !entry->has_failed && entry->stages >= stage;
    pthread_mutex_unlock(&entry->memo->lock);
    return is_ready;
}

void memo_submit(void *value, struct waiter *waiter, const struct memo_job *job)
{
    struct entry *entry = entry_of(value);
    struct memo *memo = entry->memo;

    pthread_mutex_lock(&memo->lock);
    add_waiter(entry, waiter);
    assert(entry->job == NULL);
    entry->job = job->job;
    entry->workers = job->workers;
    job->job->client = waiter->client;
    /* Submit it under the lock, so that callers of memo_ask find it queued. */
    workers_submit_sized(job->workers, job->job, job->bytes);
    /* Callers of memo_get that came before the job must take over from it: all workers may be among
     * them. */
    pthread_cond_broadcast(&memo->ended);
    pthread_mutex_unlock(&memo->lock);
}

bool memo_begin(void *value, const struct job *job)
{
    struct entry *entry = entry_of(value);
    bool is_maker;

    pthread_mutex_lock(&entry->memo->lock);
    is_maker = entry->job == job;
    if (is_maker)
        entry->job = NULL;
    assert(!is_maker || entry->is_making);
    pthread_mutex_unlock(&entry->memo->lock);
    return is_maker;
}

void memo_await(void *value, struct waiter *waiter)
{
    struct entry *entry = entry_of(value);

    pthread_mutex_lock(&entry->memo->lock);
    add_waiter(entry, waiter);
    entry->is_awaited = true;
    pthread_mutex_unlock(&entry->memo->lock);
}

/* Returns true if all holders except the maker are waiting for the value and their clients are
 * gone. The lock must be held. */
static bool is_abandoned(struct entry *entry)
{
    const int64_t now_ms = clock_coarse_ms();
    unsigned waiting = 0;

    if (now_ms - entry->waiters_checked_ms < WAITERS_CHECK_MS)
        return false;
    entry->waiters_checked_ms = now_ms;
    for (const struct waiter *waiter = entry->waiters; waiter != NULL; waiter = waiter->next)
        waiting++;
    return waiting + 1 == entry->holders && waiters_are_gone(entry->waiters);
}

bool memo_is_wanted(void *value)
{
    struct entry *entry = entry_of(value);
    struct memo *memo = entry->memo;
    struct entry *freed = NULL;
    bool is_wanted;

    if (memo_is_stopping(memo))
        return false;
    pthread_mutex_lock(&memo->lock);
    assert(entry->is_making);
    is_wanted = entry->is_listed && entry->holders > 1 && !is_abandoned(entry);
    if (!is_wanted)
        unlist(entry, &freed);
    pthread_mutex_unlock(&memo->lock);
    /* The maker holds the value, so it cannot have been freed. */
    assert(freed == NULL);
    return is_wanted;
}

/* Ends the making under the lock, and wakes all waiters without it. */
static void end(struct entry *entry, struct memo_charge charged)
{
    struct memo *memo = entry->memo;
    struct waiter *waiters = entry->waiters;
    struct entry *freed = NULL;

    assert(entry->is_making && entry->holders > 0 && entry->job == NULL);
    entry->is_making = false;
    entry->is_awaited = false;
    entry->waiters = NULL;
    if (entry->is_listed)
        charge(entry, charged);
    shrink(memo, &freed);
    pthread_cond_broadcast(&memo->ended);
    unlock_and_free(memo, freed);
    waiters_wake(waiters);
}

void memo_done(void *value, struct memo_charge charged)
{
    struct entry *entry = entry_of(value);

    pthread_mutex_lock(&entry->memo->lock);
    entry->stages++;
    end(entry, charged);
}

void memo_fail(void *value, const struct zt_error *error, struct memo_charge charged,
               int64_t lasts_ms)
{
    struct entry *entry = entry_of(value);
    struct zt_error *copy = malloc(sizeof(*copy));
    struct entry *freed = NULL;

    if (copy != NULL)
        *copy = *error;
    pthread_mutex_lock(&entry->memo->lock);
    assert(!entry->has_failed);
    entry->error = copy;
    entry->has_failed = true;
    entry->fails_until_ms = lasts_ms == MEMO_LASTING ? MEMO_LASTING : clock_coarse_ms() + lasts_ms;
    if (charged.bytes == 0 && charged.count == 0)
        unlist(entry, &freed);
    assert(freed == NULL);
    end(entry, charged);
}
