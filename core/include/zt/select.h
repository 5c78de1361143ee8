/* Selecting: a model of some of another's objects, whole, or each cut to one of N equal parts along
 * an axis.
 *
 * What comes out is a model as any other, which can be projected and converted. Its whole
 * components lie where the source has them; so do parts that are one run of a plain component.
 * Other parts lie in a file that does not exist: `cuts` says where, and zt_file_plan_source makes a
 * source of it once somebody can read parts (zt/component_view.h). */
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

struct zt_choice {
    /* One for each object of the source: whether it is wanted. NULL: all are. */
    const bool *objects;
    /* NULL: whole objects. */
    const struct zt_cut *cut;
};

struct zt_selection {
    /* Texts are the source's, which must outlive it. A component's shard is the number of its file
     * as the source counts them; shard_count + 1 of the source is the file of cuts. Components that
     * are cut state no digest and are raw. */
    struct zt_model *model;
    /* Of each of the model's components and objects: its index in the source. */
    uint32_t *components;
    uint32_t *objects;
    /* The file of cuts; its pieces are components of the model. */
    struct zt_file_plan cuts;
};

/* *out_verdict is set always: other than ZT_SLICE_FITS when an object cannot be cut so, and
 * ZT_ARGUMENT is given then. ZT_UNSUPPORTED: an object that is to be cut is not dense, or of a type
 * of which nobody knows the size. Both name the object. ZT_LIMIT for cuts of more than 2^63 bytes;
 * ZT_NO_MEMORY. */
enum zt_status zt_model_select(const struct zt_model *source, const struct zt_choice *choice,
                               struct zt_selection *out_selection,
                               enum zt_slice_verdict *out_verdict, struct zt_error *error);

/* The part that a cut leaves of an object that can be cut: one that zt_model_select has let
 * through. */
void zt_object_cut(const struct zt_model *model, const struct zt_object *object,
                   const struct zt_cut *cut, struct zt_slice *out_slice);

/* Frees what it holds. Cleared ones are fine. */
void zt_selection_free(struct zt_selection *selection);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
