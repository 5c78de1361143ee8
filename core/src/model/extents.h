/* Byte ranges of components: in file order, and identical or disjoint.
 *
 * Models of a million components are ordinary: the check takes 4 bytes a component, 8 while it
 * sorts, and nothing if the components are in file order. */
#ifndef ZT_MODEL_EXTENTS_H
#define ZT_MODEL_EXTENTS_H

#include "zt/model.h"

/* Refuses components of one file (the model's own, or one shard) that overlap without being the
 * same range. Empty ranges overlap nothing. With include_manifest the manifest, unless it is empty,
 * counts as one more range of the model's own file. ZT_INVALID with the rule given, the offset of
 * the range that begins inside another one, and the names of its object and component;
 * ZT_NO_MEMORY. */
enum zt_status zt_extents_check(const struct zt_model *model, bool include_manifest,
                                const char *rule, struct zt_error *error);

/* The components of a model by file (its own first, then its shards) and offset, without those of
 * length 0. */
struct zt_extents_order {
    uint32_t *sorted; /* indices into zt_model.components */
    uint32_t count;
    uint32_t own_count; /* the first of them: those in the model's own file */
};

/* ZT_NO_MEMORY. The order is freed with zt_extents_order_free. */
enum zt_status zt_extents_sort(const struct zt_model *model, struct zt_extents_order *out_order,
                               struct zt_error *error);
void zt_extents_order_free(struct zt_extents_order *order);

#endif
