/* Decodes a component once for all requests, either in a job that they wait for or on the worker
 * thread that needs it.
 *
 * The key of a value is the version of the file, the component and the limit. Values do not hold
 * the generation, which would keep its files open. */
#include "derived/decoded.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "derived/decoded_sink.h"
#include "disk/disk_space.h"
#include "disk/open_files.h"
#include "zt/decode.h"
#include "zt/digest.h"

#define CHUNK_BYTES ((size_t)256 << 10)
/* How long to wait after a temporary failure (no memory) before decoding is tried again. */
#define RETRY_MS 1000
/* The cost of a value in addition to its bytes; it limits the number of empty values. */
#define VALUE_BYTES 512
/* The maximum number of files that the cache keeps open, if there are enough descriptors. */
#define FILES_MAX 256

struct decoded_cache {
    struct server *server;
    struct memo *memo;
    struct disk_saver saver;
};

struct decoding {
    struct job job; /* first: the job is the structure */
    struct decoded_cache *cache;
    struct decoded *decoded;
    struct generation *generation;
    uint32_t component;
};

/* Which bytes a value is of, and the limit that was in force when it was requested: a failure is
 * forgotten when the limit is raised. */
struct decoded_key {
    uint64_t version[2];
    uint64_t limit_bytes;
};

_Static_assert(sizeof(struct decoded_key) == DECODED_KEY_BYTES, "other derived bytes rely on it");

/* --- the cache --- */

static bool is_file(const struct decoded *decoded)
{
    return zt_source_descriptor(decoded->source) >= 0;
}

static void free_decoded(void *value)
{
    struct decoded *decoded = value;

    zt_source_close(decoded->source);
    free(decoded->bytes);
}

/* Here the count of a charge is the number of files. */
static void fill_bounds(void *context, struct memo_charge *out_most)
{
    const struct decoded_cache *cache = context;

    out_most->bytes = (uint64_t)config_number(&cache->server->config->limits.decoded_cache_bytes);
    out_most->count = open_files_for_decoded(FILES_MAX);
}

/* A file system on which bytes must be freed. */
struct saving {
    const struct disk_space *space;
    uint64_t bytes; /* still to be freed, or that could be freed */
};

/* Returns true if a file could be freed now. */
static bool is_savable(const struct saving *saving, const struct decoded *decoded, bool is_held)
{
    return !is_held && is_file(decoded) &&
           disk_space_of(zt_source_descriptor(decoded->source)) == saving->space;
}

static bool is_worth_freeing(void *context, const void *value, bool is_held)
{
    struct saving *saving = context;
    const struct decoded *decoded = value;

    if (saving->bytes == 0 || !is_savable(saving, decoded, is_held))
        return false;
    saving->bytes -= decoded->length < saving->bytes ? decoded->length : saving->bytes;
    return true;
}

/* Adds up what could be freed, and frees nothing. */
static bool count_savable(void *context, const void *value, bool is_held)
{
    struct saving *saving = context;

    if (is_savable(saving, value, is_held))
        saving->bytes += ((const struct decoded *)value)->length;
    return false;
}

static uint64_t could_free(void *context, const struct disk_space *space)
{
    struct decoded_cache *cache = context;
    struct saving saving = {space, 0};

    (void)memo_sweep(cache->memo, count_savable, &saving);
    return saving.bytes;
}

/* Frees files of the cache: components can be decoded again, uploads cannot. */
static bool free_some(void *context, const struct disk_space *space, uint64_t bytes)
{
    struct decoded_cache *cache = context;
    struct saving saving = {space, bytes};

    return memo_sweep(cache->memo, is_worth_freeing, &saving);
}

struct decoded_cache *decoded_cache_new(struct server *server)
{
    struct decoded_cache *cache = calloc(1, sizeof(*cache));
    const struct memo_rules rules = {.value_bytes = sizeof(struct decoded),
                                     .free_value = free_decoded,
                                     .bounds = fill_bounds,
                                     .context = cache,
                                     .keeps_newest = true};

    if (cache == NULL)
        return NULL;
    cache->server = server;
    cache->memo = memo_new(&rules);
    if (cache->memo == NULL) {
        free(cache);
        return NULL;
    }
    cache->saver =
        (struct disk_saver){.could_free = could_free, .free_some = free_some, .context = cache};
    disk_saver_add(&cache->saver);
    return cache;
}

void decoded_cache_free(struct decoded_cache *cache)
{
    if (cache == NULL)
        return;
    disk_saver_remove(&cache->saver);
    memo_free(cache->memo);
    free(cache);
}

void decoded_cache_stop(struct decoded_cache *cache)
{
    memo_stop(cache->memo);
}

struct memo *decoded_cache_memo(struct decoded_cache *cache)
{
    return cache->memo;
}

void decoded_finish(struct decoded *decoded, enum zt_status status, const struct zt_error *error,
                    int64_t failure_lasts_ms)
{
    if (status == ZT_OK)
        memo_done(decoded, (struct memo_charge){VALUE_BYTES + decoded->length, is_file(decoded)});
    else
        memo_fail(decoded, error, (struct memo_charge){VALUE_BYTES + sizeof(*error), 0},
                  failure_lasts_ms);
}

static uint64_t limit_of(const struct decoded_cache *cache)
{
    return (uint64_t)config_number(&cache->server->config->limits.decoded_bytes);
}

struct decoded *decoded_hold(struct decoded_cache *cache, const struct generation *generation,
                             uint32_t component)
{
    struct {
        char etag[GENERATION_ETAG_SIZE];
        uint64_t numbers[3];
    } version;
    struct decoded_key key = {.limit_bytes = limit_of(cache)};

    assert(component < generation->model->component_count);
    memset(&version, 0, sizeof(version));
    memcpy(version.etag, generation->etag, sizeof(version.etag));
    version.numbers[0] = generation->identity.device;
    version.numbers[1] = (uint64_t)generation->identity.changed_ns;
    version.numbers[2] = component;
    zt_xxh3_128(&version, sizeof(version), key.version);
    return memo_hold(cache->memo, (struct zt_text){(const char *)&key, sizeof(key)});
}

static uint64_t limit_of_value(struct decoded *decoded)
{
    const struct zt_text bytes = memo_key(decoded);
    struct decoded_key key;

    assert(bytes.length == sizeof(key));
    memcpy(&key, bytes.bytes, sizeof(key));
    return key.limit_bytes;
}

/* --- decoding --- */

static enum zt_status decode_to_sink(const struct decoding *decoding, struct zt_decoder *decoder,
                                     struct decoded_sink *sink, struct zt_error *error)
{
    const uint64_t limit = limit_of_value(decoding->decoded);
    uint8_t *chunk = malloc(CHUNK_BYTES);
    enum zt_status status = ZT_OK;
    size_t length = 1;

    if (chunk == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for decoding");
    while (status == ZT_OK && length > 0) {
        status = zt_decoder_read(decoder, chunk, CHUNK_BYTES, &length, error);
        if (status == ZT_OK && sink->length + length > limit)
            status = zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                             "its decoded size exceeds this server's limits.decoded_bytes");
        if (status == ZT_OK && memo_is_stopping(decoding->cache->memo))
            status = zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the server is shutting down");
        if (status == ZT_OK)
            status = decoded_sink_add(sink, chunk, length, error);
    }
    free(chunk);
    return status;
}

static enum zt_status decode(const struct decoding *decoding, struct zt_error *error)
{
    struct decoded *decoded = decoding->decoded;
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
        status = decoded_sink_finish(&sink, &decoded->source, &decoded->bytes, error);
    if (status == ZT_OK)
        decoded->length = length;
    zt_decoder_close(decoder);
    decoded_sink_free(&sink);
    return status;
}

/* Returns how long a failure is remembered. Lack of space is not, since space may become free at
 * any time. */
static int64_t lasts_ms(const struct zt_error *error)
{
    if (disk_space_is_short(error))
        return 0;
    return error->status == ZT_CORRUPT || error->status == ZT_UNSUPPORTED ||
                   error->status == ZT_INVALID || error->status == ZT_LIMIT
               ? MEMO_LASTING
               : RETRY_MS;
}

/* Runs in the maker of the value. */
static void make(struct decoding *decoding)
{
    struct decoded *decoded = decoding->decoded;
    struct zt_error error;
    const enum zt_status status = decode(decoding, &error);

    decoded_finish(decoded, status, &error, status == ZT_OK ? 0 : lasts_ms(&error));
    memo_release(decoded);
}

static void run_decoding(struct job *job)
{
    struct decoding *decoding = (struct decoding *)job;

    if (memo_begin(decoding->decoded, job))
        make(decoding);
    else
        memo_release(decoding->decoded);
    generation_release(decoding->generation);
    free(decoding);
}

/* Checks what is known before any bytes are read. */
static enum zt_status check_request(const struct decoded_cache *cache,
                                    const struct zt_component *component, struct zt_error *error)
{
    if (component->decoded_length != ZT_LENGTH_UNKNOWN &&
        component->decoded_length > limit_of(cache))
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "its decoded size exceeds this server's limits.decoded_bytes");
    if (memo_is_stopping(cache->memo))
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the server is shutting down");
    return ZT_OK;
}

static uint64_t decoding_bytes(const struct zt_component *component)
{
    return component->decoded_length > component->length ? component->decoded_length
                                                         : component->length;
}

static void begin(const struct decoding *begun, struct waiter *waiter)
{
    const struct server *server = begun->cache->server;
    struct decoding *decoding = malloc(sizeof(*decoding));
    struct zt_error error;

    if (decoding == NULL) {
        zt_fail_memory(&error, "decoding");
        memo_await(begun->decoded, waiter);
        memo_fail(begun->decoded, &error, MEMO_NOT_KEPT, 0);
        memo_release(begun->decoded);
        return;
    }
    *decoding = *begun;
    decoding->job.run = run_decoding;
    generation_hold(decoding->generation);
    memo_submit(decoding->decoded, waiter,
                &(struct memo_job){
                    server_waiters(server), &decoding->job,
                    decoding_bytes(&decoding->generation->model->components[decoding->component])});
}

enum memo_answer decoded_ask(struct decoded_cache *cache, struct decoded *decoded,
                             struct generation *generation, uint32_t component,
                             struct waiter *waiter, struct zt_error *error)
{
    const struct decoding begun = {
        .cache = cache, .decoded = decoded, .generation = generation, .component = component};
    enum memo_answer answer;

    if (check_request(cache, &generation->model->components[component], error) != ZT_OK)
        return MEMO_FAILED;
    answer = memo_ask(decoded, 1, waiter, error);
    if (answer != MEMO_MAKE)
        return answer;
    begin(&begun, waiter);
    return MEMO_PENDING;
}

enum zt_status decoded_get(struct decoded_cache *cache, struct generation *generation,
                           uint32_t component, struct decoded **out_decoded, struct zt_error *error)
{
    struct decoding decoding = {.cache = cache, .generation = generation, .component = component};
    const enum zt_status status =
        check_request(cache, &generation->model->components[component], error);

    if (status != ZT_OK)
        return status;
    decoding.decoded = decoded_hold(cache, generation, component);
    if (decoding.decoded == NULL)
        return zt_fail_memory(error, "decoding");
    if (memo_get(decoding.decoded, 1, error) == MEMO_MAKE)
        make(&decoding);
    if (memo_get(decoding.decoded, 1, error) == MEMO_FAILED) {
        memo_release(decoding.decoded);
        return error->status;
    }
    *out_decoded = decoding.decoded;
    return ZT_OK;
}
