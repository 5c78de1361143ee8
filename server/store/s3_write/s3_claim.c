/* Writes under claims: the claim operations of store.h, the lookup of a claimed name, and requests
 * during which the claim is renewed. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "remote/retry.h"
#include "store/s3_write/s3_write.h"

/* Maximum number of tries for a request under a claim. */
#define RUN_TRIES 5
/* How long to wait for another writer's claim of a model's name. */
#define WAIT_MS 15000

/* --- requests under a claim --- */

struct awaited {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done;
};

static void note_done(struct remote_exchange *exchange)
{
    struct awaited *awaited = exchange->context;

    pthread_mutex_lock(&awaited->lock);
    awaited->is_done = true;
    pthread_cond_signal(&awaited->changed);
    pthread_mutex_unlock(&awaited->lock);
}

/* Waits for at most this long. Returns true if the exchange is done. */
static bool await(struct awaited *awaited, int64_t ms)
{
    const int64_t until_ns = clock_ns() + ms * CLOCK_NS_PER_MS;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / CLOCK_NS_PER_S),
                                   .tv_nsec = (long)(until_ns % CLOCK_NS_PER_S)};
    bool done;

    pthread_mutex_lock(&awaited->lock);
    while (!awaited->is_done && pthread_cond_clockwait(&awaited->changed, &awaited->lock,
                                                       CLOCK_MONOTONIC, &until) != ETIMEDOUT)
        continue;
    done = awaited->is_done;
    pthread_mutex_unlock(&awaited->lock);
    return done;
}

/* Runs one try. A failed renewal is not fatal: the request cannot be taken back, and the object
 * itself shows its outcome. */
static void run_once(struct s3_claim *claim, struct remote_exchange *exchange)
{
    struct awaited awaited = {.is_done = false};

    assert(exchange->done == NULL || exchange->done == note_done);
    pthread_mutex_init(&awaited.lock, NULL);
    pthread_cond_init(&awaited.changed, NULL);
    exchange->tries = 1;
    exchange->done = note_done;
    exchange->context = &awaited;
    remote_begin(claim->store->remote, exchange);
    while (!await(&awaited, S3_CLAIM_FRESH_MS))
        (void)s3_claim_refresh(claim, NULL);
    pthread_cond_destroy(&awaited.changed);
    pthread_mutex_destroy(&awaited.lock);
}

static bool may_help(const struct remote_exchange *exchange)
{
    return exchange->status != ZT_OK && exchange->failure != REMOTE_FAILURE_REFUSED &&
           exchange->failure != REMOTE_FAILURE_STOPPED;
}

/* Pauses before another try. Returns false if there is no time for one. */
static bool pause_before(unsigned tried, int64_t deadline_ms)
{
    uint64_t seed = (uint64_t)clock_ns() | 1;
    const uint64_t ms = retry_pause_ms(tried, &seed);
    const struct timespec time = {.tv_sec = (time_t)(ms / 1000),
                                  .tv_nsec = (long)(ms % 1000) * CLOCK_NS_PER_MS};

    if (clock_ms() + (int64_t)ms >= deadline_ms)
        return false;
    nanosleep(&time, NULL);
    return clock_ms() < deadline_ms;
}

static enum zt_status make_sure(struct s3_claim *claim, struct zt_error *error)
{
    const enum zt_status status = s3_claim_refresh(claim, error);

    return status == ZT_OK ? s3_claim_check(claim, error) : status;
}

/* The HTTP client would retry without checking that the claim is still ours. */
enum zt_status s3_claim_run(struct s3_claim *claim, struct remote_exchange *exchange,
                            struct zt_error *error)
{
    const struct remote_exchange request = *exchange;
    const int64_t deadline_ms = s3_claim_write_by(claim);
    const unsigned tries = request.tries != 0 ? request.tries : RUN_TRIES;
    unsigned tried = 0;
    const enum zt_status status = make_sure(claim, error);

    if (status != ZT_OK)
        return status;
    if (clock_ms() >= deadline_ms)
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the object store takes too long to respond");
    do {
        const int64_t left_ms = deadline_ms - clock_ms();

        remote_exchange_free(exchange);
        *exchange = request;
        exchange->time_ms = left_ms > 0 ? (uint64_t)left_ms : 1;
        run_once(claim, exchange);
        tried += exchange->tried;
    } while (may_help(exchange) && tried < tries && pause_before(tried, deadline_ms) &&
             make_sure(claim, NULL) == ZT_OK);
    exchange->tried = tried;
    return bucket_judge(&claim->store->bucket, METRIC_STORE_WRITE, exchange, error);
}

/* --- the current files of the name --- */

struct lookup {
    struct s3_claim *claim;
    struct object_version found[16]; /* indexed by rank */
    bool is_found[16];
};

static bool take_object(void *context, const struct listed_object *object)
{
    struct lookup *lookup = context;
    const size_t name_length = strlen(lookup->claim->name);
    size_t length;
    unsigned rank;

    if (!model_path_split(object->key, &length, &rank) || length != name_length ||
        model_path_has_noncanonical_extension(object->key) ||
        strncmp(object->key, lookup->claim->name, name_length) != 0 ||
        rank >= sizeof(lookup->found) / sizeof(lookup->found[0]))
        return true;
    lookup->is_found[rank] = true;
    lookup->found[rank] =
        (struct object_version){.size_bytes = object->size_bytes, .modified_s = object->modified_s};
    snprintf(lookup->found[rank].etag, sizeof(lookup->found[rank].etag), "%s", object->etag);
    return true;
}

static enum zt_status look_up(struct s3_claim *claim, struct zt_error *error)
{
    struct lookup lookup = {.claim = claim};
    char path[S3_KEY_SIZE];
    enum zt_status status;

    snprintf(path, sizeof(path), "%s.", claim->name);
    status = bucket_list(&claim->store->bucket, path, s3_claim_write_by(claim), take_object,
                         &lookup, error);
    for (unsigned rank = 0; status == ZT_OK && model_extension(rank) != NULL; rank++) {
        assert(rank < sizeof(lookup.found) / sizeof(lookup.found[0]));
        snprintf(path, sizeof(path), "%s%s", claim->name, model_extension(rank));
        s3_note_version(claim->store, path, lookup.is_found[rank] ? &lookup.found[rank] : NULL);
    }
    return status == ZT_OK || status == ZT_NO_MEMORY ? status : ZT_UNAVAILABLE;
}

/* --- operations of store.h --- */

static enum zt_status check_mode(const struct s3_store *store, struct zt_error *error)
{
    const int mode = atomic_load(&store->writing->mode);

    if (mode == S3_MODE_REFUSED)
        return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "%s", store->writing->writes);
    if (mode == S3_MODE_UNKNOWN)
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the object store has not been reached yet");
    return ZT_OK;
}

static void add(struct s3_claim *claim)
{
    struct s3_writing *writing = claim->store->writing;

    assert(claim->next == NULL && claim->key[0] != '\0');
    pthread_mutex_lock(&writing->lock);
    claim->next = writing->claims;
    writing->claims = claim;
    pthread_mutex_unlock(&writing->lock);
}

static void withdraw(const struct s3_claim *claim)
{
    struct s3_writing *writing = claim->store->writing;
    struct s3_claim **at;

    pthread_mutex_lock(&writing->lock);
    at = &writing->claims;
    while (*at != claim) {
        assert(*at != NULL);
        at = &(*at)->next;
    }
    *at = claim->next;
    pthread_mutex_unlock(&writing->lock);
}

static struct s3_claim *new_claim(struct s3_store *store, struct zt_text name, int64_t by_ms)
{
    struct s3_claim *claim = calloc(1, sizeof(*claim));

    assert(name.length <= MODEL_NAME_MAX && by_ms != BUCKET_USUAL_TIME);
    if (claim == NULL)
        return NULL;
    claim->store = store;
    claim->by_ms = by_ms;
    memcpy(claim->name, name.bytes, name.length);
    s3_nonce(claim->nonce);
    return claim;
}

enum zt_status s3_claim_name(struct s3_store *store, struct zt_text name, int64_t by_ms,
                             int64_t wait_ms, struct s3_claim **out_claim, struct zt_error *error)
{
    enum zt_status status = check_mode(store, error);
    struct s3_claim *claim;

    if (status != ZT_OK)
        return status;
    claim = new_claim(store, name, by_ms);
    if (claim == NULL)
        return zt_fail_memory(error, "a claim");
    status = s3_claim_set_key(claim, error);
    if (status != ZT_OK) {
        free(claim);
        return status;
    }
    if (atomic_load(&store->writing->mode) == S3_MODE_CLAIMS)
        status = s3_claim_take(claim, wait_ms, error);
    if (status != ZT_OK) {
        if (status == ZT_UNAVAILABLE)
            s3_keeper_clear(store, claim);
        else
            free(claim);
        return status;
    }
    add(claim);
    *out_claim = claim;
    return ZT_OK;
}

enum zt_status s3_claim(struct store *base, struct zt_text name, int64_t by_ms,
                        struct store_claim **out_claim, struct zt_error *error)
{
    struct s3_claim *claim;
    enum zt_status status =
        s3_claim_name((struct s3_store *)base, name, by_ms, WAIT_MS, &claim, error);

    if (status != ZT_OK)
        return status;
    status = look_up(claim, error);
    if (status == ZT_OK)
        *out_claim = &claim->base;
    else
        s3_release(&claim->base);
    return status;
}

void s3_release(struct store_claim *base)
{
    struct s3_claim *claim = (struct s3_claim *)base;

    if (claim == NULL)
        return;
    withdraw(claim);
    if (claim->has_object && !claim->stays && clock_ms() >= s3_claim_write_by(claim)) {
        s3_keeper_clear(claim->store, claim);
        return;
    }
    if (!claim->stays)
        s3_claim_drop(claim);
    free(claim);
}

struct s3_claim *s3_claim_of(struct s3_store *store, const char *path)
{
    struct s3_claim *claim;
    char model[MODEL_NAME_MAX + 1];
    /* A path that cannot be a model is claimed by itself. */
    const char *name = model_path_name(path, model) ? model : path;

    pthread_mutex_lock(&store->writing->lock);
    claim = store->writing->claims;
    while (claim != NULL && strcmp(claim->name, name) != 0)
        claim = claim->next;
    pthread_mutex_unlock(&store->writing->lock);
    return claim;
}
