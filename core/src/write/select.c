/* Selecting: objects and components are copied in order, so they stay sorted. An object that is cut
 * gets the shape, length and place of its part. */
#include "zt/select.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_build.h"
#include "write/widening.h"
#include "zt/decode.h"

struct selecting {
    const struct zt_model *source;
    const struct zt_choice *choice;
    struct zt_selection *selection;
    struct zt_object *objects;
    struct zt_component *components;
    uint64_t *dimensions;
    uint32_t dimension_count;
    enum zt_slice_verdict *verdict;
    struct zt_error *error;
};

/* --- counting and allocating --- */

static bool is_chosen(const struct zt_choice *choice, uint32_t object)
{
    return choice->objects == NULL || choice->objects[object];
}

static void count_chosen(const struct selecting *selecting, size_t *out_objects,
                         size_t *out_components, size_t *out_dimensions)
{
    const struct zt_model *source = selecting->source;

    *out_objects = *out_components = *out_dimensions = 0;
    for (uint32_t i = 0; i < source->object_count; i++) {
        if (!is_chosen(selecting->choice, i))
            continue;
        *out_objects += 1;
        *out_components += source->objects[i].component_count;
        *out_dimensions += source->objects[i].rank;
    }
}

static enum zt_status allocate(struct selecting *selecting)
{
    struct zt_selection *selection = selecting->selection;
    struct zt_model *model = calloc(1, sizeof(*model));
    size_t objects;
    size_t components;
    size_t dimensions;

    assert(selection->model == NULL);
    if (model == NULL)
        return zt_fail_memory(selecting->error, "a selection");
    selection->model = model;
    count_chosen(selecting, &objects, &components, &dimensions);
    selecting->objects = calloc(objects + 1, sizeof(*selecting->objects));
    selecting->components = calloc(components + 1, sizeof(*selecting->components));
    selecting->dimensions = calloc(dimensions + 1, sizeof(*selecting->dimensions));
    model->objects = selecting->objects;
    model->components = selecting->components;
    model->dimensions = selecting->dimensions;
    selection->components = calloc(components + 1, sizeof(*selection->components));
    selection->objects = calloc(objects + 1, sizeof(*selection->objects));
    if (selecting->choice->cut != NULL)
        selection->cuts.pieces = calloc(objects + 1, sizeof(*selection->cuts.pieces));
    model->storage = calloc(1, sizeof(*model->storage));
    if (model->storage != NULL)
        zt_arena_init(&model->storage->arena, SIZE_MAX / 2);
    if (model->storage == NULL || model->objects == NULL || model->components == NULL ||
        model->dimensions == NULL || selection->components == NULL || selection->objects == NULL ||
        (selecting->choice->cut != NULL && selection->cuts.pieces == NULL))
        return zt_fail_memory(selecting->error, "a selection");
    return ZT_OK;
}

/* --- cutting --- */

static struct zt_slice_tensor tensor_of(const struct zt_model *model,
                                        const struct zt_object *object, bool to_f32)
{
    const struct zt_component *data = zt_object_components(model, object);

    if (to_f32 && zt_object_widener(model, object) != NULL)
        return (struct zt_slice_tensor){zt_object_shape(model, object), object->rank, ZT_F32,
                                        ZT_LOGICAL_NONE};
    return (struct zt_slice_tensor){zt_object_shape(model, object), object->rank,
                                    (enum zt_dtype)data->dtype, (enum zt_logical)data->logical};
}

/* The cut of an object of the source; parts 0: it stays whole. */
static struct zt_cut cut_of(const struct zt_choice *choice, uint32_t object)
{
    struct zt_cut cut = {0, 0, 0};

    if (choice->cut == NULL || (choice->axes != NULL && choice->axes[object] == ZT_AXIS_NONE))
        return cut;
    cut = *choice->cut;
    if (choice->axes != NULL)
        cut.axis = choice->axes[object];
    return cut;
}

/* Whether an object can be cut: it must be dense, with a single component of exactly the size that
 * the shape requires. */
static bool is_cuttable(const struct zt_model *model, const struct zt_object *object, bool to_f32)
{
    const struct zt_component *data = zt_object_components(model, object);
    uint64_t bytes;

    if (to_f32 && zt_object_widener(model, object) != NULL)
        return object->rank <= ZT_SLICE_RANK_MAX && data->encoding != ZT_ENCODING_UNKNOWN;
    if (object->layout != ZT_LAYOUT_DENSE || object->component_count != 1 ||
        object->rank > ZT_SLICE_RANK_MAX || data->encoding == ZT_ENCODING_UNKNOWN)
        return false;
    return zt_element_bytes((enum zt_dtype)data->dtype, (enum zt_logical)data->logical,
                            zt_object_elements(model, object), &bytes) == ZT_OK &&
           (data->decoded_length == ZT_LENGTH_UNKNOWN || data->decoded_length == bytes);
}

static enum zt_status find_slice(const struct selecting *selecting, const struct zt_object *object,
                                 const struct zt_cut *cut, struct zt_slice *out_slice)
{
    struct zt_slice_tensor tensor;

    if (!is_cuttable(selecting->source, object, selecting->choice->to_f32)) {
        zt_fail(selecting->error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                "only dense tensors of a known type can be cut into parts%s",
                zt_object_widener(selecting->source, object) != NULL
                    ? "; dtype=f32 (--dtype f32) gives the dequantized values, which can"
                    : "");
        zt_error_at(selecting->error, zt_object_name(object), (struct zt_text){"", 0});
        return ZT_UNSUPPORTED;
    }
    tensor = tensor_of(selecting->source, object, selecting->choice->to_f32);
    *selecting->verdict =
        zt_slice_shard(&tensor, cut->part, cut->parts, cut->axis, out_slice, selecting->error);
    if (*selecting->verdict == ZT_SLICE_FITS)
        return ZT_OK;
    zt_error_at(selecting->error, zt_object_name(object), (struct zt_text){"", 0});
    return ZT_ARGUMENT;
}

/* Places a cut component at the end of the file of cuts. */
static enum zt_status place(const struct selecting *selecting, uint32_t number,
                            struct zt_component *component)
{
    struct zt_file_plan *cuts = &selecting->selection->cuts;

    component->offset = cuts->length;
    component->shard = selecting->source->shard_count + 1;
    if (component->length == 0)
        return ZT_OK;
    if (component->length > (uint64_t)INT64_MAX - cuts->length)
        return zt_fail(selecting->error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "parts of more than 2^63 bytes");
    assert(cuts->piece_count <= selecting->selection->model->object_count);
    cuts->pieces[cuts->piece_count++] = (struct zt_piece){.offset = cuts->length,
                                                          .length = component->length,
                                                          .component = number,
                                                          .is_component = true};
    cuts->length += component->length;
    return ZT_OK;
}

static bool is_widened(const struct selecting *selecting, const struct zt_object *object)
{
    return selecting->choice->to_f32 && zt_object_widener(selecting->source, object) != NULL;
}

static enum zt_status cut_object(const struct selecting *selecting, const struct zt_object *from,
                                 const struct zt_cut *cut, struct zt_object *object)
{
    struct zt_component *data = &selecting->components[object->first_component];
    struct zt_slice slice;
    bool is_plain = zt_component_is_plain(data);
    enum zt_status status = find_slice(selecting, from, cut, &slice);

    if (status == ZT_OK && is_widened(selecting, from)) {
        status = zt_object_widen(zt_object_elements(selecting->source, from), object, data,
                                 &selecting->selection->model->storage->arena, selecting->error);
        is_plain = false;
    }
    if (status != ZT_OK)
        return status;
    memcpy(selecting->dimensions + object->first_dimension, slice.shape,
           object->rank * sizeof(*slice.shape));
    data->encoding = ZT_ENCODING_RAW;
    data->encoding_name = "raw";
    data->encoding_length = 3;
    data->digest = NULL;
    data->digest_length = 0;
    data->arrangement = NULL;
    data->big_endian = 0;
    data->length = slice.length;
    data->decoded_length = slice.length;
    assert(slice.rank == object->rank);
    if (!is_plain || !zt_slice_is_contiguous(&slice))
        return place(selecting, object->first_component, data);
    data->offset += slice.offset;
    return ZT_OK;
}

void zt_object_cut(const struct zt_model *model, const struct zt_object *object,
                   const struct zt_cut *cut, bool to_f32, struct zt_slice *out_slice)
{
    struct zt_slice_tensor tensor;
    struct zt_error ignored;
    enum zt_slice_verdict verdict;

    assert(is_cuttable(model, object, to_f32));
    tensor = tensor_of(model, object, to_f32);
    verdict = zt_slice_shard(&tensor, cut->part, cut->parts, cut->axis, out_slice, &ignored);
    assert(verdict == ZT_SLICE_FITS);
    (void)verdict;
}

/* --- copying --- */

static enum zt_status copy_object(struct selecting *selecting, uint32_t number)
{
    const struct zt_model *source = selecting->source;
    const struct zt_object *from = &source->objects[number];
    struct zt_model *model = selecting->selection->model;
    struct zt_object *object = &selecting->objects[model->object_count];
    const struct zt_cut cut = cut_of(selecting->choice, number);

    *object = *from;
    object->first_component = model->component_count;
    object->first_dimension = selecting->dimension_count;
    if (from->rank > 0)
        memcpy(selecting->dimensions + object->first_dimension, zt_object_shape(source, from),
               from->rank * sizeof(*selecting->dimensions));
    for (uint32_t i = 0; i < from->component_count; i++) {
        selecting->components[model->component_count + i] = zt_object_components(source, from)[i];
        selecting->selection->components[model->component_count + i] = from->first_component + i;
    }
    selecting->selection->objects[model->object_count++] = number;
    model->component_count += from->component_count;
    selecting->dimension_count += from->rank;
    return cut.parts > 0 ? cut_object(selecting, from, &cut, object) : ZT_OK;
}

static enum zt_status copy_all(struct selecting *selecting)
{
    const struct zt_model *source = selecting->source;
    enum zt_status status = allocate(selecting);

    if (status != ZT_OK)
        return status;
    selecting->selection->model->format = source->format;
    selecting->selection->model->format_name = source->format_name;
    selecting->selection->model->version = source->version;
    selecting->selection->model->attributes = source->attributes;
    selecting->selection->model->file_size = source->file_size;
    for (uint32_t i = 0; i < source->object_count && status == ZT_OK; i++)
        if (is_chosen(selecting->choice, i))
            status = copy_object(selecting, i);
    return status;
}

enum zt_status zt_model_select(const struct zt_model *source, const struct zt_choice *choice,
                               struct zt_selection *out_selection,
                               enum zt_slice_verdict *out_verdict, struct zt_error *error)
{
    struct zt_selection selection = {0};
    struct selecting selecting = {.source = source,
                                  .choice = choice,
                                  .selection = &selection,
                                  .verdict = out_verdict,
                                  .error = error};
    enum zt_status status;

    *out_verdict = ZT_SLICE_FITS;
    status = copy_all(&selecting);
    if (status != ZT_OK) {
        zt_selection_free(&selection);
        return status;
    }
    *out_selection = selection;
    return ZT_OK;
}

void zt_selection_free(struct zt_selection *selection)
{
    zt_model_free(selection->model);
    free(selection->components);
    free(selection->objects);
    free(selection->cuts.pieces);
    *selection = (struct zt_selection){0};
}
