/* File plans: where every byte of a new file will be, before any of them is written.
 *
 * A plan is a list of pieces in file order: bytes that the format adds (heads, indexes, footers)
 * and whole components, with zeros between them. With a plan, a file can be written front to back,
 * or any range of it can be served without writing the file. */
#ifndef ZT_FILE_PLAN_H
#define ZT_FILE_PLAN_H

#include "zt/digest.h"
#include "zt/project.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* The length and digest of a component's decoded bytes, which some formats state ahead of the data
 * or in an index. */
struct zt_fingerprint {
    uint64_t length;
    /* The first component, in the order of names, with the same bytes; usually the component
     * itself. */
    uint32_t same_as;
    /* The algorithm is zt_target_fingerprint. */
    struct zt_digest digest;
};

/* The digest algorithm of the fingerprints that a target's plan needs; false if it needs none. */
bool zt_target_fingerprint(enum zt_target target, enum zt_digest_algorithm *out_algorithm);

struct zt_piece {
    uint64_t offset;
    uint64_t length;
    /* For bytes that the format adds: their position in zt_file_plan.added. */
    uint64_t added_at;
    uint32_t component; /* index into the components of the model that is written */
    bool is_component;
};

struct zt_file_plan {
    struct zt_piece *pieces; /* in file order; disjoint and not empty */
    size_t piece_count;
    uint8_t *added;
    uint64_t length; /* of the whole file */
};

/* Plans a file whose data is stored raw. fingerprints has one entry for each component of
 * projection->model; it may be NULL if zt_target_fingerprint is false. ZT_ARGUMENT if fingerprints
 * are missing or a length is unknown; ZT_UNSUPPORTED if the format cannot express the file (a
 * safetensors header above 100 MB); ZT_LIMIT for a file of 2^63 bytes or more; ZT_NO_MEMORY. Freed
 * with zt_file_plan_free. */
enum zt_status zt_file_plan_make(const struct zt_projection *projection,
                                 const struct zt_fingerprint *fingerprints,
                                 struct zt_file_plan **out_plan, struct zt_error *error);

/* Index of the first piece that ends after offset; piece_count if there is none. */
size_t zt_file_plan_find(const struct zt_file_plan *plan, uint64_t offset);

/* Reads decoded bytes of a component of the model that is written. Must be thread-safe if several
 * threads read the source. */
struct zt_component_bytes {
    enum zt_status (*read)(void *context, uint32_t component, uint64_t offset, void *buffer,
                           size_t length, struct zt_error *error);
    void *context;
};

/* The planned file as a source, which assembles each range when it is read. plan is borrowed;
 * *bytes is copied and its context borrowed. ZT_NO_MEMORY. */
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
