/* Byte ranges of components: sorting them by file, and checking that they are identical or
 * disjoint.
 *
 * Models of a million components are common, so memory matters: the check takes 4 bytes for each
 * component, 8 while it sorts, and none if the components are in file order. */
#ifndef ZT_MODEL_EXTENTS_H
#define ZT_MODEL_EXTENTS_H

#include "zt/model.h"

/* Rejects components of one file (the model's own, or a shard) that overlap without being the same
 * range. Empty ranges overlap nothing. With include_manifest, a manifest that is not empty counts
 * as another range of the model's own file. ZT_INVALID with the given rule, the offset of the range
 * that begins inside another one, and the names of its object and component; ZT_NO_MEMORY. */
enum zt_status zt_extents_check(const struct zt_model *model, bool include_manifest,
                                const char *rule, struct zt_error *error);

/* The components of a model without the empty ones, sorted by file (the model's own first, then its
 * shards) and offset. */
struct zt_extents_order {
    uint32_t *sorted; /* indices into zt_model.components */
    uint32_t count;
    uint32_t own_count; /* the number in the model's own file, which come first */
};

/* Sorts a model's components. ZT_NO_MEMORY. Freed with zt_extents_order_free. */
enum zt_status zt_extents_sort(const struct zt_model *model, struct zt_extents_order *out_order,
                               struct zt_error *error);
void zt_extents_order_free(struct zt_extents_order *order);

#endif
