/* One component against the layout of its object, before the others are there: what can be told of
 * it alone. */
#include <string.h>

#include "model/layout_rules.h"

static bool name_is(const struct zt_component *part, const char *name)
{
    return part->name_length == strlen(name) && memcmp(part->name, name, part->name_length) == 0;
}

static bool is_among(const struct zt_component *part, const char *const names[])
{
    for (unsigned i = 0; names[i] != NULL; i++)
        if (name_is(part, names[i]))
            return true;
    return false;
}

/* In zTensor 2 a layout says exactly what there is. */
static enum zt_status check_name(const struct zt_layout_case *check,
                                 const struct zt_component *part, const char *const names[])
{
    if (check->family == ZT_LAYOUTS_ZT1 || is_among(part, names))
        return ZT_OK;
    return zt_layout_refuse(check, part, "the layout names no such part");
}

static enum zt_status check_dense(const struct zt_layout_case *check,
                                  const struct zt_component *part)
{
    static const char *const names[] = {"data", NULL};
    enum zt_status status = check_name(check, part, names);

    if (status != ZT_OK || !name_is(part, "data"))
        return status;
    return zt_layout_expect_elements(check, part, check->elements);
}

static enum zt_status check_csr(const struct zt_layout_case *check, const struct zt_component *part)
{
    static const char *const names[] = {"values", "indices", "indptr", NULL};
    enum zt_status status = check_name(check, part, names);

    if (status != ZT_OK)
        return status;
    if (check->object->rank != 2)
        return zt_layout_refuse(check, NULL, "a compressed sparse row object has two dimensions");
    if ((name_is(part, "indices") || name_is(part, "indptr")) && !zt_layout_can_index(check, part))
        return zt_layout_refuse(check, part, "a type that cannot index");
    if (!name_is(part, "indptr") || check->shape[0] == UINT64_MAX)
        return ZT_OK;
    return zt_layout_expect_elements(check, part, check->shape[0] + 1);
}

static enum zt_status check_coo(const struct zt_layout_case *check, const struct zt_component *part)
{
    static const char *const names[] = {"values", "coords", NULL};
    enum zt_status status = check_name(check, part, names);
    uint64_t point_bytes;

    if (status != ZT_OK || !name_is(part, "coords"))
        return status;
    if (check->object->rank == 0)
        return zt_layout_refuse(check, NULL, "a coordinate list has at least one dimension");
    if (!zt_layout_can_index(check, part))
        return zt_layout_refuse(check, part, "a type that cannot index");
    point_bytes = (uint64_t)zt_dtype_width((enum zt_dtype)part->dtype) * check->object->rank;
    if (part->decoded_length % point_bytes != 0)
        return zt_layout_refuse(check, part,
                                "coordinates that are not as many for every dimension");
    return ZT_OK;
}

enum zt_status zt_layout_check_part(const struct zt_model *model, const struct zt_object *object,
                                    const struct zt_component *part, enum zt_layout_family family,
                                    struct zt_error *error)
{
    struct zt_layout_case check = {
        .model = model, .object = object, .family = family, .error = error};

    check.shape = zt_object_shape(model, object);
    if (!zt_shape_product(check.shape, object->rank, &check.elements))
        return ZT_OK;
    switch ((enum zt_layout)object->layout) {
    case ZT_LAYOUT_DENSE:
        return check_dense(&check, part);
    case ZT_LAYOUT_SPARSE_CSR:
        return check_csr(&check, part);
    case ZT_LAYOUT_SPARSE_COO:
        return check_coo(&check, part);
    default: /* their sizes depend on one another */
        return ZT_OK;
    }
}
