/* Planning files. Each target has a separate source file, which defines the format's types and the
 * layout of its files. zTensor, whose writer need not know lengths in advance, is also written as a
 * stream (write/container_stream.h). */
#ifndef ZT_WRITE_PLANNING_H
#define ZT_WRITE_PLANNING_H

#include "cbor/cbor_write.h"
#include "zt/file_plan.h"

/* --- a component's type in the format; NULL or -1 if it has none --- */

const char *safetensors_type(const struct zt_component *component);
/* A name such as "<f4". */
const char *npy_type(const struct zt_component *component);
int mag_type(const struct zt_component *component);

/* --- laying out --- */

struct zt_planning {
    const struct zt_projection *projection;
    const struct zt_fingerprint *fingerprints;
    struct zt_file_plan *plan; /* plan->added is set at the end */
    size_t piece_capacity;
    struct zt_buffer added;
    struct zt_error *error;
};

/* Adds bytes of the format itself at offset, which is at or after the end of the plan so far.
 * ZT_NO_MEMORY, also if building the bytes failed earlier; ZT_LIMIT for a file of 2^63 bytes or
 * more. */
enum zt_status zt_planning_add(struct zt_planning *planning, uint64_t offset,
                               const struct zt_buffer *bytes);
/* Adds a whole component at offset. ZT_NO_MEMORY; ZT_LIMIT for a file of 2^63 bytes or more. Both
 * name the component. */
enum zt_status zt_planning_component(struct zt_planning *planning, uint64_t offset,
                                     uint32_t component);
/* Aligns *offset for a component and checks that the component fits there. ZT_ARGUMENT for an
 * unknown length, ZT_LIMIT for a file of 2^63 bytes or more; both name the component. */
enum zt_status zt_planning_place(struct zt_planning *planning, uint64_t *offset, uint32_t component,
                                 uint64_t alignment);

enum zt_status zt1_plan(struct zt_planning *planning);
enum zt_status zt2_plan(struct zt_planning *planning);
enum zt_status mag_plan(struct zt_planning *planning);
enum zt_status safetensors_plan(struct zt_planning *planning);
enum zt_status npz_plan(struct zt_planning *planning);
enum zt_status npy_plan(struct zt_planning *planning);

/* Appends an NPY header of version 1 for a dense object; its length is a multiple of 64 bytes. */
void npy_put_head(const struct zt_model *outline, const struct zt_object *object,
                  struct zt_buffer *buffer);

/* Rounds offset up to a multiple of alignment. Offsets are below 2^63, so the sum does not
 * overflow. */
static inline uint64_t zt_align(uint64_t offset, uint64_t alignment)
{
    return (offset + alignment - 1) / alignment * alignment;
}

#endif
