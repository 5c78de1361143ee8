/* zTensor 2's canonical form: the rules that need the file's bytes (padding, digests, sharing).
 *
 * Memory is three chunks, for files of any size. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "check/canonical.h"
#include "check/hashing.h"

#define MAGIC_LENGTH 8
/* Position of the reserved word in the footer. */
#define RESERVED_AT     28
#define RESERVED_LENGTH 4

/* --- the bytes --- */

/* Checks that the bytes [offset, end) are zero. */
static enum zt_status check_zero(const struct zt_canonical *check, uint64_t offset, uint64_t end,
                                 const char *rule)
{
    enum zt_status status = ZT_OK;

    while (offset < end && status == ZT_OK) {
        size_t length = end - offset < ZT_CANONICAL_CHUNK_LENGTH ? (size_t)(end - offset)
                                                                 : ZT_CANONICAL_CHUNK_LENGTH;

        status = zt_source_read_at(check->source, offset, check->chunk, length, check->error);
        for (size_t i = 0; i < length && status == ZT_OK; i++)
            if (check->chunk[i] != 0)
                status = zt_fail(check->error, ZT_INVALID, rule, offset + i,
                                 "a byte that must be zero is not");
        offset += length;
    }
    return status;
}

static enum zt_status hash_blob(const struct zt_canonical *check, const struct zt_component *blob,
                                struct zt_digest *out_digest)
{
    struct zt_hashing hashing = {.source = check->source};
    size_t chunk =
        blob->length < ZT_CANONICAL_CHUNK_LENGTH ? (size_t)blob->length : ZT_CANONICAL_CHUNK_LENGTH;
    enum zt_status status = zt_hashing_start(&hashing, ZT_DIGEST_XXH3, chunk, check->error);

    if (status == ZT_OK)
        status = zt_hashing_run(&hashing, blob->offset, blob->length, check->error);
    if (status == ZT_OK)
        zt_hasher_finish(hashing.hasher, out_digest);
    zt_hashing_free(&hashing);
    return status;
}

static enum zt_status check_blob(const struct zt_canonical *check, uint32_t number)
{
    const struct zt_component *blob = &check->model->components[number];
    struct zt_digest stated;
    struct zt_digest actual;
    enum zt_status status;

    assert(number < check->model->component_count);
    status = hash_blob(check, blob, &actual);
    if (status != ZT_OK)
        return status;
    status =
        zt_digest_parse((struct zt_text){blob->digest, blob->digest_length}, &stated, check->error);
    if (status == ZT_CORRUPT || (status == ZT_OK && !zt_digest_equal(&stated, &actual)))
        status =
            zt_canonical_fail(check, blob, "zt2 §7 Digest", "the digest does not match the bytes");
    return status;
}

enum zt_status zt_canonical_check_bytes(const struct zt_canonical *check)
{
    const struct zt_model *model = check->model;
    uint64_t end = MAGIC_LENGTH;
    enum zt_status status = ZT_OK;
    uint64_t reserved;

    for (uint32_t i = 0; i < check->blob_count && status == ZT_OK; i++) {
        const struct zt_component *blob = &model->components[check->blobs[i]];

        assert(blob->offset >= end);
        status = check_zero(check, end, blob->offset, "zt2 §7 Padding");
        if (status == ZT_OK)
            status = check_blob(check, check->blobs[i]);
        end = blob->offset + blob->length;
    }
    if (status == ZT_OK)
        status = check_zero(check, end, model->manifest_offset, "zt2 §7 Padding");
    if (status != ZT_OK)
        return status;
    reserved = model->file_size - ZT_CANONICAL_FOOTER_LENGTH + RESERVED_AT;
    return check_zero(check, reserved, reserved + RESERVED_LENGTH, "zt2 §7 Reserved");
}

/* --- sharing --- */

static int compare_identity(const void *a, const void *b, void *components)
{
    const struct zt_component *all = *(const struct zt_component *const *)components;
    const struct zt_component *left = &all[*(const uint32_t *)a];
    const struct zt_component *right = &all[*(const uint32_t *)b];
    int order;

    if (left->length != right->length)
        return left->length < right->length ? -1 : 1;
    order = memcmp(left->digest, right->digest, ZT_CANONICAL_DIGEST_LENGTH);
    if (order != 0)
        return order;
    return (left->offset > right->offset) - (left->offset < right->offset);
}

static enum zt_status compare_blobs(const struct zt_canonical *check,
                                    const struct zt_component *first,
                                    const struct zt_component *second, bool *out_equal)
{
    enum zt_status status = ZT_OK;
    bool equal = true;

    assert(first->length == second->length && first->offset != second->offset);
    for (uint64_t done = 0; done < first->length && equal && status == ZT_OK;) {
        size_t length = first->length - done < ZT_CANONICAL_CHUNK_LENGTH
                            ? (size_t)(first->length - done)
                            : ZT_CANONICAL_CHUNK_LENGTH;

        status = zt_source_read_at(check->source, first->offset + done, check->chunk, length,
                                   check->error);
        if (status == ZT_OK)
            status =
                zt_source_read_at(check->source, second->offset + done,
                                  check->chunk + ZT_CANONICAL_CHUNK_LENGTH, length, check->error);
        equal = status == ZT_OK &&
                memcmp(check->chunk, check->chunk + ZT_CANONICAL_CHUNK_LENGTH, length) == 0;
        done += length;
    }
    *out_equal = equal;
    return status;
}

/* Compares each blob only with the first one of the same length and digest, so that the work stays
 * linear in the size of the file. Different blobs whose digests collide are allowed. */
enum zt_status zt_canonical_check_sharing(const struct zt_canonical *check)
{
    const struct zt_component *components = check->model->components;
    const struct zt_component *first = NULL;
    enum zt_status status = ZT_OK;
    bool equal = false;

    assert(check->blob_count <= check->model->component_count);
    qsort_r(check->blobs, check->blob_count, sizeof(*check->blobs), compare_identity, &components);
    for (uint32_t i = 0; i < check->blob_count && status == ZT_OK; i++) {
        const struct zt_component *blob = &components[check->blobs[i]];

        if (first == NULL || first->length != blob->length ||
            memcmp(first->digest, blob->digest, ZT_CANONICAL_DIGEST_LENGTH) != 0) {
            first = blob;
            continue;
        }
        status = compare_blobs(check, first, blob, &equal);
        if (status == ZT_OK && equal)
            status = zt_canonical_fail(check, blob, "zt2 §7 Sharing",
                                       "the same bytes are in the file twice");
    }
    return status;
}
