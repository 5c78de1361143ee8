/* Declarations shared by the three files that make projections: the part common to all targets
 * (project.c), the zTensor targets with all their layouts (project_zt.c), and the targets that hold
 * only dense tensors (project_dense.c). */
#ifndef ZT_WRITE_PROJECTING_H
#define ZT_WRITE_PROJECTING_H

#include <assert.h>

#include "base/memory.h"
#include "model/layout.h"
#include "zt/project.h"

struct zt_projecting {
    const struct zt_model *source;
    struct zt_projection *projection;
    /* The projection's model, which holds the counts; the arrays are as large as the source's. */
    struct zt_model *model;
    struct zt_object *objects;
    struct zt_component *components;
    uint64_t *dimensions;
    struct zt_arena *arena;
    /* The current object, in the source and in the target. */
    const struct zt_object *from;
    struct zt_object *object;
    struct zt_error *error;
};

/* Fails with ZT_UNSUPPORTED because the target cannot hold a component of the current object, or
 * the object itself (component is NULL). */
enum zt_status zt_project_fail(const struct zt_projecting *projecting,
                               const struct zt_component *component, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets the object's format. text is static or belongs to the source. */
void zt_project_set_format(struct zt_object *object, const char *text, size_t length);

void zt_project_set_type(struct zt_component *component, enum zt_dtype dtype,
                         enum zt_logical logical);

/* Encodes attributes for a zTensor target in the arena. levels: see zt_attributes_encode. */
enum zt_status zt_project_attributes(struct zt_projecting *projecting, struct zt_text map,
                                     unsigned levels, struct zt_text *out_map);

/* Copies bytes into the arena. */
enum zt_status zt_project_keep(struct zt_projecting *projecting, struct zt_text text,
                               struct zt_text *out_text);

/* The current object and its components start as copies of the source's, raw and with decoded
 * lengths. These functions adapt them to the target. */
enum zt_status zt_project_zt(struct zt_projecting *projecting);
enum zt_status zt_project_dense(struct zt_projecting *projecting);
/* These functions adapt the attributes of the model itself. */
enum zt_status zt_project_zt_model(struct zt_projecting *projecting);
enum zt_status zt_project_dense_model(struct zt_projecting *projecting);

static inline struct zt_component *zt_projecting_parts(const struct zt_projecting *projecting)
{
    return projecting->components + projecting->object->first_component;
}

static inline struct zt_origin *zt_projecting_origin(const struct zt_projecting *projecting,
                                                     const struct zt_component *part)
{
    assert(part >= projecting->components &&
           part < projecting->components + projecting->source->component_count);
    return projecting->projection->origins + (part - projecting->components);
}

#endif
