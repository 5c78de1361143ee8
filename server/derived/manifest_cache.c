/* The whole manifest's JSON and its compressed forms, each made once for each generation: a small
 * text at once, all else by a worker while all who asked wait for the one result.
 *
 * They stay as long as the generation: the text, which cannot be many times as long as the manifest
 * in the file, and a tenth or so of it for each coding that somebody asked for. */
#include <pthread.h>
#include <stdlib.h>

#include "derived/manifest_json.h"
#include "zt/coding.h"

/* Manifests up to this size are written within about 100 µs, so the loop does it itself. */
#define INLINE_MANIFEST_BYTES 16384
/* Larger ones take longer than about 10 ms to write or to compress. */
#define LONG_MANIFEST_BYTES 262144
/* CODING_IDENTITY, CODING_ZSTD, CODING_GZIP. */
#define FORMS CODING_NONE

enum form_state { FORM_EMPTY, FORM_WORKING, FORM_DONE, FORM_TOO_LONG, FORM_FAILED };

/* One form of it: constant from FORM_DONE on. */
struct form {
    enum form_state state;
    char *bytes;
    size_t length;
};

/* A generation's side table. */
struct manifest_cache {
    struct side_table base;
    pthread_mutex_t lock;
    struct form forms[FORMS];
    struct waiter *waiters[FORMS];
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
    for (unsigned i = 0; i < FORMS; i++)
        free(cache->forms[i].bytes);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* Made if need be; NULL when memory is out. */
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

/* Gives back what the growing of the text took too much. */
static struct form write_whole(const struct generation *generation)
{
    const struct manifest_source source = {.name = generation_name(generation),
                                           .path = generation->path,
                                           .etag = generation->etag,
                                           .modified_ns = generation->identity.modified_ns};
    struct json json;
    char *fitted;

    json_init(&json, false);
    manifest_write(&json, generation->model, &source, NULL);
    if (json.failed) {
        json_free(&json);
        return (struct form){.state = json.too_long ? FORM_TOO_LONG : FORM_FAILED};
    }
    fitted = realloc(json.text, json.length);
    return (struct form){FORM_DONE, fitted != NULL ? fitted : json.text, json.length};
}

static struct form compress(enum coding coding, const struct form *whole)
{
    enum zt_coding means = coding == CODING_ZSTD ? ZT_CODING_ZSTD : ZT_CODING_GZIP;
    uint8_t *bytes;
    size_t length;

    if (zt_coding_encode(means, whole->bytes, whole->length, &bytes, &length, NULL) != ZT_OK)
        return (struct form){.state = FORM_FAILED};
    return (struct form){FORM_DONE, (char *)bytes, length};
}

/* What is compressed is there: it is asked for first. */
static struct form make(struct generation *generation, enum coding coding)
{
    if (coding == CODING_IDENTITY)
        return write_whole(generation);
    return compress(coding, &cache_of(generation)->forms[CODING_IDENTITY]);
}

static void run_making(struct job *job)
{
    struct making *making = (struct making *)job;
    struct manifest_cache *cache = cache_of(making->generation);
    struct form made = make(making->generation, making->coding);
    struct waiter *waiter;

    pthread_mutex_lock(&cache->lock);
    cache->forms[making->coding] = made;
    waiter = cache->waiters[making->coding];
    cache->waiters[making->coding] = NULL;
    pthread_mutex_unlock(&cache->lock);
    waiters_wake(waiter);
    generation_release(making->generation);
    free(making);
}

/* With the lock held. */
static void begin(struct workers *workers, struct generation *generation, enum coding coding)
{
    struct form *form = &cache_of(generation)->forms[coding];
    struct making *making = NULL;

    if (coding != CODING_IDENTITY || generation->model->manifest_length > INLINE_MANIFEST_BYTES)
        making = calloc(1, sizeof(*making));
    if (making == NULL) {
        *form = make(generation, coding);
        return;
    }
    making->job.run = run_making;
    making->generation = generation_hold(generation);
    making->coding = coding;
    form->state = FORM_WORKING;
    if (generation->model->manifest_length > LONG_MANIFEST_BYTES)
        workers_submit_long(workers, &making->job);
    else
        workers_submit(workers, &making->job);
}

static enum manifest_answer answer(struct form *form, struct zt_text *out_text)
{
    switch (form->state) {
    case FORM_WORKING:
        return MANIFEST_PENDING;
    case FORM_DONE:
        *out_text = (struct zt_text){form->bytes, form->length};
        return MANIFEST_READY;
    case FORM_TOO_LONG:
        return MANIFEST_TOO_LONG;
    default:
        /* Memory may be there the next time. */
        form->state = FORM_EMPTY;
        return MANIFEST_FAILED;
    }
}

static enum manifest_answer ask(struct workers *workers, struct generation *generation,
                                enum coding coding, struct waiter *waiter, struct zt_text *out_text)
{
    struct manifest_cache *cache = cache_of(generation);
    struct form *form;
    enum manifest_answer given;

    if (cache == NULL)
        return MANIFEST_FAILED;
    form = &cache->forms[coding];
    pthread_mutex_lock(&cache->lock);
    if (form->state == FORM_EMPTY)
        begin(workers, generation, coding);
    given = answer(form, out_text);
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
