/* Looks through all models: their manifests are in memory. */
#include "upload/held_component.h"

#include <string.h>

#include "model/catalog.h"
#include "zt/verify.h"

/* Models looked through at a time. */
#define PAGE 64

static const struct zt_component *find_in(const struct generation *generation, const uint8_t sha256[32])
{
    const struct zt_model *model = generation->model;

    for (uint32_t i = 0; model != NULL && i < model->component_count; i++) {
        uint8_t stated[32];

        if (zt_component_decoded_sha256(model, &model->components[i], stated) &&
            memcmp(stated, sha256, sizeof stated) == 0 &&
            (generation->states == NULL || atomic_load(&generation->states[i]) != COMPONENT_CORRUPT))
            return &model->components[i];
    }
    return NULL;
}

/* What is listed may be parked: the file is opened, and looked at, again. */
static bool open_found(struct server *server, const struct generation *listed, const uint8_t sha256[32],
                       struct held_component *out_held)
{
    struct generation *generation = catalog_update(server->catalog, listed->path);
    const struct zt_component *component = generation != NULL ? find_in(generation, sha256) : NULL;

    if (component != NULL) {
        struct zt_files files = generation_files(generation);

        out_held->source = zt_files_source(&files, component);
        out_held->component = component;
        out_held->generation = generation;
        if (out_held->source != NULL)
            return true;
    }
    generation_release(generation);
    return false;
}

bool held_component_find(struct server *server, const uint8_t sha256[32], struct held_component *out_held)
{
    struct generation *page[PAGE];
    struct zt_text after = {"", 0};
    char name[MODEL_NAME_MAX + 1];
    bool found = false;
    bool more = true;

    while (more && !found) {
        size_t count = catalog_list(server->catalog, (struct zt_text){"", 0}, after, PAGE, page, &more);

        for (size_t i = 0; i < count && !found; i++)
            found = find_in(page[i], sha256) != NULL && open_found(server, page[i], sha256, out_held);
        if (count > 0) {
            struct zt_text last = generation_name(page[count - 1]);

            memcpy(name, last.bytes, last.length);
            after = (struct zt_text){name, last.length};
        }
        more = more && count > 0;
        for (size_t i = 0; i < count; i++)
            generation_release(page[i]);
    }
    return found;
}

void held_component_release(struct held_component *held)
{
    generation_release(held->generation);
}
