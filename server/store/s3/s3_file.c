/* One version of a file of the bucket as a source. It reads from the cache; missing bytes are
 * fetched from the bucket (bucket_read.h). */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/s3/bucket_read.h"
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
    struct bucket_read read; /* first */
    struct s3_origin *origin;
};

static void on_done(struct bucket_read *read, enum zt_status status, const struct zt_error *error)
{
    const struct s3_origin *origin = ((struct s3_fetch *)read)->origin;
    struct cache_fetch *fetch = read->fetch;
    struct zt_error unavailable;

    if (status == ZT_STALE)
        s3_listing_lose(origin->store->listing, origin->path, &origin->identity);
    /* Even a failed read may succeed later. */
    else if (status != ZT_OK && status != ZT_UNAVAILABLE) {
        unavailable = *error;
        status = unavailable.status = ZT_UNAVAILABLE;
        error = &unavailable;
    }
    fetch->done(fetch, status, error);
    remote_exchange_free(&read->exchange);
    free(read);
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

    if (!bucket_may_ask(&origin->store->bucket)) {
        fail(wanted, "the object store is unreachable");
        return;
    }
    fetch = calloc(1, sizeof(*fetch));
    if (fetch == NULL) {
        fail(wanted, "no memory for a request to the object store");
        return;
    }
    fetch->origin = origin;
    fetch->read.bucket = &origin->store->bucket;
    fetch->read.url_path = origin->url_path;
    fetch->read.etag = origin->etag;
    fetch->read.size_bytes = origin->identity.size_bytes;
    fetch->read.fetch = wanted;
    fetch->read.done = on_done;
    bucket_read_prepare(&fetch->read);
    bucket_be_brief(fetch->read.bucket, &fetch->read.exchange);
    remote_begin(origin->store->remote, &fetch->read.exchange);
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

static enum zt_status open_version(struct s3_store *store, const struct object_version *version,
                                   const uint8_t key[CACHE_KEY_BYTES], struct s3_file *file,
                                   struct zt_error *error)
{
    struct s3_origin *origin = origin_new(store, file->path, version);

    if (origin == NULL)
        return zt_fail_memory(error, "a file of the object store");
    file->identity = origin->identity;
    return cache_file_open(store->cache, key, file->identity.size_bytes, &origin->base,
                           &file->cached, error);
}

static enum zt_status open_source(struct s3_store *store, const char *path,
                                  const struct object_version *version,
                                  const uint8_t key[CACHE_KEY_BYTES], struct s3_file **out_file,
                                  struct zt_error *error)
{
    struct s3_file *file = calloc(1, sizeof(*file) + strlen(path) + 1);
    enum zt_status status;

    if (file == NULL)
        return zt_fail_memory(error, "a file of the object store");
    file->base.ops = &file_ops;
    strcpy(file->path, path);
    status = open_version(store, version, key, file, error);
    if (status == ZT_OK)
        *out_file = file;
    else
        free(file);
    return status;
}

/* The bytes are the same in every version, so they have one key in the cache. */
enum zt_status s3_open_object(struct s3_store *store, const char *key,
                              const struct object_version *version, struct zt_source **out_source,
                              struct zt_error *error)
{
    const struct file_identity same = {.size_bytes = version->size_bytes};
    uint8_t cache_key[CACHE_KEY_BYTES];
    struct s3_file *file;
    enum zt_status status;

    assert(version->etag[0] != '\0');
    s3_cache_key(store, key, &same, cache_key);
    status = open_source(store, key, version, cache_key, &file, error);
    if (status == ZT_OK)
        *out_source = &file->base;
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
    struct file_identity identity;
    uint8_t key[CACHE_KEY_BYTES];
    struct s3_file *file;
    enum zt_status status = is_listed ? find_listed(store, path, &version, error)
                                      : find_unlisted(store, path, &version, error);

    if (status != ZT_OK)
        return status;
    identity = bucket_identity(version.etag, version.size_bytes, version.modified_s);
    s3_cache_key(store, path, &identity, key);
    status = open_source(store, path, &version, key, &file, error);
    if (status != ZT_OK)
        return status;
    file->is_listed = is_listed;
    *out_identity = identity;
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
