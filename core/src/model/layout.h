/* Layout profiles: which components an object must have and how large they must be.
 *
 * Metadata rules only (what the manifest tells); content rules are in verify. One function for each
 * layout, chosen by the object's layout; formats translate their own spelling into enum zt_layout
 * before they call this. */
#ifndef ZT_MODEL_LAYOUT_H
#define ZT_MODEL_LAYOUT_H

#include "zt/model.h"

/* Which family of names a file uses: zTensor 1.x (sparse_csr, quantized_group) or 2
 * (zt.sparse_csr/1, …). */
enum zt_layout_family { ZT_LAYOUTS_ZT1, ZT_LAYOUTS_ZT2 };

enum zt_layout zt_layout_from_name(enum zt_layout_family family, struct zt_text name);

/* Product of a shape, folded from left to right, 1 for rank 0. False when a step of the fold does
 * not fit in 64 bits, even if a later dimension is 0. */
bool zt_shape_product(const uint64_t *shape, unsigned rank, uint64_t *out_elements);

/* Checks one object against its layout. Rules "zt1 §3 …" or "zt2 §6 …"; the error names object and
 * component. Objects of ZT_LAYOUT_OTHER pass. A component whose logical type is unknown has no size
 * to check. */
enum zt_status zt_layout_check(const struct zt_model *model, const struct zt_object *object,
                               enum zt_layout_family family, struct zt_error *error);

/* Checks one component that an object is to have, which need not be among its components: what can
 * be told before the others are there. Its decoded length is known. Rules as zt_layout_check's. */
enum zt_status zt_layout_check_part(const struct zt_model *model, const struct zt_object *object,
                                    const struct zt_component *part, enum zt_layout_family family,
                                    struct zt_error *error);

#endif
