/* The whole manifest's JSON, made once for each generation: small ones at once, others by a worker while all who asked
 * wait for the one text. */
#include <pthread.h>
#include <stdlib.h>

#include "model/manifest_json.h"

/* Manifests up to this size are written within about 100 µs, so the loop does it itself. */
#define INLINE_MANIFEST_BYTES 16384

enum cache_state { CACHE_EMPTY, CACHE_WORKING, CACHE_DONE, CACHE_TOO_LONG, CACHE_FAILED };

struct manifest_cache {
    pthread_mutex_t lock;
    enum cache_state state;
    struct json json;
    struct waiter *waiters;
};

struct writing {
    struct job job; /* first: the job is the structure */
    struct generation *generation;
};

struct manifest_cache *manifest_cache_new(void)
{
    struct manifest_cache *cache = calloc(1, sizeof *cache);
    if (cache != NULL) {
        pthread_mutex_init(&cache->lock, NULL);
        json_init(&cache->json, false);
    }
    return cache;
}

void manifest_cache_free(struct manifest_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    json_free(&cache->json);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static void write_whole(const struct generation *generation, struct json *json)
{
    const struct manifest_source source = {.name = generation_name(generation),
                                           .path = generation->path,
                                           .etag = generation->etag,
                                           .modified_ns = generation->identity.modified_ns};
    manifest_write(json, generation->model, &source, NULL);
}

/* With the lock held. Gives back what the growing of the text took too much: it stays as long as the generation. */
static void settle(struct manifest_cache *cache, struct json *json)
{
    if (json->failed) {
        cache->state = json->too_long ? CACHE_TOO_LONG : CACHE_FAILED;
        json_free(json);
        return;
    }
    char *text = realloc(json->text, json->length);
    if (text != NULL) {
        json->text = text;
        json->capacity = json->length;
    }
    cache->json = *json;
    cache->state = CACHE_DONE;
}

static void run_writing(struct job *job)
{
    struct writing *writing = (struct writing *)job;
    struct manifest_cache *cache = writing->generation->manifest;
    struct json json;
    json_init(&json, false);
    write_whole(writing->generation, &json);
    pthread_mutex_lock(&cache->lock);
    settle(cache, &json);
    struct waiter *waiter = cache->waiters;
    cache->waiters = NULL;
    pthread_mutex_unlock(&cache->lock);
    while (waiter != NULL) {
        /* A waiter may be gone once it is woken. */
        struct waiter *next = waiter->next;
        waiter->wake(waiter);
        waiter = next;
    }
    generation_release(writing->generation);
    free(writing);
}

/* With the lock held. */
static void begin(struct workers *workers, struct generation *generation)
{
    struct manifest_cache *cache = generation->manifest;
    struct writing *writing = NULL;
    if (generation->model->manifest_length > INLINE_MANIFEST_BYTES) {
        writing = calloc(1, sizeof *writing);
    }
    if (writing == NULL) {
        struct json json;
        json_init(&json, false);
        write_whole(generation, &json);
        settle(cache, &json);
        return;
    }
    writing->job.run = run_writing;
    writing->generation = generation_hold(generation);
    cache->state = CACHE_WORKING;
    workers_submit(workers, &writing->job);
}

enum manifest_answer manifest_ask(struct workers *workers, struct generation *generation, struct waiter *waiter,
                                  struct zt_text *out_text)
{
    struct manifest_cache *cache = generation->manifest;
    enum manifest_answer answer = MANIFEST_FAILED;
    pthread_mutex_lock(&cache->lock);
    if (cache->state == CACHE_EMPTY) {
        begin(workers, generation);
    }
    if (cache->state == CACHE_WORKING) {
        waiter->next = cache->waiters;
        cache->waiters = waiter;
        answer = MANIFEST_PENDING;
    } else if (cache->state == CACHE_DONE) {
        *out_text = (struct zt_text){cache->json.text, cache->json.length};
        answer = MANIFEST_READY;
    } else if (cache->state == CACHE_TOO_LONG) {
        answer = MANIFEST_TOO_LONG;
    } else {
        /* Memory may be there the next time. */
        cache->state = CACHE_EMPTY;
    }
    pthread_mutex_unlock(&cache->lock);
    return answer;
}
