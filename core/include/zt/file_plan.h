/* File plans: where every byte of a new file will be, before any of them is written.
 *
 * A plan is a list of pieces in the order of the file: bytes that the format adds (heads, indexes,
 * footers) and whole components, with zeros between them. From a plan a file is written front to
 * back, or any range of it is served without writing it. */
#ifndef ZT_IMAGE_H
#define ZT_IMAGE_H

#include "zt/digest.h"
#include "zt/project.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* What identifies a component's decoded bytes. Some formats state it ahead of the data or in an
 * index. */
struct zt_fingerprint {
    uint64_t length;
    /* The first component, in the order of names, with the same bytes; often the component
     * itself. */
    uint32_t same_as;
    /* By the algorithm of zt_target_fingerprint. */
    struct zt_digest digest;
};

/* The digest that a target's plan needs of every component; false if it needs none. */
bool zt_target_fingerprint(enum zt_target target, enum zt_digest_algorithm *out_algorithm);

struct zt_piece {
    uint64_t offset;
    uint64_t length;
    /* Unless it is a component: where its bytes begin in zt_file_plan.added. */
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

/* Plans a file whose data is stored raw. fingerprints: one for each component of the outline, or
 * NULL if zt_target_fingerprint needs none. ZT_ARGUMENT for an unknown length, ZT_UNSUPPORTED if
 * the format cannot express the file (a header above 100 MB in safetensors), ZT_LIMIT past 2^63
 * bytes, ZT_NO_MEMORY. Freed with zt_file_plan_free. */
enum zt_status zt_file_plan_make(const struct zt_projection *projection,
                                 const struct zt_fingerprint *fingerprints,
                                 struct zt_file_plan **out_image, struct zt_error *error);

/* The first piece that ends after offset; piece_count if there is none. */
size_t zt_file_plan_find(const struct zt_file_plan *plan, uint64_t offset);

/* Reads decoded bytes of an outline's component. If several threads read the source, several call
 * this at once. */
struct zt_component_bytes {
    enum zt_status (*read)(void *context, uint32_t component, uint64_t offset, void *buffer,
                           size_t length, struct zt_error *error);
    void *context;
};

/* The planned file as a source that puts each range together when it is read. plan is borrowed, as
 * is the context of bytes, which is copied. ZT_NO_MEMORY. */
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
