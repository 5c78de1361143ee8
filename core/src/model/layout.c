/* Layout profiles: dense and sparse objects, and which check is whose (zTensor 1.2 section 3;
 * zTensor 2 layouts).
 *
 * Sizes are those of decoded bytes as the manifest tells them. Quantized layouts are in
 * layout_quant.c. */
#include "model/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/extents.h"
#include "model/layout_rules.h"

static bool text_is(struct zt_text text, const char *name)
{
    return strlen(name) == text.length && memcmp(text.bytes, name, text.length) == 0;
}

/* "gguf.q4_0/1": a type's name between the two. */
static bool is_gguf(struct zt_text name)
{
    static const char head[] = "gguf.";
    static const char tail[] = "/1";
    const size_t head_length = sizeof(head) - 1;
    const size_t tail_length = sizeof(tail) - 1;

    return name.length > head_length + tail_length && memcmp(name.bytes, head, head_length) == 0 &&
           memcmp(name.bytes + name.length - tail_length, tail, tail_length) == 0;
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
        if (text_is(name, layouts[i].name[family]))
            return layouts[i].layout;
    if (family == ZT_LAYOUTS_ZT2 && text_is(name, "zt.mx/1"))
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
    snprintf(message, sizeof(message), "%" PRIu64 " bytes where shape and type want %" PRIu64,
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
                         "the size of so many elements does not fit in 64 bits");
    }
}

const struct zt_component *zt_layout_part(const struct zt_layout_case *check, const char *name)
{
    const struct zt_component *components = zt_object_components(check->model, check->object);

    for (uint32_t i = 0; i < check->object->component_count; i++)
        if (text_is(zt_component_name(&components[i]), name))
            return &components[i];
    return NULL;
}

enum zt_status zt_layout_parts(const struct zt_layout_case *check, const char *const names[],
                               unsigned count, const struct zt_component *out_parts[])
{
    char message[128];

    for (unsigned i = 0; i < count; i++) {
        out_parts[i] = zt_layout_part(check, names[i]);
        if (out_parts[i] == NULL) {
            snprintf(message, sizeof(message), "the layout needs a part \"%s\"", names[i]);
            return zt_layout_refuse(check, NULL, message);
        }
    }
    if (check->family == ZT_LAYOUTS_ZT2 && check->object->component_count != count)
        return zt_layout_refuse(check, NULL, "the object has parts that its layout does not name");
    return ZT_OK;
}

/* --- dense and sparse --- */

static enum zt_status check_dense(const struct zt_layout_case *check)
{
    static const char *const names[] = {"data"};
    const struct zt_component *parts[1] = {NULL};

    if (zt_layout_parts(check, names, 1, parts) != ZT_OK)
        return ZT_INVALID;
    return zt_layout_expect_elements(check, parts[0], check->elements);
}

/* Index parts: u32 or u64 in zTensor 2. Files before 1.2 may have any integers. */
bool zt_layout_can_index(const struct zt_layout_case *check, const struct zt_component *component)
{
    if (component->logical != ZT_LOGICAL_NONE)
        return false;
    if (check->family == ZT_LAYOUTS_ZT2)
        return component->dtype == ZT_U32 || component->dtype == ZT_U64;
    return component->dtype >= ZT_I64 && component->dtype <= ZT_U8;
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
    if (!zt_layout_can_index(check, indices))
        return zt_layout_refuse(check, indices, "indices of a type that cannot index");
    if (!zt_layout_can_index(check, indptr))
        return zt_layout_refuse(check, indptr, "row pointers of a type that cannot index");
    if (check->family == ZT_LAYOUTS_ZT2 && indptr->dtype != indices->dtype)
        return zt_layout_refuse(check, indptr, "row pointers and indices differ in type");
    if (check->shape[0] == UINT64_MAX)
        return zt_layout_refuse(check, indptr,
                                "the number of row pointers does not fit in 64 bits");
    status = zt_layout_expect_elements(check, indptr, check->shape[0] + 1);
    if (status != ZT_OK || indices->decoded_length == ZT_LENGTH_UNKNOWN)
        return status;
    if (indices->decoded_length % zt_dtype_width((enum zt_dtype)indices->dtype) != 0)
        return zt_layout_refuse(check, indices, "indices that end inside a word");
    return zt_layout_expect_elements(
        check, parts[0], indices->decoded_length / zt_dtype_width((enum zt_dtype)indices->dtype));
}

static enum zt_status check_coo(const struct zt_layout_case *check)
{
    static const char *const names[] = {"values", "coords"};
    const struct zt_component *parts[2] = {NULL};
    enum zt_status status = zt_layout_parts(check, names, 2, parts);
    const struct zt_component *coords = parts[1];
    uint64_t point_bytes;

    if (status != ZT_OK)
        return status;
    if (check->object->rank == 0)
        return zt_layout_refuse(check, NULL, "a coordinate list has at least one dimension");
    if (!zt_layout_can_index(check, coords))
        return zt_layout_refuse(check, coords, "coordinates of a type that cannot index");
    if (coords->decoded_length == ZT_LENGTH_UNKNOWN)
        return ZT_OK;
    point_bytes = (uint64_t)zt_dtype_width((enum zt_dtype)coords->dtype) * check->object->rank;
    if (coords->decoded_length % point_bytes != 0)
        return zt_layout_refuse(check, coords,
                                "coordinates that are not as many for every dimension");
    return zt_layout_expect_elements(check, parts[0], coords->decoded_length / point_bytes);
}

enum zt_status zt_layout_check(const struct zt_model *model, const struct zt_object *object,
                               enum zt_layout_family family, struct zt_error *error)
{
    struct zt_layout_case check = {
        .model = model, .object = object, .family = family, .error = error};

    check.shape = zt_object_shape(model, object);
    if (!zt_shape_product(check.shape, object->rank, &check.elements))
        return refuse_by(&check, NULL, family == ZT_LAYOUTS_ZT2 ? "zt2 §3 Shape" : "zt1 §1 Shape",
                         "the number of elements does not fit in 64 bits");
    switch ((enum zt_layout)object->layout) {
    case ZT_LAYOUT_DENSE:
        return check_dense(&check);
    case ZT_LAYOUT_SPARSE_CSR:
        return check_csr(&check);
    case ZT_LAYOUT_SPARSE_COO:
        return check_coo(&check);
    case ZT_LAYOUT_QUANT_GROUP:
        return family == ZT_LAYOUTS_ZT2 ? zt_layout_check_quant(&check)
                                        : zt_layout_check_quantized(&check);
    case ZT_LAYOUT_MX:
        return zt_layout_check_mx(&check);
    case ZT_LAYOUT_GGUF:
        return zt_layout_check_gguf(&check);
    /* structural, or zTensor 0.1's sparse blobs, whose size says nothing about their shape */
    default:
        return ZT_OK;
    }
}
