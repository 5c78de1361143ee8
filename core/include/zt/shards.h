/* Models over several files: which file a component lies in, and whether a file is the shard that
 * is meant (zTensor 2, section 9).
 *
 * A model's own file says of each shard its name, size and digest. Where shards are looked for is
 * the caller's affair; whether what was found is right is told here. Tables of shards that a shard
 * itself has are not followed. */
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
    /* One for each of the model's shards, NULL for those that are not there; NULL when none is. */
    struct zt_source *const *shards;
};

/* The file that a component lies in; NULL when that is a shard that is not there. */
struct zt_source *zt_files_source(const struct zt_files *files,
                                  const struct zt_component *component);

/* Where a shard is looked for first: "<stem>-<name>.zt" beside the model's own file. To be freed;
 * NULL when memory is out. */
char *zt_shard_sibling(const char *model_path, const struct zt_shard *shard);

/* Whether a file can be the shard: exactly the size that is stated, and a zTensor 2 container
 * itself, with a manifest or without. Reads head, footer and manifest only. ZT_INVALID (the rule is
 * "zt2 §9 ShardIdentity" for the size, else the one that the container breaks), ZT_LIMIT,
 * ZT_NO_MEMORY, ZT_IO; messages name the shard, offsets are the shard's. */
enum zt_status zt_shard_check(const struct zt_shard *shard, struct zt_source *source,
                              struct zt_error *error);

/* Whether the whole file has the digest that is stated for the shard. ZT_CORRUPT with the rule "zt2
 * §9 ShardIdentity" when it has another, ZT_UNSUPPORTED when that cannot be judged. progress may be
 * NULL. */
enum zt_status zt_shard_check_digest(const struct zt_shard *shard, struct zt_source *source,
                                     const struct zt_progress *progress, struct zt_error *error);

/* The digest of all bytes of a source. ZT_ARGUMENT when progress stopped it, ZT_NO_MEMORY, ZT_IO.
 * progress may be NULL. */
enum zt_status zt_source_digest(struct zt_source *source, enum zt_digest_algorithm algorithm,
                                const struct zt_progress *progress, struct zt_digest *out_digest,
                                struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
