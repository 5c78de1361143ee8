/* Digests of a bucket's objects. Lists do not have them, so the service is asked for the header of
 * each object, many side by side. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "store/s3/s3_upstream.h"

/* Requests at the same time. */
#define HEADS_MOST 16
#define HEAD_MS    5000

struct heads;

struct head {
    struct remote_exchange exchange; /* first */
    struct heads *heads;
    struct upstream_file *file;
    bool is_running; /* with the lock */
    char path[BUCKET_PATH_SIZE];
};

struct heads {
    struct bucket *bucket;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    /* With the lock: the first failure, after which nothing more is asked. */
    struct zt_error error;
    struct head all[HEADS_MOST];
};

static void take_digest(const struct remote_exchange *exchange, struct upstream_file *file)
{
    struct object_version version;

    bucket_version_of(exchange, &version);
    if (strcmp(version.etag, file->etag) == 0 && version.size_bytes == file->size_bytes &&
        zt_hex_read_lower(zt_text_from(version.sha256), file->digest, 32))
        file->digest_kind = UPSTREAM_SHA256;
}

/* On the remote's thread. */
static void end_head(struct remote_exchange *exchange)
{
    struct head *head = (struct head *)exchange;
    struct heads *heads = head->heads;
    struct zt_error error;
    enum zt_status status = bucket_judge(heads->bucket, METRIC_STORE_OTHER, exchange, &error);

    /* Another try would get the same answer. */
    if (status == ZT_UNAVAILABLE && exchange->status == ZT_OK)
        status = error.status = ZT_ARGUMENT;
    if (status == ZT_OK)
        take_digest(exchange, head->file);
    remote_exchange_free(exchange);
    pthread_mutex_lock(&heads->lock);
    head->is_running = false;
    if (status != ZT_OK && status != ZT_NOT_FOUND && heads->error.status == ZT_OK)
        heads->error = error;
    pthread_cond_signal(&heads->ended);
    pthread_mutex_unlock(&heads->lock);
}

static void begin_head(struct head *head)
{
    struct bucket *bucket = head->heads->bucket;

    bucket_exchange(bucket, &head->exchange, "HEAD", head->path);
    remote_exchange_add(&head->exchange, "x-amz-checksum-mode", "ENABLED");
    head->exchange.tries = 2;
    head->exchange.time_ms = HEAD_MS;
    head->exchange.done = end_head;
    remote_begin(bucket->remote, &head->exchange);
}

/* With the lock. Returns one that is not running, or NULL. */
static struct head *find_free(struct heads *heads)
{
    for (size_t i = 0; i < HEADS_MOST; i++)
        if (!heads->all[i].is_running)
            return &heads->all[i];
    return NULL;
}

/* Waits for one that is free. Returns NULL after a failure. */
static struct head *take(struct heads *heads)
{
    struct head *head;

    pthread_mutex_lock(&heads->lock);
    while ((head = find_free(heads)) == NULL)
        pthread_cond_wait(&heads->ended, &heads->lock);
    if (heads->error.status != ZT_OK)
        head = NULL;
    else
        head->is_running = true;
    pthread_mutex_unlock(&heads->lock);
    return head;
}

static void give_back(struct heads *heads, struct head *head)
{
    pthread_mutex_lock(&heads->lock);
    head->is_running = false;
    pthread_mutex_unlock(&heads->lock);
}

static void wait_for_all(struct heads *heads)
{
    pthread_mutex_lock(&heads->lock);
    for (size_t i = 0; i < HEADS_MOST; i++)
        while (heads->all[i].is_running)
            pthread_cond_wait(&heads->ended, &heads->lock);
    pthread_mutex_unlock(&heads->lock);
}

/* A service that denies access states no digests; one that fails may state them later. */
static enum zt_status outcome(const struct heads *heads, struct zt_error *error)
{
    if (heads->error.status != ZT_UNAVAILABLE)
        return ZT_OK;
    *error = heads->error;
    return error->status;
}

enum zt_status s3_upstream_ask_digests(struct bucket *bucket, const char *repository,
                                       const struct upstream_listing *listing, int64_t by_ms,
                                       struct zt_error *error)
{
    struct heads *heads = calloc(1, sizeof(*heads));
    char key[UPSTREAM_REPOSITORY_SIZE + UPSTREAM_PATH_SIZE];
    enum zt_status status;
    struct head *head;

    if (heads == NULL)
        return zt_fail_memory(error, "requests for digests");
    zt_error_clear(&heads->error);
    heads->bucket = bucket;
    pthread_mutex_init(&heads->lock, NULL);
    pthread_cond_init(&heads->ended, NULL);
    for (size_t i = 0; i < listing->count && clock_ms() < by_ms; i++) {
        assert(listing->files[i].digest_kind == UPSTREAM_NO_DIGEST);
        head = take(heads);
        if (head == NULL)
            break;
        head->heads = heads;
        head->file = &listing->files[i];
        snprintf(key, sizeof(key), "%s/%s", repository, head->file->path);
        if (strlen(key) < BUCKET_KEY_SIZE && bucket_path(bucket, key, head->path))
            begin_head(head);
        else
            give_back(heads, head);
    }
    wait_for_all(heads);
    status = outcome(heads, error);
    pthread_cond_destroy(&heads->ended);
    pthread_mutex_destroy(&heads->lock);
    free(heads);
    return status;
}
