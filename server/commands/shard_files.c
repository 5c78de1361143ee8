/* Finding shards by position (zTensor 2 section 9) and telling whether they are the ones the model means. */
#include "commands/shard_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zt/digest.h"

#define SHARD_RULE  "zt2 §9 ShardIdentity"
#define EXTENSION   ".zt"
#define BLOCK_BYTES ((size_t)1 << 20)

/* To be freed; NULL when memory is out. */
static char *shard_path(const char *model_path, const struct zt_shard *shard)
{
    size_t stem = strlen(model_path);
    size_t extension = strlen(EXTENSION);
    if (stem > extension && strcmp(model_path + stem - extension, EXTENSION) == 0) {
        stem -= extension;
    }
    char *path = NULL;
    if (asprintf(&path, "%.*s-%.*s" EXTENSION, (int)stem, model_path, (int)shard->name_length, shard->name) < 0) {
        return NULL;
    }
    return path;
}

static enum zt_status check_container(const struct zt_shard *shard, struct zt_source *source, struct zt_error *error)
{
    struct zt_model *model = NULL;
    if (zt_source_size(source) != shard->size_bytes) {
        return zt_fail(error, ZT_INVALID, SHARD_RULE, ZT_NO_OFFSET,
                       "shard %.*s has %" PRIu64 " bytes instead of %" PRIu64, (int)shard->name_length, shard->name,
                       zt_source_size(source), shard->size_bytes);
    }
    enum zt_status status = zt_model_open(source, &model, error);
    if (status == ZT_OK) {
        zt_model_free(model);
    }
    return status == ZT_DATA_SHARD ? ZT_OK : status;
}

static enum zt_status hash_source(struct zt_source *source, enum zt_digest_algorithm algorithm,
                                  struct zt_digest *out_digest, struct zt_error *error)
{
    struct zt_hasher *hasher = NULL;
    uint8_t *block = malloc(BLOCK_BYTES);
    enum zt_status status = block != NULL ? zt_hasher_new(algorithm, &hasher) : ZT_NO_MEMORY;
    if (status != ZT_OK) {
        zt_fail(error, status, NULL, ZT_NO_OFFSET, "no memory to hash with");
        goto out;
    }
    uint64_t size = zt_source_size(source);
    for (uint64_t at = 0; at < size; at += BLOCK_BYTES) {
        size_t length = size - at < BLOCK_BYTES ? (size_t)(size - at) : BLOCK_BYTES;
        status = zt_source_read_at(source, at, block, length, error);
        if (status != ZT_OK) {
            goto out;
        }
        zt_hasher_update(hasher, block, length);
    }
    zt_hasher_finish(hasher, out_digest);
out:
    if (hasher != NULL) {
        zt_hasher_free(hasher);
    }
    free(block);
    return status;
}

static enum zt_status check_digest(const struct zt_shard *shard, struct zt_source *source, struct zt_error *error)
{
    struct zt_digest stated;
    struct zt_digest actual;
    enum zt_status status = zt_digest_parse((struct zt_text){shard->digest, shard->digest_length}, &stated, error);
    if (status != ZT_OK) {
        return status;
    }
    status = hash_source(source, stated.algorithm, &actual, error);
    if (status == ZT_OK && !zt_digest_equal(&stated, &actual)) {
        return zt_fail(error, ZT_CORRUPT, SHARD_RULE, ZT_NO_OFFSET, "shard %.*s does not have the digest stated for it",
                       (int)shard->name_length, shard->name);
    }
    return status;
}

enum zt_status shard_file_open(const char *model_path, const struct zt_shard *shard, struct zt_source **out_source,
                               struct zt_error *error)
{
    struct zt_source *source = NULL;
    char *path = shard_path(model_path, shard);
    if (path == NULL) {
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a path");
    }
    enum zt_status status = zt_source_open_file(path, &source, error);
    free(path);
    if (status == ZT_IO && error->os_error == ENOENT) {
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "shard %.*s is not there", (int)shard->name_length,
                       shard->name);
    }
    if (status != ZT_OK) {
        return status;
    }
    status = check_container(shard, source, error);
    if (status == ZT_OK && shard->digest != NULL) {
        status = check_digest(shard, source, error);
    }
    if (status != ZT_OK) {
        zt_source_close(source);
        return status;
    }
    *out_source = source;
    return ZT_OK;
}
