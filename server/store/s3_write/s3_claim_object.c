/* The objects of claims, with which writers of one model's name exclude each other across servers.
 * A writer creates one with a conditional PUT, which only one writer wins. The body is a random
 * number of the writer's, which shows who won if the response was lost.
 *
 * The age of another writer's claim is measured by the service's clock: Date minus Last-Modified.
 * The age of our own is measured by the monotonic clock, from before the request. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hex.h"
#include "store/s3_write/s3_write.h"

/* The first pause is at most this. Each further pause is twice as long, up to the maximum. */
#define PAUSE_FIRST_MS 100
#define PAUSE_MOST_MS  1000
/* Gives up after this many lost responses in a row. */
#define LOST_MOST 3
/* A claim's body is a number; a longer body is not a claim. */
#define BODY_MOST 4096
/* Maximum number of claims that one sweep examines. */
#define SWEEP_MOST 1000

static bool fill_random(void *bytes, size_t length)
{
    ssize_t got;

    do {
        got = getrandom(bytes, length, 0);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)length;
}

void s3_nonce(char out_nonce[S3_NONCE_SIZE])
{
    uint64_t random[2];

    if (!fill_random(random, sizeof(random))) {
        random[0] = (uint64_t)clock_ns();
        random[1] = (uint64_t)clock_wall_ns() ^ (uint64_t)getpid() << 32;
    }
    zt_hex_write(out_nonce, random, sizeof(random));
}

static void pause_ms(uint64_t most)
{
    uint64_t random = 0;
    uint64_t ms;
    struct timespec time;

    assert(most > 0);
    (void)fill_random(&random, sizeof(random));
    ms = most / 2 + random % (most / 2 + 1);
    time = (struct timespec){.tv_sec = (time_t)(ms / 1000),
                             .tv_nsec = (long)(ms % 1000) * CLOCK_NS_PER_MS};
    nanosleep(&time, NULL);
}

/* --- the object of a claim --- */

static int64_t age_ms(const struct s3_claim *claim)
{
    return clock_ms() - claim->since_ms;
}

enum zt_status s3_claim_set_key(struct s3_claim *claim, struct zt_error *error)
{
    const struct bucket *bucket = &claim->store->bucket;
    char text[sizeof(bucket->name) + sizeof(bucket->prefix) + sizeof(claim->name) + 2];
    const int length =
        snprintf(text, sizeof(text), "%s/%s%s", bucket->name, bucket->prefix, claim->name);
    char hash[BUCKET_SHA256_SIZE];
    const enum zt_status status = bucket_sha256(text, (size_t)length, hash, error);

    /* Several roots may share a bucket of claims, so the key includes the bucket and the prefix. */
    if (status == ZT_OK)
        snprintf(claim->key, sizeof(claim->key), "%s%.32s", S3_CLAIMS_PREFIX, hash);
    return status;
}

static enum zt_status put(struct s3_claim *claim, const char *replaced_etag, struct zt_error *error)
{
    const struct bucket_put put = {
        .key = claim->key,
        .condition = replaced_etag != NULL ? BUCKET_IF_VERSION : BUCKET_IF_ABSENT,
        .etag = replaced_etag,
        .bytes = claim->nonce,
        .length = S3_NONCE_SIZE - 1,
        .by_ms = s3_claim_write_by(claim),
    };
    struct object_version made;
    enum zt_status status;

    assert(claim->key[0] != '\0' && strlen(claim->nonce) == S3_NONCE_SIZE - 1);
    claim->since_ms = clock_ms();
    status = bucket_put(&claim->store->claims, &put, &made, error);
    if (status == ZT_OK && made.etag[0] == '\0')
        status = zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                         "the store gave no ETag for a claim");
    if (status == ZT_OK)
        strcpy(claim->etag, made.etag);
    return status;
}

/* The object under a claim's key. */
struct found {
    bool is_mine;
    bool is_dead;
    struct object_version version;
};

static enum zt_status look(const struct s3_claim *claim, struct found *out_found,
                           struct zt_error *error)
{
    struct bucket_object object;
    enum zt_status status =
        bucket_get(&claim->store->claims, claim->key, BODY_MOST, claim->by_ms, &object, error);

    assert(claim->key[0] != '\0');
    if (status != ZT_OK)
        return status;
    out_found->version = object.version;
    out_found->is_mine = object.length == S3_NONCE_SIZE - 1 &&
                         memcmp(object.bytes, claim->nonce, S3_NONCE_SIZE - 1) == 0;
    /* If either time is missing, the claim never counts as dead. */
    out_found->is_dead =
        out_found->version.modified_s > 0 && out_found->version.date_s > 0 &&
        out_found->version.date_s - out_found->version.modified_s > S3_CLAIM_DEAD_S;
    free(object.bytes);
    return ZT_OK;
}

/* --- taking --- */

enum turn {
    TURN_TAKEN,
    TURN_AGAIN, /* without a pause */
    TURN_WAIT,
    TURN_FAILED
};

struct taking {
    struct s3_claim *claim;
    char dead_etag[BUCKET_ETAG_SIZE]; /* of a dead writer's claim, to be replaced; or empty */
    unsigned lost;                    /* responses in a row */
    bool is_held;                     /* another writer's claim was seen */
    int64_t begun_ms;
    struct zt_error *error;
};

static enum turn fail_lost(struct taking *taking, enum zt_status status)
{
    assert(status != ZT_OK && taking->lost < LOST_MOST);
    if (status == ZT_NO_MEMORY || status == ZT_ARGUMENT || status == ZT_LIMIT ||
        ++taking->lost >= LOST_MOST) {
        if (taking->error != NULL)
            taking->error->status = ZT_UNAVAILABLE;
        return TURN_FAILED;
    }
    return TURN_WAIT;
}

/* Called when the PUT was refused, or its response was lost. */
static enum turn settle(struct taking *taking, enum zt_status put_status)
{
    struct found found;
    const enum zt_status status = look(taking->claim, &found, taking->error);

    assert(put_status != ZT_OK);
    if (status == ZT_NOT_FOUND)
        return put_status == ZT_STALE || put_status == ZT_NOT_FOUND ? TURN_AGAIN
                                                                    : fail_lost(taking, put_status);
    if (status != ZT_OK)
        return fail_lost(taking, status);
    if (found.is_mine) {
        strcpy(taking->claim->etag, found.version.etag);
        /* Any request since then may have created the claim, so count from the first. */
        taking->claim->since_ms = taking->begun_ms;
        return TURN_TAKEN;
    }
    /* The store responds, and another writer has the name. */
    taking->is_held = true;
    taking->lost = 0;
    if (!found.is_dead)
        return TURN_WAIT;
    strcpy(taking->dead_etag, found.version.etag);
    return TURN_AGAIN;
}

static enum turn take_turn(struct taking *taking)
{
    struct s3_claim *claim = taking->claim;
    const bool replaces = taking->dead_etag[0] != '\0';
    const enum zt_status status = put(claim, replaces ? taking->dead_etag : NULL, taking->error);

    taking->dead_etag[0] = '\0';
    if (status == ZT_OK)
        return TURN_TAKEN;
    if (status == ZT_ARGUMENT)
        return fail_lost(taking, status);
    return settle(taking, status);
}

static enum zt_status fail_busy(struct zt_error *error)
{
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                   "another writer is publishing under this name");
}

enum zt_status s3_claim_take(struct s3_claim *claim, int64_t wait_ms, struct zt_error *error)
{
    struct taking taking = {.claim = claim, .begun_ms = clock_ms(), .error = error};
    uint64_t pause = PAUSE_FIRST_MS;

    for (;;) {
        const enum turn turn = take_turn(&taking);

        claim->has_object = turn == TURN_TAKEN && age_ms(claim) < S3_CLAIM_GOOD_MS;
        if (claim->has_object)
            return ZT_OK;
        /* Any of the requests may have created the claim. */
        claim->since_ms = taking.begun_ms;
        if (turn == TURN_FAILED)
            return ZT_UNAVAILABLE;
        if (clock_ms() - taking.begun_ms > wait_ms)
            return !taking.is_held ? zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                                             "the store did not respond in time")
                                   : fail_busy(error);
        if (turn != TURN_AGAIN)
            pause_ms(pause);
        if (turn == TURN_WAIT)
            pause = pause * 2 < PAUSE_MOST_MS ? pause * 2 : PAUSE_MOST_MS;
    }
}

/* --- keeping --- */

static enum zt_status renew(struct s3_claim *claim, struct zt_error *error)
{
    const int64_t before_ms = claim->since_ms;
    char etag[BUCKET_ETAG_SIZE];
    struct found found;
    enum zt_status status;

    assert(claim->has_object);
    strcpy(etag, claim->etag);
    s3_nonce(claim->nonce);
    status = put(claim, etag, error);
    if (status == ZT_OK)
        return ZT_OK;
    if (look(claim, &found, NULL) == ZT_OK && found.is_mine) {
        strcpy(claim->etag, found.version.etag);
        return ZT_OK;
    }
    claim->since_ms = before_ms;
    return status == ZT_STALE || status == ZT_NOT_FOUND
               ? zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                         "another writer took the name over, because this one took too long")
               : ZT_UNAVAILABLE;
}

enum zt_status s3_claim_refresh(struct s3_claim *claim, struct zt_error *error)
{
    if (!claim->has_object || age_ms(claim) < S3_CLAIM_FRESH_MS)
        return ZT_OK;
    return renew(claim, error);
}

enum zt_status s3_claim_check(const struct s3_claim *claim, struct zt_error *error)
{
    if (!claim->has_object || age_ms(claim) < S3_CLAIM_GOOD_MS)
        return ZT_OK;
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                   "the object store takes too long to respond");
}

/* An old claim may already belong to another writer, or may by the last try to remove it. A renewed
 * claim is certainly ours; otherwise it is left to the sweep. */
void s3_claim_drop(struct s3_claim *claim)
{
    if (claim->has_object && s3_claim_refresh(claim, NULL) == ZT_OK &&
        age_ms(claim) < S3_CLAIM_FRESH_MS)
        (void)bucket_delete(&claim->store->claims, claim->key, claim->by_ms, NULL);
    claim->has_object = false;
}

bool s3_claim_clear(struct s3_claim *claim)
{
    struct found found;

    /* The sweep removes this claim, even if it is created later. */
    if (age_ms(claim) >= S3_CLAIM_DEAD_S * 1000)
        return true;
    if (look(claim, &found, NULL) != ZT_OK)
        return false;
    if (!found.is_mine)
        return true;
    strcpy(claim->etag, found.version.etag);
    claim->has_object = true;
    s3_claim_drop(claim);
    return true;
}

/* --- sweeping --- */

struct sweep {
    char (*keys)[sizeof(S3_CLAIMS_PREFIX) + S3_NONCE_SIZE];
    size_t count;
};

static bool take_key(void *context, const struct listed_object *object)
{
    struct sweep *sweep = context;

    assert(sweep->count < SWEEP_MOST);
    if (strlen(object->key) == strlen(S3_CLAIMS_PREFIX) + S3_NONCE_SIZE - 1)
        strcpy(sweep->keys[sweep->count++], object->key);
    return sweep->count < SWEEP_MOST;
}

/* Takes over a dead writer's claim before deleting it: only the condition ensures that it is still
 * the same claim. */
static void sweep_one(struct s3_store *store, const char *key)
{
    struct s3_claim claim = {.store = store, .has_object = true};
    struct found found;

    snprintf(claim.key, sizeof(claim.key), "%s", key);
    s3_nonce(claim.nonce);
    if (look(&claim, &found, NULL) == ZT_OK && found.is_dead &&
        put(&claim, found.version.etag, NULL) == ZT_OK && age_ms(&claim) < S3_CLAIM_FRESH_MS)
        (void)bucket_delete(&store->claims, key, BUCKET_USUAL_TIME, NULL);
}

void s3_claims_sweep(struct s3_store *store)
{
    struct sweep sweep = {.keys = calloc(SWEEP_MOST, sizeof(sweep.keys[0]))};

    if (sweep.keys == NULL)
        return;
    (void)bucket_list(&store->claims, S3_CLAIMS_PREFIX, BUCKET_USUAL_TIME, take_key, &sweep, NULL);
    for (size_t i = 0; i < sweep.count; i++)
        sweep_one(store, sweep.keys[i]);
    free(sweep.keys);
}
