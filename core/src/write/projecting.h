/* A projection being made, in three files: what all targets share (project.c), the zTensor targets
 * with all their layouts (project_zt.c), and the targets of dense tensors only
 * (project_dense.c). */
#ifndef ZT_WRITE_PROJECTING_H
#define ZT_WRITE_PROJECTING_H

#include <assert.h>

#include "base/memory.h"
#include "model/layout.h"
#include "zt/project.h"

struct zt_projecting {
    const struct zt_model *source;
    struct zt_projection *projection;
    /* Of the projection, which counts them; the arrays are as large as the source's. */
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

/* ZT_UNSUPPORTED: the target cannot hold the current object, or one component of it (NULL: the
 * object itself). */
enum zt_status zt_project_fail(const struct zt_projecting *projecting,
                               const struct zt_component *component, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets the object's format: static text, or the source's. */
void zt_project_set_format(struct zt_object *object, const char *text, size_t length);

void zt_project_set_type(struct zt_component *component, enum zt_dtype dtype,
                         enum zt_logical logical);

/* Encodes attributes for a zTensor target into the arena. levels: zt_attributes_encode. */
enum zt_status zt_project_attributes(struct zt_projecting *projecting, struct zt_text map,
                                     unsigned levels, struct zt_text *out_map);

/* Copies bytes into the arena. */
enum zt_status zt_project_keep(struct zt_projecting *projecting, struct zt_text text,
                               struct zt_text *out_text);

/* The current object and its components are copies of the source's, raw, with decoded lengths;
 * these make them the target's. */
enum zt_status zt_project_zt(struct zt_projecting *projecting);
enum zt_status zt_project_dense(struct zt_projecting *projecting);
/* The same for the model's own attributes. */
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
