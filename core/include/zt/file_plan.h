/* File plans: where every byte of a file to be will lie, before any of them is written.
 *
 * A plan is a list of pieces in the order of the file: bytes that the format adds (heads,
 * indexes, footers), and whole components. Between two pieces there are zeros. A file can be
 * written from its plan from front to back, or any range of it be served without writing it at
 * all. */
#ifndef ZT_IMAGE_H
#define ZT_IMAGE_H

#include "zt/digest.h"
#include "zt/project.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* What some formats state about a component's decoded bytes ahead of them or in their index. */
struct zt_fingerprint {
    uint64_t length;
    /* The component whose bytes these are, too: its own index where it is the first in the order of
     * names. */
    uint32_t same_as;
    /* By the algorithm that zt_target_fingerprint gives. */
    struct zt_digest digest;
};

/* The digest that a target's plan needs of every component; false when it needs none. */
bool zt_target_fingerprint(enum zt_target target, enum zt_digest_algorithm *out_algorithm);

struct zt_piece {
    uint64_t offset;
    uint64_t length;
    /* Where its bytes begin in zt_file_plan.added, unless it is a component. */
    uint64_t added_at;
    uint32_t component; /* index into the outline's components */
    bool is_component;
};

struct zt_file_plan {
    struct zt_piece *pieces; /* in the order of the file; none overlaps another, none is empty */
    size_t piece_count;
    uint8_t *added;
    uint64_t length; /* of the whole file */
};

/* Lays a file out. fingerprints, one for each component of the outline, may be NULL where zt_target_fingerprint
 * needs none. Data is stored raw. ZT_ARGUMENT when a length is not known, ZT_UNSUPPORTED when the
 * format cannot express so much (a header of more than 100 MB in safetensors), ZT_LIMIT past 2^63
 * bytes, ZT_NO_MEMORY. Freed with zt_file_plan_free. */
enum zt_status zt_file_plan_make(const struct zt_projection *projection,
                                 const struct zt_fingerprint *fingerprints,
                                 struct zt_file_plan **out_image, struct zt_error *error);

/* The first piece that ends after offset; piece_count when there is none. */
size_t zt_file_plan_find(const struct zt_file_plan *plan, uint64_t offset);

/* Reads bytes of an outline's component, as the file is to have them. From several threads, if the
 * source is read so. */
struct zt_component_bytes {
    enum zt_status (*read)(void *context, uint32_t component, uint64_t offset, void *buffer,
                           size_t length, struct zt_error *error);
    void *context;
};

/* The file that a plan is of, as a source: read from any position, never held. The plan is
 * borrowed, as is the context of bytes, which is copied. ZT_NO_MEMORY. */
enum zt_status zt_file_plan_source(const struct zt_file_plan *plan,
                                   const struct zt_component_bytes *bytes,
                                   struct zt_source **out_source, struct zt_error *error);

/* Takes NULL. */
void zt_file_plan_free(struct zt_file_plan *plan);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
