/* Gives a kept file a path again, and removes the file that a path has, under a claim of the
 * model's name: readers and writers see either the file before or the file after. */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "store/s3_versions/s3_place_state.h"

/* For the requests under a claim, without the time of a copy. */
#define CLAIM_MS 25000

static enum zt_status claim_path(struct s3_place *place, const char *path,
                                 struct store_claim **out_claim, struct zt_error *error)
{
    char model[MODEL_NAME_MAX + 1];
    const char *name = model_path_name(path, model) ? model : path;
    const enum zt_status status =
        s3_claim(&place->store->base, zt_text_from(name), clock_ms() + CLAIM_MS, out_claim, error);

    assert(status != ZT_OK || *out_claim != NULL);
    /* ZT_ARGUMENT: another writer has the name. */
    if (status != ZT_ARGUMENT)
        return status;
    if (error != NULL)
        error->status = ZT_UNAVAILABLE;
    return ZT_UNAVAILABLE;
}

/* The object itself shows whether it was made, because its metadata has the SHA-256. */
static enum zt_status settle(struct s3_claim *claim, const struct s3_copy *copy,
                             enum zt_status copied, struct zt_error *error)
{
    struct object_version made;
    struct zt_error ignored;
    const enum zt_status status =
        bucket_head(&claim->store->bucket, copy->to, claim->by_ms, &made, &ignored);

    assert(strlen(copy->sha256) == BUCKET_SHA256_SIZE - 1);
    if (status == ZT_OK && made.etag[0] != '\0' && strcmp(made.sha256, copy->sha256) == 0 &&
        made.size_bytes == copy->size_bytes) {
        s3_note_version(claim->store, copy->to, &made);
        return ZT_OK;
    }
    claim->stays = claim->stays || (copy->is_unknown && claim->has_object);
    if (copied != ZT_OK)
        return copied == ZT_NOT_FOUND || copied == ZT_NO_MEMORY || copied == ZT_LIMIT
                   ? copied
                   : ZT_UNAVAILABLE;
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                   "the object store has not copied a kept file, or another program has replaced "
                   "it");
}

static enum zt_status copy_back(struct s3_place *place, struct s3_copy *copy,
                                struct zt_error *error)
{
    struct store_claim *claim;
    enum zt_status status = s3_copy_prepare(place->store, copy, error);

    if (status == ZT_OK)
        status = claim_path(place, copy->to, &claim, error);
    if (status == ZT_OK) {
        status = s3_copy_run((struct s3_claim *)claim, copy, error);
        status = settle((struct s3_claim *)claim, copy, status, error);
        s3_release(claim);
    }
    s3_copy_end(place->store, copy);
    return status;
}

enum zt_status s3_place_restore(struct history_place *base, const uint8_t sha256[32],
                                const char *path, struct zt_error *error)
{
    struct s3_place *place = s3_place_of(base);
    struct object_version kept;
    char key[S3_OBJECT_KEY_SIZE];
    char hex[BUCKET_SHA256_SIZE];
    struct s3_copy copy = {.from = key, .etag = kept.etag, .to = path, .sha256 = hex};
    const enum zt_status status = s3_object_find(place, sha256, &kept, error);

    if (status != ZT_OK)
        return status;
    s3_object_key(sha256, key);
    zt_hex_write(hex, sha256, 32);
    copy.size_bytes = kept.size_bytes;
    assert(kept.etag[0] != '\0');
    return copy_back(place, &copy, error);
}

static enum zt_status fail_other(struct s3_place *place, const char *path, struct zt_error *error)
{
    struct object_version version;
    struct zt_error ignored;

    return bucket_head(&place->store->bucket, path, clock_ms() + CLAIM_MS, &version, &ignored) ==
                   ZT_NOT_FOUND
               ? zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such file")
               : zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "the file is another one now");
}

enum zt_status s3_place_remove_path(struct history_place *base, const char *path,
                                    const struct file_identity *identity, struct zt_error *error)
{
    const struct store_expected expected = {.what = STORE_EXPECTS_VERSION, .identity = *identity};
    struct s3_place *place = s3_place_of(base);
    struct store_claim *claim;
    enum zt_status status = claim_path(place, path, &claim, error);

    if (status != ZT_OK)
        return status;
    status = s3_remove(&place->store->base, path, &expected, error);
    s3_release(claim);
    return status == ZT_ARGUMENT ? fail_other(place, path, error) : status;
}
