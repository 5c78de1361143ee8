#include "upstream/lookups.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "upstream/listing.h"

struct lookup {
    struct lookup *next;
    char key[LOOKUP_KEY_SIZE];
    bool is_done;
    bool is_outdated; /* no new caller may have it */
    unsigned users;   /* calls that run it or wait for it */
    int64_t until_ms; /* 0: not remembered */
    struct lookup_answer answer;
};

struct lookups {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct lookup *first; /* the newest */
    unsigned running;
};

struct lookups *lookups_new(void)
{
    struct lookups *lookups = calloc(1, sizeof(*lookups));

    if (lookups == NULL)
        return NULL;
    pthread_mutex_init(&lookups->lock, NULL);
    pthread_cond_init(&lookups->changed, NULL);
    return lookups;
}

static void free_lookup(struct lookup *lookup)
{
    upstream_listing_free(lookup->answer.listing);
    free(lookup);
}

void lookups_free(struct lookups *lookups)
{
    if (lookups == NULL)
        return;
    assert(lookups->running == 0);
    while (lookups->first != NULL) {
        struct lookup *next = lookups->first->next;

        free_lookup(lookups->first);
        lookups->first = next;
    }
    pthread_cond_destroy(&lookups->changed);
    pthread_mutex_destroy(&lookups->lock);
    free(lookups);
}

/* Under the lock. Drops lookups that have ended, and the oldest if too many are remembered. */
static void sweep(struct lookups *lookups)
{
    const int64_t now_ms = clock_ms();
    struct lookup **at = &lookups->first;
    unsigned remembered = 0;

    while (*at != NULL) {
        struct lookup *lookup = *at;
        const bool is_remembered =
            lookup->until_ms > now_ms && remembered < LOOKUPS_REMEMBERED_MOST;

        if (lookup->users > 0 || is_remembered) {
            remembered += is_remembered;
            at = &lookup->next;
            continue;
        }
        *at = lookup->next;
        free_lookup(lookup);
    }
}

static struct lookup *find(const struct lookups *lookups, const char *key)
{
    const int64_t now_ms = clock_ms();

    for (struct lookup *lookup = lookups->first; lookup != NULL; lookup = lookup->next)
        if (!lookup->is_outdated && strcmp(lookup->key, key) == 0 &&
            (!lookup->is_done || lookup->until_ms > now_ms))
            return lookup;
    return NULL;
}

/* Returns until when an answer is remembered; 0: not at all. */
static int64_t remembered_until_ms(const struct lookup_answer *answer)
{
    const bool is_refusal = answer->status == ZT_UNAVAILABLE && answer->rule != NULL &&
                            strcmp(answer->rule, UPSTREAM_REFUSED) == 0;

    if (is_refusal)
        return answer->pause_until_ms;
    return answer->status == ZT_NOT_FOUND || answer->status == ZT_STALE
               ? clock_ms() + LOOKUPS_REMEMBERED_MS
               : 0;
}

/* Under the lock, which is released while work runs. */
static void run(struct lookups *lookups, struct lookup *lookup,
                void (*work)(void *context, struct lookup_answer *out_answer), void *context)
{
    struct lookup_answer answer = {.status = ZT_OK};

    lookups->running++;
    pthread_mutex_unlock(&lookups->lock);
    work(context, &answer);
    pthread_mutex_lock(&lookups->lock);
    lookups->running--;
    lookup->answer = answer;
    lookup->is_done = true;
    if (!lookup->is_outdated)
        lookup->until_ms = remembered_until_ms(&answer);
    pthread_cond_broadcast(&lookups->changed);
}

static struct lookup *add(struct lookups *lookups, const char *key, struct zt_error *error)
{
    struct lookup *lookup;

    if (lookups->running == LOOKUPS_RUNNING_MOST) {
        zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_AWAY, ZT_NO_OFFSET,
                "too many repositories are being looked up upstream");
        return NULL;
    }
    lookup = calloc(1, sizeof(*lookup));
    if (lookup == NULL) {
        zt_fail_memory(error, "a lookup");
        return NULL;
    }
    assert(strlen(key) < sizeof(lookup->key));
    strcpy(lookup->key, key);
    lookup->next = lookups->first;
    lookups->first = lookup;
    return lookup;
}

enum zt_status lookups_run(struct lookups *lookups, const char *key,
                           void (*work)(void *context, struct lookup_answer *out_answer),
                           void *context, struct lookup_answer *out_answer, struct zt_error *error)
{
    struct lookup *lookup;
    enum zt_status status = ZT_NO_MEMORY;
    struct zt_error why = {.status = ZT_NO_MEMORY};

    pthread_mutex_lock(&lookups->lock);
    lookup = find(lookups, key);
    if (lookup != NULL) {
        lookup->users++;
        /* The caller that runs it has a limit in time. */
        while (!lookup->is_done)
            pthread_cond_wait(&lookups->changed, &lookups->lock);
    } else if ((lookup = add(lookups, key, &why)) != NULL) {
        lookup->users++;
        run(lookups, lookup, work, context);
    }
    if (lookup != NULL) {
        *out_answer = lookup->answer;
        if (out_answer->listing != NULL)
            upstream_listing_hold(out_answer->listing);
        lookup->users--;
        status = ZT_OK;
    } else
        status = why.status;
    sweep(lookups);
    pthread_mutex_unlock(&lookups->lock);
    if (status != ZT_OK && error != NULL)
        *error = why;
    return status;
}

void lookups_forget(struct lookups *lookups)
{
    pthread_mutex_lock(&lookups->lock);
    for (struct lookup *lookup = lookups->first; lookup != NULL; lookup = lookup->next) {
        lookup->is_outdated = true;
        lookup->until_ms = 0;
    }
    sweep(lookups);
    pthread_mutex_unlock(&lookups->lock);
}
