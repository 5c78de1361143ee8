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

/* The next bytes of a run. */
struct part {
    struct zt_hasher *hasher;
    const uint8_t *bytes;
    size_t length;
    bool is_mapped; /* only touched inside zt_source_touch */
};

/* Finds the next bytes: in the mapping if they are in the page cache, else by a read into the
 * buffer. */
static enum zt_status take_part(struct zt_hashing *hashing, uint64_t offset, uint64_t length,
                                struct part *out_part, struct zt_error *error)
{
    struct part part = {.hasher = hashing->hasher};
    enum zt_status status = ZT_OK;

    assert(length > 0);
    zt_source_read_on(hashing->source, offset, length, 0);
    part.length = length < MAPPED_SIZE ? (size_t)length : MAPPED_SIZE;
    if (length >= MAPPED_MIN)
        part.bytes = zt_source_resident(hashing->source, offset, part.length);
    part.is_mapped = part.bytes != NULL;
    if (!part.is_mapped) {
        part.bytes = hashing->chunk;
        part.length = length < hashing->chunk_size ? (size_t)length : hashing->chunk_size;
        status = zt_source_read_at(hashing->source, offset, hashing->chunk, part.length, error);
    }
    *out_part = part;
    return status;
}

static void hash_one(void *context)
{
    const struct part *part = context;

    zt_hasher_update(part->hasher, part->bytes, part->length);
}

static enum zt_status hash_part(struct zt_hashing *hashing, uint64_t offset, uint64_t length,
                                size_t *out_length, struct zt_error *error)
{
    struct part part;
    enum zt_status status = take_part(hashing, offset, length, &part, error);

    if (status == ZT_OK && part.is_mapped)
        status = zt_source_touch(hashing->source, offset, part.length, hash_one, &part, error);
    else if (status == ZT_OK)
        hash_one(&part);
    *out_length = part.length;
    return status;
}

enum zt_status zt_hashing_run(struct zt_hashing *hashing, uint64_t offset, uint64_t length,
                              struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    assert(hashing->hasher != NULL && hashing->chunk != NULL);
    while (status == ZT_OK && length > 0) {
        size_t part;

        status = hash_part(hashing, offset, length, &part, error);
        if (status != ZT_OK)
            return status;
        offset += part;
        length -= part;
        status = zt_hashing_report(hashing, hashing->reported_bytes + part, error);
    }
    return status;
}

/* --- two runs --- */

static void hash_both(void *context)
{
    const struct part *parts = context;

    zt_hasher_update_pair(parts[0].hasher, parts[0].bytes, parts[0].length, parts[1].hasher,
                          parts[1].bytes, parts[1].length);
}

enum zt_status zt_hashing_pair(struct zt_hashing *first, struct zt_hashing *second,
                               struct zt_error *error)
{
    const uint64_t left = first->left < second->left ? first->left : second->left;
    /* A truncated file lacks the later of two ranges first. */
    const uint64_t last = first->offset > second->offset ? first->offset : second->offset;
    struct part parts[2];
    size_t length;
    enum zt_status status = take_part(first, first->offset, left, &parts[0], error);

    assert(first->source == second->source && left > 0);
    if (status == ZT_OK)
        status = take_part(second, second->offset, left, &parts[1], error);
    if (status != ZT_OK)
        return status;
    length = parts[0].length < parts[1].length ? parts[0].length : parts[1].length;
    parts[0].length = parts[1].length = length;
    if (parts[0].is_mapped || parts[1].is_mapped)
        status = zt_source_touch(first->source, last, length, hash_both, parts, error);
    else
        hash_both(parts);
    first->offset += length;
    first->left -= length;
    second->offset += length;
    second->left -= length;
    return status;
}

void zt_hashing_free(struct zt_hashing *hashing)
{
    zt_hasher_free(hashing->hasher);
    free(hashing->chunk);
    hashing->hasher = NULL;
    hashing->chunk = NULL;
}
