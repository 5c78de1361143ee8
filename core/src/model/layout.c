/* Layout profiles: choosing the check for a layout, and the checks of dense and sparse objects
 * (zTensor 1.2 section 3; zTensor 2 layouts).
 *
 * Sizes are the decoded sizes that the manifest states. Quantized layouts are in layout_quant.c. */
#include "model/layout.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "model/layout_rules.h"
#include "model/locate.h"

/* "gguf.<type>/1" */
static bool is_gguf(struct zt_text name)
{
    const struct zt_text head = zt_text_from("gguf.");
    const struct zt_text tail = zt_text_from("/1");

    return name.length > head.length + tail.length && zt_text_starts_with(name, head) &&
           zt_text_ends_with(name, tail);
}

enum zt_layout zt_layout_from_name(enum zt_layout_family family, struct zt_text name)
{
    static const struct {
        const char *name[2]; /* by family */
        enum zt_layout layout;
    } layouts[] = {
        {{"dense", "dense"}, ZT_LAYOUT_DENSE},
        {{"sparse_csr", "zt.sparse_csr/1"}, ZT_LAYOUT_SPARSE_CSR},
        {{"sparse_coo", "zt.sparse_coo/1"}, ZT_LAYOUT_SPARSE_COO},
        {{"quantized_group", "zt.quant_group/1"}, ZT_LAYOUT_QUANT_GROUP},
    };

    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
        if (zt_text_is(name, layouts[i].name[family]))
            return layouts[i].layout;
    if (family == ZT_LAYOUTS_ZT2 && zt_text_is(name, "zt.mx/1"))
        return ZT_LAYOUT_MX;
    if (family == ZT_LAYOUTS_ZT2 && is_gguf(name))
        return ZT_LAYOUT_GGUF;
    return ZT_LAYOUT_OTHER;
}

bool zt_shape_product(const uint64_t *shape, unsigned rank, uint64_t *out_elements)
{
    uint64_t elements = 1;

    for (unsigned i = 0; i < rank; i++)
        if (__builtin_mul_overflow(elements, shape[i], &elements))
            return false;
    *out_elements = elements;
    return true;
}

/* --- shared by all layouts --- */

static const char *layout_rule(const struct zt_layout_case *check)
{
    return check->family == ZT_LAYOUTS_ZT2 ? "zt2 §6 LayoutRule" : "zt1 §3 LayoutRule";
}

static const char *size_rule(const struct zt_layout_case *check)
{
    if (check->object->layout != ZT_LAYOUT_DENSE)
        return layout_rule(check);
    return check->family == ZT_LAYOUTS_ZT2 ? "zt2 §6 DenseSize" : "zt1 §3 DenseSize";
}

static enum zt_status refuse_by(const struct zt_layout_case *check,
                                const struct zt_component *component, const char *rule,
                                const char *message)
{
    struct zt_text part =
        component != NULL ? zt_component_name(component) : (struct zt_text){"", 0};
    uint64_t at = zt_manifest_position(check->model,
                                       component != NULL ? component->name : check->object->name);

    zt_fail(check->error, ZT_INVALID, rule, at, "%s", message);
    zt_error_at(check->error, zt_object_name(check->object), part);
    return ZT_INVALID;
}

enum zt_status zt_layout_refuse(const struct zt_layout_case *check,
                                const struct zt_component *component, const char *message)
{
    return refuse_by(check, component, layout_rule(check), message);
}

enum zt_status zt_layout_expect_bytes(const struct zt_layout_case *check,
                                      const struct zt_component *component, uint64_t wanted_bytes)
{
    char message[128];

    if (component->decoded_length == ZT_LENGTH_UNKNOWN || component->decoded_length == wanted_bytes)
        return ZT_OK;
    snprintf(message, sizeof(message), "%" PRIu64 " bytes where shape and type require %" PRIu64,
             component->decoded_length, wanted_bytes);
    return refuse_by(check, component, size_rule(check), message);
}

enum zt_status zt_layout_expect_elements(const struct zt_layout_case *check,
                                         const struct zt_component *component, uint64_t elements)
{
    uint64_t bytes;

    switch (zt_element_bytes((enum zt_dtype)component->dtype, (enum zt_logical)component->logical,
                             elements, &bytes)) {
    case ZT_OK:
        return zt_layout_expect_bytes(check, component, bytes);
    case ZT_UNSUPPORTED:
        return ZT_OK;
    default:
        return refuse_by(check, component, size_rule(check),
                         "the size of the elements does not fit in 64 bits");
    }
}

static const struct zt_component *find_part(const struct zt_layout_case *check, const char *name)
{
    const struct zt_component *components;

    if (check->only != NULL)
        return zt_text_is(zt_component_name(check->only), name) ? check->only : NULL;
    components = zt_object_components(check->model, check->object);
    for (uint32_t i = 0; i < check->object->component_count; i++)
        if (zt_text_is(zt_component_name(&components[i]), name))
            return &components[i];
    return NULL;
}

enum zt_status zt_layout_parts(const struct zt_layout_case *check, const char *const names[],
                               unsigned count, const struct zt_component *out_parts[])
{
    const uint32_t present = check->only != NULL ? 1 : check->object->component_count;
    uint32_t named = 0;

    for (unsigned i = 0; i < count; i++) {
        out_parts[i] = find_part(check, names[i]);
        named += out_parts[i] != NULL;
        if (out_parts[i] == NULL && check->only == NULL) {
            char message[128];

            snprintf(message, sizeof(message), "the layout needs a part \"%s\"", names[i]);
            return zt_layout_refuse(check, NULL, message);
        }
    }
    assert(named <= present);
    if (check->family == ZT_LAYOUTS_ZT2 && named != present)
        return zt_layout_refuse(check, check->only,
                                "the object has parts that its layout does not name");
    return ZT_OK;
}

/* --- dense and sparse: parts that are not there are NULL and not checked --- */

static enum zt_status check_dense(const struct zt_layout_case *check)
{
    static const char *const names[] = {"data"};
    const struct zt_component *parts[1] = {NULL};
    enum zt_status status = zt_layout_parts(check, names, 1, parts);

    if (status != ZT_OK || parts[0] == NULL)
        return status;
    return zt_layout_expect_elements(check, parts[0], check->elements);
}

/* Rejects indices, row pointers or coordinates of a wrong type: they must be u32 or u64 in zTensor
 * 2, any integer in older files. */
static enum zt_status expect_index(const struct zt_layout_case *check,
                                   const struct zt_component *component)
{
    bool is_index = check->family == ZT_LAYOUTS_ZT2
                        ? component->dtype == ZT_U32 || component->dtype == ZT_U64
                        : component->dtype >= ZT_I64 && component->dtype <= ZT_U8;

    if (is_index && component->logical == ZT_LOGICAL_NONE)
        return ZT_OK;
    return zt_layout_refuse(check, component, "the type cannot hold indices");
}

static enum zt_status check_row_pointers(const struct zt_layout_case *check,
                                         const struct zt_component *indptr)
{
    enum zt_status status = expect_index(check, indptr);

    assert(check->object->rank == 2);
    if (status != ZT_OK)
        return status;
    if (check->shape[0] == UINT64_MAX)
        return zt_layout_refuse(check, indptr,
                                "the number of row pointers does not fit in 64 bits");
    return zt_layout_expect_elements(check, indptr, check->shape[0] + 1);
}

/* Rejects an index part that does not hold whole entries of entry_bytes, or whose number of entries
 * differs from the number of values. A part of unknown decoded length passes. */
static enum zt_status check_values(const struct zt_layout_case *check,
                                   const struct zt_component *values,
                                   const struct zt_component *index, uint64_t entry_bytes)
{
    assert(entry_bytes > 0);
    if (index->decoded_length == ZT_LENGTH_UNKNOWN)
        return ZT_OK;
    if (index->decoded_length % entry_bytes != 0)
        return zt_layout_refuse(check, index, "its bytes end inside an entry");
    if (values == NULL)
        return ZT_OK;
    return zt_layout_expect_elements(check, values, index->decoded_length / entry_bytes);
}

static enum zt_status check_csr(const struct zt_layout_case *check)
{
    static const char *const names[] = {"values", "indices", "indptr"};
    const struct zt_component *parts[3] = {NULL};
    enum zt_status status = zt_layout_parts(check, names, 3, parts);
    const struct zt_component *indices = parts[1];
    const struct zt_component *indptr = parts[2];

    if (status != ZT_OK)
        return status;
    if (check->object->rank != 2)
        return zt_layout_refuse(check, NULL, "a compressed sparse row object has two dimensions");
    if (indices != NULL)
        status = expect_index(check, indices);
    if (status == ZT_OK && indptr != NULL)
        status = check_row_pointers(check, indptr);
    if (status != ZT_OK || indices == NULL)
        return status;
    if (check->family == ZT_LAYOUTS_ZT2 && indptr != NULL && indptr->dtype != indices->dtype)
        return zt_layout_refuse(check, indptr, "row pointers and indices differ in type");
    return check_values(check, parts[0], indices, zt_dtype_width((enum zt_dtype)indices->dtype));
}

static enum zt_status check_coo(const struct zt_layout_case *check)
{
    static const char *const names[] = {"values", "coords"};
    const struct zt_component *parts[2] = {NULL};
    enum zt_status status = zt_layout_parts(check, names, 2, parts);
    const struct zt_component *coords = parts[1];

    if (status != ZT_OK)
        return status;
    if (check->object->rank == 0)
        return zt_layout_refuse(check, NULL, "a coordinate list has at least one dimension");
    if (coords == NULL)
        return ZT_OK;
    status = expect_index(check, coords);
    if (status != ZT_OK)
        return status;
    return check_values(check, parts[0], coords,
                        (uint64_t)zt_dtype_width((enum zt_dtype)coords->dtype) *
                            check->object->rank);
}

/* Quantized layouts can only be checked as a whole, because the sizes of their parts depend on each
 * other. */
static enum zt_status check_quantized(const struct zt_layout_case *check)
{
    if (check->only != NULL)
        return ZT_OK;
    switch ((enum zt_layout)check->object->layout) {
    case ZT_LAYOUT_QUANT_GROUP:
        return check->family == ZT_LAYOUTS_ZT2 ? zt_layout_check_quant_group(check)
                                               : zt_layout_check_quantized_group(check);
    case ZT_LAYOUT_MX:
        return zt_layout_check_mx(check);
    case ZT_LAYOUT_GGUF:
        return zt_layout_check_gguf(check);
    /* Unknown layouts, and sparse blobs of zTensor 0.1, whose size does not follow from their
     * shape. */
    default:
        return ZT_OK;
    }
}

static enum zt_status run_check(struct zt_layout_case *check)
{
    const struct zt_object *object = check->object;

    check->shape = zt_object_shape(check->model, object);
    if (!zt_shape_product(check->shape, object->rank, &check->elements))
        return refuse_by(check, NULL,
                         check->family == ZT_LAYOUTS_ZT2 ? "zt2 §3 Shape" : "zt1 §1 Shape",
                         "the number of elements does not fit in 64 bits");
    switch ((enum zt_layout)object->layout) {
    case ZT_LAYOUT_DENSE:
        return check_dense(check);
    case ZT_LAYOUT_SPARSE_CSR:
        return check_csr(check);
    case ZT_LAYOUT_SPARSE_COO:
        return check_coo(check);
    default:
        return check_quantized(check);
    }
}

enum zt_status zt_layout_check(const struct zt_model *model, const struct zt_object *object,
                               enum zt_layout_family family, struct zt_error *error)
{
    return run_check(&(struct zt_layout_case){
        .model = model, .object = object, .family = family, .error = error});
}

enum zt_status zt_layout_check_part(const struct zt_model *model, const struct zt_object *object,
                                    const struct zt_component *part, enum zt_layout_family family,
                                    struct zt_error *error)
{
    assert(part->decoded_length != ZT_LENGTH_UNKNOWN);
    return run_check(&(struct zt_layout_case){
        .model = model, .object = object, .only = part, .family = family, .error = error});
}

/* --- blocks in files whose format does not define them --- */

/* Only a known length can be compared with the number of blocks. */
static bool has_known_length(const struct zt_model *model, const struct zt_object *object)
{
    return object->component_count == 1 &&
           zt_object_components(model, object)->decoded_length != ZT_LENGTH_UNKNOWN;
}

static bool is_blocks(const struct zt_model *model, const struct zt_object *object)
{
    const struct zt_text format = {object->format, object->format_length};
    struct zt_object blocks = *object;
    struct zt_error ignored;

    blocks.layout = ZT_LAYOUT_GGUF;
    return object->layout == ZT_LAYOUT_OTHER && is_gguf(format) &&
           has_known_length(model, object) &&
           zt_layout_check(model, &blocks, ZT_LAYOUTS_ZT2, &ignored) == ZT_OK;
}

void zt_layout_find_blocks(struct zt_model *model)
{
    /* The model is still private to its reader. */
    struct zt_object *objects = (struct zt_object *)(uintptr_t)model->objects;

    for (uint32_t i = 0; i < model->object_count; i++)
        if (is_blocks(model, &objects[i]))
            objects[i].layout = ZT_LAYOUT_GGUF;
}
