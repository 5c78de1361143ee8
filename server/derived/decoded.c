/* Decodes a component once for all requests: in a job that they wait for, or on the thread of a
 * worker that needs it.
 *
 * Entries are keyed by the version of the file and the component. They do not hold the generation,
 * which would keep its files open. */
#include "derived/decoded.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "derived/decoded_entries.h"
#include "derived/decoded_sink.h"
#include "zt/decode.h"
#include "zt/digest.h"

#define CHUNK_BYTES ((size_t)256 << 10)
/* After a failure that may pass (no memory, no disk space), decoding is tried again after this
 * time. */
#define RETRY_NS ((int64_t)1000000000)

struct decoding {
    struct job job; /* first: the job is the structure */
    struct decoded_cache *cache;
    struct decoded_entry *entry;
    struct generation *generation;
    uint32_t component;
};

struct decoded_cache *decoded_cache_new(struct server *server)
{
    struct decoded_cache *cache = calloc(1, sizeof(*cache));

    if (cache == NULL)
        return NULL;
    cache->server = server;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->decoded, NULL);
    return cache;
}

static void make_key(const struct generation *generation, uint32_t component, uint64_t out_key[2])
{
    struct {
        char etag[GENERATION_ETAG_SIZE];
        uint64_t numbers[3];
    } version;

    memset(&version, 0, sizeof(version));
    memcpy(version.etag, generation->etag, sizeof(version.etag));
    version.numbers[0] = generation->identity.device;
    version.numbers[1] = (uint64_t)generation->identity.changed_ns;
    version.numbers[2] = component;
    zt_xxh3_128(&version, sizeof(version), out_key);
}

void decoded_cache_free(struct decoded_cache *cache)
{
    struct decoded_entry *evicted = NULL;

    if (cache == NULL)
        return;
    while (cache->entries.oldest != NULL)
        decoded_evict(cache, (struct decoded_entry *)cache->entries.oldest, &evicted);
    assert(cache->bytes == 0 && cache->files == 0);
    decoded_free_entries(evicted);
    pthread_cond_destroy(&cache->decoded);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

void decoded_cache_stop(struct decoded_cache *cache)
{
    atomic_store(&cache->stopping, true);
}

/* --- decoding --- */

static uint64_t limit_of(const struct decoded_cache *cache)
{
    return (uint64_t)config_number(&cache->server->config->limits.decoded_bytes);
}

static enum zt_status decode_to_sink(const struct decoding *decoding, struct zt_decoder *decoder,
                                     struct decoded_sink *sink, struct zt_error *error)
{
    const uint64_t limit = decoding->entry->limit_bytes;
    uint8_t *chunk = malloc(CHUNK_BYTES);
    enum zt_status status = ZT_OK;
    size_t length = 1;

    if (chunk == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for decoding");
    while (status == ZT_OK && length > 0) {
        status = zt_decoder_read(decoder, chunk, CHUNK_BYTES, &length, error);
        if (status == ZT_OK && sink->length + length > limit)
            status = zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                             "decoded, it exceeds limits.decoded_bytes of this server");
        if (status == ZT_OK && atomic_load(&decoding->cache->stopping))
            status = zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the server is shutting down");
        if (status == ZT_OK)
            status = decoded_sink_add(sink, chunk, length, error);
    }
    free(chunk);
    return status;
}

static enum zt_status decode(const struct decoding *decoding, struct decoded *out_decoded,
                             uint8_t **out_bytes, struct zt_error *error)
{
    const struct generation *generation = decoding->generation;
    const struct zt_component *component = &generation->model->components[decoding->component];
    const struct zt_files files = generation_files(generation);
    struct zt_decoder *decoder = NULL;
    struct decoded_sink sink;
    uint64_t length;
    enum zt_status status;

    decoded_sink_init(&sink, decoding->cache->server->config, component->decoded_length);
    status = zt_decoder_open(component, zt_files_source(&files, component), &decoder, error);
    if (status == ZT_OK)
        status = decode_to_sink(decoding, decoder, &sink, error);
    length = sink.length;
    if (status == ZT_OK)
        status = decoded_sink_finish(&sink, &out_decoded->source, out_bytes, error);
    if (status == ZT_OK)
        out_decoded->length = length;
    zt_decoder_close(decoder);
    decoded_sink_free(&sink);
    return status;
}

/* Lists the entry with its result, and wakes the threads and requests that wait for it. */
static void finish(struct decoded_cache *cache, struct decoded_entry *entry)
{
    struct waiter *waiter;
    struct decoded_entry *evicted;

    pthread_mutex_lock(&cache->lock);
    assert(entry->state == ENTRY_DECODING && entry->claimed && entry->references > 0);
    entry->state = entry->error != NULL ? ENTRY_FAILED : ENTRY_READY;
    entry->ended_ns = clock_ns();
    waiter = entry->waiters;
    entry->waiters = NULL;
    decoded_list(cache, entry);
    evicted = decoded_shrink(cache);
    pthread_cond_broadcast(&cache->decoded);
    pthread_mutex_unlock(&cache->lock);
    decoded_free_entries(evicted);
    waiters_wake(waiter);
}

/* The caller has claimed and holds the entry. */
static void decode_entry(const struct decoding *decoding)
{
    struct decoded_entry *entry = decoding->entry;
    struct decoded decoded = {NULL, 0};
    uint8_t *bytes = NULL;
    /* Allocated with the entry, so that a failure can always be reported. */
    struct zt_error *error = entry->error;

    entry->limit_bytes = limit_of(decoding->cache);
    if (decode(decoding, &decoded, &bytes, error) == ZT_OK) {
        free(error);
        error = NULL;
    }
    /* Nobody else reads these while the state is DECODING. */
    entry->error = error;
    entry->base = decoded;
    entry->bytes = bytes;
    finish(decoding->cache, entry);
}

static bool claim(struct decoded_cache *cache, struct decoded_entry *entry)
{
    bool is_free;

    pthread_mutex_lock(&cache->lock);
    assert(entry->references > 0);
    is_free = !entry->claimed;
    entry->claimed = true;
    entry->job = NULL;
    pthread_mutex_unlock(&cache->lock);
    return is_free;
}

static void run_decoding(struct job *job)
{
    struct decoding *decoding = (struct decoding *)job;

    if (claim(decoding->cache, decoding->entry))
        decode_entry(decoding);
    decoded_release(&decoding->entry->base);
    generation_release(decoding->generation);
    free(decoding);
}

/* Adds an entry and makes its job. The lock is held. NULL if out of memory. */
static struct decoding *begin(struct decoded_cache *cache, struct generation *generation,
                              uint32_t component, const uint64_t key[2])
{
    struct decoding *decoding = calloc(1, sizeof(*decoding));
    struct decoded_entry *entry = decoding != NULL ? decoded_add(cache, key) : NULL;

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

/* --- finding --- */

/* Checks what is known before anything is read. */
static enum zt_status check_request(const struct decoded_cache *cache,
                                    const struct zt_component *component, struct zt_error *error)
{
    if (component->decoded_length != ZT_LENGTH_UNKNOWN &&
        component->decoded_length > limit_of(cache))
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "decoded, it exceeds limits.decoded_bytes of this server");
    if (atomic_load(&cache->stopping))
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the server is shutting down");
    return ZT_OK;
}

static bool may_retry(const struct decoded_cache *cache, const struct decoded_entry *entry)
{
    bool lasting = entry->error->status == ZT_CORRUPT || entry->error->status == ZT_UNSUPPORTED ||
                   entry->error->status == ZT_INVALID || entry->error->status == ZT_LIMIT;

    /* The limit may have been raised since. */
    if (entry->error->status == ZT_LIMIT && entry->limit_bytes < limit_of(cache))
        return true;
    return !lasting && clock_ns() - entry->ended_ns > RETRY_NS;
}

/* The entry of a key, unless its failure is old enough to try again. The lock is held. */
static struct decoded_entry *find_entry(struct decoded_cache *cache, const uint64_t key[2],
                                        struct decoded_entry **evicted)
{
    struct decoded_entry *entry = *decoded_find_link(cache, key);

    if (entry != NULL && entry->state == ENTRY_FAILED && may_retry(cache, entry)) {
        decoded_evict(cache, entry, evicted);
        entry = NULL;
    }
    return entry;
}

/* Answers from an entry, or adds the waiter to it. The lock is held. */
static enum decoded_answer answer(struct decoded_cache *cache, struct decoded_entry *entry,
                                  struct waiter *waiter, struct decoded **out_decoded,
                                  struct zt_error *error)
{
    if (entry->state == ENTRY_DECODING) {
        assert(waiter != NULL);
        if (entry->job != NULL)
            workers_share(server_waiters(cache->server), entry->job, waiter->client);
        waiter->next = entry->waiters;
        entry->waiters = waiter;
        return DECODED_PENDING;
    }
    entry->handed_out = true;
    recency_touch(&cache->entries, &entry->link);
    if (entry->state == ENTRY_FAILED) {
        *error = *entry->error;
        return DECODED_FAILED;
    }
    entry->references++;
    *out_decoded = &entry->base;
    return DECODED_READY;
}

static uint64_t decoding_bytes(const struct zt_component *component)
{
    return component->decoded_length > component->length ? component->decoded_length
                                                         : component->length;
}

enum decoded_answer decoded_ask(struct decoded_cache *cache, struct generation *generation,
                                uint32_t component, struct waiter *waiter,
                                struct decoded **out_decoded, struct zt_error *error)
{
    struct decoding *begun = NULL;
    struct decoded_entry *evicted = NULL;
    struct decoded_entry *entry;
    enum decoded_answer said;
    uint64_t key[2];

    if (check_request(cache, &generation->model->components[component], error) != ZT_OK)
        return DECODED_FAILED;
    make_key(generation, component, key);
    pthread_mutex_lock(&cache->lock);
    entry = find_entry(cache, key, &evicted);
    if (entry == NULL) {
        begun = begin(cache, generation, component, key);
        entry = begun != NULL ? begun->entry : NULL;
    }
    if (begun != NULL) {
        begun->job.client = waiter->client;
        entry->job = &begun->job;
    }
    said = entry != NULL ? answer(cache, entry, waiter, out_decoded, error) : DECODED_FAILED;
    /* With the lock, so that whoever joins finds it queued. */
    if (begun != NULL)
        workers_submit_sized(server_waiters(cache->server), &begun->job,
                             decoding_bytes(&generation->model->components[component]));
    pthread_mutex_unlock(&cache->lock);
    decoded_free_entries(evicted);
    if (begun == NULL && entry == NULL)
        zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for decoding");
    return said;
}

/* Finds or adds the entry, and holds it. *out_claimed: the caller must decode it. */
static struct decoded_entry *hold_entry(struct decoded_cache *cache, const uint64_t key[2],
                                        bool *out_claimed)
{
    struct decoded_entry *evicted = NULL;
    struct decoded_entry *entry;

    pthread_mutex_lock(&cache->lock);
    entry = find_entry(cache, key, &evicted);
    if (entry != NULL)
        entry->references++;
    else
        entry = decoded_add(cache, key);
    *out_claimed = entry != NULL && entry->state == ENTRY_DECODING && !entry->claimed;
    if (*out_claimed)
        entry->claimed = true;
    pthread_mutex_unlock(&cache->lock);
    decoded_free_entries(evicted);
    return entry;
}

enum zt_status decoded_get(struct decoded_cache *cache, struct generation *generation,
                           uint32_t component, struct decoded **out_decoded, struct zt_error *error)
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
        decode_entry(&decoding);
    pthread_mutex_lock(&cache->lock);
    while (decoding.entry->state == ENTRY_DECODING)
        pthread_cond_wait(&cache->decoded, &cache->lock);
    said = answer(cache, decoding.entry, NULL, out_decoded, error);
    status = said == DECODED_READY ? ZT_OK : decoding.entry->error->status;
    pthread_mutex_unlock(&cache->lock);
    /* Our own reference; *out_decoded has another. */
    decoded_release(&decoding.entry->base);
    return status;
}

void decoded_release(void *decoded)
{
    struct decoded_entry *entry;
    struct decoded_cache *cache;
    struct decoded_entry *evicted;

    if (decoded == NULL)
        return;
    entry =
        (struct decoded_entry *)(void *)((char *)decoded - offsetof(struct decoded_entry, base));
    cache = entry->cache;
    pthread_mutex_lock(&cache->lock);
    assert(entry->references > 0);
    entry->references--;
    evicted = decoded_shrink(cache);
    pthread_mutex_unlock(&cache->lock);
    decoded_free_entries(evicted);
}
