/* Overlap of byte ranges. In each file they must be identical or disjoint: zTensor 2 requires it,
 * and this library applies the same rule to zTensor 0.1 and 1.x.
 *
 * Components in file order are compared with their neighbours, which takes no memory. For any other
 * order an index is sorted first. */
#include "model/extents.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/index_sort.h"
#include "model/locate.h"

static bool comes_before(const struct zt_component *a, const struct zt_component *b)
{
    if (a->shard != b->shard)
        return a->shard < b->shard;
    return a->offset < b->offset;
}

/* Compares differences instead of sums, because the end of a range may not fit in 64 bits. Both
 * lengths are above 0. */
static bool overlaps(uint64_t offset_a, uint64_t length_a, uint64_t offset_b, uint64_t length_b)
{
    if (offset_a == offset_b)
        return length_a != length_b;
    return offset_a < offset_b ? offset_b - offset_a < length_a : offset_a - offset_b < length_b;
}

/* Adds the names of the range's object and component to the error. Called after zt_fail. */
static enum zt_status name_component(const struct zt_model *model,
                                     const struct zt_component *component, struct zt_error *error)
{
    const struct zt_object *object = zt_component_owner(model, component);

    if (object != NULL)
        zt_error_at(error, zt_object_name(object), zt_component_name(component));
    return ZT_INVALID;
}

/* a does not begin after b. */
static enum zt_status check_pair(const struct zt_model *model, const struct zt_component *a,
                                 const struct zt_component *b, const char *rule,
                                 struct zt_error *error)
{
    assert(!comes_before(b, a));
    if (a->shard != b->shard || !overlaps(a->offset, a->length, b->offset, b->length))
        return ZT_OK;
    zt_fail(error, ZT_INVALID, rule, b->offset,
            "bytes %" PRIu64 "+%" PRIu64 " overlap another component's %" PRIu64 "+%" PRIu64
            " without being the same",
            b->offset, b->length, a->offset, a->length);
    return name_component(model, b, error);
}

static enum zt_status check_manifest(const struct zt_model *model, const char *rule,
                                     struct zt_error *error)
{
    for (uint32_t i = 0; i < model->component_count; i++) {
        const struct zt_component *component = &model->components[i];

        if (component->shard != 0 || component->length == 0 ||
            !overlaps(component->offset, component->length, model->manifest_offset,
                      model->manifest_length))
            continue;
        zt_fail(
            error, ZT_INVALID, rule,
            component->offset > model->manifest_offset ? component->offset : model->manifest_offset,
            "bytes %" PRIu64 "+%" PRIu64 " overlap the manifest's %" PRIu64 "+%" PRIu64
            " without being the same",
            component->offset, component->length, model->manifest_offset, model->manifest_length);
        return name_component(model, component, error);
    }
    return ZT_OK;
}

/* Checks neighbouring components in their present order. If that is not file order, sets
 * *out_ordered to false and checks nothing. */
static enum zt_status check_in_place(const struct zt_model *model, const char *rule,
                                     bool *out_ordered, struct zt_error *error)
{
    const struct zt_component *previous = NULL;

    *out_ordered = true;
    for (uint32_t i = 0; i < model->component_count && *out_ordered; i++) {
        const struct zt_component *component = &model->components[i];

        if (component->length == 0)
            continue;
        if (previous != NULL && comes_before(component, previous))
            *out_ordered = false;
        previous = component;
    }
    previous = NULL;
    for (uint32_t i = 0; i < model->component_count && *out_ordered; i++) {
        const struct zt_component *component = &model->components[i];

        if (component->length == 0)
            continue;
        if (previous != NULL && check_pair(model, previous, component, rule, error) != ZT_OK)
            return ZT_INVALID;
        previous = component;
    }
    return ZT_OK;
}

static bool is_after(const void *components, uint32_t a, uint32_t b)
{
    const struct zt_component *all = components;

    return comes_before(&all[b], &all[a]);
}

enum zt_status zt_extents_sort(const struct zt_model *model, struct zt_extents_order *out_order,
                               struct zt_error *error)
{
    const struct zt_index_order by_offset = {is_after, model->components};
    struct zt_extents_order order = {0};

    order.sorted = malloc(((size_t)model->component_count + 1) * sizeof(*order.sorted));
    if (order.sorted == NULL)
        goto no_memory;
    for (uint32_t i = 0; i < model->component_count; i++) {
        if (model->components[i].length == 0)
            continue;
        order.sorted[order.count++] = i;
        order.own_count += model->components[i].shard == 0;
    }
    if (zt_index_sort(order.sorted, order.count, &by_offset) != ZT_OK)
        goto no_memory;
    assert(order.own_count <= order.count && order.count <= model->component_count);
    *out_order = order;
    return ZT_OK;
no_memory:
    free(order.sorted);
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET,
                   "no memory to compare the components' ranges");
}

void zt_extents_order_free(struct zt_extents_order *order)
{
    free(order->sorted);
}

static enum zt_status check_sorted(const struct zt_model *model, const char *rule,
                                   struct zt_error *error)
{
    const struct zt_component *components = model->components;
    struct zt_extents_order order;
    enum zt_status status = zt_extents_sort(model, &order, error);

    if (status != ZT_OK)
        return status;
    for (uint32_t i = 1; i < order.count && status == ZT_OK; i++)
        status = check_pair(model, &components[order.sorted[i - 1]], &components[order.sorted[i]],
                            rule, error);
    zt_extents_order_free(&order);
    return status;
}

enum zt_status zt_extents_check(const struct zt_model *model, bool include_manifest,
                                const char *rule, struct zt_error *error)
{
    enum zt_status status = ZT_OK;
    bool ordered;

    if (include_manifest && model->manifest_length > 0)
        status = check_manifest(model, rule, error);
    if (status != ZT_OK)
        return status;
    status = check_in_place(model, rule, &ordered, error);
    if (status != ZT_OK || ordered)
        return status;
    return check_sorted(model, rule, error);
}
