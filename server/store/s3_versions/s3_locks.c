/* Claims of repositories, and of collecting. A change may wait for long copies and uploads, so a
 * thread renews its claims, and each write asks whether the claim is still good. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "store/s3_versions/s3_place_state.h"

#define COLLECTOR S3_VERSIONS_PREFIX "collector"
/* For the requests that take, renew and release a claim. */
#define REQUEST_MS 15000
/* The interval at which claims are looked at. */
#define LOOK_MS 1000

/* --- renewing --- */

static struct s3_claim *find_old(struct s3_place *place)
{
    struct s3_claim *claim = place->renewed;

    assert(lock_is_held(&place->lock));
    while (claim != NULL && (claim->is_lost || claim->stays || !claim->has_object ||
                             clock_ms() - claim->since_ms < S3_CLAIM_FRESH_MS))
        claim = claim->next_renewed;
    return claim;
}

/* Renews a copy of the claim without the lock, because that waits for the store. Returns false if
 * it failed. */
static bool renew(struct s3_place *place, struct s3_claim *claim)
{
    struct s3_claim copy = *claim;
    enum zt_status status;

    assert(!claim->is_renewing && claim->has_object);
    claim->is_renewing = true;
    pthread_mutex_unlock(&place->lock);
    copy.by_ms = clock_ms() + REQUEST_MS;
    status = s3_claim_refresh(&copy, NULL);
    pthread_mutex_lock(&place->lock);
    memcpy(claim->nonce, copy.nonce, sizeof(copy.nonce));
    memcpy(claim->etag, copy.etag, sizeof(copy.etag));
    claim->since_ms = copy.since_ms;
    claim->is_lost = status != ZT_OK && clock_ms() - copy.since_ms >= S3_CLAIM_DEAD_S * 1000;
    claim->is_renewing = false;
    pthread_cond_broadcast(&place->changed);
    return status == ZT_OK;
}

static void *run(void *argument)
{
    struct s3_place *place = argument;

    pthread_mutex_lock(&place->lock);
    while (!place->is_ending) {
        struct s3_claim *claim = find_old(place);

        if (claim != NULL && renew(place, claim))
            continue;
        if (place->renewed == NULL)
            pthread_cond_wait(&place->changed, &place->lock);
        else if (!place->is_ending)
            thread_wait_ms(&place->changed, &place->lock, LOOK_MS);
    }
    pthread_mutex_unlock(&place->lock);
    return NULL;
}

bool s3_locks_start(struct s3_place *place)
{
    place->has_renewer = thread_start(&place->renewer, "s3 versions", run, place) == 0;
    return place->has_renewer;
}

void s3_locks_stop(struct s3_place *place)
{
    pthread_mutex_lock(&place->lock);
    place->is_ending = true;
    pthread_cond_broadcast(&place->changed);
    pthread_mutex_unlock(&place->lock);
    if (place->has_renewer)
        pthread_join(place->renewer, NULL);
    assert(place->renewed == NULL);
}

/* --- taking and releasing --- */

void s3_lock_lend(struct s3_place *place, struct s3_claim *claim)
{
    assert(claim->name[0] != '\0' && !claim->is_renewing);
    pthread_mutex_lock(&place->lock);
    claim->next_renewed = place->renewed;
    place->renewed = claim;
    pthread_cond_broadcast(&place->changed);
    pthread_mutex_unlock(&place->lock);
}

void s3_lock_return(struct s3_place *place, struct s3_claim *claim)
{
    struct s3_claim **at = &place->renewed;

    pthread_mutex_lock(&place->lock);
    while (claim->is_renewing)
        pthread_cond_wait(&place->changed, &place->lock);
    while (*at != claim) {
        assert(*at != NULL);
        at = &(*at)->next_renewed;
    }
    *at = claim->next_renewed;
    pthread_mutex_unlock(&place->lock);
}

enum zt_status s3_lock_take(struct s3_place *place, const char *name, int64_t wait_ms,
                            struct s3_claim **out_claim, struct zt_error *error)
{
    const enum zt_status status =
        s3_claim_name(place->store, zt_text_from(name), clock_ms() + wait_ms + REQUEST_MS, wait_ms,
                      out_claim, error);

    if (status == ZT_OK)
        s3_lock_lend(place, *out_claim);
    return status;
}

void s3_lock_release(struct s3_place *place, struct s3_claim *claim)
{
    s3_lock_return(place, claim);
    claim->by_ms = clock_ms() + REQUEST_MS;
    s3_release(&claim->base);
}

static int64_t left_ms(const struct s3_claim *claim)
{
    const int64_t left = claim->since_ms + S3_CLAIM_GOOD_MS - clock_ms();

    if (!claim->has_object)
        return INT64_MAX;
    return left > 0 && !claim->is_lost ? left : 0;
}

int64_t s3_lock_left_ms(struct s3_place *place, const char *name)
{
    const struct s3_claim *claim;
    int64_t left = 0;

    pthread_mutex_lock(&place->lock);
    for (claim = place->renewed; claim != NULL && left == 0; claim = claim->next_renewed)
        if (strcmp(claim->name, name) == 0)
            left = left_ms(claim);
    pthread_mutex_unlock(&place->lock);
    return left;
}

void s3_locks_doubt(struct s3_place *place)
{
    pthread_mutex_lock(&place->lock);
    for (struct s3_claim *claim = place->renewed; claim != NULL; claim = claim->next_renewed)
        claim->stays = claim->has_object;
    pthread_mutex_unlock(&place->lock);
}

/* --- repositories --- */

enum zt_status s3_place_lock(struct history_place *base, const char *key, int64_t by_ms,
                             void **out_lock, struct zt_error *error)
{
    const int64_t now_ms = clock_ms();
    char name[S3_VERSIONS_KEY_SIZE];
    struct s3_claim *claim;
    enum zt_status status;

    snprintf(name, sizeof(name), S3_VERSIONS_PREFIX "repos/%s", key);
    status =
        s3_lock_take(s3_place_of(base), name, by_ms > now_ms ? by_ms - now_ms : 0, &claim, error);
    if (status == ZT_OK)
        *out_lock = claim;
    return status;
}

void s3_place_unlock(struct history_place *base, void *lock)
{
    s3_lock_release(s3_place_of(base), lock);
}

/* --- collecting --- */

bool s3_place_begin_collecting(struct history_place *base)
{
    struct s3_place *place = s3_place_of(base);
    struct s3_claim *claim;
    struct zt_error ignored;

    if (s3_lock_take(place, COLLECTOR, 0, &claim, &ignored) != ZT_OK)
        return false;
    pthread_mutex_lock(&place->lock);
    assert(place->collecting == NULL);
    place->collecting = claim;
    place->collecting_since_ms = clock_ms();
    pthread_mutex_unlock(&place->lock);
    return true;
}

void s3_place_end_collecting(struct history_place *base)
{
    struct s3_place *place = s3_place_of(base);
    struct s3_claim *claim;

    pthread_mutex_lock(&place->lock);
    claim = place->collecting;
    place->collecting = NULL;
    pthread_mutex_unlock(&place->lock);
    if (claim != NULL)
        s3_lock_release(place, claim);
}

bool s3_place_is_collecting(struct s3_place *place)
{
    bool is_good;

    pthread_mutex_lock(&place->lock);
    is_good = place->collecting != NULL && left_ms(place->collecting) > 0;
    pthread_mutex_unlock(&place->lock);
    return is_good;
}

int64_t s3_place_collecting_s(struct s3_place *place)
{
    int64_t since_ms;

    pthread_mutex_lock(&place->lock);
    since_ms = place->collecting_since_ms;
    pthread_mutex_unlock(&place->lock);
    return (clock_ms() - since_ms + 999) / 1000;
}
