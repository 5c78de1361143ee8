/* The other files of a model: checking that a file is the shard that the model refers to
 * (zTensor 2, section 9), or the part that was joined (zt/join.h). */
#include "zt/shards.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/hashing.h"
#include "formats/formats.h"

#define IDENTITY_RULE "zt2 §9 ShardIdentity"
#define EXTENSION     ".zt"
#define CHUNK_SIZE    ((size_t)256 << 10)

char *zt_shard_sibling(const char *model_path, const struct zt_shard *shard)
{
    const char *slash = strrchr(model_path, '/');
    const char *base = slash != NULL ? slash + 1 : model_path;
    const char *dot = strrchr(base, '.');
    /* A leading dot hides a file and does not begin an extension. */
    size_t stem = dot != NULL && dot > base ? (size_t)(dot - model_path) : strlen(model_path);
    size_t folder = (size_t)(base - model_path);
    size_t size = stem + 1 + shard->name_length + sizeof(EXTENSION);
    char *path = malloc(size);

    assert(folder <= stem);
    if (path != NULL && shard->kind != ZT_SHARD_CONTAINER)
        snprintf(path, size, "%.*s%.*s", (int)folder, model_path, (int)shard->name_length,
                 shard->name);
    else if (path != NULL)
        snprintf(path, size, "%.*s-%.*s" EXTENSION, (int)stem, model_path, (int)shard->name_length,
                 shard->name);
    return path;
}

/* Puts the shard's name in front of the message. Drops the names of objects, which belong to the
 * shard's own manifest and not to the model. */
static enum zt_status name_shard(const struct zt_shard *shard, enum zt_status status,
                                 struct zt_error *error)
{
    if (error == NULL)
        return status;
    return zt_fail(error, status, error->rule, error->offset, "shard %.*s: %s",
                   (int)shard->name_length, shard->name, error->message);
}

/* A part is a model of any format; that it is the same as when it was joined is for the caller to
 * know, as parts state no digests. */
static enum zt_status check_part(const struct zt_shard *shard, struct zt_source *source,
                                 struct zt_error *error)
{
    struct zt_model *model = NULL;
    enum zt_status status;

    assert(shard->kind == ZT_SHARD_PART);
    if (zt_source_size(source) != shard->size_bytes)
        return zt_fail(error, ZT_INVALID, "index §Parts PartSize", ZT_NO_OFFSET,
                       "part %.*s has %" PRIu64 " bytes instead of %" PRIu64,
                       (int)shard->name_length, shard->name, zt_source_size(source),
                       shard->size_bytes);
    status = zt_model_open(source, &model, error);
    zt_model_free(model);
    return status == ZT_OK ? ZT_OK : name_shard(shard, status, error);
}

/* External data may be any file that holds what the tensors need. */
static enum zt_status check_data(const struct zt_shard *shard, struct zt_source *source,
                                 struct zt_error *error)
{
    assert(shard->kind == ZT_SHARD_DATA);
    if (zt_source_size(source) < shard->size_bytes)
        return zt_fail(error, ZT_INVALID, "onnx §External Size", zt_source_size(source),
                       "data file %.*s has %" PRIu64 " bytes, the tensors need %" PRIu64,
                       (int)shard->name_length, shard->name, zt_source_size(source),
                       shard->size_bytes);
    return ZT_OK;
}

enum zt_status zt_shard_check(const struct zt_shard *shard, struct zt_source *source,
                              struct zt_error *error)
{
    struct zt_model *model = NULL;
    enum zt_status status;

    if (shard->kind == ZT_SHARD_PART)
        return check_part(shard, source, error);
    if (shard->kind == ZT_SHARD_DATA)
        return check_data(shard, source, error);
    if (zt_source_size(source) != shard->size_bytes)
        return zt_fail(error, ZT_INVALID, IDENTITY_RULE, ZT_NO_OFFSET,
                       "shard %.*s has %" PRIu64 " bytes instead of %" PRIu64,
                       (int)shard->name_length, shard->name, zt_source_size(source),
                       shard->size_bytes);
    status = zt2_open(source, &model, error);
    zt_model_free(model);
    return status == ZT_OK || status == ZT_DATA_SHARD ? ZT_OK : name_shard(shard, status, error);
}

enum zt_status zt_source_digest(struct zt_source *source, enum zt_digest_algorithm algorithm,
                                const struct zt_progress *progress, struct zt_digest *out_digest,
                                struct zt_error *error)
{
    struct zt_hashing hashing = {.source = source, .progress = progress};
    enum zt_status status = zt_hashing_start(&hashing, algorithm, CHUNK_SIZE, error);

    if (status == ZT_OK)
        status = zt_hashing_run(&hashing, 0, zt_source_size(source), error);
    if (status == ZT_OK)
        zt_hasher_finish(hashing.hasher, out_digest);
    zt_hashing_free(&hashing);
    return status;
}

enum zt_status zt_shard_digest(const struct zt_shard *shard, struct zt_digest *out_digest,
                               struct zt_error *error)
{
    const struct zt_text text = {shard->digest, shard->digest_length};

    if (shard->digest == NULL)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "no digest is stated");
    return shard->kind == ZT_SHARD_DATA ? zt_digest_parse_sha1(text, out_digest, error)
                                        : zt_digest_parse(text, out_digest, error);
}

enum zt_status zt_shard_check_digest(const struct zt_shard *shard, struct zt_source *source,
                                     const struct zt_progress *progress, struct zt_error *error)
{
    struct zt_digest stated;
    struct zt_digest actual;
    enum zt_status status = zt_shard_digest(shard, &stated, error);

    if (status == ZT_OK)
        status = zt_source_digest(source, stated.algorithm, progress, &actual, error);
    if (status != ZT_OK)
        return status == ZT_ARGUMENT ? status : name_shard(shard, status, error);
    if (!zt_digest_equal(&stated, &actual))
        return zt_fail(error, ZT_CORRUPT,
                       shard->kind == ZT_SHARD_DATA ? "onnx §External Checksum" : IDENTITY_RULE,
                       ZT_NO_OFFSET, "shard %.*s does not have the digest stated for it",
                       (int)shard->name_length, shard->name);
    return ZT_OK;
}
