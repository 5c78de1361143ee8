/* The writers: one file a target. Each says which types it has and lays out a file; those that can
 * do without knowing lengths ahead also write as they go (write/container_stream.h). */
#ifndef ZT_WRITE_FORMATS_H
#define ZT_WRITE_FORMATS_H

#include "cbor/cbor_write.h"
#include "zt/file_plan.h"

/* --- types; NULL or -1 where the format has none for it --- */

const char *safetensors_type(const struct zt_component *component);
/* "<f4" */
const char *npy_type(const struct zt_component *component);
int mag_type(const struct zt_component *component);

/* --- laying out --- */

struct zt_planning {
    const struct zt_projection *projection;
    const struct zt_fingerprint *fingerprints;
    struct zt_file_plan *plan;
    size_t piece_capacity;
    struct zt_buffer added;
    struct zt_error *error;
};

/* Adds bytes of the format's own at offset, which is not before the end of what was added so far.
 */
enum zt_status zt_planning_add(struct zt_planning *planning, uint64_t offset, const void *bytes,
                               size_t length);
/* Adds a whole component. */
enum zt_status zt_planning_component(struct zt_planning *planning, uint64_t offset,
                                     uint32_t component);
/* ZT_ARGUMENT (a length that is not known) or ZT_LIMIT (a file past 2^63 bytes), naming the
 * component. */
enum zt_status zt_planning_place(struct zt_planning *planning, uint64_t *offset, uint32_t component,
                                 uint64_t alignment);

enum zt_status zt_write_no_memory(struct zt_error *error);

enum zt_status zt1_plan(struct zt_planning *planning);
enum zt_status zt2_plan(struct zt_planning *planning);
enum zt_status mag_plan(struct zt_planning *planning);
enum zt_status safetensors_plan(struct zt_planning *planning);
enum zt_status npz_plan(struct zt_planning *planning);
enum zt_status npy_plan(struct zt_planning *planning);

/* An NPY head of version 1 for a dense object; a multiple of 64 bytes. */
void npy_put_head(const struct zt_model *outline, const struct zt_object *object,
                  struct zt_buffer *buffer);

/* --- numbers, little-endian --- */

void zt_put_le16(struct zt_buffer *buffer, uint16_t value);
void zt_put_le32(struct zt_buffer *buffer, uint32_t value);
void zt_put_le64(struct zt_buffer *buffer, uint64_t value);

/* The next multiple of alignment, a power of two; the caller's offsets stay far from 2^64. */
static inline uint64_t zt_align(uint64_t offset, uint64_t alignment)
{
    return (offset + alignment - 1) / alignment * alignment;
}

#endif
