/* Layout profiles: which components an object must have and how large they must be.
 *
 * These rules need only the manifest; the rules on content are in check/content.h. */
#ifndef ZT_MODEL_LAYOUT_H
#define ZT_MODEL_LAYOUT_H

#include "zt/model.h"

/* The names of layouts in zTensor 1.x (sparse_csr, quantized_group) or 2 (zt.sparse_csr/1, …). */
enum zt_layout_family { ZT_LAYOUTS_ZT1, ZT_LAYOUTS_ZT2 };

/* The layout of that name; ZT_LAYOUT_OTHER for an unknown name. */
enum zt_layout zt_layout_from_name(enum zt_layout_family family, struct zt_text name);

/* The product of a shape; 1 for rank 0. False if the product of its first dimensions does not fit
 * in 64 bits, even if a later dimension is 0. */
bool zt_shape_product(const uint64_t *shape, unsigned rank, uint64_t *out_elements);

/* Checks an object against its layout: ZT_INVALID by the rules "zt1 §3 …" or "zt2 §6 …", naming
 * object and component. Objects of ZT_LAYOUT_OTHER pass. The size of a component whose logical type
 * is unknown is not checked. */
enum zt_status zt_layout_check(const struct zt_model *model, const struct zt_object *object,
                               enum zt_layout_family family, struct zt_error *error);

/* Checks one part of an object as far as possible without the other parts. The part need not be
 * among the object's components; its decoded length must be known. Fails as zt_layout_check
 * does. */
enum zt_status zt_layout_check_part(const struct zt_model *model, const struct zt_object *object,
                                    const struct zt_component *part, enum zt_layout_family family,
                                    struct zt_error *error);

/* zTensor 1.x does not define the layouts gguf.<type>/1 but permits any name: finds the objects of
 * such a name that keep zTensor 2's rules for it, and sets their layout to ZT_LAYOUT_GGUF. The
 * others remain ZT_LAYOUT_OTHER, and so do objects whose length is known only after decoding. */
void zt_layout_find_blocks(struct zt_model *model);

#endif
