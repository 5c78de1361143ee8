/* Selecting: a model of some of another's objects, whole, or each cut to one of N equal parts along
 * an axis.
 *
 * The result is a model like any other and can be projected and converted. Its whole components lie
 * where the source has them, and so do parts that are one run of a plain component. Other parts lie
 * in a file that does not exist: `cuts` plans it, and zt_file_plan_source makes a source of it for
 * a caller who can read parts (zt/component_view.h). */
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
    /* For each object of the source, whether it is wanted. NULL: all are. */
    const bool *objects;
    /* NULL: whole objects. */
    const struct zt_cut *cut;
};

struct zt_selection {
    /* Borrows the source's texts; the source must outlive it. A component's shard is the number of
     * its file as the source counts them; the source's shard_count + 1 is the file of cuts.
     * Components that are cut are raw and state no digest. */
    struct zt_model *model;
    /* For each of the model's components and objects, its index in the source. */
    uint32_t *components;
    uint32_t *objects;
    /* The file of cuts; its pieces are components of the model. */
    struct zt_file_plan cuts;
};

/* *out_verdict is always set: to other than ZT_SLICE_FITS, with ZT_ARGUMENT returned, if an object
 * cannot be cut that way. ZT_UNSUPPORTED if an object to be cut is not dense or has elements of
 * unknown size. Both name the object. ZT_LIMIT for cuts of more than 2^63 bytes; ZT_NO_MEMORY. */
enum zt_status zt_model_select(const struct zt_model *source, const struct zt_choice *choice,
                               struct zt_selection *out_selection,
                               enum zt_slice_verdict *out_verdict, struct zt_error *error);

/* The part that a cut leaves of an object that zt_model_select could cut. */
void zt_object_cut(const struct zt_model *model, const struct zt_object *object,
                   const struct zt_cut *cut, struct zt_slice *out_slice);

/* Frees what it holds; a cleared one holds nothing. */
void zt_selection_free(struct zt_selection *selection);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
