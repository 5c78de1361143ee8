/* One version of a file of the bucket as a source. It reads from the cache; missing bytes are
 * fetched with GETs that name the version (If-Match), and each response is compared with it. So two
 * versions are never mixed, even if the service ignores the condition. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/s3/s3_listing.h"
#include "zt/digest.h"

/* --- fetching --- */

/* Fetches the bytes of a version for the cache. */
struct s3_origin {
    struct cache_origin base; /* first */
    struct s3_store *store;
    struct file_identity identity;
    char etag[BUCKET_ETAG_SIZE];
    char url_path[BUCKET_PATH_SIZE];
    char path[]; /* in the store */
};

struct s3_fetch {
    struct remote_exchange exchange;
    struct s3_origin *origin;
    struct cache_fetch *fetch;
    atomic_bool is_other; /* the response is for another version */
};

static bool has_version(const struct s3_fetch *fetch, const struct remote_head *head)
{
    char etag[BUCKET_ETAG_SIZE];

    return bucket_etag_read(zt_text_from(head->etag), etag) &&
           strcmp(etag, fetch->origin->etag) == 0;
}

/* Returns true if the response has exactly the requested bytes. */
static bool is_range(const struct s3_fetch *fetch, const struct remote_head *head)
{
    const uint64_t size = fetch->origin->identity.size_bytes;
    const uint64_t first = fetch->fetch->offset;
    const uint64_t length = fetch->fetch->length;

    if (head->content_length != UINT64_MAX && head->content_length != length)
        return false;
    if (head->status == 206)
        return head->has_range && head->range_first == first &&
               head->range_last == first + length - 1 && head->range_size == size;
    return head->status == 200 && first == 0 && length == size;
}

/* Runs on the remote's thread, before the body. */
static bool accept_answer(struct remote_exchange *exchange)
{
    struct s3_fetch *fetch = exchange->context;
    const struct remote_head *head = &exchange->head;

    if (head->status / 100 != 2)
        return true;
    if (has_version(fetch, head))
        return is_range(fetch, head);
    atomic_store(&fetch->is_other, true);
    return false;
}

static enum zt_status outcome_of(struct s3_fetch *fetch, struct zt_error *error)
{
    struct s3_origin *origin = fetch->origin;
    struct bucket *bucket = &origin->store->bucket;
    enum zt_status status = bucket_judge(bucket, METRIC_STORE_READ, &fetch->exchange, error);

    if (status == ZT_OK)
        return ZT_OK;
    if (status != ZT_STALE && status != ZT_NOT_FOUND && !atomic_load(&fetch->is_other)) {
        /* Even a failed read may succeed later. */
        if (status != ZT_UNAVAILABLE)
            error->status = ZT_UNAVAILABLE;
        return ZT_UNAVAILABLE;
    }
    s3_listing_lose(origin->store->listing, origin->path, &origin->identity);
    return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET,
                   "the file was replaced or removed in the object store");
}

static void on_done(struct remote_exchange *exchange)
{
    struct s3_fetch *fetch = exchange->context;
    struct zt_error error;
    const enum zt_status status = outcome_of(fetch, &error);

    fetch->fetch->done(fetch->fetch, status, status == ZT_OK ? NULL : &error);
    remote_exchange_free(exchange);
    free(fetch);
}

static void fail(struct cache_fetch *fetch, const char *why)
{
    struct zt_error error;
    const enum zt_status status = zt_fail(&error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "%s", why);

    fetch->done(fetch, status, &error);
}

static void begin_fetch(struct cache_origin *base, struct cache_fetch *wanted)
{
    struct s3_origin *origin = (struct s3_origin *)base;
    struct s3_fetch *fetch;

    assert(wanted->length > 0 && wanted->offset < origin->identity.size_bytes &&
           wanted->length <= origin->identity.size_bytes - wanted->offset);
    if (!bucket_may_ask(&origin->store->bucket)) {
        fail(wanted, "the object store is unreachable");
        return;
    }
    fetch = calloc(1, sizeof(*fetch));
    if (fetch == NULL) {
        fail(wanted, "no memory for a request to the object store");
        return;
    }
    bucket_exchange(&origin->store->bucket, &fetch->exchange, "GET", origin->url_path);
    fetch->origin = origin;
    fetch->fetch = wanted;
    /* Ceph accepts the ETag only without quotes. */
    fetch->exchange.fields[0] = (struct remote_field){"if-match", origin->etag};
    fetch->exchange.field_count = 1;
    fetch->exchange.has_range = true;
    fetch->exchange.range_first = wanted->offset;
    fetch->exchange.range_last = wanted->offset + wanted->length - 1;
    fetch->exchange.into = wanted->bytes;
    fetch->exchange.into_length = (size_t)wanted->length;
    fetch->exchange.is_urgent = wanted->is_urgent;
    fetch->exchange.accept = accept_answer;
    fetch->exchange.done = on_done;
    fetch->exchange.context = fetch;
    bucket_be_brief(&origin->store->bucket, &fetch->exchange);
    remote_begin(origin->store->remote, &fetch->exchange);
}

static void close_origin(struct cache_origin *base)
{
    free(base);
}

static struct s3_origin *origin_new(struct s3_store *store, const char *path,
                                    const struct object_version *version)
{
    struct s3_origin *origin = calloc(1, sizeof(*origin) + strlen(path) + 1);

    if (origin == NULL)
        return NULL;
    origin->base = (struct cache_origin){begin_fetch, close_origin};
    origin->store = store;
    origin->identity = bucket_identity(version->etag, version->size_bytes, version->modified_s);
    strcpy(origin->etag, version->etag);
    strcpy(origin->path, path);
    if (!bucket_path(&store->bucket, path, origin->url_path)) {
        free(origin);
        return NULL;
    }
    return origin;
}

/* --- sources --- */

/* The cache's source, and the version that it reads. */
struct s3_file {
    struct zt_source base; /* first */
    struct zt_source *cached;
    bool is_listed; /* the file is one that the list contains */
    struct file_identity identity;
    char path[];
};

static struct s3_file *file_of(struct zt_source *source)
{
    return (struct s3_file *)source;
}

static uint64_t file_size(const struct zt_source *source)
{
    return zt_source_size(((const struct s3_file *)source)->cached);
}

static enum zt_status file_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                   size_t length, struct zt_error *error)
{
    return zt_source_read_at(file_of(source)->cached, offset, buffer, length, error);
}

static const uint8_t *file_map(struct zt_source *source)
{
    (void)source;
    return NULL;
}

static void file_close(struct zt_source *source)
{
    zt_source_close(file_of(source)->cached);
    free(source);
}

static enum zt_status file_pin(struct zt_source *source, uint64_t offset, uint64_t length,
                               bool wait, struct zt_pin *out_pin, struct zt_error *error)
{
    return zt_source_pin(file_of(source)->cached, offset, length, wait, out_pin, error);
}

static void file_advise(struct zt_source *source, uint64_t offset, uint64_t length)
{
    zt_source_advise(file_of(source)->cached, offset, length);
}

static void file_invalidate(struct zt_source *source, uint64_t offset, uint64_t length)
{
    (void)zt_source_invalidate(file_of(source)->cached, offset, length);
}

static const struct zt_source_ops file_ops = {
    .size = file_size,
    .read_at = file_read_at,
    .map = file_map,
    .close = file_close,
    .pin = file_pin,
    .advise = file_advise,
    .invalidate = file_invalidate,
};

static_assert(2 * sizeof(uint64_t) == CACHE_KEY_BYTES, "a key is one hash");

void s3_cache_key(const struct s3_store *store, const char *path,
                  const struct file_identity *identity, uint8_t out_key[CACHE_KEY_BYTES])
{
    const struct bucket *bucket = &store->bucket;
    char place[sizeof(bucket->origin) + sizeof(bucket->name) + 2 * BUCKET_KEY_SIZE];
    uint64_t inputs[5] = {identity->inode, identity->size_bytes, (uint64_t)identity->modified_ns};
    uint64_t words[2];

    snprintf(place, sizeof(place), "%s %s %s%s", bucket->origin, bucket->name, bucket->prefix,
             path);
    zt_xxh3_128(place, strlen(place), inputs + 3);
    zt_xxh3_128(inputs, sizeof(inputs), words);
    memcpy(out_key, words, sizeof(words));
}

static enum zt_status open_version(struct s3_store *store, const char *path,
                                   const struct object_version *version, struct s3_file *file,
                                   struct file_identity *out_identity, struct zt_error *error)
{
    struct s3_origin *origin = origin_new(store, path, version);
    uint8_t key[CACHE_KEY_BYTES];
    struct file_identity identity;
    enum zt_status status;

    if (origin == NULL)
        return zt_fail_memory(error, "a file of the object store");
    identity = origin->identity;
    s3_cache_key(store, path, &identity, key);
    status = cache_file_open(store->cache, key, identity.size_bytes, &origin->base, &file->cached,
                             error);
    if (status == ZT_OK)
        *out_identity = identity;
    return status;
}

/* Finds the version in the list. */
static enum zt_status find_listed(struct s3_store *store, const char *path,
                                  struct object_version *out_version, struct zt_error *error)
{
    switch (s3_listing_find(store->listing, path, out_version)) {
    case S3_KNOWN:
        break;
    case S3_KNOWN_ABSENT:
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the file does not exist");
    case S3_LOST:
        return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET,
                       "the file was replaced or removed in the object store");
    case S3_UNKNOWN:
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the object store has not been listed yet");
    }
    return ZT_OK;
}

/* Finds the current version of a file that cannot be a model, and so is in no list. */
static enum zt_status find_unlisted(struct s3_store *store, const char *path,
                                    struct object_version *out_version, struct zt_error *error)
{
    enum zt_status status;

    if (!store_path_is_served(zt_text_from(path)))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the file does not exist");
    if (!bucket_may_ask(&store->bucket))
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the object store is unreachable");
    status = bucket_head(&store->bucket, path, BUCKET_USUAL_TIME, out_version, error);
    if (status == ZT_OK && out_version->etag[0] == '\0')
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the object store does not state which version of the file it has");
    if (status != ZT_OK && status != ZT_NOT_FOUND && error != NULL)
        error->status = ZT_UNAVAILABLE;
    return status == ZT_OK || status == ZT_NOT_FOUND ? status : ZT_UNAVAILABLE;
}

/* Does not contact the store if the file can be a model; the first read does. */
enum zt_status s3_open_file(struct store *base, const char *path, struct zt_source **out_source,
                            struct file_identity *out_identity, struct zt_error *error)
{
    struct s3_store *store = (struct s3_store *)base;
    size_t name_length;
    unsigned rank;
    const bool is_listed = model_path_split(path, &name_length, &rank);
    struct object_version version;
    struct s3_file *file;
    enum zt_status status = is_listed ? find_listed(store, path, &version, error)
                                      : find_unlisted(store, path, &version, error);

    if (status != ZT_OK)
        return status;
    file = calloc(1, sizeof(*file) + strlen(path) + 1);
    if (file == NULL)
        return zt_fail_memory(error, "a file of the object store");
    file->base.ops = &file_ops;
    file->is_listed = is_listed;
    strcpy(file->path, path);
    status = open_version(store, path, &version, file, out_identity, error);
    if (status != ZT_OK) {
        free(file);
        return status;
    }
    file->identity = *out_identity;
    *out_source = &file->base;
    return ZT_OK;
}

/* A version that is lost or deleted gets an identity that no file has. */
bool s3_identity_of(struct store *base, struct zt_source *source,
                    struct file_identity *out_identity)
{
    struct s3_store *store = (struct s3_store *)base;
    struct object_version version;

    if (source->ops != &file_ops)
        return false;
    *out_identity = (struct file_identity){.size_bytes = UINT64_MAX};
    if (cache_has_lost(file_of(source)->cached))
        return true;
    if (!file_of(source)->is_listed)
        *out_identity = file_of(source)->identity;
    else if (s3_listing_find(store->listing, file_of(source)->path, &version) == S3_KNOWN)
        *out_identity = bucket_identity(version.etag, version.size_bytes, version.modified_s);
    return true;
}
