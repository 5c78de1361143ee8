/* The JSON of a whole manifest, plain and in each content coding, made once for each generation.
 * Small texts are written at once; others are made by a worker, and all requests wait for the same
 * result.
 *
 * The texts live as long as the generation. The length of the JSON is bounded by that of the
 * manifest, and a coded text is about a tenth of it. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "derived/manifest_json.h"
#include "zt/coding.h"

/* Manifests up to this size take about 100 µs at most, so the loop writes them itself. */
#define INLINE_MANIFEST_BYTES 16384
/* Larger ones take more than about 10 ms to write or to compress. */
#define LONG_MANIFEST_BYTES 262144
/* CODING_IDENTITY, CODING_ZSTD, CODING_GZIP */
#define CODINGS CODING_NONE

enum text_state { TEXT_EMPTY, TEXT_WORKING, TEXT_DONE, TEXT_TOO_LONG, TEXT_FAILED };

/* The text in one coding; constant from TEXT_DONE on. */
struct coded_text {
    enum text_state state;
    char *bytes;
    size_t length;
};

/* A generation's side table. */
struct manifest_cache {
    struct side_table base;
    pthread_mutex_t lock;
    struct coded_text texts[CODINGS];
    struct waiter *waiters[CODINGS];
    struct making *making[CODINGS]; /* while a worker makes it */
};

struct making {
    struct job job; /* first: the job is the structure */
    struct generation *generation;
    enum coding coding;
};

static void free_cache(struct side_table *table, const struct generation *generation)
{
    struct manifest_cache *cache = (struct manifest_cache *)table;

    (void)generation;
    for (unsigned i = 0; i < CODINGS; i++)
        free(cache->texts[i].bytes);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* The table, made if necessary; NULL if out of memory. */
static struct manifest_cache *cache_of(struct generation *generation)
{
    struct side_table *table = generation_side_table(generation, SIDE_TABLE_MANIFEST);
    struct manifest_cache *cache;

    if (table != NULL)
        return (struct manifest_cache *)table;
    cache = calloc(1, sizeof(*cache));
    if (cache == NULL)
        return NULL;
    cache->base.free = free_cache;
    pthread_mutex_init(&cache->lock, NULL);
    return (struct manifest_cache *)generation_attach(generation, SIDE_TABLE_MANIFEST,
                                                      &cache->base);
}

struct manifest_source manifest_source_of(const struct generation *generation)
{
    return (struct manifest_source){.name = generation_name(generation),
                                    .path = generation->path,
                                    .base_path = generation->base_path,
                                    .is_joined = generation->is_joined,
                                    .size_bytes = generation_size(generation),
                                    .etag = generation->etag,
                                    .modified_ns = generation->is_joined
                                                       ? generation_modified_ns(generation)
                                                       : generation->identity.modified_ns};
}

static struct coded_text write_whole(const struct generation *generation)
{
    const struct manifest_source source = manifest_source_of(generation);
    struct json json;
    char *fitted;

    json_init(&json, false);
    manifest_write(&json, generation->model, &source, NULL);
    if (json.failed) {
        json_free(&json);
        return (struct coded_text){.state = json.too_long ? TEXT_TOO_LONG : TEXT_FAILED};
    }
    /* Gives back unused capacity. */
    fitted = realloc(json.text, json.length);
    return (struct coded_text){TEXT_DONE, fitted != NULL ? fitted : json.text, json.length};
}

static struct coded_text compress(enum coding coding, const struct coded_text *whole)
{
    enum zt_coding means = coding == CODING_ZSTD ? ZT_CODING_ZSTD : ZT_CODING_GZIP;
    uint8_t *bytes;
    size_t length;

    assert(whole->state == TEXT_DONE);
    if (zt_coding_encode(means, whole->bytes, whole->length, &bytes, &length, NULL) != ZT_OK)
        return (struct coded_text){.state = TEXT_FAILED};
    return (struct coded_text){TEXT_DONE, (char *)bytes, length};
}

/* The plain text is made before the others. */
static struct coded_text make(struct generation *generation, enum coding coding)
{
    if (coding == CODING_IDENTITY)
        return write_whole(generation);
    return compress(coding, &cache_of(generation)->texts[CODING_IDENTITY]);
}

static void run_making(struct job *job)
{
    struct making *making = (struct making *)job;
    struct manifest_cache *cache = cache_of(making->generation);
    struct coded_text made = make(making->generation, making->coding);
    struct waiter *waiter;

    pthread_mutex_lock(&cache->lock);
    assert(cache->texts[making->coding].state == TEXT_WORKING && made.state > TEXT_WORKING);
    cache->texts[making->coding] = made;
    cache->making[making->coding] = NULL;
    waiter = cache->waiters[making->coding];
    cache->waiters[making->coding] = NULL;
    pthread_mutex_unlock(&cache->lock);
    waiters_wake(waiter);
    generation_release(making->generation);
    free(making);
}

/* The lock is held. */
static void begin(struct workers *workers, struct generation *generation, enum coding coding,
                  uint64_t client)
{
    struct coded_text *text = &cache_of(generation)->texts[coding];
    struct making *making = NULL;

    assert(text->state == TEXT_EMPTY);
    if (coding != CODING_IDENTITY || generation->model->manifest_length > INLINE_MANIFEST_BYTES)
        making = calloc(1, sizeof(*making));
    if (making == NULL) {
        *text = make(generation, coding);
        return;
    }
    making->job.run = run_making;
    making->job.client = client;
    cache_of(generation)->making[coding] = making;
    making->generation = generation_hold(generation);
    making->coding = coding;
    text->state = TEXT_WORKING;
    if (generation->model->manifest_length > LONG_MANIFEST_BYTES)
        workers_submit_long(workers, &making->job);
    else
        workers_submit(workers, &making->job);
}

static enum manifest_answer answer(struct coded_text *text, struct zt_text *out_text)
{
    switch (text->state) {
    case TEXT_WORKING:
        return MANIFEST_PENDING;
    case TEXT_DONE:
        *out_text = (struct zt_text){text->bytes, text->length};
        return MANIFEST_READY;
    case TEXT_TOO_LONG:
        return MANIFEST_TOO_LONG;
    default:
        /* The next request tries again: there may be memory then. */
        text->state = TEXT_EMPTY;
        return MANIFEST_FAILED;
    }
}

static enum manifest_answer ask(struct workers *workers, struct generation *generation,
                                enum coding coding, struct waiter *waiter, struct zt_text *out_text)
{
    struct manifest_cache *cache = cache_of(generation);
    struct coded_text *text;
    enum manifest_answer given;

    if (cache == NULL)
        return MANIFEST_FAILED;
    text = &cache->texts[coding];
    pthread_mutex_lock(&cache->lock);
    if (text->state == TEXT_EMPTY)
        begin(workers, generation, coding, waiter->client);
    else if (text->state == TEXT_WORKING)
        workers_share(workers, &cache->making[coding]->job, waiter->client);
    given = answer(text, out_text);
    if (given == MANIFEST_PENDING) {
        waiter->next = cache->waiters[coding];
        cache->waiters[coding] = waiter;
    }
    pthread_mutex_unlock(&cache->lock);
    return given;
}

enum manifest_answer manifest_ask(struct workers *workers, struct generation *generation,
                                  enum coding coding, struct waiter *waiter,
                                  struct zt_text *out_text)
{
    enum manifest_answer given = ask(workers, generation, CODING_IDENTITY, waiter, out_text);

    return given == MANIFEST_READY && coding != CODING_IDENTITY
               ? ask(workers, generation, coding, waiter, out_text)
               : given;
}

uint64_t manifest_length(struct workers *workers, struct generation *generation, enum coding coding)
{
    struct manifest_cache *cache = cache_of(generation);
    const bool at_once =
        coding == CODING_IDENTITY && generation->model->manifest_length <= INLINE_MANIFEST_BYTES;
    struct coded_text *text;
    uint64_t length;

    if (cache == NULL)
        return 0;
    text = &cache->texts[coding];
    pthread_mutex_lock(&cache->lock);
    if (text->state == TEXT_EMPTY && at_once)
        begin(workers, generation, coding, JOB_OF_SERVER);
    length = text->state == TEXT_DONE ? text->length : 0;
    pthread_mutex_unlock(&cache->lock);
    return length;
}
