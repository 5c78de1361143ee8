/* Building a model: readers add objects, components, dimensions and shards; finishing sorts them
 * and rejects duplicate names.
 *
 * Memory is bounded by a budget that is derived from the manifest's length (docs/rules/,
 * Memory). */
#ifndef ZT_MODEL_MODEL_BUILD_H
#define ZT_MODEL_MODEL_BUILD_H

#include "base/memory.h"
#include "model/name_sort.h"
#include "zt/dtype.h"
#include "zt/model.h"

/* zTensor 2's bound on the number of dimensions; this library applies it to older formats too. */
#define ZT_RANK_MAX 64

struct zt_model_storage {
    struct zt_arena arena;
    uint8_t *manifest; /* the manifest's bytes; texts of the model point into them */
};

struct zt_builder {
    struct zt_model *model;
    struct zt_object *objects;
    struct zt_component *components;
    uint64_t *dimensions;
    struct zt_shard *shards;
    size_t object_capacity;
    size_t component_capacity;
    size_t dimension_capacity;
    size_t shard_capacity;
    uint32_t dimension_count;
    uint64_t held_bytes;
    uint64_t budget_bytes;
};

/* Starts a model: reads the manifest's bytes and computes manifest_hash. The length must be at most
 * 1 GiB; it may be 0. Ended by zt_builder_finish or zt_builder_abandon. ZT_NO_MEMORY, ZT_IO; on
 * failure there is nothing to free. */
enum zt_status zt_builder_init(struct zt_builder *builder, struct zt_source *source,
                               uint64_t manifest_offset, uint64_t manifest_length,
                               struct zt_error *error);

/* Says that the manifest has so many more bytes, which the reader brings itself instead of
 * zt_builder_init: the manifest's length and the budgets grow. For a manifest that lies in pieces;
 * zt_manifest_position then knows no positions. */
void zt_builder_extend(struct zt_builder *builder, uint64_t length);

/* Each function adds a zeroed entry, which is valid until the next call of the same function.
 * Components and dimensions belong to the object added last. ZT_LIMIT if the budget would be
 * exceeded; ZT_NO_MEMORY. */
enum zt_status zt_builder_object(struct zt_builder *builder, struct zt_object **out_object,
                                 struct zt_error *error);
enum zt_status zt_builder_component(struct zt_builder *builder, struct zt_component **out_component,
                                    struct zt_error *error);
enum zt_status zt_builder_dimension(struct zt_builder *builder, uint64_t extent,
                                    struct zt_error *error);
enum zt_status zt_builder_shard(struct zt_builder *builder, struct zt_shard **out_shard,
                                struct zt_error *error);

/* The object and the component added last, valid until the next one is added. One must exist. */
struct zt_object *zt_last_object(const struct zt_builder *builder);
struct zt_component *zt_last_component(const struct zt_builder *builder);

/* Sorts objects, components and shards by name, rejects a name that occurs twice (with
 * duplicate_rule, at its second occurrence), releases unused capacity and returns the model, which
 * the caller then owns. On failure the builder still owns everything. */
enum zt_status zt_builder_finish(struct zt_builder *builder, const char *duplicate_rule,
                                 struct zt_model **out_model, struct zt_error *error);

/* Copies the objects' names into the arena and frees the manifest, into which nothing else may
 * point. Leaves the model as it is if memory is short. */
void zt_model_keep_names(struct zt_model *model);

/* Frees everything that the builder holds. */
void zt_builder_abandon(struct zt_builder *builder);

/* --- what several readers add in the same way --- */

/* A dense tensor stored raw, as most formats describe it. */
struct zt_tensor {
    struct zt_text name; /* valid as long as the model: in its manifest or arena */
    uint64_t shape[ZT_RANK_MAX];
    uint64_t offset; /* absolute */
    uint64_t length;
    uint8_t rank;
    enum zt_dtype dtype;
    enum zt_logical logical;
};

/* Adds the object, its dimensions and its component "data". ZT_LIMIT, ZT_NO_MEMORY. */
enum zt_status zt_tensor_add(struct zt_builder *builder, const struct zt_tensor *tensor,
                             struct zt_error *error);

/* Sets the encoding of a zTensor 0.1 or 1.x component from its text; no text means raw. Sets the
 * decoded length of a raw component; for others it is unknown. */
void zt_component_set_encoding(struct zt_component *component, struct zt_text encoding);

/* Names object and component (which may be empty) in an error that does not name any yet. */
void zt_error_within(struct zt_error *error, struct zt_text object, struct zt_text component);

#endif
