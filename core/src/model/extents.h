/* Byte ranges that components claim: in bounds, and identical or disjoint.
 *
 * Files with a million components are ordinary, so the check sorts an index and costs 8 bytes a
 * component. */
#ifndef ZT_MODEL_EXTENTS_H
#define ZT_MODEL_EXTENTS_H

#include "zt/model.h"

/* Refuses components of one file (the model's own, or one shard) that overlap without being the
 * same range. Empty ranges overlap nothing. Where manifest_length is not 0, the manifest counts as
 * one more range of the model's own file. ZT_INVALID with the rule given, the offset of the range
 * that begins inside another one, and its object's name. */
enum zt_status zt_extents_check(const struct zt_model *model, bool include_manifest,
                                const char *rule, struct zt_error *error);

/* The components of a model by file (its own first, then its shards) and offset; those of length 0
 * are left out. */
struct zt_extents_order {
    const uint32_t *sorted; /* indices into zt_model.components */
    uint32_t count;
    uint32_t own_count; /* how many of them, the first ones, lie in the model's own file */
    uint32_t *memory;   /* what sorted lies in: 8 bytes a component */
};

/* ZT_NO_MEMORY. What it gives is freed with zt_extents_order_free. */
enum zt_status zt_extents_sort(const struct zt_model *model, struct zt_extents_order *out_order,
                               struct zt_error *error);
void zt_extents_order_free(struct zt_extents_order *order);

/* Absolute position of a text of the model that lies in the manifest's bytes; ZT_NO_OFFSET for any
 * other. Where a rule is told after the manifest was read, this is where the reader of its error
 * finds what broke it. */
uint64_t zt_manifest_position(const struct zt_model *model, const void *text);

/* The object a component belongs to, found by looking at all: for errors, not for loops. */
const struct zt_object *zt_component_owner(const struct zt_model *model,
                                           const struct zt_component *component);

#endif
