/* Projecting to zTensor 1.2 and 2: adapting names of layouts, types of indices, and booleans.
 *
 * The result is checked by the target's layout rules, so that no file is written that its reader
 * would reject. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cbor/attributes_encode.h"
#include "write/depths.h"
#include "write/projecting.h"

/* zTensor 2's bound on names. */
#define NAME_MAX_BYTES 1024

static bool to_zt1(const struct zt_projecting *projecting)
{
    return projecting->projection->target == ZT_TARGET_ZT1;
}

static enum zt_layout_family family_of(const struct zt_projecting *projecting)
{
    return to_zt1(projecting) ? ZT_LAYOUTS_ZT1 : ZT_LAYOUTS_ZT2;
}

static unsigned levels_below(const struct zt_projecting *projecting, unsigned depth)
{
    return (to_zt1(projecting) ? ZT_DEPTH_ZT1 : ZT_DEPTH_ZT2) - depth;
}

static bool name_is(const struct zt_component *part, const char *name)
{
    return zt_text_is(zt_component_name(part), name);
}

static struct zt_component *find_part(const struct zt_projecting *projecting, const char *name)
{
    struct zt_component *parts = zt_projecting_parts(projecting);

    for (uint32_t i = 0; i < projecting->object->component_count; i++)
        if (name_is(&parts[i], name))
            return &parts[i];
    return NULL;
}

static void rename_part(const struct zt_projecting *projecting, const char *from, const char *to)
{
    struct zt_component *part = find_part(projecting, from);

    if (part != NULL) {
        part->name = to;
        part->name_length = (uint32_t)strlen(to);
    }
}

/* --- attributes --- */

enum zt_status zt_project_attributes(struct zt_projecting *projecting, struct zt_text map,
                                     unsigned levels, struct zt_text *out_map)
{
    static const enum zt_attributes_form forms[] = {
        [ZT_TARGET_ZT1] = ZT_ATTRIBUTES_ZT1,
        [ZT_TARGET_ZT2_CANONICAL] = ZT_ATTRIBUTES_ZT2_CANONICAL,
        [ZT_TARGET_ZT2] = ZT_ATTRIBUTES_ZT2,
    };
    struct zt_buffer buffer = {0};
    enum zt_status status = zt_attributes_encode(map, forms[projecting->projection->target], levels,
                                                 &buffer, projecting->error);

    assert(projecting->projection->target <= ZT_TARGET_ZT2);
    if (status == ZT_OK)
        status = zt_project_keep(
            projecting, (struct zt_text){(const char *)buffer.bytes, buffer.length}, out_map);
    zt_buffer_free(&buffer);
    return status;
}

enum zt_status zt_project_zt_model(struct zt_projecting *projecting)
{
    struct zt_text map = projecting->source->attributes;

    if (map.length == 0)
        return ZT_OK;
    return zt_project_attributes(projecting, map, levels_below(projecting, ZT_DEPTH_OF_FILE),
                                 &projecting->model->attributes);
}

static enum zt_status project_attributes(struct zt_projecting *projecting)
{
    struct zt_object *object = projecting->object;
    struct zt_text map = {(const char *)object->attributes, object->attributes_length};
    enum zt_status status;

    if (object->attributes == NULL)
        return ZT_OK;
    status =
        zt_project_attributes(projecting, map, levels_below(projecting, ZT_DEPTH_OF_OBJECT), &map);
    if (status != ZT_OK) {
        zt_error_at(projecting->error, zt_object_name(projecting->from), (struct zt_text){"", 0});
        return status;
    }
    object->attributes = (const uint8_t *)map.bytes;
    object->attributes_length = (uint32_t)map.length;
    return ZT_OK;
}

/* --- types --- */

/* A boolean is a dtype in 1.2, and bytes with a logical type in 2. */
static enum zt_status project_type(const struct zt_projecting *projecting,
                                   struct zt_component *part)
{
    bool says_nothing =
        part->type != NULL && zt_text_is((struct zt_text){part->type, part->type_length}, "bool");

    if (to_zt1(projecting)) {
        if (part->logical == ZT_LOGICAL_BOOL || (part->dtype == ZT_BOOL && says_nothing))
            zt_project_set_type(part, ZT_BOOL, ZT_LOGICAL_NONE);
        return ZT_OK;
    }
    if (part->dtype != ZT_BOOL)
        return ZT_OK;
    if (part->type != NULL && !says_nothing)
        return zt_project_fail(projecting, part, "a type over bool");
    zt_project_set_type(part, ZT_U8, ZT_LOGICAL_BOOL);
    return ZT_OK;
}

/* --- indices --- */

/* Converts integers of any kind to an unsigned dtype that is at least as wide. */
static void set_index_type(const struct zt_projecting *projecting, struct zt_component *part,
                           enum zt_dtype dtype)
{
    unsigned width = zt_dtype_width((enum zt_dtype)part->dtype);

    assert(width <= zt_dtype_width(dtype));
    if (part->dtype == dtype)
        return;
    zt_projecting_origin(projecting, part)->change = ZT_CHANGE_INDEX;
    part->dtype = (uint8_t)dtype;
    if (part->decoded_length != ZT_LENGTH_UNKNOWN)
        part->decoded_length = part->decoded_length / width * zt_dtype_width(dtype);
    part->length = part->decoded_length;
}

static bool is_wide(const struct zt_component *part)
{
    return part != NULL && zt_dtype_width((enum zt_dtype)part->dtype) == 8;
}

/* zTensor 1.2 has only u64 indices; zTensor 2 also has u32, the same for all index parts of an
 * object. */
static enum zt_status project_indices(const struct zt_projecting *projecting)
{
    static const char *const names[] = {"coords", "indices", "indptr"};
    struct zt_component *parts[3];
    bool wide = to_zt1(projecting);

    for (unsigned i = 0; i < 3; i++) {
        parts[i] = find_part(projecting, names[i]);
        wide = wide || is_wide(parts[i]);
    }
    for (unsigned i = 0; i < 3; i++) {
        if (parts[i] == NULL)
            continue;
        if (parts[i]->logical != ZT_LOGICAL_NONE || parts[i]->dtype < ZT_I64 ||
            parts[i]->dtype > ZT_U8)
            return zt_project_fail(projecting, parts[i], "indices of such a type");
        if (parts[i]->decoded_length != ZT_LENGTH_UNKNOWN &&
            parts[i]->decoded_length > (UINT64_MAX >> 4))
            return zt_project_fail(projecting, parts[i], "so many indices");
        set_index_type(projecting, parts[i], wide ? ZT_U64 : ZT_U32);
    }
    return ZT_OK;
}

/* --- layouts --- */

static void set_layout(struct zt_object *object, enum zt_layout layout, const char *name)
{
    object->layout = (uint8_t)layout;
    zt_project_set_format(object, name, strlen(name));
}

static bool fits_layout(const struct zt_projecting *projecting)
{
    struct zt_error ignored;

    return zt_layout_check(projecting->model, projecting->object, family_of(projecting),
                           &ignored) == ZT_OK;
}

/* quantized_group requires less than zt.quant_group/1, so it is converted only if the attributes
 * supply the rest. */
static void project_quantized(const struct zt_projecting *projecting)
{
    struct zt_object *object = projecting->object;

    assert(object->layout == ZT_LAYOUT_QUANT_GROUP);
    if (to_zt1(projecting)) {
        if (projecting->source->format == ZT_FORMAT_ZT2 && find_part(projecting, "zeros") != NULL) {
            rename_part(projecting, "data", "packed_weight");
            set_layout(object, ZT_LAYOUT_QUANT_GROUP, "quantized_group");
        }
        return;
    }
    if (projecting->source->format == ZT_FORMAT_ZT2)
        return;
    set_layout(object, ZT_LAYOUT_QUANT_GROUP, "zt.quant_group/1");
    rename_part(projecting, "packed_weight", "data");
    if (fits_layout(projecting))
        return;
    rename_part(projecting, "data", "packed_weight");
    set_layout(object, ZT_LAYOUT_OTHER, "quantized_group");
}

static enum zt_status project_layout(const struct zt_projecting *projecting)
{
    struct zt_object *object = projecting->object;
    bool zt1 = to_zt1(projecting);

    switch ((enum zt_layout)object->layout) {
    case ZT_LAYOUT_DENSE:
        set_layout(object, ZT_LAYOUT_DENSE, "dense");
        return ZT_OK;
    case ZT_LAYOUT_SPARSE_CSR:
        set_layout(object, ZT_LAYOUT_SPARSE_CSR, zt1 ? "sparse_csr" : "zt.sparse_csr/1");
        return project_indices(projecting);
    case ZT_LAYOUT_SPARSE_COO:
        set_layout(object, ZT_LAYOUT_SPARSE_COO, zt1 ? "sparse_coo" : "zt.sparse_coo/1");
        return project_indices(projecting);
    case ZT_LAYOUT_QUANT_GROUP:
        project_quantized(projecting);
        return ZT_OK;
    default: /* keeps its text */
        return ZT_OK;
    }
}

static enum zt_status check_layout(const struct zt_projecting *projecting)
{
    struct zt_object *object = projecting->object;
    struct zt_text format = {object->format, object->format_length};
    struct zt_error found;

    object->layout = (uint8_t)zt_layout_from_name(family_of(projecting), format);
    if (zt_layout_check(projecting->model, object, family_of(projecting), &found) == ZT_OK)
        return ZT_OK;
    zt_fail(projecting->error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "not a \"%.*s\" of %s: %.120s",
            (int)(format.length < 60 ? format.length : 60), format.bytes,
            zt_target_name(projecting->projection->target), found.message);
    zt_error_at(projecting->error, zt_object_name(projecting->from),
                (struct zt_text){found.component, strlen(found.component)});
    return ZT_UNSUPPORTED;
}

/* --- names --- */

static const char *name_fault(const char *name, uint32_t length)
{
    if (length == 0 || length > NAME_MAX_BYTES)
        return "a name that is not 1 to 1024 bytes long";
    return memchr(name, 0, length) != NULL ? "a name with a NUL character" : NULL;
}

static enum zt_status check_names(const struct zt_projecting *projecting)
{
    const struct zt_component *parts = zt_projecting_parts(projecting);
    const char *fault = name_fault(projecting->object->name, projecting->object->name_length);

    if (fault != NULL)
        return zt_project_fail(projecting, NULL, "%s", fault);
    for (uint32_t i = 0; i < projecting->object->component_count; i++) {
        fault = name_fault(parts[i].name, parts[i].name_length);
        if (fault != NULL)
            return zt_project_fail(projecting, &parts[i], "%s", fault);
    }
    if (projecting->object->component_count == 0)
        return zt_project_fail(projecting, NULL, "an object without components");
    return ZT_OK;
}

enum zt_status zt_project_zt(struct zt_projecting *projecting)
{
    struct zt_component *parts = zt_projecting_parts(projecting);
    enum zt_status status = to_zt1(projecting) ? ZT_OK : check_names(projecting);

    for (uint32_t i = 0; i < projecting->object->component_count && status == ZT_OK; i++)
        status = project_type(projecting, &parts[i]);
    if (status == ZT_OK)
        status = project_attributes(projecting);
    if (status == ZT_OK)
        status = project_layout(projecting);
    return status == ZT_OK ? check_layout(projecting) : status;
}
