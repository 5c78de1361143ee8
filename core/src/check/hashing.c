/* Reading in chunks, hashing each, and reporting it: the loop that verification, shards and the
 * canonical check share. */
#include "check/hashing.h"

#include <assert.h>
#include <stdlib.h>

#include "zt/verify.h"

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

enum zt_status zt_hashing_run(struct zt_hashing *hashing, uint64_t offset, uint64_t length,
                              struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    assert(hashing->hasher != NULL && hashing->chunk != NULL);
    while (status == ZT_OK && length > 0) {
        size_t part = length < hashing->chunk_size ? (size_t)length : hashing->chunk_size;

        status = zt_source_read_at(hashing->source, offset, hashing->chunk, part, error);
        if (status != ZT_OK)
            return status;
        zt_hasher_update(hashing->hasher, hashing->chunk, part);
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
