/* A thread for work that no client waits for: it probes a store that was away at start, aborts
 * multipart uploads that are no longer needed, and sweeps dead writers' leftovers. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "store/s3_write/s3_multipart.h"

/* A dead writer's claim is removed at most this long after other writers may take it over. */
#define SWEEP_S 20
/* Seconds between tries to reach a store that was away at start. */
#define PROBE_S 3
/* Time limit of a request: if the store hangs, the other tasks wait. */
#define REQUEST_MS 10000
/* Seconds between sweeps for leftovers of probes and for facts about deleted versions. */
#define RARE_SWEEP_S 3600

static bool is_ending(struct s3_writing *writing)
{
    bool ending;

    pthread_mutex_lock(&writing->lock);
    ending = writing->is_ending;
    pthread_mutex_unlock(&writing->lock);
    return ending;
}

static struct s3_multipart *take_unwanted(struct s3_writing *writing)
{
    struct s3_multipart *first;

    pthread_mutex_lock(&writing->lock);
    first = writing->unwanted;
    writing->unwanted = NULL;
    pthread_mutex_unlock(&writing->lock);
    return first;
}

static void give_back(struct s3_writing *writing, struct s3_multipart *multipart)
{
    assert(multipart->key[0] != '\0');
    pthread_mutex_lock(&writing->lock);
    multipart->next = writing->unwanted;
    writing->unwanted = multipart;
    pthread_mutex_unlock(&writing->lock);
}

/* Uploads that cannot be aborted now wait for the next round. So do all the others if the store
 * does not respond. */
static void abort_unwanted(struct s3_store *store)
{
    struct s3_multipart *next = take_unwanted(store->writing);
    enum zt_status status = ZT_OK;

    while (next != NULL) {
        struct s3_multipart *one = next;
        const bool is_left = is_ending(store->writing) || status == ZT_UNAVAILABLE ||
                             one->abort_after_ms > clock_ms();
        struct zt_error error;

        next = one->next;
        if (!is_left)
            status = s3_multipart_abort(store, one, clock_ms() + REQUEST_MS, &error);
        if (is_left || status != ZT_OK)
            give_back(store->writing, one);
        else
            s3_multipart_free(one);
    }
}

static struct s3_claim *take_claims(struct s3_writing *writing)
{
    struct s3_claim *first;

    pthread_mutex_lock(&writing->lock);
    first = writing->left_claims;
    writing->left_claims = NULL;
    pthread_mutex_unlock(&writing->lock);
    return first;
}

static void give_claim_back(struct s3_writing *writing, struct s3_claim *claim)
{
    assert(claim->key[0] != '\0');
    pthread_mutex_lock(&writing->lock);
    claim->next = writing->left_claims;
    writing->left_claims = claim;
    pthread_mutex_unlock(&writing->lock);
}

static void clear_claims(struct s3_store *store)
{
    struct s3_claim *next = take_claims(store->writing);

    while (next != NULL) {
        struct s3_claim *one = next;

        next = one->next;
        one->by_ms = clock_ms() + REQUEST_MS + S3_SETTLE_MS;
        if (is_ending(store->writing) || !s3_claim_clear(one))
            give_claim_back(store->writing, one);
        else
            free(one);
    }
}

static void free_claims(struct s3_writing *writing)
{
    struct s3_claim *next = take_claims(writing);

    while (next != NULL) {
        struct s3_claim *one = next;

        next = one->next;
        free(one);
    }
}

static void free_unwanted(struct s3_writing *writing)
{
    struct s3_multipart *next = take_unwanted(writing);

    while (next != NULL) {
        struct s3_multipart *one = next;

        next = one->next;
        s3_multipart_free(one);
    }
}

static void work(struct s3_store *store, int64_t *next_rare_ms)
{
    struct s3_writing *writing = store->writing;

    if (atomic_load(&writing->mode) == S3_MODE_UNKNOWN && s3_probe(store, NULL) != ZT_OK)
        return;
    clear_claims(store);
    abort_unwanted(store);
    if (atomic_load(&writing->mode) == S3_MODE_REFUSED)
        return;
    if (atomic_load(&writing->mode) == S3_MODE_CLAIMS && !is_ending(writing))
        s3_claims_sweep(store);
    if (clock_ms() >= *next_rare_ms && !is_ending(writing)) {
        s3_probes_sweep(store);
        s3_facts_sweep(store);
        *next_rare_ms = clock_ms() + (int64_t)RARE_SWEEP_S * 1000;
    }
}

/* Waits until the time is over, there is work, or the thread must end. */
static void rest(struct s3_writing *writing, int64_t s)
{
    const int64_t until_ns = clock_ns() + s * CLOCK_NS_PER_S;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / CLOCK_NS_PER_S),
                                   .tv_nsec = (long)(until_ns % CLOCK_NS_PER_S)};

    assert(s > 0);
    pthread_mutex_lock(&writing->lock);
    while (!writing->is_ending && !writing->is_called &&
           pthread_cond_clockwait(&writing->changed, &writing->lock, CLOCK_MONOTONIC, &until) !=
               ETIMEDOUT)
        continue;
    writing->is_called = false;
    pthread_mutex_unlock(&writing->lock);
}

static void *run(void *argument)
{
    struct s3_store *store = argument;
    int64_t next_rare_ms = 0;

    while (!is_ending(store->writing)) {
        work(store, &next_rare_ms);
        rest(store->writing,
             atomic_load(&store->writing->mode) == S3_MODE_UNKNOWN ? PROBE_S : SWEEP_S);
    }
    return NULL;
}

void s3_keeper_take_over(struct s3_store *store)
{
    struct s3_multipart *left = s3_journal_read(store);

    while (left != NULL) {
        struct s3_multipart *one = left;

        left = one->next;
        /* Leftovers of probes are not a user's upload, and are not logged. */
        if (strncmp(one->key, S3_PROBES_PREFIX, strlen(S3_PROBES_PREFIX)) != 0)
            log_write(LOG_LEVEL_INFO, "%s: an unfinished upload is aborted%s", one->key,
                      one->is_completing ? " later, as it may be completing"
                      : one->id == NULL  ? " later, if it was begun"
                                         : "");
        give_back(store->writing, one);
    }
}

bool s3_keeper_start(struct s3_store *store)
{
    struct s3_writing *writing = store->writing;

    assert(!writing->has_keeper && !writing->is_ending);
    writing->has_keeper = thread_start(&writing->keeper, "s3 keeper", run, store) == 0;
    return writing->has_keeper;
}

void s3_keeper_stop(struct s3_store *store)
{
    struct s3_writing *writing = store->writing;

    pthread_mutex_lock(&writing->lock);
    writing->is_ending = true;
    pthread_cond_signal(&writing->changed);
    pthread_mutex_unlock(&writing->lock);
    if (writing->has_keeper)
        pthread_join(writing->keeper, NULL);
    writing->has_keeper = false;
    free_unwanted(writing);
    free_claims(writing);
}

static void call(struct s3_writing *writing)
{
    pthread_mutex_lock(&writing->lock);
    writing->is_called = true;
    pthread_cond_signal(&writing->changed);
    pthread_mutex_unlock(&writing->lock);
}

void s3_keeper_abort(struct s3_store *store, struct s3_multipart *multipart)
{
    struct s3_writing *writing = store->writing;

    if (multipart == NULL)
        return;
    if (multipart->is_completing)
        multipart->abort_after_ms = clock_ms() + S3_COMPLETING_MS;
    assert(multipart->id != NULL || multipart->abort_after_ms > 0);
    give_back(writing, multipart);
    call(writing);
}

void s3_keeper_clear(struct s3_store *store, struct s3_claim *claim)
{
    give_claim_back(store->writing, claim);
    call(store->writing);
}
