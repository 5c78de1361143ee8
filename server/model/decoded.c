/* The cache of decoded components: entries in a hash table, in order of last use, bounded by what those that nobody
 * uses may hold.
 *
 * An entry is keyed by the version of the file and the component, not by the generation, so that it keeps no file open.
 */
#include "model/decoded.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/decoded_sink.h"
#include "zt/decode.h"
#include "zt/digest.h"

/* A power of two; chains are short for as many entries as memory of a usual bound holds. */
#define BUCKET_COUNT 4096
/* Each entry costs that beside its bytes; so many empty ones are bounded too. */
#define ENTRY_BYTES 512
/* Files kept open for nobody. */
#define FILES_MAX   256
#define CHUNK_BYTES ((size_t)256 << 10)
/* Failures that may pass (no memory, a full disk) are not tried again before. */
#define RETRY_NS ((int64_t)1000000000)
/* What was decoded stays for those who waited for it, until the first of them was there or this has passed. */
#define PROMISE_NS ((int64_t)5000000000)

enum entry_state { ENTRY_DECODING, ENTRY_READY, ENTRY_FAILED };

struct entry {
    struct decoded base; /* first: what is handed out is the entry */
    struct decoded_cache *cache;
    uint64_t key[2];
    enum entry_state state;
    bool claimed; /* a thread is at it; until then its job may be forestalled */
    unsigned references;
    bool handed_out;
    int64_t ended_ns;
    uint8_t *bytes; /* under a source of memory */
    struct zt_error *error;
    struct waiter *waiters;
    struct entry *chain;
    struct entry *newer;
    struct entry *older;
};

struct decoded_cache {
    struct server *server;
    pthread_mutex_t lock;
    pthread_cond_t settled;
    struct entry *buckets[BUCKET_COUNT];
    struct entry *newest; /* of entries that are not being decoded */
    struct entry *oldest;
    uint64_t bytes;
    size_t files;
    atomic_bool stopping;
};

struct decoding {
    struct job job; /* first: the job is the structure */
    struct decoded_cache *cache;
    struct entry *entry;
    struct generation *generation;
    uint32_t component;
};

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct decoded_cache *decoded_cache_new(struct server *server)
{
    struct decoded_cache *cache = calloc(1, sizeof *cache);

    if (cache == NULL)
        return NULL;
    cache->server = server;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->settled, NULL);
    return cache;
}

static void make_key(const struct generation *generation, uint32_t component, uint64_t out_key[2])
{
    struct {
        char etag[GENERATION_ETAG_SIZE];
        uint64_t facts[3];
    } version;

    memset(&version, 0, sizeof version);
    memcpy(version.etag, generation->etag, sizeof version.etag);
    version.facts[0] = generation->identity.device;
    version.facts[1] = (uint64_t)generation->identity.changed_ns;
    version.facts[2] = component;
    zt_xxh3_128(&version, sizeof version, out_key);
}

/* --- the table and the order of use; the lock is held --- */

static struct entry **find_link(struct decoded_cache *cache, const uint64_t key[2])
{
    struct entry **link = &cache->buckets[key[0] % BUCKET_COUNT];

    while (*link != NULL && ((*link)->key[0] != key[0] || (*link)->key[1] != key[1]))
        link = &(*link)->chain;
    return link;
}

static uint64_t charge(const struct entry *entry)
{
    return ENTRY_BYTES + entry->base.length + (entry->error != NULL ? sizeof *entry->error : 0);
}

static bool is_file(const struct entry *entry)
{
    return entry->base.source != NULL && zt_source_descriptor(entry->base.source) >= 0;
}

static void enlist(struct decoded_cache *cache, struct entry *entry)
{
    entry->newer = NULL;
    entry->older = cache->newest;
    if (cache->newest != NULL)
        cache->newest->newer = entry;
    else
        cache->oldest = entry;
    cache->newest = entry;
}

static void delist(struct decoded_cache *cache, struct entry *entry)
{
    if (entry->newer != NULL)
        entry->newer->older = entry->older;
    else
        cache->newest = entry->older;
    if (entry->older != NULL)
        entry->older->newer = entry->newer;
    else
        cache->oldest = entry->newer;
}

/* Takes an entry out; *doomed gathers what is to be freed once the lock is given back. */
static void evict(struct decoded_cache *cache, struct entry *entry, struct entry **doomed)
{
    *find_link(cache, entry->key) = entry->chain;
    delist(cache, entry);
    cache->bytes -= charge(entry);
    cache->files -= is_file(entry);
    entry->chain = *doomed;
    *doomed = entry;
}

static bool is_wanted(const struct entry *entry, int64_t now)
{
    return entry->references > 0 || (!entry->handed_out && now - entry->ended_ns < PROMISE_NS);
}

/* Brings the cache back to its bound, oldest first. One entry larger than the bound may stay as the newest, so that its
 * next range does not decode it anew; with a bound of 0 nothing stays. */
static struct entry *shrink(struct decoded_cache *cache)
{
    uint64_t limit = (uint64_t)cache->server->config->limits.decoded_cache_bytes;
    struct entry *doomed = NULL;
    struct entry *entry = cache->oldest;
    int64_t now = now_ns();

    while (entry != NULL && (cache->bytes > limit || cache->files > FILES_MAX)) {
        struct entry *newer = entry->newer;

        if (!is_wanted(entry, now) && (newer != NULL || limit == 0))
            evict(cache, entry, &doomed);
        entry = newer;
    }
    return doomed;
}

static void free_entries(struct entry *doomed)
{
    while (doomed != NULL) {
        struct entry *next = doomed->chain;

        zt_source_close(doomed->base.source);
        free(doomed->bytes);
        free(doomed->error);
        free(doomed);
        doomed = next;
    }
}

void decoded_cache_free(struct decoded_cache *cache)
{
    struct entry *doomed = NULL;

    if (cache == NULL)
        return;
    while (cache->oldest != NULL) {
        assert(cache->oldest->references == 0);
        evict(cache, cache->oldest, &doomed);
    }
    free_entries(doomed);
    pthread_cond_destroy(&cache->settled);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

void decoded_cache_stop(struct decoded_cache *cache)
{
    atomic_store(&cache->stopping, true);
}

/* --- decoding --- */

static enum zt_status pump(const struct decoding *decoding, struct zt_decoder *decoder, struct decoded_sink *sink,
                           struct zt_error *error)
{
    uint64_t limit = (uint64_t)decoding->cache->server->config->limits.decoded_bytes;
    uint8_t *chunk = malloc(CHUNK_BYTES);
    enum zt_status status = ZT_OK;
    size_t length = 1;

    if (chunk == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for decoding");
    while (status == ZT_OK && length > 0) {
        status = zt_decoder_read(decoder, chunk, CHUNK_BYTES, &length, error);
        if (status == ZT_OK && sink->length + length > limit)
            status = zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "decoded it is larger than the server allows");
        if (status == ZT_OK && atomic_load(&decoding->cache->stopping))
            status = zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the server is ending");
        if (status == ZT_OK)
            status = decoded_sink_add(sink, chunk, length, error);
    }
    free(chunk);
    return status;
}

static enum zt_status decode(const struct decoding *decoding, struct decoded *out_decoded, uint8_t **out_bytes,
                             struct zt_error *error)
{
    const struct generation *generation = decoding->generation;
    const struct zt_component *component = &generation->model->components[decoding->component];
    const struct zt_files files = generation_files(generation);
    struct zt_decoder *decoder = NULL;
    struct decoded_sink sink;
    uint64_t length;
    enum zt_status status;

    decoded_sink_init(&sink, decoding->cache->server->config);
    status = zt_decoder_open(component, zt_files_source(&files, component), &decoder, error);
    if (status == ZT_OK)
        status = pump(decoding, decoder, &sink, error);
    length = sink.length;
    if (status == ZT_OK)
        status = decoded_sink_finish(&sink, &out_decoded->source, out_bytes, error);
    if (status == ZT_OK)
        out_decoded->length = length;
    zt_decoder_close(decoder);
    decoded_sink_free(&sink);
    return status;
}

/* The outcome becomes the entry's; whoever waited asks again. */
static void settle(struct decoded_cache *cache, struct entry *entry)
{
    struct waiter *waiter;
    struct entry *doomed;

    pthread_mutex_lock(&cache->lock);
    entry->state = entry->error != NULL ? ENTRY_FAILED : ENTRY_READY;
    entry->ended_ns = now_ns();
    waiter = entry->waiters;
    entry->waiters = NULL;
    enlist(cache, entry);
    cache->bytes += charge(entry);
    cache->files += is_file(entry);
    doomed = shrink(cache);
    pthread_cond_broadcast(&cache->settled);
    pthread_mutex_unlock(&cache->lock);
    free_entries(doomed);
    while (waiter != NULL) {
        struct waiter *next = waiter->next;

        waiter->wake(waiter);
        waiter = next;
    }
}

/* For whoever has claimed the entry, and holds it. */
static void work(const struct decoding *decoding)
{
    struct entry *entry = decoding->entry;
    struct decoded decoded = {NULL, 0};
    uint8_t *bytes = NULL;
    /* Made before, so that a failure can always be told. */
    struct zt_error *error = entry->error;

    if (decode(decoding, &decoded, &bytes, error) == ZT_OK) {
        free(error);
        error = NULL;
    }
    /* Nobody else reads these while the entry is being decoded. */
    entry->error = error;
    entry->base = decoded;
    entry->bytes = bytes;
    settle(decoding->cache, entry);
}

static bool claim(struct decoded_cache *cache, struct entry *entry)
{
    bool is_free;

    pthread_mutex_lock(&cache->lock);
    is_free = !entry->claimed;
    entry->claimed = true;
    pthread_mutex_unlock(&cache->lock);
    return is_free;
}

static void run_decoding(struct job *job)
{
    struct decoding *decoding = (struct decoding *)job;

    if (claim(decoding->cache, decoding->entry))
        work(decoding);
    decoded_release(&decoding->entry->base);
    generation_release(decoding->generation);
    free(decoding);
}

/* An entry that is to be decoded, held by the caller. The lock is held. NULL when memory is out. */
static struct entry *add_entry(struct decoded_cache *cache, const uint64_t key[2])
{
    struct entry *entry = calloc(1, sizeof *entry);
    struct zt_error *error = calloc(1, sizeof *error);
    struct entry **bucket = &cache->buckets[key[0] % BUCKET_COUNT];

    if (entry == NULL || error == NULL) {
        free(entry);
        free(error);
        return NULL;
    }
    zt_error_clear(error);
    memcpy(entry->key, key, sizeof entry->key);
    entry->cache = cache;
    entry->references = 1;
    entry->error = error;
    entry->chain = *bucket;
    *bucket = entry;
    return entry;
}

/* Makes an entry that is being decoded and its job. The lock is held. NULL when memory is out. */
static struct decoding *begin(struct decoded_cache *cache, struct generation *generation, uint32_t component,
                              const uint64_t key[2])
{
    struct decoding *decoding = calloc(1, sizeof *decoding);
    struct entry *entry = decoding != NULL ? add_entry(cache, key) : NULL;

    if (entry == NULL) {
        free(decoding);
        return NULL;
    }
    decoding->job.run = run_decoding;
    decoding->cache = cache;
    decoding->entry = entry;
    decoding->generation = generation_hold(generation);
    decoding->component = component;
    return decoding;
}

/* --- asking --- */

/* What can be refused before anything is read. */
static enum zt_status check_request(const struct decoded_cache *cache, const struct zt_component *component,
                                    struct zt_error *error)
{
    uint64_t limit = (uint64_t)cache->server->config->limits.decoded_bytes;

    if (component->decoded_length != ZT_LENGTH_UNKNOWN && component->decoded_length > limit)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "decoded it is larger than the server allows");
    if (atomic_load(&cache->stopping))
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the server is ending");
    return ZT_OK;
}

static bool may_retry(const struct entry *entry)
{
    bool lasting = entry->error->status == ZT_CORRUPT || entry->error->status == ZT_UNSUPPORTED ||
                   entry->error->status == ZT_INVALID || entry->error->status == ZT_LIMIT;

    return !lasting && now_ns() - entry->ended_ns > RETRY_NS;
}

/* The entry that is there, unless it failed some time ago. The lock is held. */
static struct entry *find_entry(struct decoded_cache *cache, const uint64_t key[2], struct entry **doomed)
{
    struct entry *entry = *find_link(cache, key);

    if (entry != NULL && entry->state == ENTRY_FAILED && may_retry(entry)) {
        evict(cache, entry, doomed);
        entry = NULL;
    }
    return entry;
}

/* Answers from an entry that is there. The lock is held. */
static enum decoded_answer answer(struct decoded_cache *cache, struct entry *entry, struct waiter *waiter,
                                  struct decoded **out_decoded, struct zt_error *error)
{
    if (entry->state == ENTRY_DECODING) {
        waiter->next = entry->waiters;
        entry->waiters = waiter;
        return DECODED_PENDING;
    }
    entry->handed_out = true;
    delist(cache, entry);
    enlist(cache, entry);
    if (entry->state == ENTRY_FAILED) {
        *error = *entry->error;
        return DECODED_FAILED;
    }
    entry->references++;
    *out_decoded = &entry->base;
    return DECODED_READY;
}

enum decoded_answer decoded_ask(struct decoded_cache *cache, struct generation *generation, uint32_t component,
                                struct waiter *waiter, struct decoded **out_decoded, struct zt_error *error)
{
    struct decoding *begun = NULL;
    struct entry *doomed = NULL;
    struct entry *entry;
    enum decoded_answer said;
    uint64_t key[2];

    if (check_request(cache, &generation->model->components[component], error) != ZT_OK)
        return DECODED_FAILED;
    make_key(generation, component, key);
    pthread_mutex_lock(&cache->lock);
    entry = find_entry(cache, key, &doomed);
    if (entry == NULL) {
        begun = begin(cache, generation, component, key);
        entry = begun != NULL ? begun->entry : NULL;
    }
    said = entry != NULL ? answer(cache, entry, waiter, out_decoded, error) : DECODED_FAILED;
    pthread_mutex_unlock(&cache->lock);
    free_entries(doomed);
    if (begun != NULL)
        workers_submit(cache->server->workers, &begun->job);
    else if (entry == NULL)
        zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for decoding");
    return said;
}

/* Finds the entry, or adds it, and holds it; *out_claimed: it is to be decoded by the caller. */
static struct entry *hold_entry(struct decoded_cache *cache, const uint64_t key[2], bool *out_claimed)
{
    struct entry *doomed = NULL;
    struct entry *entry;

    pthread_mutex_lock(&cache->lock);
    entry = find_entry(cache, key, &doomed);
    if (entry != NULL)
        entry->references++;
    else
        entry = add_entry(cache, key);
    *out_claimed = entry != NULL && entry->state == ENTRY_DECODING && !entry->claimed;
    if (*out_claimed)
        entry->claimed = true;
    pthread_mutex_unlock(&cache->lock);
    free_entries(doomed);
    return entry;
}

enum zt_status decoded_get(struct decoded_cache *cache, struct generation *generation, uint32_t component,
                           struct decoded **out_decoded, struct zt_error *error)
{
    struct decoding decoding = {.cache = cache, .generation = generation, .component = component};
    enum zt_status status = check_request(cache, &generation->model->components[component], error);
    enum decoded_answer said;
    uint64_t key[2];
    bool claimed;

    if (status != ZT_OK)
        return status;
    make_key(generation, component, key);
    decoding.entry = hold_entry(cache, key, &claimed);
    if (decoding.entry == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for decoding");
    if (claimed)
        work(&decoding);
    pthread_mutex_lock(&cache->lock);
    while (decoding.entry->state == ENTRY_DECODING)
        pthread_cond_wait(&cache->settled, &cache->lock);
    said = answer(cache, decoding.entry, NULL, out_decoded, error);
    status = said == DECODED_READY ? ZT_OK : decoding.entry->error->status;
    pthread_mutex_unlock(&cache->lock);
    /* Its own hold; what is handed out has another. */
    decoded_release(&decoding.entry->base);
    return status;
}

void decoded_release(void *thing)
{
    struct decoded *decoded = thing;
    struct entry *entry = thing;
    struct decoded_cache *cache;
    struct entry *doomed;

    if (decoded == NULL)
        return;
    cache = entry->cache;
    pthread_mutex_lock(&cache->lock);
    assert(entry->references > 0);
    entry->references--;
    doomed = shrink(cache);
    pthread_mutex_unlock(&cache->lock);
    free_entries(doomed);
}
