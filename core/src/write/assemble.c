/* Assembling: a model that grows object by object and component by component. The caller has placed
 * its components, and the manifest is encoded by the code that also writes whole files. */
#include "zt/assemble.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/layout.h"
#include "write/container.h"

/* zTensor 2's bound on names. */
#define NAME_MAX_BYTES 1024
#define MEMORY_PURPOSE "an assembly"

struct zt_assembly {
    const struct zt_container *container;
    struct zt_model model; /* points to the arrays below and holds their counts */
    struct zt_object *objects;
    size_t object_capacity;
    struct zt_component *components;
    size_t component_capacity;
    struct zt_digest *digests; /* one for each component */
    size_t digest_capacity;
    uint64_t *dimensions;
    size_t dimension_count;
    size_t dimension_capacity;
};

struct zt_places zt_target_places(enum zt_target target)
{
    const struct zt_container *container = zt_container_of(target);
    struct zt_places places = {.data_alignment = container->data_alignment,
                               .manifest_alignment = container->manifest_alignment,
                               .digest = container->digest,
                               .digest_covers_stored = container->digest_covers_stored,
                               .encoding = container->encoding};

    memcpy(places.head, container->magic, sizeof(places.head));
    return places;
}

/* Called after an array has moved. */
static void update_model(struct zt_assembly *assembly)
{
    assembly->model.objects = assembly->objects;
    assembly->model.components = assembly->components;
    assembly->model.dimensions = assembly->dimensions;
    assert(assembly->model.object_count <= assembly->object_capacity);
    assert(assembly->model.component_count <= assembly->component_capacity);
}

enum zt_status zt_assembly_new(enum zt_target target, struct zt_text attributes,
                               struct zt_assembly **out_assembly, struct zt_error *error)
{
    struct zt_assembly *assembly = calloc(1, sizeof(*assembly));

    if (assembly == NULL)
        return zt_fail_memory(error, MEMORY_PURPOSE);
    assembly->container = zt_container_of(target);
    assembly->model.format = target == ZT_TARGET_ZT1 ? ZT_FORMAT_ZT1 : ZT_FORMAT_ZT2;
    assembly->model.format_name = "zt";
    assembly->model.version = zt_text_from(target == ZT_TARGET_ZT1 ? "1.2.0" : "2");
    assembly->model.attributes = attributes;
    *out_assembly = assembly;
    return ZT_OK;
}

/* --- names --- */

static enum zt_status check_name(const struct zt_assembly *assembly, struct zt_text name,
                                 const struct zt_text *before, struct zt_error *error)
{
    if (before != NULL && zt_text_compare(*before, name) >= 0)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "names must ascend");
    if (assembly->container == &zt2_container &&
        (name.length == 0 || name.length > NAME_MAX_BYTES ||
         memchr(name.bytes, 0, name.length) != NULL))
        return zt_fail(error, ZT_INVALID, "zt2 §3 Name", ZT_NO_OFFSET,
                       "a name has 1 to %d bytes and no NUL", NAME_MAX_BYTES);
    return ZT_OK;
}

static struct zt_object *last_object(const struct zt_assembly *assembly)
{
    uint32_t count = assembly->model.object_count;

    return count > 0 ? &assembly->objects[count - 1] : NULL;
}

/* The last component of the last object; NULL if it has none. */
static struct zt_component *last_component(const struct zt_assembly *assembly)
{
    uint32_t count = assembly->model.component_count;

    return last_object(assembly)->component_count > 0 ? &assembly->components[count - 1] : NULL;
}

/* --- entries --- */

static enum zt_status check_object(const struct zt_assembly *assembly,
                                   const struct zt_assembly_object *object, struct zt_error *error)
{
    const struct zt_object *last = last_object(assembly);
    struct zt_text before = last != NULL ? zt_object_name(last) : (struct zt_text){NULL, 0};
    enum zt_status status =
        check_name(assembly, object->name, last != NULL ? &before : NULL, error);

    if (status != ZT_OK)
        zt_error_at(error, object->name, (struct zt_text){"", 0});
    return status;
}

static enum zt_status reserve_component(struct zt_assembly *assembly)
{
    size_t count = assembly->model.component_count + (size_t)1;
    enum zt_status status = zt_array_reserve(&assembly->components, &assembly->component_capacity,
                                             count, sizeof(*assembly->components), UINT32_MAX);

    if (status == ZT_OK)
        status = zt_array_reserve(&assembly->digests, &assembly->digest_capacity, count,
                                  sizeof(*assembly->digests), UINT32_MAX);
    update_model(assembly);
    return status;
}

/* Also reserves room for a component and a dimension, even if the object has none, so that no array
 * of the model is NULL. */
static enum zt_status reserve_object(struct zt_assembly *assembly, unsigned rank)
{
    enum zt_status status = zt_array_reserve(&assembly->objects, &assembly->object_capacity,
                                             assembly->model.object_count + (size_t)1,
                                             sizeof(*assembly->objects), UINT32_MAX);

    if (status == ZT_OK)
        status = zt_array_reserve(&assembly->dimensions, &assembly->dimension_capacity,
                                  assembly->dimension_count + rank + 1,
                                  sizeof(*assembly->dimensions), UINT32_MAX);
    update_model(assembly);
    return status == ZT_OK ? reserve_component(assembly) : status;
}

enum zt_status zt_assembly_object(struct zt_assembly *assembly,
                                  const struct zt_assembly_object *object, struct zt_error *error)
{
    const struct zt_shape *shape = object->shape;
    enum zt_layout_family family = assembly->container->layouts;
    enum zt_status status = check_object(assembly, object, error);
    struct zt_object *entry;

    if (status != ZT_OK)
        return status;
    if (reserve_object(assembly, shape->rank) != ZT_OK)
        return zt_fail_memory(error, MEMORY_PURPOSE);
    entry = &assembly->objects[assembly->model.object_count++];
    *entry = (struct zt_object){.name = object->name.bytes,
                                .name_length = (uint32_t)object->name.length,
                                .format = object->format.bytes,
                                .format_length = (uint32_t)object->format.length,
                                .first_component = assembly->model.component_count,
                                .first_dimension = (uint32_t)assembly->dimension_count,
                                .rank = shape->rank,
                                .layout = (uint8_t)zt_layout_from_name(family, object->format)};
    if (object->attributes.length > 0) {
        entry->attributes = (const uint8_t *)object->attributes.bytes;
        entry->attributes_length = (uint32_t)object->attributes.length;
    }
    for (unsigned i = 0; i < shape->rank; i++)
        assembly->dimensions[assembly->dimension_count++] = shape->extents[i];
    assert(assembly->dimension_count <= assembly->dimension_capacity);
    return ZT_OK;
}

static enum zt_status check_component(const struct zt_assembly *assembly,
                                      const struct zt_assembly_component *component,
                                      struct zt_error *error)
{
    const struct zt_component *last = last_component(assembly);
    struct zt_text before = last != NULL ? zt_component_name(last) : (struct zt_text){NULL, 0};
    enum zt_status status =
        check_name(assembly, component->name, last != NULL ? &before : NULL, error);

    if (status != ZT_OK)
        zt_error_at(error, zt_object_name(last_object(assembly)), component->name);
    return status;
}

static struct zt_component make_component(const struct zt_container *container,
                                          const struct zt_assembly_component *component)
{
    const char *type = zt_logical_name(component->logical);
    const char *encoding = component->compressed ? container->encoding_name : "raw";

    return (struct zt_component){
        .name = component->name.bytes,
        .name_length = (uint32_t)component->name.length,
        .type = type,
        .type_length = type != NULL ? (uint32_t)strlen(type) : 0,
        .encoding_name = encoding,
        .encoding_length = (uint32_t)strlen(encoding),
        .encoding = (uint8_t)(component->compressed ? container->encoding : ZT_ENCODING_RAW),
        .offset = component->offset,
        .length = component->length,
        .decoded_length = component->decoded_length,
        .dtype = (uint8_t)component->dtype,
        .logical = (uint8_t)component->logical,
    };
}

enum zt_status zt_assembly_component(struct zt_assembly *assembly,
                                     const struct zt_assembly_component *component,
                                     struct zt_error *error)
{
    enum zt_status status;
    uint32_t number;

    if (last_object(assembly) == NULL)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "a component without an object");
    status = check_component(assembly, component, error);
    if (status != ZT_OK)
        return status;
    if (reserve_component(assembly) != ZT_OK)
        return zt_fail_memory(error, MEMORY_PURPOSE);
    number = assembly->model.component_count++;
    assembly->components[number] = make_component(assembly->container, component);
    assembly->digests[number] = component->digest;
    last_object(assembly)->component_count++;
    assert(last_object(assembly)->first_component + last_object(assembly)->component_count ==
           assembly->model.component_count);
    return ZT_OK;
}

/* In zTensor 1.2 indices are written as u64; other types are only read, from older files. */
static enum zt_status check_index(const struct zt_assembly *assembly,
                                  const struct zt_object *object,
                                  const struct zt_component *component, struct zt_error *error)
{
    static const char *const names[] = {"indices", "indptr", "coords"};
    bool is_sparse =
        object->layout == ZT_LAYOUT_SPARSE_CSR || object->layout == ZT_LAYOUT_SPARSE_COO;

    if (assembly->container != &zt1_container || !is_sparse || component->dtype == ZT_U64)
        return ZT_OK;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!zt_text_is(zt_component_name(component), names[i]))
            continue;
        zt_fail(error, ZT_INVALID, "zt1 §3 LayoutRule", ZT_NO_OFFSET,
                "%s of a sparse object must be u64", names[i]);
        zt_error_at(error, zt_object_name(object), zt_component_name(component));
        return ZT_INVALID;
    }
    return ZT_OK;
}

static enum zt_status check_indices(const struct zt_assembly *assembly,
                                    const struct zt_object *object, struct zt_error *error)
{
    const struct zt_component *components = zt_object_components(&assembly->model, object);
    enum zt_status status = ZT_OK;

    for (uint32_t i = 0; i < object->component_count && status == ZT_OK; i++)
        status = check_index(assembly, object, &components[i], error);
    return status;
}

enum zt_status zt_assembly_check_component(enum zt_target target,
                                           const struct zt_assembly_object *object,
                                           const struct zt_assembly_component *component,
                                           struct zt_error *error)
{
    struct zt_assembly *assembly = NULL;
    enum zt_status status = zt_assembly_new(target, (struct zt_text){"", 0}, &assembly, error);
    struct zt_component part;

    if (status != ZT_OK)
        return status;
    part = make_component(assembly->container, component);
    status = zt_assembly_object(assembly, object, error);
    if (status == ZT_OK)
        status = zt_layout_check_part(&assembly->model, assembly->model.objects, &part,
                                      assembly->container->layouts, error);
    if (status == ZT_OK)
        status = check_index(assembly, assembly->model.objects, &part, error);
    zt_assembly_free(assembly);
    return status;
}

/* --- the whole --- */

enum zt_status zt_assembly_check(const struct zt_assembly *assembly, struct zt_error *error)
{
    enum zt_layout_family family = assembly->container->layouts;
    enum zt_status status = ZT_OK;

    for (uint32_t i = 0; i < assembly->model.object_count && status == ZT_OK; i++) {
        const struct zt_object *object = &assembly->model.objects[i];

        if (object->component_count == 0) {
            status = zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET, "an object without components");
            zt_error_at(error, zt_object_name(object), (struct zt_text){"", 0});
        } else {
            status = zt_layout_check(&assembly->model, object, family, error);
            if (status == ZT_OK)
                status = check_indices(assembly, object, error);
        }
    }
    return status;
}

enum zt_status zt_assembly_end(struct zt_assembly *assembly, uint64_t offset, uint8_t **out_bytes,
                               size_t *out_length, struct zt_error *error)
{
    struct zt_buffer end = {0};
    struct zt_placed placed;
    enum zt_status status = zt_placed_init(&placed, &assembly->model, error);

    assert(offset % assembly->container->manifest_alignment == 0);
    if (status != ZT_OK)
        return status;
    for (uint32_t i = 0; i < assembly->model.component_count; i++)
        zt_placed_set_digest(&placed, i, &assembly->digests[i]);
    status = assembly->container->put_end(&placed.model, offset, &end, error);
    zt_placed_free(&placed);
    if (status != ZT_OK) {
        zt_buffer_free(&end);
        return status;
    }
    *out_bytes = end.bytes;
    *out_length = end.length;
    return ZT_OK;
}

void zt_assembly_free(struct zt_assembly *assembly)
{
    if (assembly == NULL)
        return;
    free(assembly->objects);
    free(assembly->components);
    free(assembly->dimensions);
    free(assembly->digests);
    free(assembly);
}
