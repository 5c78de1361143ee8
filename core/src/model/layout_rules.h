/* What the checks of the layouts share: the object under check, how to find its parts and compare
 * their sizes, and how to refuse it. */
#ifndef ZT_MODEL_LAYOUT_RULES_H
#define ZT_MODEL_LAYOUT_RULES_H

#include "model/layout.h"

/* One object under check. */
struct zt_layout_case {
    const struct zt_model *model;
    const struct zt_object *object;
    /* The one part to check, which need not be in the model yet; NULL: check the whole object. */
    const struct zt_component *only;
    const uint64_t *shape;
    uint64_t elements;
    enum zt_layout_family family;
    struct zt_error *error;
};

/* Refuses by the family's LayoutRule. component is NULL if the object as a whole is at fault. The
 * offset is that of the component's or the object's name in the manifest. */
enum zt_status zt_layout_refuse(const struct zt_layout_case *check,
                                const struct zt_component *component, const char *message);

/* Refuses by the family's LayoutRule (DenseSize for dense) unless the component has wanted_bytes
 * when decoded. A component of unknown decoded length passes. */
enum zt_status zt_layout_expect_bytes(const struct zt_layout_case *check,
                                      const struct zt_component *component, uint64_t wanted_bytes);

/* The same for a count of elements of the component's own type. An unknown type has no size, so it
 * passes. */
enum zt_status zt_layout_expect_elements(const struct zt_layout_case *check,
                                         const struct zt_component *component, uint64_t elements);

/* Finds the parts that a layout names, in the order of names. Refuses an object that lacks one and,
 * in zTensor 2, one that has others. If one part is checked alone, the others are NULL. */
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
