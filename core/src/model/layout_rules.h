/* What the layout checks share: the object at hand, ways to find its parts, and ways to refuse it.
 */
#ifndef ZT_MODEL_LAYOUT_RULES_H
#define ZT_MODEL_LAYOUT_RULES_H

#include "model/layout.h"

/* One object under check. */
struct zt_layout_case {
    const struct zt_model *model;
    const struct zt_object *object;
    const uint64_t *shape;
    uint64_t elements;
    enum zt_layout_family family;
    struct zt_error *error;
};

/* Refuses by the family's LayoutRule. component is NULL where the object as a whole is at fault.
 * The offset told is that of the component's or object's name in the manifest. */
enum zt_status zt_layout_refuse(const struct zt_layout_case *check,
                                const struct zt_component *component, const char *message);

/* Refuses by the family's LayoutRule (by DenseSize for dense) unless the component's decoded bytes
 * are wanted_bytes; a component whose decoded length is not known passes. */
enum zt_status zt_layout_expect_bytes(const struct zt_layout_case *check,
                                      const struct zt_component *component, uint64_t wanted_bytes);

/* The same for a count of elements of the component's own type. A type that is not known has no
 * size: it passes. */
enum zt_status zt_layout_expect_elements(const struct zt_layout_case *check,
                                         const struct zt_component *component, uint64_t elements);

/* Finds the parts that a layout names, in the order of names. Refuses an object that lacks one; and
 * in zTensor 2, where a layout says exactly what there is, one that has others. */
enum zt_status zt_layout_parts(const struct zt_layout_case *check, const char *const names[],
                               unsigned count, const struct zt_component *out_parts[]);

/* Whether a part is of a type that indices, row pointers and coordinates may have. */
bool zt_layout_can_index(const struct zt_layout_case *check, const struct zt_component *component);

/* NULL when the object has no such part. */
const struct zt_component *zt_layout_part(const struct zt_layout_case *check, const char *name);

enum zt_status zt_layout_check_quantized(
    const struct zt_layout_case *check);                                  /* 1.x quantized_group */
enum zt_status zt_layout_check_quant(const struct zt_layout_case *check); /* zt.quant_group/1 */
enum zt_status zt_layout_check_mx(const struct zt_layout_case *check);    /* zt.mx/1 */
enum zt_status zt_layout_check_gguf(const struct zt_layout_case *check);  /* gguf.<type>/1 */

#endif
