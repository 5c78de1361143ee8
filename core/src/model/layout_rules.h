/* Declarations that the checks of layouts share: the object under check, finding its parts,
 * comparing their sizes, and rejecting it. */
#ifndef ZT_MODEL_LAYOUT_RULES_H
#define ZT_MODEL_LAYOUT_RULES_H

#include "model/layout.h"

/* One object under check. */
struct zt_layout_case {
    const struct zt_model *model;
    const struct zt_object *object;
    /* The only part to check, which need not be in the model yet; NULL: check the whole object. */
    const struct zt_component *only;
    const uint64_t *shape;
    uint64_t elements;
    enum zt_layout_family family;
    struct zt_error *error;
};

/* Fails with the family's LayoutRule, at the offset of the component's or the object's name in the
 * manifest. component is NULL if the object as a whole is at fault. */
enum zt_status zt_layout_refuse(const struct zt_layout_case *check,
                                const struct zt_component *component, const char *message);

/* Fails with the family's LayoutRule (DenseSize for dense) unless the component's decoded length is
 * wanted_bytes. A component of unknown decoded length passes. */
enum zt_status zt_layout_expect_bytes(const struct zt_layout_case *check,
                                      const struct zt_component *component, uint64_t wanted_bytes);

/* Like zt_layout_expect_bytes, for a number of elements of the component's type. A component of
 * unknown type passes. */
enum zt_status zt_layout_expect_elements(const struct zt_layout_case *check,
                                         const struct zt_component *component, uint64_t elements);

/* Finds the parts that a layout requires, in the order of `names`. Rejects an object that lacks one
 * of them or, in zTensor 2, has additional parts. If only one part is checked, the others are
 * NULL. */
enum zt_status zt_layout_parts(const struct zt_layout_case *check, const char *const names[],
                               unsigned count, const struct zt_component *out_parts[]);

/* 1.x quantized_group */
enum zt_status zt_layout_check_quantized_group(const struct zt_layout_case *check);
/* zt.quant_group/1 */
enum zt_status zt_layout_check_quant_group(const struct zt_layout_case *check);
/* zt.mx/1 */
enum zt_status zt_layout_check_mx(const struct zt_layout_case *check);
/* gguf.<type>/1 */
enum zt_status zt_layout_check_gguf(const struct zt_layout_case *check);

#endif
