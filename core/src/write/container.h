/* How the two versions of zTensor put data and manifest into a file, and an outline whose
 * components have places and digests: what their manifests are encoded from. */
#ifndef ZT_WRITE_CONTAINER_H
#define ZT_WRITE_CONTAINER_H

#include "model/layout.h"
#include "write/planning.h"

struct zt_placed {
    struct zt_model model; /* the outline's, except for the components */
    struct zt_component *components;
    char *digests; /* room for one text each */
};

enum zt_status zt_placed_init(struct zt_placed *placed, const struct zt_model *outline,
                              struct zt_error *error);
void zt_placed_set_digest(struct zt_placed *placed, uint32_t component,
                          const struct zt_digest *digest);
void zt_placed_free(struct zt_placed *placed);

/* How a version of zTensor lies in a file. */
struct zt_container {
    uint8_t magic[8];
    uint64_t data_alignment;
    uint64_t manifest_alignment;
    enum zt_digest_algorithm digest;
    bool digest_covers_stored;
    /* Of compressed components. */
    enum zt_encoding encoding;
    const char *encoding_name;
    enum zt_layout_family layouts;
    /* Plans one component: its place and digest; moves *offset past it. */
    enum zt_status (*place)(struct zt_planning *planning, struct zt_placed *placed,
                            uint32_t component, uint64_t *offset);
    /* Appends manifest and footer, which will stand at offset. */
    enum zt_status (*put_end)(const struct zt_model *model, uint64_t offset,
                              struct zt_buffer *buffer, struct zt_error *error);
};

/* Of a zTensor target. */
const struct zt_container *zt_container_of(enum zt_target target);

/* Plans a whole file: magic, components in order, manifest and footer. */
enum zt_status zt_container_plan(const struct zt_container *container,
                                 struct zt_planning *planning);

extern const struct zt_container zt1_container;
extern const struct zt_container zt2_container;

/* ZT_UNSUPPORTED for more than the 1 GiB that readers accept. */
enum zt_status zt_check_manifest_length(uint64_t length, struct zt_error *error);

#endif
