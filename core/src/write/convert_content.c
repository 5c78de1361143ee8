/* Checking content rules before a conversion. If the target's layout requires more than the
 * source's (zTensor 2 requires increasing columns and distinct coordinates), the object is checked
 * a second time: the source's bytes by the target's rules. */
#include "zt/convert.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Whether an object has content rules other than that it decodes, which a trusted source is known
 * to do. */
static bool has_rules(const struct zt_model *model, const struct zt_object *object)
{
    const struct zt_component *components = zt_object_components(model, object);

    if (object->layout == ZT_LAYOUT_SPARSE_CSR || object->layout == ZT_LAYOUT_SPARSE_COO ||
        object->layout == ZT_LAYOUT_ZT01_COO || object->layout == ZT_LAYOUT_ZT01_CSR)
        return true;
    for (uint32_t i = 0; i < object->component_count; i++)
        if (components[i].dtype == ZT_BOOL || components[i].logical == ZT_LOGICAL_BOOL ||
            components[i].logical == ZT_LOGICAL_F4_E2M1)
            return true;
    return false;
}

/* --- by the source's rules --- */

static enum zt_status check_source(const struct zt_model *source, const struct zt_object *object,
                                   const struct zt_files *files, struct zt_error *error)
{
    struct zt_error found;
    enum zt_status status = zt_object_check(source, object, files, &found);

    if (status == ZT_OK || status == ZT_UNSUPPORTED)
        return ZT_OK;
    if (error != NULL)
        *error = found;
    return status;
}

/* --- by the target's rules --- */

/* Whether the target has rules that checking the source does not cover. */
static bool promises_more(const struct zt_conversion *conversion, const struct zt_object *object,
                          const struct zt_object *from)
{
    enum zt_format target = conversion->projection->model->format;
    bool is_sparse =
        object->layout == ZT_LAYOUT_SPARSE_CSR || object->layout == ZT_LAYOUT_SPARSE_COO;

    if (object->layout != from->layout)
        return object->layout != ZT_LAYOUT_OTHER;
    return is_sparse && target == ZT_FORMAT_ZT2 && conversion->source->format != ZT_FORMAT_ZT2;
}

/* A component at its place in the source, with the target's name and type. Indices keep the
 * source's type, because they are widened only later. */
static struct zt_component view_component(const struct zt_conversion *conversion,
                                          const struct zt_component *part)
{
    const struct zt_projection *projection = conversion->projection;
    const struct zt_origin *origin =
        &projection->origins[zt_component_index(projection->model, part)];
    struct zt_component view;

    assert(origin->component < conversion->source->component_count);
    view = conversion->source->components[origin->component];
    view.name = part->name;
    view.name_length = part->name_length;
    if (origin->change == ZT_CHANGE_NONE) {
        view.type = part->type;
        view.type_length = part->type_length;
        view.dtype = part->dtype;
        view.logical = part->logical;
    }
    return view;
}

static enum zt_status fail_layout(const struct zt_conversion *conversion,
                                  const struct zt_object *object, const struct zt_object *from,
                                  const struct zt_error *found, struct zt_error *error)
{
    struct zt_text part = {found->component, strlen(found->component)};

    zt_fail(error, ZT_UNSUPPORTED, found->rule, found->offset, "not a \"%.*s\" of %s: %.120s",
            (int)(object->format_length < 60 ? object->format_length : 60), object->format,
            zt_target_name(conversion->projection->target), found->message);
    zt_error_at(error, zt_object_name(from), part);
    return ZT_UNSUPPORTED;
}

static enum zt_status check_view(const struct zt_conversion *conversion,
                                 const struct zt_object *object, struct zt_component *parts,
                                 struct zt_error *error)
{
    const struct zt_model *outline = conversion->projection->model;
    const struct zt_files files = {conversion->files[0], conversion->files + 1};
    struct zt_object viewed = *object;
    struct zt_model view = *outline;

    for (uint32_t i = 0; i < object->component_count; i++)
        parts[i] = view_component(conversion, &zt_object_components(outline, object)[i]);
    viewed.first_component = 0;
    view.objects = &viewed;
    view.object_count = 1;
    view.components = parts;
    view.component_count = object->component_count;
    return zt_object_check(&view, &viewed, &files, error);
}

static enum zt_status check_target(const struct zt_conversion *conversion,
                                   const struct zt_object *object, const struct zt_object *from,
                                   struct zt_error *error)
{
    const struct zt_projection *projection = conversion->projection;
    struct zt_error found;
    struct zt_component *parts;
    enum zt_status status;

    /* Any f32 is valid content. */
    if (projection->origins[object->first_component].change == ZT_CHANGE_FLOAT)
        return ZT_OK;
    if (!promises_more(conversion, object, from) ||
        (conversion->trusted && !has_rules(conversion->projection->model, object)))
        return ZT_OK;
    parts = calloc(object->component_count, sizeof(*parts));
    if (parts == NULL)
        return zt_fail_memory(error, "checking content");
    status = check_view(conversion, object, parts, &found);
    free(parts);
    if (status == ZT_INVALID)
        return fail_layout(conversion, object, from, &found, error);
    if (status == ZT_OK || status == ZT_UNSUPPORTED)
        return ZT_OK;
    if (error != NULL)
        *error = found;
    return status;
}

/* --- both --- */

/* For each component of the source, its object. The projection's objects may be in a different
 * order. */
static uint32_t *find_owners(const struct zt_model *source)
{
    uint32_t *owners = calloc(source->component_count + (size_t)1, sizeof(*owners));

    for (uint32_t i = 0; owners != NULL && i < source->object_count; i++)
        for (uint32_t j = 0; j < source->objects[i].component_count; j++)
            owners[source->objects[i].first_component + j] = i;
    return owners;
}

enum zt_status zt_conversion_check_layouts(const struct zt_conversion *conversion,
                                           struct zt_error *error)
{
    const struct zt_projection *projection = conversion->projection;
    const struct zt_model *source = conversion->source;
    uint32_t *owners = find_owners(source);
    enum zt_status status = ZT_OK;

    if (owners == NULL)
        return zt_fail_memory(error, "checking content");
    for (uint32_t i = 0; i < projection->model->object_count && status == ZT_OK; i++) {
        const struct zt_object *object = &projection->model->objects[i];

        if (object->component_count > 0) {
            uint32_t from = projection->origins[object->first_component].component;
            uint32_t owner;

            assert(from < source->component_count);
            owner = owners[from];
            assert(owner < source->object_count);
            status = check_target(conversion, object, &source->objects[owner], error);
        }
    }
    free(owners);
    return status;
}

enum zt_status zt_conversion_check_object(const struct zt_conversion *conversion, uint32_t object,
                                          struct zt_error *error)
{
    const struct zt_model *source = conversion->source;
    const struct zt_files files = {conversion->files[0], conversion->files + 1};

    assert(object < source->object_count);
    if (conversion->trusted && !has_rules(source, &source->objects[object]))
        return ZT_OK;
    return check_source(source, &source->objects[object], &files, error);
}

enum zt_status zt_conversion_check(const struct zt_conversion *conversion, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    for (uint32_t i = 0; i < conversion->source->object_count && status == ZT_OK; i++)
        status = zt_conversion_check_object(conversion, i, error);
    return status == ZT_OK ? zt_conversion_check_layouts(conversion, error) : status;
}
