/* Overlap of byte ranges (zTensor 2: identical or disjoint, per file; zTensor 0.1 and 1.x: the
 * same, by decision).
 *
 * Components in file order are compared neighbour by neighbour, which needs no memory. Otherwise an
 * index of 32-bit numbers is merge-sorted first: two arrays, 8 bytes a component, and no recursion.
 */
#include "model/extents.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_build.h"

static bool comes_before(const struct zt_component *a, const struct zt_component *b)
{
    if (a->shard != b->shard)
        return a->shard < b->shard;
    return a->offset < b->offset;
}

/* Without sums, so that no end of a range can overflow. Both lengths are above 0. */
static bool overlaps(uint64_t offset_a, uint64_t length_a, uint64_t offset_b, uint64_t length_b)
{
    if (offset_a == offset_b)
        return length_a != length_b;
    return offset_a < offset_b ? offset_b - offset_a < length_a : offset_a - offset_b < length_b;
}

const struct zt_object *zt_component_owner(const struct zt_model *model,
                                           const struct zt_component *component)
{
    uint32_t index = zt_component_index(model, component);

    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];

        if (index >= object->first_component &&
            index - object->first_component < object->component_count)
            return object;
    }
    return NULL;
}

/* Follows zt_fail: tells whose range it is. */
static enum zt_status refuse(const struct zt_model *model, const struct zt_component *component,
                             struct zt_error *error)
{
    const struct zt_object *object = zt_component_owner(model, component);

    if (object != NULL)
        zt_error_at(error, zt_object_name(object), zt_component_name(component));
    return ZT_INVALID;
}

/* a comes first or at the same place as b. */
static enum zt_status check_pair(const struct zt_model *model, const struct zt_component *a,
                                 const struct zt_component *b, const char *rule,
                                 struct zt_error *error)
{
    if (a->shard != b->shard || !overlaps(a->offset, a->length, b->offset, b->length))
        return ZT_OK;
    zt_fail(error, ZT_INVALID, rule, b->offset,
            "bytes %" PRIu64 "+%" PRIu64 " overlap another component's %" PRIu64 "+%" PRIu64
            " without being the same",
            b->offset, b->length, a->offset, a->length);
    return refuse(model, b, error);
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
        return refuse(model, component, error);
    }
    return ZT_OK;
}

/* Checks neighbours as they stand; *out_ordered is false, and nothing more known, when they are not
 * in file order. */
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

/* Merges index[low, middle) and index[middle, high), both in order, into scratch[low, high). */
static void merge_runs(const struct zt_component *components, const uint32_t *index,
                       uint32_t *scratch, const uint32_t bounds[3])
{
    uint32_t left = bounds[0];
    uint32_t right = bounds[1];

    for (uint32_t at = bounds[0]; at < bounds[2]; at++) {
        bool take_right = left == bounds[1] ||
                          (right < bounds[2] &&
                           comes_before(&components[index[right]], &components[index[left]]));

        scratch[at] = take_right ? index[right++] : index[left++];
    }
}

static uint32_t at_most(uint64_t position, uint32_t count)
{
    return position < count ? (uint32_t)position : count;
}

/* Sorts index in file order, with scratch of the same size; gives back which of the two holds the
 * result. */
static uint32_t *sort_index(const struct zt_component *components, uint32_t *index,
                            uint32_t *scratch, uint32_t count)
{
    for (uint64_t run = 1; run < count; run *= 2) {
        uint32_t *sorted;

        for (uint64_t low = 0; low < count; low += 2 * run) {
            uint32_t bounds[3] = {(uint32_t)low, at_most(low + run, count),
                                  at_most(low + 2 * run, count)};

            if (bounds[1] == bounds[2] ||
                !comes_before(&components[index[bounds[1]]], &components[index[bounds[1] - 1]]))
                memcpy(scratch + low, index + low, (bounds[2] - bounds[0]) * sizeof(*index));
            else
                merge_runs(components, index, scratch, bounds);
        }
        sorted = scratch;
        scratch = index;
        index = sorted;
    }
    return index;
}

enum zt_status zt_extents_sort(const struct zt_model *model, struct zt_extents_order *out_order,
                               struct zt_error *error)
{
    struct zt_extents_order order = {0};
    uint32_t *index = calloc(2 * (size_t)model->component_count + 1, sizeof(*index));

    if (index == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET,
                       "no memory to compare the components' ranges");
    for (uint32_t i = 0; i < model->component_count; i++) {
        if (model->components[i].length == 0)
            continue;
        index[order.count++] = i;
        order.own_count += model->components[i].shard == 0;
    }
    order.memory = index;
    order.sorted =
        sort_index(model->components, index, index + model->component_count, order.count);
    *out_order = order;
    return ZT_OK;
}

void zt_extents_order_free(struct zt_extents_order *order)
{
    free(order->memory);
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

uint64_t zt_manifest_position(const struct zt_model *model, const void *text)
{
    const struct zt_model_storage *storage = model->storage;
    const uint8_t *at = text;

    if (storage == NULL || storage->manifest == NULL || at < storage->manifest ||
        at >= storage->manifest + model->manifest_length)
        return ZT_NO_OFFSET;
    return model->manifest_offset + (uint64_t)(at - storage->manifest);
}
