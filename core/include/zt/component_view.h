/* Component views: random access to the bytes of a component of a new file, computed from a
 * component of the source.
 *
 * A view shows the source component's decoded bytes: all of them, cut to a slice, or with integers
 * or floats widened. It caches no data. */
#ifndef ZT_COMPONENT_VIEW_H
#define ZT_COMPONENT_VIEW_H

#include "zt/project.h"
#include "zt/slice.h"
#include "zt/widen.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* Elements become f32, or little-endian words of from_width bytes become unsigned words of to_width
 * bytes (to_width >= from_width). All zeros: bytes are left unchanged. */
struct zt_widening {
    const struct zt_widener *widener; /* to f32; NULL: not */
    uint64_t elements;                /* that it widens */
    uint8_t from_width;
    uint8_t to_width;
    bool is_signed;
};

/* The widening that makes component `to` out of component `from`, its origin (zt/project.h). */
struct zt_widening zt_widening_of(const struct zt_origin *origin, const struct zt_component *from,
                                  const struct zt_component *to);

/* Widens one word of from_width bytes to to_width bytes. False if the word is negative. */
bool zt_widen(const struct zt_widening *widening, const uint8_t *word, uint8_t *out_wide);

/* The widening of the elements of an object's only component, for choices with to_f32
 * (zt/select.h). All zeros if it cannot be widened, or is f32 already. */
struct zt_widening zt_widening_to_f32(const struct zt_model *model, const struct zt_object *object);

struct zt_component_view {
    struct zt_source *source;   /* borrowed */
    uint64_t base;              /* where the component's decoded bytes begin in source */
    const struct zt_slice *cut; /* NULL: all of it; of the widened elements if they become f32 */
    struct zt_widening widening;
};

/* Reads exactly length bytes at offset of the view. ZT_INVALID for a negative integer, which cannot
 * become unsigned; ZT_NO_MEMORY; or the source's status. Threads may share a view. */
enum zt_status zt_component_view_read(const struct zt_component_view *view, uint64_t offset,
                                      void *buffer, size_t length, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
