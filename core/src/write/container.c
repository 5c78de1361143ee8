/* zTensor files: setting the places and digests of components, and planning a whole file of either
 * version. */
#include "write/container.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Room for "sha256:" and 64 digits, or "xxh3:" and 16. */
#define DIGEST_TEXT_MAX 72
/* zTensor 1.2 section 5, zTensor 2 section 1. */
#define MANIFEST_MAX_BYTES (UINT64_C(1) << 30)

const struct zt_container *zt_container_of(enum zt_target target)
{
    assert(target <= ZT_TARGET_ZT2);
    return target == ZT_TARGET_ZT1 ? &zt1_container : &zt2_container;
}

enum zt_status zt_placed_init(struct zt_placed *placed, const struct zt_model *outline,
                              struct zt_error *error)
{
    size_t count = outline->component_count;

    memset(placed, 0, sizeof(*placed));
    placed->model = *outline;
    placed->components = malloc((count + 1) * sizeof(*placed->components));
    placed->digests = malloc((count + 1) * DIGEST_TEXT_MAX);
    if (placed->components == NULL || placed->digests == NULL) {
        zt_placed_free(placed);
        return zt_fail_memory(error, "a file plan");
    }
    if (count > 0)
        memcpy(placed->components, outline->components, count * sizeof(*placed->components));
    placed->model.components = placed->components;
    return ZT_OK;
}

void zt_placed_set_digest(struct zt_placed *placed, uint32_t component,
                          const struct zt_digest *digest)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    char *kept = placed->digests + (size_t)component * DIGEST_TEXT_MAX;
    size_t length;

    assert(component < placed->model.component_count);

    zt_digest_format(digest, text);
    length = strlen(text);
    assert(length <= DIGEST_TEXT_MAX);
    memcpy(kept, text, length);
    placed->components[component].digest = kept;
    placed->components[component].digest_length = (uint32_t)length;
}

void zt_placed_free(struct zt_placed *placed)
{
    free(placed->components);
    free(placed->digests);
    placed->components = NULL;
    placed->digests = NULL;
}

enum zt_status zt_check_manifest_length(uint64_t length, struct zt_error *error)
{
    if (length <= MANIFEST_MAX_BYTES)
        return ZT_OK;
    return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                   "zTensor cannot hold a manifest of more than 1 GiB");
}

static enum zt_status place_all(const struct zt_container *container, struct zt_planning *planning,
                                struct zt_placed *placed, uint64_t *offset)
{
    const struct zt_model *model = planning->projection->model;
    enum zt_status status = ZT_OK;

    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];

        for (uint32_t j = 0; j < object->component_count && status == ZT_OK; j++)
            status = container->place(planning, placed, object->first_component + j, offset);
    }
    *offset = zt_align(*offset, container->manifest_alignment);
    assert(*offset >= sizeof(container->magic));
    return status;
}

enum zt_status zt_container_plan(const struct zt_container *container, struct zt_planning *planning)
{
    struct zt_placed placed;
    struct zt_buffer bytes = {0};
    uint64_t offset = sizeof(container->magic);
    enum zt_status status = zt_placed_init(&placed, planning->projection->model, planning->error);

    zt_buffer_append(&bytes, container->magic, sizeof(container->magic));
    if (status == ZT_OK)
        status = zt_planning_add(planning, 0, &bytes);
    if (status == ZT_OK)
        status = place_all(container, planning, &placed, &offset);
    bytes.length = 0;
    if (status == ZT_OK)
        status = container->put_end(&placed.model, offset, &bytes, planning->error);
    if (status == ZT_OK)
        status = zt_planning_add(planning, offset, &bytes);
    zt_buffer_free(&bytes);
    zt_placed_free(&placed);
    return status;
}
