/* Publishing and removing, under a claim: what is there is compared with what is expected, and then
 * one request makes or removes the object. Whether that was done, its answer does not always tell:
 * doubt is settled by a HEAD, whose metadata has the SHA-256 of what was written. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "store/s3/s3_listing.h"
#include "store/s3_write/s3_multipart.h"
#include "store/store_local.h"
#include "zt/digest.h"

/* Beside the time of small requests: of a body, as a try of the client has; and of a completion,
 * which the service may make of the parts one by one. */
#define BODY_MS_A_MIB      1000
#define COMPLETE_MS_A_PART 1000
#define COMPLETE_MS_MOST   240000
#define MIB                ((uint64_t)1 << 20)

/* --- before the claim --- */

static enum zt_status send_parts(struct s3_upload *upload, struct zt_error *error)
{
    struct s3_store *store = s3_store_of(upload);
    const struct s3_parts parts = {
        .key = upload->path,
        .descriptor = local_upload_of(upload->staged)->descriptor,
        .length = upload->length,
        .part_bytes = (uint64_t)store->config->s3.part_bytes,
        .sha256 = upload->sha256,
    };

    return s3_multipart_send(store, &parts, &upload->multipart, error);
}

enum zt_status s3_prepare(struct stored_upload *base, const char *path, const uint8_t sha256[32],
                          struct zt_error *error)
{
    struct s3_upload *upload = s3_upload_of(base);
    struct s3_store *store = s3_store_of(upload);
    const uint64_t length = s3_length(base);
    char hex[S3_SHA256_SIZE];
    enum zt_status status = ZT_OK;

    assert(strlen(path) < sizeof(upload->path));
    s3_hex(sha256, 32, hex);
    if (upload->is_prepared && upload->length == length && strcmp(upload->path, path) == 0 &&
        strcmp(upload->sha256, hex) == 0)
        return ZT_OK;
    s3_keeper_abort(store, upload->multipart);
    upload->multipart = NULL;
    strcpy(upload->path, path);
    strcpy(upload->sha256, hex);
    upload->length = length;
    if (length > (uint64_t)store->config->s3.part_bytes)
        status = send_parts(upload, error);
    upload->is_prepared = status == ZT_OK;
    return status;
}

/* --- what is there --- */

static enum zt_status fail_changed(struct zt_error *error)
{
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                   "the model was changed by another writer");
}

static enum zt_status fail_unclaimed(struct zt_error *error)
{
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the name is not claimed");
}

/* Whether what a HEAD found (NULL: nothing) is what is expected. */
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

/* Anything but an answer to the question is no answer for now. */
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
    char etag[BUCKET_ETAG_SIZE]; /* of STORE_EXPECTS_VERSION */
    bool is_guarded;             /* by a condition that the store honours */
};

/* Makes sure of what is expected by asking, and learns the ETag to ask for. A bucket that honours
 * the condition of the request decides by itself whether something is there. */
static enum zt_status check_expected(struct publishing *publishing, struct zt_error *error)
{
    struct s3_store *store = s3_store_of(publishing->upload);
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

static void add_field(struct remote_exchange *exchange, const char *name, const char *value)
{
    assert(exchange->field_count < REMOTE_FIELDS);
    exchange->fields[exchange->field_count++] = (struct remote_field){name, value};
}

/* The ETag goes without quotes: Ceph knows only that. */
static void add_condition(struct publishing *publishing, struct remote_exchange *exchange)
{
    if (!s3_store_of(publishing->upload)->writing->abilities.put)
        return;
    if (publishing->expected->what == STORE_EXPECTS_NOTHING)
        add_field(exchange, "if-none-match", "*");
    else if (publishing->etag[0] != '\0')
        add_field(exchange, "if-match", publishing->etag);
    publishing->is_guarded = exchange->field_count > 0;
}

static enum zt_status put_whole(struct publishing *publishing, struct zt_error *error)
{
    const struct s3_upload *upload = publishing->upload;
    struct s3_store *store = s3_store_of(upload);
    struct remote_exchange exchange;
    char path[BUCKET_PATH_SIZE];
    char sha256[S3_SHA256_SIZE];
    enum zt_status status;

    if (!bucket_path(&store->bucket, upload->path, path))
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "the key is too long");
    bucket_exchange(&store->bucket, &exchange, "PUT", path);
    exchange.body = REMOTE_BODY_FILE;
    exchange.body_descriptor = local_upload_of(upload->staged)->descriptor;
    exchange.body_length = upload->length;
    exchange.body_sha256 = sha256;
    exchange.body_most = BUCKET_REPLY_MOST;
    status = s3_hash_range(exchange.body_descriptor, 0, upload->length, sha256, error);
    if (status == ZT_OK && strcmp(sha256, upload->sha256) != 0)
        status =
            zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the staged file is not what was received");
    if (status != ZT_OK)
        return status;
    add_condition(publishing, &exchange);
    add_field(&exchange, "x-amz-meta-ztserve-sha256", upload->sha256);
    s3_claim_extend(publishing->claim, upload->length / MIB * BODY_MS_A_MIB);
    status = s3_claim_run(publishing->claim, &exchange, error);
    remote_exchange_free(&exchange);
    return status;
}

static enum zt_status complete(struct publishing *publishing, struct zt_error *error)
{
    struct s3_store *store = s3_store_of(publishing->upload);
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

/* What the request did, as the object tells. *out_version is that of our own object. */
static enum zt_status settle(struct publishing *publishing, enum zt_status written,
                             struct object_version *out_version, struct zt_error *error)
{
    const struct s3_upload *upload = publishing->upload;
    struct s3_store *store = s3_store_of(upload);
    struct object_version version;
    struct zt_error ignored;
    bool exists = false;
    const enum zt_status looked =
        look(store, upload->path, publishing->claim->by_ms, &exists, &version, &ignored);

    if (looked == ZT_OK && exists && strcmp(version.sha256, upload->sha256) == 0) {
        *out_version = version;
        return ZT_OK;
    }
    /* An answer of success is believed, even if another writer has replaced the object since. */
    if (written == ZT_OK)
        return ZT_OK;
    if (looked == ZT_OK)
        s3_note_version(store, upload->path, exists ? &version : NULL);
    if (written == ZT_STALE || written == ZT_NOT_FOUND)
        return looked == ZT_OK ? fail_changed(error) : as_unavailable(looked, error);
    return as_unavailable(written, error);
}

/* Whatever was not answered may still be done, and cannot be taken back, which is said. An upload
 * that is not completing any more is aborted, and then certainly was not published. */
static enum zt_status end_doubt(struct publishing *publishing, struct object_version *out_version,
                                struct zt_error *error)
{
    struct s3_upload *upload = publishing->upload;
    struct s3_store *store = s3_store_of(upload);
    struct s3_multipart *multipart = upload->multipart;

    if (multipart != NULL) {
        upload->multipart = NULL;
        upload->is_prepared = false;
        if (!multipart->is_completing &&
            s3_multipart_abort(store, multipart, publishing->claim->by_ms, error) == ZT_OK) {
            s3_multipart_free(multipart);
            return settle(publishing, ZT_UNAVAILABLE, out_version, error);
        }
        s3_keeper_abort(store, multipart);
    }
    publishing->claim->base.has_doubt = true;
    publishing->claim->stays = !publishing->is_guarded;
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                   "the object store does not answer, so it is not known whether the model was "
                   "published");
}

static enum zt_status write_object(struct publishing *publishing,
                                   struct object_version *out_version, struct zt_error *error)
{
    const bool is_multipart = publishing->upload->multipart != NULL;
    const enum zt_status written =
        is_multipart ? complete(publishing, error) : put_whole(publishing, error);
    enum zt_status status;

    /* Nothing was sent. */
    if (written == ZT_IO || written == ZT_NO_MEMORY || written == ZT_LIMIT)
        return written;
    status = settle(publishing, written, out_version, error);
    if (status == ZT_UNAVAILABLE && written == ZT_UNAVAILABLE)
        status = end_doubt(publishing, out_version, error);
    return status;
}

/* What was known of the path is not what it has now. */
static void forget_known(struct s3_store *store, const char *path)
{
    struct object_version known;
    struct file_identity identity;

    if (!s3_known_version(store, path, &known))
        return;
    identity = bucket_identity(known.etag, known.size_bytes, known.modified_s);
    s3_listing_lose(store->listing, path, &identity);
}

/* It was published: *version, unless it could not be learned. */
static void finish(struct publishing *publishing, const struct object_version *version)
{
    struct s3_upload *upload = publishing->upload;
    struct s3_store *store = s3_store_of(upload);
    struct store_claim *claim = &publishing->claim->base;

    if (upload->multipart != NULL) {
        s3_multipart_forget(store, upload->multipart);
        s3_multipart_free(upload->multipart);
        upload->multipart = NULL;
    }
    claim->has_published = version->etag[0] != '\0';
    if (claim->has_published) {
        claim->published = bucket_identity(version->etag, version->size_bytes, version->modified_s);
        s3_note_version(store, upload->path, version);
    } else
        forget_known(store, upload->path);
    s3_upload_end(upload, claim->has_published ? &claim->published : NULL);
}

enum zt_status s3_publish(struct stored_upload *base, const char *path,
                          const struct store_expected *expected, struct zt_error *error)
{
    struct publishing publishing = {.upload = s3_upload_of(base), .expected = expected};
    struct s3_store *store = s3_store_of(publishing.upload);
    struct object_version version = {.etag = ""};
    enum zt_status status;

    publishing.claim = s3_claim_of(store, path);
    if (publishing.claim == NULL)
        return fail_unclaimed(error);
    if (!publishing.upload->is_prepared || strcmp(publishing.upload->path, path) != 0)
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

    /* The answer may have been lost. */
    if (status == ZT_UNAVAILABLE &&
        look(claim->store, path, claim->by_ms, &exists, &version, NULL) == ZT_OK && !exists)
        status = ZT_OK;
    claim->base.has_doubt = status == ZT_UNAVAILABLE;
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
    /* The claim looked at all that is under the name, if that can be a model. */
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
