/* Component views: the bytes of one component of a new file, read from any position of a component
 * of another.
 *
 * They are that component's decoded bytes: all of them, cut to a slice, or with integers widened.
 * Nothing is held in memory. */
#ifndef ZT_COMPONENT_VIEW_H
#define ZT_COMPONENT_VIEW_H

#include "zt/project.h"
#include "zt/slice.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* Little-endian words of from_width bytes become unsigned ones of to_width, which is not less; both
 * 0: bytes stay as they are. */
struct zt_widening {
    uint8_t from_width;
    uint8_t to_width;
    bool is_signed;
};

/* How a change (zt/project.h) of one component into another is made. */
struct zt_widening zt_widening_of(enum zt_change change, const struct zt_component *from,
                                  const struct zt_component *to);

/* Widens one word. False if it is negative. */
bool zt_widen(const struct zt_widening *widening, const uint8_t *word, uint8_t *out_wide);

struct zt_component_view {
    struct zt_source *source;   /* borrowed */
    uint64_t base;              /* where the component's decoded bytes begin in it */
    const struct zt_slice *cut; /* NULL: all of it */
    struct zt_widening widening;
};

/* Reads exactly length bytes at offset of the view. ZT_INVALID for a negative integer, which cannot
 * become unsigned; what the source returns; ZT_NO_MEMORY. Threads may share a view. */
enum zt_status zt_component_view_read(const struct zt_component_view *view, uint64_t offset,
                                      void *buffer, size_t length, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
