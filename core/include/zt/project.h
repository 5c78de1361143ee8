/* Projecting: describing a model in the terms of another format.
 *
 * A projection describes the new file: names, shapes, layouts, types and attributes as the target
 * writes them, and for each component the component of the source that supplies its bytes.
 * Projecting reads only the source's model, not its data. Models that the target cannot hold are
 * rejected (docs/converting.md lists the mappings). */
#ifndef ZT_PROJECT_H
#define ZT_PROJECT_H

#include "zt/model.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* The formats that can be written. */
enum zt_target {
    /* zTensor 1.2. */
    ZT_TARGET_ZT1,
    /* zTensor 2 in canonical form, and without the canonical rules on names, sharing and
     * encodings. */
    ZT_TARGET_ZT2_CANONICAL,
    ZT_TARGET_ZT2,
    /* .mag as its specification lays it out. */
    ZT_TARGET_MAG,
    ZT_TARGET_SAFETENSORS,
    ZT_TARGET_NPZ,
    /* One dense object. */
    ZT_TARGET_NPY
};

enum zt_change {
    ZT_CHANGE_NONE,
    /* Integers of the source's dtype become unsigned integers of the target's dtype. A negative one
     * makes the conversion fail when it is read. */
    ZT_CHANGE_INDEX,
    /* Elements become f32 (zt/widen.h). */
    ZT_CHANGE_FLOAT
};

struct zt_widener;

/* Where the bytes of a component come from. */
struct zt_origin {
    uint32_t component; /* index into the source's components */
    uint8_t change;     /* enum zt_change */
    /* Of ZT_CHANGE_FLOAT, else NULL. */
    const struct zt_widener *widener;
};

/* An attribute that the target has no place for. */
struct zt_left_out {
    struct zt_text object; /* its object's name; bytes is NULL for attributes of the model */
    struct zt_text name;
};

/* A projection names at most this many. */
#define ZT_LEFT_OUT_NAMED 64

struct zt_projection {
    enum zt_target target;
    bool is_widened; /* by zt_model_project_widened */
    /* All components are raw. Lengths are decoded lengths, or ZT_LENGTH_UNKNOWN if the source does
     * not state them; offsets and digests are not set. Objects and components are sorted as in
     * every model, but an object's components need not follow those of the previous object. */
    struct zt_model *model;
    struct zt_origin *origins; /* one for each of model->components */
    /* Number of attributes that were left out because the target has no place for them. */
    uint64_t left_out;
    /* The first of them, except those whose keys are not text. */
    struct zt_left_out named[ZT_LEFT_OUT_NAMED];
    uint32_t named_count;
};

/* Projects a model, which must outlive the projection because its texts are borrowed.
 * ZT_UNSUPPORTED names the object and component that the target cannot hold and says why;
 * ZT_NO_MEMORY. Freed with zt_projection_free. */
enum zt_status zt_model_project(const struct zt_model *source, enum zt_target target,
                                struct zt_projection **out_projection, struct zt_error *error);

/* The same with every tensor that can be widened exactly (zt/widen.h) as dense f32; all others are
 * projected unchanged. */
enum zt_status zt_model_project_widened(const struct zt_model *source, enum zt_target target,
                                        struct zt_projection **out_projection,
                                        struct zt_error *error);

/* Takes NULL. */
void zt_projection_free(struct zt_projection *projection);

/* A target's name for messages, such as "zTensor 1.2". Static text. */
const char *zt_target_name(enum zt_target target);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
