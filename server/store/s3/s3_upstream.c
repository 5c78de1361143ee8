#include "store/s3/s3_upstream.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "store/s3/bucket_read.h"
#include "store/s3/s3_store.h"
#include "upstream/listing.h"
#include "zt/digest.h"

/* Clients know commits by 40 digits. */
#define COMMIT_BYTES 20

struct s3_bucket {
    struct bucket bucket; /* first */
    struct upstream *upstream;
    struct credentials *credentials;
};

static struct bucket *bucket_of(const struct upstream *upstream)
{
    return upstream_context(upstream);
}

/* --- beginning and end --- */

static void note(struct bucket *bucket, const struct remote_exchange *exchange)
{
    upstream_note(((struct s3_bucket *)bucket)->upstream, exchange, true);
}

static void close_bucket(void *context)
{
    struct s3_bucket *s3 = context;

    if (s3 == NULL)
        return;
    if (s3->bucket.signer != NULL)
        signer_free(s3->bucket.signer);
    credentials_free(s3->credentials);
    free(s3);
}

static enum zt_status open_bucket(struct upstream *upstream, const struct upstream_options *options,
                                  void **out_context, struct zt_error *error)
{
    struct s3_bucket *s3 = calloc(1, sizeof(*s3));
    enum zt_status status;

    assert(options->config != NULL && options->remote != NULL);
    if (s3 == NULL)
        return zt_fail_memory(error, "an upstream");
    s3->upstream = upstream;
    s3->bucket.noted = note;
    status = s3_bucket_open(options->config, options->url, options->remote, &s3->bucket,
                            &s3->credentials, error);
    if (status != ZT_OK)
        close_bucket(s3);
    else
        *out_context = s3;
    return status;
}

/* --- errors --- */

/* Changes a failure of the bucket into one of an upstream. */
static enum zt_status fail(enum zt_status status, struct zt_error *error)
{
    switch (status) {
    case ZT_STALE:
        return zt_fail(error, ZT_STALE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                       "the file was replaced or removed in the bucket");
    case ZT_ARGUMENT:
    case ZT_NOT_FOUND:
        return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                       "the bucket cannot be read: %s", error->message);
    case ZT_UNAVAILABLE:
        return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_AWAY, ZT_NO_OFFSET,
                       "the bucket cannot be read: %s", error->message);
    default:
        return status;
    }
}

/* --- lists --- */

struct collection {
    struct listing_builder *builder;
    size_t skipped; /* bytes of a key before the path */
    int64_t modified_s;
    enum zt_status status;
    struct zt_error error;
};

static bool collect(void *context, const struct listed_object *object)
{
    struct collection *collection = context;
    const struct zt_text path = zt_text_from(object->key + collection->skipped);

    assert(strlen(object->key) >= collection->skipped);
    /* Some programs make an empty object for a folder. */
    if (path.length == 0 || path.bytes[path.length - 1] == '/')
        return true;
    if (object->modified_s > collection->modified_s)
        collection->modified_s = object->modified_s;
    collection->status = listing_add(collection->builder, path, object->size_bytes, object->etag,
                                     &collection->error);
    return collection->status == ZT_OK;
}

static bool stop_at_object(void *context, const struct listed_object *object)
{
    *(bool *)context = object->etag != NULL &&
                       !zt_text_ends_with(zt_text_from(object->key), (struct zt_text){"/", 1});
    return !*(bool *)context;
}

static enum zt_status fail_absent(struct zt_error *error)
{
    return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                   "the repository does not exist in the bucket");
}

/* The folder of an owner is a repository only if it has files itself: its folders are
 * repositories. */
static enum zt_status check_owner(struct bucket *bucket, const char *repository, const char *folder,
                                  int64_t by_ms, struct zt_error *error)
{
    bool has_file = false;
    enum zt_status status;

    if (strchr(repository, '/') != NULL)
        return ZT_OK;
    status = bucket_list_level(bucket, folder, by_ms, stop_at_object, &has_file, error);
    if (status != ZT_OK)
        return fail(status, error);
    return has_file ? ZT_OK : fail_absent(error);
}

/* The commit names the paths, sizes and versions of all files. */
static enum zt_status name_commit(struct upstream_listing *listing, struct zt_error *error)
{
    struct zt_hasher *hasher;
    struct zt_digest digest;
    char size[32];

    if (zt_hasher_new(ZT_DIGEST_SHA256, &hasher) != ZT_OK)
        return zt_fail_memory(error, "a list of files");
    for (size_t i = 0; i < listing->count; i++) {
        const struct upstream_file *file = &listing->files[i];
        const int length = snprintf(size, sizeof(size), " %" PRIu64, file->size_bytes);

        zt_hasher_update(hasher, file->path, strlen(file->path) + 1);
        zt_hasher_update(hasher, size, (size_t)length + 1);
        zt_hasher_update(hasher, file->etag, strlen(file->etag) + 1);
    }
    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    (void)zt_hex_write(listing->commit, digest.bytes, COMMIT_BYTES);
    return ZT_OK;
}

/* Lists the folder of a repository. */
static enum zt_status list_folder(const struct upstream_question *question, int64_t by_ms,
                                  struct upstream_listing **out_listing, int64_t *out_modified_ns,
                                  struct zt_error *error)
{
    struct bucket *bucket = bucket_of(question->upstream);
    struct collection collection = {.status = ZT_OK};
    char folder[UPSTREAM_REPOSITORY_SIZE + 1];
    enum zt_status status = upstream_may_ask(question->upstream, error);

    assert(strlen(question->repository) < UPSTREAM_REPOSITORY_SIZE);
    collection.skipped = (size_t)snprintf(folder, sizeof(folder), "%s/", question->repository);
    if (status == ZT_OK)
        status = check_owner(bucket, question->repository, folder, by_ms, error);
    if (status != ZT_OK)
        return status;
    collection.builder = listing_begin(false);
    if (collection.builder == NULL)
        return zt_fail_memory(error, "a list of files");
    status = bucket_list(bucket, folder, by_ms, collect, &collection, error);
    if (status == ZT_OK && collection.status != ZT_OK) {
        status = collection.status;
        *error = collection.error;
    }
    if (status != ZT_OK) {
        listing_drop(collection.builder);
        return fail(status, error);
    }
    status = listing_end(collection.builder, "", out_listing, error);
    *out_modified_ns = collection.modified_s * CLOCK_NS_PER_S;
    if (status != ZT_OK)
        return status;
    status = (*out_listing)->count > 0 ? name_commit(*out_listing, error) : fail_absent(error);
    if (status != ZT_OK)
        upstream_listing_free(*out_listing);
    return status;
}

static enum zt_status fail_revision(struct zt_error *error)
{
    return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET,
                   "a bucket has the revision main only, and its current commit");
}

static enum zt_status find_commit(const struct upstream_question *question,
                                  struct lookup_answer *out_answer, struct zt_error *error)
{
    const bool is_commit = upstream_is_commit(question->revision);
    struct upstream_listing *listing;
    enum zt_status status;

    if (!is_commit && !zt_text_is(question->revision, "main"))
        return fail_revision(error);
    status = list_folder(question, upstream_lookup_end_ms(question->upstream, LOOKUP_COMMIT_MS),
                         &listing, &out_answer->modified_ns, error);
    if (status != ZT_OK)
        return status;
    memcpy(out_answer->commit, listing->commit, sizeof(listing->commit));
    upstream_listing_free(listing);
    return !is_commit || zt_text_is(question->revision, out_answer->commit) ? ZT_OK
                                                                            : fail_revision(error);
}

static enum zt_status list(const struct upstream_question *question,
                           struct lookup_answer *out_answer, struct zt_error *error)
{
    const int64_t by_ms = upstream_lookup_end_ms(question->upstream, LOOKUP_LIST_MS);
    struct upstream_listing *listing;
    enum zt_status status = list_folder(question, by_ms, &listing, &out_answer->modified_ns, error);

    if (status != ZT_OK)
        return status;
    if (!zt_text_is(question->revision, listing->commit)) {
        upstream_listing_free(listing);
        return fail_revision(error);
    }
    status = s3_upstream_ask_digests(bucket_of(question->upstream), question->repository, listing,
                                     clock_ms() + LOOKUP_DIGESTS_MS, error);
    if (status != ZT_OK) {
        upstream_listing_free(listing);
        return fail(status, error);
    }
    out_answer->listing = listing;
    return ZT_OK;
}

/* --- bytes --- */

struct s3_range {
    struct bucket_read read; /* first */
    struct upstream *upstream;
    char repository[UPSTREAM_REPOSITORY_SIZE];
    char etag[UPSTREAM_ETAG_SIZE];
    char url_path[BUCKET_PATH_SIZE];
};

static void end_range(struct bucket_read *read, enum zt_status status, const struct zt_error *error)
{
    struct s3_range *range = (struct s3_range *)read;
    struct cache_fetch *wanted = read->fetch;
    struct zt_error own;

    assert((status == ZT_OK) == (error == NULL));
    if (status != ZT_OK) {
        const bool is_refused = read->exchange.failure == REMOTE_FAILURE_REFUSED;

        own = *error;
        status = fail(status == ZT_UNAVAILABLE && is_refused ? ZT_ARGUMENT : status, &own);
    }
    remote_exchange_free(&read->exchange);
    upstream_end_fetch(range->upstream, range->repository, wanted, status,
                       status == ZT_OK ? NULL : &own);
    free(range);
}

/* Fills in the object and its version. */
static enum zt_status name_object(struct s3_range *range, const struct upstream_place *place,
                                  struct zt_error *error)
{
    char key[UPSTREAM_REPOSITORY_SIZE + UPSTREAM_PATH_SIZE];

    assert(place->etag != NULL);
    if (place->etag[0] == '\0' || strlen(place->etag) >= sizeof(range->etag))
        return fail(ZT_STALE, error);
    strcpy(range->etag, place->etag);
    snprintf(range->repository, sizeof(range->repository), "%s", place->repository);
    snprintf(key, sizeof(key), "%s/%s", place->repository, place->path);
    if (strlen(key) < BUCKET_KEY_SIZE && bucket_path(range->read.bucket, key, range->url_path))
        return ZT_OK;
    return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                   "the path of the file is too long to be asked for");
}

static void fetch(struct upstream *upstream, const struct upstream_place *place,
                  struct cache_fetch *wanted)
{
    struct s3_range *range = calloc(1, sizeof(*range));
    struct zt_error error;
    enum zt_status status = upstream_may_ask(upstream, &error);

    if (range == NULL)
        status = zt_fail_memory(&error, "a request to an upstream");
    if (status == ZT_OK) {
        range->upstream = upstream;
        range->read = (struct bucket_read){.bucket = bucket_of(upstream),
                                           .url_path = range->url_path,
                                           .etag = range->etag,
                                           .size_bytes = place->size_bytes,
                                           .fetch = wanted,
                                           .reports_progress = true,
                                           .done = end_range};
        status = name_object(range, place, &error);
    }
    if (status != ZT_OK) {
        free(range);
        upstream_end_fetch(upstream, place->repository, wanted, status, &error);
        return;
    }
    bucket_read_prepare(&range->read);
    upstream_limit_fetch(upstream, wanted, true, &range->read.exchange);
    remote_begin(range->read.bucket->remote, &range->read.exchange);
}

const struct upstream_kind s3_upstream = {.open = open_bucket,
                                          .close = close_bucket,
                                          .find_commit = find_commit,
                                          .list = list,
                                          .fetch = fetch};
