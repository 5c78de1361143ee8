/* Assembling: an outline grown entry by entry, its components placed from the first, encoded by the
 * writers of the two zTensors. */
#include "zt/assemble.h"

#include <stdlib.h>
#include <string.h>

#include "model/layout.h"
#include "write/container.h"

/* zTensor 2's bound on names. */
#define NAME_MAX_BYTES    1024
#define SMALLEST_CAPACITY 16

/* A growing array. */
struct entries {
    void *list;
    size_t count;
    size_t capacity;
};

struct zt_assembly {
    const struct zt_container *container;
    struct zt_model model;
    struct entries objects;
    struct entries components;
    struct entries dimensions;
    struct entries digests; /* of components */
};

static const struct zt_container *container_of(enum zt_target target)
{
    return target == ZT_TARGET_ZT1 ? &zt1_container : &zt2_container;
}

struct zt_places zt_target_places(enum zt_target target)
{
    const struct zt_container *container = container_of(target);
    struct zt_places places = {.data_alignment = container->data_alignment,
                               .manifest_alignment = container->manifest_alignment,
                               .digest = container->digest,
                               .digest_covers_stored = container->digest_covers_stored,
                               .encoding = container->encoding};

    memcpy(places.head, container->magic, sizeof(places.head));
    return places;
}

/* A cleared entry behind the others, or NULL. */
static void *add(struct entries *entries, size_t size)
{
    if (entries->count == entries->capacity) {
        size_t capacity = entries->capacity == 0 ? SMALLEST_CAPACITY : entries->capacity * 2;
        void *list = reallocarray(entries->list, capacity, size);

        if (list == NULL)
            return NULL;
        entries->list = list;
        entries->capacity = capacity;
    }
    return memset((char *)entries->list + entries->count++ * size, 0, size);
}

static void show(struct zt_assembly *assembly)
{
    assembly->model.objects = assembly->objects.list;
    assembly->model.object_count = (uint32_t)assembly->objects.count;
    assembly->model.components = assembly->components.list;
    assembly->model.component_count = (uint32_t)assembly->components.count;
    assembly->model.dimensions = assembly->dimensions.list;
}

enum zt_status zt_assembly_new(enum zt_target target, struct zt_text attributes,
                               struct zt_assembly **out_assembly, struct zt_error *error)
{
    struct zt_assembly *assembly = calloc(1, sizeof(*assembly));
    const char *version = target == ZT_TARGET_ZT1 ? "1.2.0" : "2";

    if (assembly == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a file's layout");
    assembly->container = container_of(target);
    assembly->model.format = target == ZT_TARGET_ZT1 ? ZT_FORMAT_ZT1 : ZT_FORMAT_ZT2;
    assembly->model.format_name = "zt";
    assembly->model.version = (struct zt_text){version, strlen(version)};
    assembly->model.attributes = attributes;
    *out_assembly = assembly;
    return ZT_OK;
}

/* --- names --- */

static int compare(struct zt_text a, struct zt_text b)
{
    int order = memcmp(a.bytes, b.bytes, a.length < b.length ? a.length : b.length);

    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

static enum zt_status check_name(const struct zt_assembly *assembly, struct zt_text name,
                                 const struct zt_text *before, struct zt_error *error)
{
    if (before != NULL && compare(*before, name) >= 0)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "names are to ascend");
    if (assembly->container == &zt2_container &&
        (name.length == 0 || name.length > NAME_MAX_BYTES ||
         memchr(name.bytes, 0, name.length) != NULL))
        return zt_fail(error, ZT_INVALID, "zt2 §3 Name", ZT_NO_OFFSET,
                       "a name has 1 to %d bytes and no NUL", NAME_MAX_BYTES);
    return ZT_OK;
}

static struct zt_object *last_object(const struct zt_assembly *assembly)
{
    struct zt_object *objects = assembly->objects.list;

    return assembly->objects.count > 0 ? &objects[assembly->objects.count - 1] : NULL;
}

static struct zt_component *last_component(const struct zt_assembly *assembly)
{
    struct zt_component *components = assembly->components.list;

    return last_object(assembly)->component_count > 0 ? &components[assembly->components.count - 1]
                                                      : NULL;
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

enum zt_status zt_assembly_object(struct zt_assembly *assembly,
                                  const struct zt_assembly_object *object, struct zt_error *error)
{
    enum zt_layout_family family =
        assembly->container == &zt1_container ? ZT_LAYOUTS_ZT1 : ZT_LAYOUTS_ZT2;
    enum zt_status status = check_object(assembly, object, error);
    struct zt_object *entry;

    if (status != ZT_OK)
        return status;
    entry = add(&assembly->objects, sizeof(*entry));
    if (entry == NULL)
        return zt_fail_memory(error, "an assembly");
    *entry = (struct zt_object){.name = object->name.bytes,
                                .name_length = (uint32_t)object->name.length,
                                .format = object->format.bytes,
                                .format_length = (uint32_t)object->format.length,
                                .first_component = (uint32_t)assembly->components.count,
                                .first_dimension = (uint32_t)assembly->dimensions.count,
                                .rank = object->shape->rank,
                                .layout = (uint8_t)zt_layout_from_name(family, object->format)};
    if (object->attributes.length > 0) {
        entry->attributes = (const uint8_t *)object->attributes.bytes;
        entry->attributes_length = (uint32_t)object->attributes.length;
    }
    for (unsigned i = 0; i < object->shape->rank; i++) {
        uint64_t *extent = add(&assembly->dimensions, sizeof(*extent));

        if (extent == NULL)
            return zt_fail_memory(error, "an assembly");
        *extent = object->shape->extents[i];
    }
    show(assembly);
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

static struct zt_component outlined(const struct zt_container *container,
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
    struct zt_component *entry;
    struct zt_digest *digest;

    if (last_object(assembly) == NULL)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "a component without an object");
    status = check_component(assembly, component, error);
    if (status != ZT_OK)
        return status;
    entry = add(&assembly->components, sizeof(*entry));
    digest = add(&assembly->digests, sizeof(*digest));
    if (entry == NULL || digest == NULL)
        return zt_fail_memory(error, "an assembly");
    *entry = outlined(assembly->container, component);
    *digest = component->digest;
    last_object(assembly)->component_count++;
    show(assembly);
    return ZT_OK;
}

/* zTensor 1.2 has its indices as u64; other types are read, as older files have them, but not
 * written. */
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
        if (component->name_length != strlen(names[i]) ||
            memcmp(component->name, names[i], strlen(names[i])) != 0)
            continue;
        zt_fail(error, ZT_INVALID, "zt1 §3 LayoutRule", ZT_NO_OFFSET,
                "%s of a sparse object are u64", names[i]);
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
    part = outlined(assembly->container, component);
    status = zt_assembly_object(assembly, object, error);
    if (status == ZT_OK)
        status =
            zt_layout_check_part(&assembly->model, assembly->model.objects, &part,
                                 target == ZT_TARGET_ZT1 ? ZT_LAYOUTS_ZT1 : ZT_LAYOUTS_ZT2, error);
    if (status == ZT_OK)
        status = check_index(assembly, assembly->model.objects, &part, error);
    zt_assembly_free(assembly);
    return status;
}

/* --- the whole --- */

enum zt_status zt_assembly_check(const struct zt_assembly *assembly, struct zt_error *error)
{
    enum zt_layout_family family =
        assembly->container == &zt1_container ? ZT_LAYOUTS_ZT1 : ZT_LAYOUTS_ZT2;
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
    const struct zt_digest *digests = assembly->digests.list;
    struct zt_buffer end = {0};
    struct zt_placed placed;
    enum zt_status status = zt_placed_init(&placed, &assembly->model, error);

    if (status != ZT_OK)
        return status;
    for (uint32_t i = 0; i < assembly->model.component_count; i++)
        zt_placed_set_digest(&placed, i, &digests[i]);
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
    free(assembly->objects.list);
    free(assembly->components.list);
    free(assembly->dimensions.list);
    free(assembly->digests.list);
    free(assembly);
}
