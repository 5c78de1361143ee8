/* Publishes and removes under a claim: compares the current version with the expected one, then
 * creates or removes the object with one request. If the response leaves the outcome open, a HEAD
 * settles it, because the object's metadata contains the SHA-256 of the written file. */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "store/s3/s3_listing.h"
#include "store/s3_write/s3_multipart.h"
#include "store/staging.h"
#include "zt/digest.h"

/* Added to the time of small requests: time for a body, equal to the time the HTTP client allows
 * for one try; and time for a completion, in which the service may process the parts one by one. */
#define BODY_MS_A_MIB      1000
#define COMPLETE_MS_A_PART 1000
#define COMPLETE_MS_MOST   240000
#define MIB                ((uint64_t)1 << 20)

/* --- before the claim --- */

/* The upload that s3_prepare makes of a staged file. */
struct s3_upload {
    struct staged_transfer base;
    struct s3_store *store;
    struct staged_file *file;
    bool has_lost_parts; /* the file must be prepared again */
    char path[S3_KEY_SIZE];
    char sha256[BUCKET_SHA256_SIZE];
    uint64_t length;
    struct s3_multipart *multipart; /* NULL: one PUT is enough */
};

static void end_upload(struct staged_transfer *transfer)
{
    struct s3_upload *upload = (struct s3_upload *)transfer;

    upload->file->transfer = NULL;
    s3_keeper_abort(upload->store, upload->multipart);
    free(upload);
}

static enum zt_status send_parts(struct s3_upload *upload, struct zt_error *error)
{
    const struct s3_parts parts = {
        .key = upload->path,
        .descriptor = upload->file->descriptor,
        .length = upload->length,
        .part_bytes = (uint64_t)upload->store->config->s3.part_bytes,
        .sha256 = upload->sha256,
    };

    return s3_multipart_send(upload->store, &parts, &upload->multipart, error);
}

static bool is_prepared(const struct s3_upload *upload, const char *path, const char *sha256)
{
    return upload != NULL && !upload->has_lost_parts &&
           upload->length == staged_file_length(upload->file) && strcmp(upload->path, path) == 0 &&
           strcmp(upload->sha256, sha256) == 0;
}

enum zt_status s3_prepare(struct store *store, struct staged_file *file, const char *path,
                          const uint8_t sha256[32], struct zt_error *error)
{
    struct s3_upload *upload;
    char hex[BUCKET_SHA256_SIZE];
    enum zt_status status = ZT_OK;

    assert(strlen(path) < sizeof(upload->path));
    zt_hex_write(hex, sha256, 32);
    if (is_prepared((struct s3_upload *)file->transfer, path, hex))
        return ZT_OK;
    if (file->transfer != NULL)
        end_upload(file->transfer);
    upload = calloc(1, sizeof(*upload));
    if (upload == NULL)
        return zt_fail_memory(error, "an upload");
    upload->base.end = end_upload;
    upload->store = (struct s3_store *)store;
    upload->file = file;
    upload->length = staged_file_length(file);
    strcpy(upload->path, path);
    strcpy(upload->sha256, hex);
    if (upload->length > (uint64_t)upload->store->config->s3.part_bytes)
        status = send_parts(upload, error);
    if (status == ZT_OK)
        file->transfer = &upload->base;
    else
        end_upload(&upload->base);
    return status;
}

/* --- the current version --- */

static enum zt_status fail_changed(struct zt_error *error)
{
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                   "the model was changed by another writer");
}

static enum zt_status fail_unclaimed(struct zt_error *error)
{
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the name is not claimed");
}

/* Returns true if the version that a HEAD found (NULL: none) is the expected one. */
static bool is_expected(const struct store_expected *expected, const struct object_version *found)
{
    struct file_identity identity;

    if (expected->what == STORE_EXPECTS_ANYTHING)
        return true;
    if (expected->what == STORE_EXPECTS_NOTHING || found == NULL)
        return expected->what == STORE_EXPECTS_NOTHING && found == NULL;
    identity = bucket_identity(found->etag, found->size_bytes, found->modified_s);
    return store_identity_equal(&identity, &expected->identity);
}

/* Turns every other status into ZT_UNAVAILABLE, because the lookup has no result yet. */
static enum zt_status as_unavailable(enum zt_status status, struct zt_error *error)
{
    if (status == ZT_OK || status == ZT_NO_MEMORY || status == ZT_IO)
        return status;
    if (error != NULL)
        error->status = ZT_UNAVAILABLE;
    return ZT_UNAVAILABLE;
}

static enum zt_status look(struct s3_store *store, const char *path, int64_t by_ms,
                           bool *out_exists, struct object_version *out_version,
                           struct zt_error *error)
{
    const enum zt_status status = bucket_head(&store->bucket, path, by_ms, out_version, error);

    *out_exists = status == ZT_OK;
    return status == ZT_NOT_FOUND ? ZT_OK : as_unavailable(status, error);
}

/* --- publishing --- */

struct publishing {
    struct s3_upload *upload;
    struct s3_claim *claim;
    const struct store_expected *expected;
    char etag[BUCKET_ETAG_SIZE]; /* for STORE_EXPECTS_VERSION */
    bool is_guarded;             /* the request has a condition that the store honours */
};

/* Checks the expectation with a HEAD, and finds the ETag for the condition. No HEAD is needed if
 * only the existence of the object matters and the bucket evaluates the condition of the PUT. */
static enum zt_status check_expected(struct publishing *publishing, struct zt_error *error)
{
    struct s3_store *store = publishing->upload->store;
    const struct store_expected *expected = publishing->expected;
    struct object_version version;
    bool exists;
    enum zt_status status;

    if (expected->what == STORE_EXPECTS_ANYTHING ||
        (expected->what == STORE_EXPECTS_NOTHING && publishing->upload->multipart == NULL &&
         store->writing->abilities.put))
        return ZT_OK;
    status = look(store, publishing->upload->path, s3_claim_write_by(publishing->claim), &exists,
                  &version, error);
    if (status != ZT_OK)
        return status;
    if (!is_expected(expected, exists ? &version : NULL)) {
        s3_note_version(store, publishing->upload->path, exists ? &version : NULL);
        return fail_changed(error);
    }
    if (exists)
        strcpy(publishing->etag, version.etag);
    return ZT_OK;
}

/* Ceph accepts the ETag only without quotes. */
static void add_condition(struct publishing *publishing, struct remote_exchange *exchange)
{
    if (!publishing->upload->store->writing->abilities.put)
        return;
    if (publishing->expected->what == STORE_EXPECTS_NOTHING)
        remote_exchange_add(exchange, "if-none-match", "*");
    else if (publishing->etag[0] != '\0')
        remote_exchange_add(exchange, "if-match", publishing->etag);
    publishing->is_guarded = exchange->field_count > 0;
}

static enum zt_status put_whole(struct publishing *publishing, struct zt_error *error)
{
    const struct s3_upload *upload = publishing->upload;
    struct s3_store *store = upload->store;
    struct remote_exchange exchange;
    char path[BUCKET_PATH_SIZE];
    char sha256[BUCKET_SHA256_SIZE];
    enum zt_status status;

    if (!bucket_path(&store->bucket, upload->path, path))
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "the key is too long");
    bucket_exchange(&store->bucket, &exchange, "PUT", path);
    exchange.body = REMOTE_BODY_FILE;
    exchange.body_descriptor = upload->file->descriptor;
    exchange.body_length = upload->length;
    exchange.body_sha256 = sha256;
    exchange.body_most = BUCKET_REPLY_MOST;
    status = s3_hash_part(exchange.body_descriptor, 0, upload->length, NULL, sha256, error);
    if (status == ZT_OK && strcmp(sha256, upload->sha256) != 0)
        status = zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET,
                         "the staged file differs from the received bytes");
    if (status != ZT_OK)
        return status;
    add_condition(publishing, &exchange);
    remote_exchange_add(&exchange, "x-amz-meta-ztserve-sha256", upload->sha256);
    s3_claim_extend(publishing->claim, upload->length / MIB * BODY_MS_A_MIB);
    status = s3_claim_run(publishing->claim, &exchange, error);
    remote_exchange_free(&exchange);
    return status;
}

static enum zt_status complete(struct publishing *publishing, struct zt_error *error)
{
    struct s3_store *store = publishing->upload->store;
    const struct s3_abilities *abilities = &store->writing->abilities;
    const uint64_t time_ms = publishing->upload->multipart->part_count * COMPLETE_MS_A_PART;
    enum s3_completion condition = S3_COMPLETE_ALWAYS;

    s3_claim_extend(publishing->claim, time_ms < COMPLETE_MS_MOST ? time_ms : COMPLETE_MS_MOST);
    if (publishing->expected->what == STORE_EXPECTS_NOTHING && abilities->complete_if_absent)
        condition = S3_COMPLETE_IF_ABSENT;
    else if (publishing->etag[0] != '\0' && abilities->complete_if_version)
        condition = S3_COMPLETE_IF_VERSION;
    publishing->is_guarded = condition != S3_COMPLETE_ALWAYS;
    return s3_multipart_complete(store, publishing->claim, publishing->upload->multipart, condition,
                                 publishing->etag, error);
}

/* Finds out from the object whether the request was carried out. *out_version is set if the object
 * is ours. */
static enum zt_status settle(struct publishing *publishing, enum zt_status written,
                             struct object_version *out_version, struct zt_error *error)
{
    const struct s3_upload *upload = publishing->upload;
    struct s3_store *store = upload->store;
    struct object_version version;
    struct zt_error ignored;
    bool exists = false;
    const enum zt_status looked =
        look(store, upload->path, publishing->claim->by_ms, &exists, &version, &ignored);

    if (looked == ZT_OK && exists && strcmp(version.sha256, upload->sha256) == 0) {
        *out_version = version;
        return ZT_OK;
    }
    /* A success response is trusted, even if another writer has replaced the object since. */
    if (written == ZT_OK)
        return ZT_OK;
    if (looked == ZT_OK)
        s3_note_version(store, upload->path, exists ? &version : NULL);
    if (written == ZT_STALE || written == ZT_NOT_FOUND)
        return looked == ZT_OK ? fail_changed(error) : as_unavailable(looked, error);
    return as_unavailable(written, error);
}

/* Handles a write without a response. It may still be carried out and cannot be taken back, so the
 * error says so. An upload that is not completing is aborted; if that succeeds, its outcome is
 * certain. */
static enum zt_status resolve_unknown_outcome(struct publishing *publishing,
                                              struct object_version *out_version,
                                              struct zt_error *error)
{
    struct s3_upload *upload = publishing->upload;
    struct s3_store *store = upload->store;
    struct s3_multipart *multipart = upload->multipart;

    if (multipart != NULL) {
        upload->multipart = NULL;
        upload->has_lost_parts = true;
        if (!multipart->is_completing &&
            s3_multipart_abort(store, multipart, publishing->claim->by_ms, error) == ZT_OK) {
            s3_multipart_free(multipart);
            return settle(publishing, ZT_UNAVAILABLE, out_version, error);
        }
        s3_keeper_abort(store, multipart);
    }
    publishing->claim->base.outcome_is_unknown = true;
    publishing->claim->stays = !publishing->is_guarded;
    return zt_fail(
        error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
        "the object store does not respond, so it is unknown whether the model was published");
}

static enum zt_status write_object(struct publishing *publishing,
                                   struct object_version *out_version, struct zt_error *error)
{
    const bool is_multipart = publishing->upload->multipart != NULL;
    const enum zt_status written =
        is_multipart ? complete(publishing, error) : put_whole(publishing, error);
    enum zt_status status;

    /* The request was not sent. */
    if (written == ZT_IO || written == ZT_NO_MEMORY || written == ZT_LIMIT)
        return written;
    status = settle(publishing, written, out_version, error);
    if (status == ZT_UNAVAILABLE && written == ZT_UNAVAILABLE)
        status = resolve_unknown_outcome(publishing, out_version, error);
    return status;
}

/* Forgets the known version of a path, because the path has changed. */
static void drop_known(struct s3_store *store, const char *path)
{
    struct object_version known;
    struct file_identity identity;

    if (!s3_known_version(store, path, &known))
        return;
    identity = bucket_identity(known.etag, known.size_bytes, known.modified_s);
    s3_listing_lose(store->listing, path, &identity);
}

/* Gives the bytes of a published file to the cache, under the new version, and removes the file.
 * The cache links the file before the staging folder's name is removed: a file without any name
 * could not be linked. */
static void move_to_cache(struct s3_upload *upload, const struct file_identity *identity)
{
    const struct s3_store *store = upload->store;
    struct staged_file *file = upload->file;
    const int descriptor = fcntl(file->descriptor, F_DUPFD_CLOEXEC, 0);
    uint8_t key[CACHE_KEY_BYTES];

    if (descriptor >= 0 && identity != NULL) {
        s3_cache_key(store, upload->path, identity, key);
        cache_adopt(store->cache, key, descriptor, upload->length);
    } else if (descriptor >= 0) {
        close(descriptor);
    }
    staged_file_remove(file);
}

/* Completes a successful publication. *version has no ETag if the new version is unknown. */
static void finish(struct publishing *publishing, const struct object_version *version)
{
    struct s3_upload *upload = publishing->upload;
    struct s3_store *store = upload->store;
    struct store_claim *claim = &publishing->claim->base;

    if (upload->multipart != NULL) {
        s3_multipart_drop(store, upload->multipart);
        s3_multipart_free(upload->multipart);
        upload->multipart = NULL;
    }
    claim->has_published = version->etag[0] != '\0';
    if (claim->has_published) {
        claim->published = bucket_identity(version->etag, version->size_bytes, version->modified_s);
        s3_note_version(store, upload->path, version);
    } else
        drop_known(store, upload->path);
    move_to_cache(upload, claim->has_published ? &claim->published : NULL);
}

enum zt_status s3_publish(struct store *base, struct staged_file *file, const char *path,
                          const struct store_expected *expected, struct zt_error *error)
{
    struct publishing publishing = {.upload = (struct s3_upload *)file->transfer,
                                    .expected = expected};
    struct object_version version = {.etag = ""};
    enum zt_status status;

    publishing.claim = s3_claim_of((struct s3_store *)base, path);
    if (publishing.claim == NULL)
        return fail_unclaimed(error);
    if (publishing.upload == NULL || publishing.upload->has_lost_parts ||
        strcmp(publishing.upload->path, path) != 0)
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the upload is not prepared");
    status = s3_claim_refresh(publishing.claim, error);
    if (status == ZT_OK)
        status = check_expected(&publishing, error);
    if (status == ZT_OK)
        status = s3_claim_check(publishing.claim, error);
    if (status == ZT_OK)
        status = write_object(&publishing, &version, error);
    if (status == ZT_OK)
        finish(&publishing, &version);
    return status;
}

/* --- removing --- */

static enum zt_status not_found(struct zt_error *error)
{
    return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such file");
}

static enum zt_status run_delete(struct s3_claim *claim, const char *path, struct zt_error *error)
{
    struct bucket *bucket = &claim->store->bucket;
    struct remote_exchange exchange;
    char url_path[BUCKET_PATH_SIZE];
    enum zt_status status;

    if (!bucket_path(bucket, path, url_path))
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "the key is too long");
    bucket_exchange(bucket, &exchange, "DELETE", url_path);
    exchange.body_most = BUCKET_REPLY_MOST;
    status = s3_claim_run(claim, &exchange, error);
    remote_exchange_free(&exchange);
    return status == ZT_NOT_FOUND ? ZT_OK : as_unavailable(status, error);
}

static enum zt_status delete_object(struct s3_claim *claim, const char *path,
                                    struct zt_error *error)
{
    enum zt_status status = run_delete(claim, path, error);
    struct object_version version;
    bool exists = true;

    /* The response to the removal may have been lost. */
    if (status == ZT_UNAVAILABLE &&
        look(claim->store, path, claim->by_ms, &exists, &version, NULL) == ZT_OK && !exists)
        status = ZT_OK;
    claim->base.outcome_is_unknown = status == ZT_UNAVAILABLE;
    claim->stays = claim->stays || status == ZT_UNAVAILABLE;
    if (status == ZT_OK)
        s3_note_version(claim->store, path, NULL);
    return status;
}

enum zt_status s3_remove(struct store *base, const char *path,
                         const struct store_expected *expected, struct zt_error *error)
{
    struct s3_store *store = (struct s3_store *)base;
    struct s3_claim *claim = s3_claim_of(store, path);
    struct object_version version;
    size_t length;
    unsigned rank;
    bool exists;
    enum zt_status status;

    if (claim == NULL)
        return fail_unclaimed(error);
    /* The claim has looked up all files under the name, if the path can be a model. */
    if (model_path_split(path, &length, &rank) && !s3_known_version(store, path, &version))
        return expected->what == STORE_EXPECTS_VERSION ? fail_changed(error) : not_found(error);
    status = s3_claim_refresh(claim, error);
    if (status == ZT_OK)
        status = look(store, path, s3_claim_write_by(claim), &exists, &version, error);
    if (status == ZT_OK)
        status = s3_claim_check(claim, error);
    if (status != ZT_OK)
        return status;
    if (!is_expected(expected, exists ? &version : NULL))
        return fail_changed(error);
    return exists ? delete_object(claim, path, error) : not_found(error);
}
