/* Hashing runs of a source's bytes: from a mapping where they are in the page cache, otherwise
 * through a buffer. */
#include "check/hashing.h"

#include <assert.h>
#include <stdlib.h>

#include "bytes/resident.h"
#include "zt/verify.h"

/* Bytes hashed from a mapping per step: a query of the page cache is cheap in comparison. */
#define MAPPED_SIZE ((size_t)1 << 20)
/* With less to read, a copy costs less than touching a mapping. */
#define MAPPED_MIN ((size_t)128 << 10)

enum zt_status zt_hashing_start(struct zt_hashing *hashing, enum zt_digest_algorithm algorithm,
                                size_t chunk_size, struct zt_error *error)
{
    assert(chunk_size > 0);
    assert(hashing->hasher == NULL && hashing->chunk == NULL);
    hashing->chunk_size = chunk_size;
    hashing->chunk = malloc(chunk_size);
    if (hashing->chunk == NULL || zt_hasher_new(algorithm, &hashing->hasher) != ZT_OK)
        return zt_fail_memory(error, "hashing");
    return ZT_OK;
}

enum zt_status zt_hashing_report(struct zt_hashing *hashing, uint64_t total_bytes,
                                 struct zt_error *error)
{
    uint64_t added = total_bytes - hashing->reported_bytes;

    assert(total_bytes >= hashing->reported_bytes);
    hashing->reported_bytes = total_bytes;
    if (hashing->progress != NULL && !hashing->progress->advance(hashing->progress->context, added))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "stopped");
    return ZT_OK;
}

struct mapped_part {
    struct zt_hasher *hasher;
    const uint8_t *bytes;
    size_t length;
};

static void hash_mapped(void *context)
{
    const struct mapped_part *part = context;

    zt_hasher_update(part->hasher, part->bytes, part->length);
}

/* Hashes the next bytes: from the mapping if they are in the page cache, else through the
 * buffer. */
static enum zt_status hash_part(struct zt_hashing *hashing, uint64_t offset, uint64_t length,
                                size_t *out_part, struct zt_error *error)
{
    struct mapped_part part = {.hasher = hashing->hasher};
    enum zt_status status;

    part.length = length < MAPPED_SIZE ? (size_t)length : MAPPED_SIZE;
    if (length >= MAPPED_MIN)
        part.bytes = zt_source_resident(hashing->source, offset, part.length);
    *out_part = part.length;
    if (part.bytes != NULL)
        return zt_source_touch(hashing->source, offset, part.length, hash_mapped, &part, error);
    *out_part = length < hashing->chunk_size ? (size_t)length : hashing->chunk_size;
    assert(*out_part <= length && *out_part <= hashing->chunk_size);
    status = zt_source_read_at(hashing->source, offset, hashing->chunk, *out_part, error);
    if (status == ZT_OK)
        zt_hasher_update(hashing->hasher, hashing->chunk, *out_part);
    return status;
}

enum zt_status zt_hashing_run(struct zt_hashing *hashing, uint64_t offset, uint64_t length,
                              struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    assert(hashing->hasher != NULL && hashing->chunk != NULL);
    while (status == ZT_OK && length > 0) {
        size_t part;

        zt_source_read_on(hashing->source, offset, length, 0);
        status = hash_part(hashing, offset, length, &part, error);
        if (status != ZT_OK)
            return status;
        offset += part;
        length -= part;
        status = zt_hashing_report(hashing, hashing->reported_bytes + part, error);
    }
    return status;
}

void zt_hashing_free(struct zt_hashing *hashing)
{
    zt_hasher_free(hashing->hasher);
    free(hashing->chunk);
    hashing->hasher = NULL;
    hashing->chunk = NULL;
}
