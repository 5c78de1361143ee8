/* A finished model: finding objects, components and their places in the file; freeing. */
#include "zt/model.h"

#include <stdlib.h>

#include "model/locate.h"
#include "model/model_build.h"
#include "model/name_sort.h"

void zt_model_free(struct zt_model *model)
{
    if (model == NULL)
        return;
    /* The builder allocated these; to everybody else they are constant. */
    free((void *)(uintptr_t)model->objects);
    free((void *)(uintptr_t)model->components);
    free((void *)(uintptr_t)model->dimensions);
    free((void *)(uintptr_t)model->shards);
    if (model->storage != NULL) {
        zt_arena_free(&model->storage->arena);
        free(model->storage->manifest);
        free(model->storage);
    }
    free(model);
}

const struct zt_object *zt_model_find(const struct zt_model *model, struct zt_text name)
{
    struct zt_named_array objects = zt_objects_named(model->objects, model->object_count);

    return zt_names_find(&objects, name);
}

const struct zt_component *zt_object_find(const struct zt_model *model,
                                          const struct zt_object *object, struct zt_text name)
{
    struct zt_named_array components =
        zt_components_named(zt_object_components(model, object), object->component_count);

    return zt_names_find(&components, name);
}

uint64_t zt_object_elements(const struct zt_model *model, const struct zt_object *object)
{
    const uint64_t *shape = zt_object_shape(model, object);
    uint64_t elements = 1;

    for (unsigned i = 0; i < object->rank; i++)
        elements *= shape[i];
    return elements;
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
