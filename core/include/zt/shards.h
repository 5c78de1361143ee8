/* Models in several files: finding the file of a component, and checking that a file is the shard
 * that a model refers to (zTensor 2, section 9).
 *
 * A model's own file states the name, size and digest of each shard. The caller decides where to
 * look for shards. A shard's own table of shards is not followed. */
#ifndef ZT_SHARDS_H
#define ZT_SHARDS_H

#include "zt/digest.h"
#include "zt/model.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct zt_progress; /* zt/verify.h */

/* The files of one model, borrowed. */
struct zt_files {
    struct zt_source *own;
    /* One for each of the model's shards, NULL for a missing one; or NULL if all are missing. */
    struct zt_source *const *shards;
};

/* The file that holds a component; NULL if it is a missing shard. */
static inline struct zt_source *zt_files_source(const struct zt_files *files,
                                                const struct zt_component *component)
{
    if (component->shard == 0)
        return files->own;
    return files->shards != NULL ? files->shards[component->shard - 1] : NULL;
}

/* The path where a shard is first expected, in the folder of the model's file: "<stem>-<name>.zt"
 * for a container of zTensor 2, "<name>" for all other kinds. Freed with free(); NULL if there is
 * no memory. */
char *zt_shard_sibling(const char *model_path, const struct zt_shard *shard);

/* Checks that a file can be the shard: it must have exactly the stated size and be a zTensor 2
 * container, with or without a manifest. Reads only head, footer and manifest. ZT_INVALID with the
 * rule "zt2 §9 ShardIdentity" for a different size, or with the rule that the container breaks;
 * ZT_LIMIT, ZT_NO_MEMORY, ZT_IO. Messages name the shard; offsets are in the shard.
 *
 * A part must have exactly the stated size ("index §Parts PartSize") and be a model of any
 * format. */
enum zt_status zt_shard_check(const struct zt_shard *shard, struct zt_source *source,
                              struct zt_error *error);

/* The digest stated for a shard. ZT_NOT_FOUND if none is; otherwise fails as zt_digest_parse does,
 * or for external data as zt_digest_parse_sha1 does. */
enum zt_status zt_shard_digest(const struct zt_shard *shard, struct zt_digest *out_digest,
                               struct zt_error *error);

/* Reads the whole file and checks that it has the digest stated for the shard. ZT_CORRUPT with the
 * rule "zt2 §9 ShardIdentity" or "onnx §External Checksum" if it has not; ZT_UNSUPPORTED for an
 * unknown algorithm; otherwise fails as zt_source_digest does. */
enum zt_status zt_shard_check_digest(const struct zt_shard *shard, struct zt_source *source,
                                     const struct zt_progress *progress, struct zt_error *error);

/* Computes the digest of all bytes of a source. ZT_ARGUMENT if progress stopped the work;
 * ZT_NO_MEMORY, ZT_IO. progress may be NULL. */
enum zt_status zt_source_digest(struct zt_source *source, enum zt_digest_algorithm algorithm,
                                const struct zt_progress *progress, struct zt_digest *out_digest,
                                struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
