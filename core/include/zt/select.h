/* Selecting: making a model of some objects of another model, each whole or cut to one of N equal
 * parts along an axis.
 *
 * The result is a model like any other and can be projected and converted. Whole components stay
 * where they are in the source's files, and so do parts that are one run of a plain component. All
 * other parts are placed in a virtual file, which `cuts` plans: zt_file_plan_source turns that plan
 * into a source, reading the parts through the caller (zt/component_view.h). */
#ifndef ZT_SELECT_H
#define ZT_SELECT_H

#include "zt/file_plan.h"
#include "zt/slice.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct zt_cut {
    uint64_t part; /* less than parts */
    uint64_t parts;
    int64_t axis; /* negative: from the end */
};

/* In place of an axis: the object stays whole. */
#define ZT_AXIS_NONE INT64_MIN

struct zt_choice {
    /* For each object of the source, whether it is selected. NULL: all are. */
    const bool *objects;
    /* NULL: whole objects. */
    const struct zt_cut *cut;
    /* With a cut, for each object of the source, the axis in place of cut->axis, or ZT_AXIS_NONE.
     * NULL: cut->axis for all. */
    const int64_t *axes;
    /* Objects that are cut and can be widened (zt/widen.h) become f32 first, since blocks cannot be
     * cut. Whole objects are unchanged, for zt_model_project_widened. */
    bool to_f32;
};

struct zt_selection {
    /* Borrows the source's texts, so the source must outlive it. zt_component.shard counts files as
     * in the source; the source's shard_count + 1 means the file of cuts. Components that are cut
     * are raw and state no digest. */
    struct zt_model *model;
    /* For each component and object of the model, its index in the source. */
    uint32_t *components;
    uint32_t *objects;
    /* The file of cuts; its pieces are components of the model. */
    struct zt_file_plan cuts;
};

/* Makes the selection. ZT_ARGUMENT if the cut does not fit an object's shape: *out_verdict then
 * says why; in all other cases it is set to ZT_SLICE_FITS. ZT_UNSUPPORTED if an object to be cut is
 * not dense or has elements of unknown size. Both errors name the object. ZT_LIMIT for a file of
 * cuts of 2^63 bytes or more; ZT_NO_MEMORY. Freed with zt_selection_free. */
enum zt_status zt_model_select(const struct zt_model *source, const struct zt_choice *choice,
                               struct zt_selection *out_selection,
                               enum zt_slice_verdict *out_verdict, struct zt_error *error);

/* The slice that a cut makes of an object. zt_model_select must have accepted the cut, with the
 * same to_f32: of an object that became f32, the slice is one of its widened elements. */
void zt_object_cut(const struct zt_model *model, const struct zt_object *object,
                   const struct zt_cut *cut, bool to_f32, struct zt_slice *out_slice);

/* Frees what the selection holds, not the structure; a zeroed selection is allowed. */
void zt_selection_free(struct zt_selection *selection);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
