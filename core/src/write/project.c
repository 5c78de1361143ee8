/* Projecting a model: the part common to all targets. Objects are copied, adapted to the target,
 * and sorted again, because normalising names to NFC may change their order. */
#include "zt/project.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "model/model_build.h"
#include "write/projecting.h"
#include "write/widening.h"

const char *zt_target_name(enum zt_target target)
{
    static const char *const names[] = {
        [ZT_TARGET_ZT1] = "zTensor 1.2",
        [ZT_TARGET_ZT2_CANONICAL] = "canonical zTensor 2",
        [ZT_TARGET_ZT2] = "zTensor 2",
        [ZT_TARGET_MAG] = ".mag",
        [ZT_TARGET_SAFETENSORS] = "safetensors",
        [ZT_TARGET_NPZ] = "NPZ",
        [ZT_TARGET_NPY] = "NPY",
    };

    assert((size_t)target < sizeof(names) / sizeof(names[0]));
    return names[target];
}

static bool is_zt(enum zt_target target)
{
    return target <= ZT_TARGET_ZT2;
}

/* --- for the targets --- */

enum zt_status zt_project_fail(const struct zt_projecting *projecting,
                               const struct zt_component *component, const char *format, ...)
{
    char reason[160];
    va_list arguments;
    struct zt_text part =
        component != NULL ? zt_component_name(component) : (struct zt_text){"", 0};

    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    zt_fail(projecting->error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "%s cannot hold %s",
            zt_target_name(projecting->projection->target), reason);
    zt_error_at(projecting->error, zt_object_name(projecting->from), part);
    return ZT_UNSUPPORTED;
}

void zt_project_set_format(struct zt_object *object, const char *text, size_t length)
{
    object->format = text;
    object->format_length = (uint32_t)length;
}

void zt_project_set_type(struct zt_component *component, enum zt_dtype dtype,
                         enum zt_logical logical)
{
    component->dtype = (uint8_t)dtype;
    component->logical = (uint8_t)logical;
    component->type = zt_logical_name(logical);
    component->type_length = component->type != NULL ? (uint32_t)strlen(component->type) : 0;
}

enum zt_status zt_project_keep(struct zt_projecting *projecting, struct zt_text text,
                               struct zt_text *out_text)
{
    void *bytes = NULL;
    enum zt_status status =
        zt_arena_take(projecting->arena, text.length, &bytes, projecting->error);

    if (status != ZT_OK)
        return status;
    if (text.length > 0)
        memcpy(bytes, text.bytes, text.length);
    *out_text = (struct zt_text){bytes, text.length};
    return ZT_OK;
}

/* --- names of canonical zTensor 2 --- */

static enum zt_status compose(struct zt_projecting *projecting, const char **name, uint32_t *length)
{
    struct zt_text composed;
    struct zt_text kept;
    char *owned = NULL;
    enum zt_status status;

    if (zt_name_compose((struct zt_text){*name, *length}, &owned, &composed) != ZT_OK)
        return zt_fail_memory(projecting->error, "a projection");
    if (owned == NULL)
        return ZT_OK;
    status = zt_project_keep(projecting, composed, &kept);
    free(owned);
    if (status != ZT_OK)
        return status;
    *name = kept.bytes;
    *length = (uint32_t)kept.length;
    return ZT_OK;
}

/* --- one object --- */

static enum zt_status copy_component(struct zt_projecting *projecting,
                                     const struct zt_component *component)
{
    struct zt_component *part = &projecting->components[projecting->model->component_count];
    struct zt_origin *origin = &projecting->projection->origins[projecting->model->component_count];

    if (component->encoding == ZT_ENCODING_UNKNOWN) {
        zt_fail(projecting->error, ZT_UNSUPPORTED, NULL, component->offset,
                "encoding \"%.*s\" cannot be decoded",
                (int)(component->encoding_length < 100 ? component->encoding_length : 100),
                component->encoding_name);
        zt_error_at(projecting->error, zt_object_name(projecting->from),
                    zt_component_name(component));
        return ZT_UNSUPPORTED;
    }
    assert(projecting->model->component_count < projecting->source->component_count);
    *part = (struct zt_component){.name = component->name,
                                  .name_length = component->name_length,
                                  .type = component->type,
                                  .type_length = component->type_length,
                                  .dtype = component->dtype,
                                  .logical = component->logical,
                                  .encoding_name = "raw",
                                  .encoding_length = 3,
                                  .encoding = ZT_ENCODING_RAW,
                                  .length = component->decoded_length,
                                  .decoded_length = component->decoded_length};
    origin->component = zt_component_index(projecting->source, component);
    projecting->model->component_count++;
    projecting->object->component_count++;
    if (projecting->projection->target == ZT_TARGET_ZT2_CANONICAL)
        return compose(projecting, &part->name, &part->name_length);
    return ZT_OK;
}

static enum zt_status copy_components(struct zt_projecting *projecting)
{
    const struct zt_component *from = zt_object_components(projecting->source, projecting->from);
    enum zt_status status = ZT_OK;

    projecting->object->component_count = 0;
    projecting->object->first_component = projecting->model->component_count;
    for (uint32_t i = 0; i < projecting->from->component_count && status == ZT_OK; i++)
        status = copy_component(projecting, &from[i]);
    assert(status != ZT_OK ||
           projecting->object->component_count == projecting->from->component_count);
    return status;
}

/* Sorts components again, because names normalised to NFC may sort differently. The field offset,
 * not otherwise in use yet, carries each component's origin along. */
static enum zt_status sort_components(const struct zt_projecting *projecting)
{
    struct zt_component *parts = zt_projecting_parts(projecting);
    struct zt_named_array array = zt_components_named(parts, projecting->object->component_count);
    enum zt_status status;
    size_t second;

    for (size_t i = 0; i < array.count; i++) {
        const struct zt_origin *origin = zt_projecting_origin(projecting, &parts[i]);

        assert(origin->widener == NULL || array.count == 1);
        parts[i].offset = (uint64_t)origin->component << 8 | origin->change;
    }
    status = zt_names_sort(&array, projecting->error);
    for (size_t i = 0; i < array.count; i++) {
        struct zt_origin *origin = zt_projecting_origin(projecting, &parts[i]);

        origin->component = (uint32_t)(parts[i].offset >> 8);
        origin->change = (uint8_t)parts[i].offset;
        parts[i].offset = 0;
    }
    if (status != ZT_OK)
        return status;
    second = zt_names_duplicate(&array);
    if (second > 0)
        return zt_project_fail(projecting, &parts[second],
                               "two components whose names become equal");
    return ZT_OK;
}

/* --- wider elements --- */

static enum zt_status widen(struct zt_projecting *projecting)
{
    const struct zt_widener *widener = zt_object_widener(projecting->source, projecting->from);
    struct zt_component *part = zt_projecting_parts(projecting);
    struct zt_origin *origin;
    enum zt_status status;

    if (widener == NULL)
        return ZT_OK;
    origin = zt_projecting_origin(projecting, part);
    origin->change = ZT_CHANGE_FLOAT;
    origin->widener = widener;
    status = zt_object_widen(zt_object_elements(projecting->source, projecting->from),
                             projecting->object, part, projecting->arena, projecting->error);
    return status == ZT_LIMIT ? zt_project_fail(projecting, part, "this many elements as f32")
                              : status;
}

static enum zt_status project_object(struct zt_projecting *projecting, uint32_t number)
{
    const struct zt_object *from = &projecting->source->objects[number];
    struct zt_object *object = &projecting->objects[number];
    enum zt_status status = ZT_OK;

    projecting->from = from;
    projecting->object = object;
    *object = *from;
    if (projecting->projection->target == ZT_TARGET_ZT2_CANONICAL)
        status = compose(projecting, &object->name, &object->name_length);
    if (status == ZT_OK)
        status = copy_components(projecting);
    if (status == ZT_OK && projecting->projection->is_widened)
        status = widen(projecting);
    if (status == ZT_OK)
        status = is_zt(projecting->projection->target) ? zt_project_zt(projecting)
                                                       : zt_project_dense(projecting);
    assert(status != ZT_OK ||
           object->first_component + object->component_count == projecting->model->component_count);
    return status == ZT_OK ? sort_components(projecting) : status;
}

static enum zt_status sort_objects(struct zt_projecting *projecting)
{
    struct zt_named_array array =
        zt_objects_named(projecting->objects, projecting->model->object_count);
    enum zt_status status = zt_names_sort(&array, projecting->error);
    size_t second = status == ZT_OK ? zt_names_duplicate(&array) : 0;

    if (second == 0)
        return status;
    assert(second < array.count);
    zt_fail(projecting->error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
            "%s cannot hold two names that become equal",
            zt_target_name(projecting->projection->target));
    zt_error_at(projecting->error, zt_names_at(&array, second), (struct zt_text){"", 0});
    return ZT_UNSUPPORTED;
}

/* --- the whole --- */

static uint32_t count_dimensions(const struct zt_model *source)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < source->object_count; i++) {
        uint32_t end = source->objects[i].first_dimension + source->objects[i].rank;

        count = end > count ? end : count;
    }
    return count;
}

static enum zt_status allocate(struct zt_projecting *projecting)
{
    const struct zt_model *source = projecting->source;
    struct zt_model *model = calloc(1, sizeof(*model));
    uint32_t dimensions = count_dimensions(source);

    assert(projecting->model == NULL);
    if (model == NULL)
        return zt_fail_memory(projecting->error, "a projection");
    projecting->projection->model = model;
    projecting->model = model;
    model->storage = calloc(1, sizeof(*model->storage));
    projecting->objects = calloc(source->object_count + (size_t)1, sizeof(*projecting->objects));
    projecting->components =
        calloc(source->component_count + (size_t)1, sizeof(*projecting->components));
    projecting->dimensions = calloc(dimensions + (size_t)1, sizeof(*projecting->dimensions));
    projecting->projection->origins =
        calloc(source->component_count + (size_t)1, sizeof(struct zt_origin));
    model->objects = projecting->objects;
    model->components = projecting->components;
    model->dimensions = projecting->dimensions;
    if (model->storage == NULL || model->objects == NULL || model->components == NULL ||
        model->dimensions == NULL || projecting->projection->origins == NULL)
        return zt_fail_memory(projecting->error, "a projection");
    /* Bounded by the source's own texts. */
    zt_arena_init(&model->storage->arena, SIZE_MAX / 2);
    projecting->arena = &model->storage->arena;
    if (dimensions > 0)
        memcpy(projecting->dimensions, source->dimensions,
               dimensions * sizeof(*source->dimensions));
    return ZT_OK;
}

static void set_kind(struct zt_model *model, enum zt_target target)
{
    static const struct {
        enum zt_format format;
        const char *name;
        const char *version;
    } kinds[] = {
        [ZT_TARGET_ZT1] = {ZT_FORMAT_ZT1, "zt", "1.2.0"},
        [ZT_TARGET_ZT2_CANONICAL] = {ZT_FORMAT_ZT2, "zt", "2"},
        [ZT_TARGET_ZT2] = {ZT_FORMAT_ZT2, "zt", "2"},
        [ZT_TARGET_MAG] = {ZT_FORMAT_MAG, "mag", "1"},
        [ZT_TARGET_SAFETENSORS] = {ZT_FORMAT_SAFETENSORS, "safetensors", ""},
        [ZT_TARGET_NPZ] = {ZT_FORMAT_NPZ, "npz", ""},
        [ZT_TARGET_NPY] = {ZT_FORMAT_NPY, "npy", ""},
    };

    assert((size_t)target < sizeof(kinds) / sizeof(kinds[0]));
    model->format = kinds[target].format;
    model->format_name = kinds[target].name;
    model->version = (struct zt_text){kinds[target].version, strlen(kinds[target].version)};
}

static enum zt_status project_model(struct zt_projecting *projecting)
{
    const struct zt_model *source = projecting->source;
    enum zt_target target = projecting->projection->target;
    enum zt_status status = allocate(projecting);

    if (status != ZT_OK)
        return status;
    set_kind(projecting->model, target);
    if (target == ZT_TARGET_NPY && source->object_count != 1)
        return zt_fail(projecting->error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                       "NPY holds one object, not %u", source->object_count);
    status = is_zt(target) ? zt_project_zt_model(projecting) : zt_project_dense_model(projecting);
    for (uint32_t i = 0; i < source->object_count && status == ZT_OK; i++) {
        status = project_object(projecting, i);
        projecting->model->object_count = i + 1;
    }
    return status == ZT_OK ? sort_objects(projecting) : status;
}

static enum zt_status project(const struct zt_model *source, enum zt_target target, bool widens,
                              struct zt_projection **out_projection, struct zt_error *error)
{
    struct zt_projecting projecting = {.source = source, .error = error};
    enum zt_status status;

    projecting.projection = calloc(1, sizeof(*projecting.projection));
    if (projecting.projection == NULL)
        return zt_fail_memory(error, "a projection");
    projecting.projection->target = target;
    projecting.projection->is_widened = widens;
    status = project_model(&projecting);
    if (status != ZT_OK) {
        zt_projection_free(projecting.projection);
        return status;
    }
    *out_projection = projecting.projection;
    return ZT_OK;
}

enum zt_status zt_model_project(const struct zt_model *source, enum zt_target target,
                                struct zt_projection **out_projection, struct zt_error *error)
{
    return project(source, target, false, out_projection, error);
}

enum zt_status zt_model_project_widened(const struct zt_model *source, enum zt_target target,
                                        struct zt_projection **out_projection,
                                        struct zt_error *error)
{
    return project(source, target, true, out_projection, error);
}

void zt_projection_free(struct zt_projection *projection)
{
    if (projection == NULL)
        return;
    zt_model_free(projection->model);
    free(projection->origins);
    free(projection);
}
