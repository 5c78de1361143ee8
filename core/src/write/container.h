/* How the two versions of zTensor lay out data and manifest in a file, and the projected model with
 * the places and digests of its components, from which the manifest is encoded. */
#ifndef ZT_WRITE_CONTAINER_H
#define ZT_WRITE_CONTAINER_H

#include "model/layout.h"
#include "write/planning.h"

struct zt_placed {
    struct zt_model model; /* the projection's model, with components of its own */
    struct zt_component *components;
    char *digests; /* room for one text for each component */
};

enum zt_status zt_placed_init(struct zt_placed *placed, const struct zt_model *outline,
                              struct zt_error *error);
void zt_placed_set_digest(struct zt_placed *placed, uint32_t component,
                          const struct zt_digest *digest);
void zt_placed_free(struct zt_placed *placed);

/* The file layout of a version of zTensor. */
struct zt_container {
    uint8_t magic[8];
    uint64_t data_alignment;
    uint64_t manifest_alignment;
    enum zt_digest_algorithm digest;
    bool digest_covers_stored;
    /* The encoding of compressed components. */
    enum zt_encoding encoding;
    const char *encoding_name;
    enum zt_layout_family layouts;
    /* Sets the place and digest of one component, and moves *offset past it. */
    enum zt_status (*place)(struct zt_planning *planning, struct zt_placed *placed,
                            uint32_t component, uint64_t *offset);
    /* Appends manifest and footer, which will be written at offset. */
    enum zt_status (*put_end)(const struct zt_model *model, uint64_t offset,
                              struct zt_buffer *buffer, struct zt_error *error);
};

/* The layout of a zTensor target. */
const struct zt_container *zt_container_of(enum zt_target target);

/* Plans a whole file: magic, components in order, manifest and footer. */
enum zt_status zt_container_plan(const struct zt_container *container,
                                 struct zt_planning *planning);

extern const struct zt_container zt1_container;
extern const struct zt_container zt2_container;

/* ZT_UNSUPPORTED for a manifest above 1 GiB, which readers would reject. */
enum zt_status zt_check_manifest_length(uint64_t length, struct zt_error *error);

#endif
