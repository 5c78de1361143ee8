/* What becomes of an object whose elements are widened to f32 (zt/widen.h). */
#ifndef ZT_WRITE_WIDENING_H
#define ZT_WRITE_WIDENING_H

#include "base/memory.h"
#include "zt/model.h"
#include "zt/widen.h"

/* The widener of an object that consists of one tensor; NULL if it cannot be widened, or is f32
 * already. */
const struct zt_widener *zt_object_widener(const struct zt_model *model,
                                           const struct zt_object *object);

/* Describes an object and its component, which are copies of the source's, as dense f32. Attributes
 * that describe blocks are dropped; arena holds the others. ZT_LIMIT if the length does not fit in
 * 64 bits; ZT_NO_MEMORY. */
enum zt_status zt_object_widen(uint64_t elements, struct zt_object *object,
                               struct zt_component *data, struct zt_arena *arena,
                               struct zt_error *error);

#endif
