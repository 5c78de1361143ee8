/* Parts: the bytes of one component of a file to be, read from any position.
 *
 * They are a component's decoded bytes, as they are, cut to a slice, or with integers made wider;
 * nothing of it is held in memory. */
#ifndef ZT_PART_H
#define ZT_PART_H

#include "zt/project.h"
#include "zt/slice.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct zt_component_view {
    /* Borrowed; the component's decoded bytes begin at base. */
    struct zt_source *source;
    uint64_t base;
    /* NULL: all of it. */
    const struct zt_slice *cut;
    /* Both 0 where the bytes stay as they are; else little-endian words of from_width bytes become
     * unsigned ones of to_width, which is not less. */
    uint8_t from_width;
    uint8_t to_width;
    bool is_signed;
};

/* How the change of an origin (zt/project.h) is made: sets the widths, and whether they are signed.
 */
void zt_component_view_set_change(struct zt_component_view *part, enum zt_change change,
                                  const struct zt_component *from, const struct zt_component *to);

/* Reads exactly length bytes at offset of the part. ZT_INVALID for a negative integer that is to
 * become unsigned; what the source gives back; ZT_NO_MEMORY. May be called from several threads at
 * once. */
enum zt_status zt_component_view_read(const struct zt_component_view *part, uint64_t offset,
                                      void *buffer, size_t length, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
