/* The catalog's index of blobs is one of stored bytes: those of plain components are what the
 * tensor is. What is stored compressed is found where the digest of its decoded bytes is kept. */
#include "upload/writer/held_component.h"

#include "catalog/catalog.h"
#include "verify/blob_index.h"
#include "zt/decode.h"

/* Candidates of one digest that are looked at: files that are gone, or whose bytes are stored
 * compressed. */
#define TRIES_MAX 16

/* The index may be of a generation whose file is closed, or no longer what it was: it is opened,
 * and compared, again. */
static bool open_found(struct server *server, const struct component_place *place, bool is_decoded,
                       struct held_component *out_held)
{
    struct generation *generation = catalog_update(server->catalog, place->generation->path);

    if (generation != NULL && generation == place->generation && generation->model != NULL) {
        const struct zt_component *component = &generation->model->components[place->component];
        struct zt_files files = generation_files(generation);

        *out_held =
            (struct held_component){generation, component, zt_files_source(&files, component)};
        if (out_held->source != NULL && (is_decoded || zt_component_is_plain(component)))
            return true;
    }
    generation_release(generation);
    return false;
}

static bool find_decoded(struct server *server, const uint8_t sha256[32],
                         struct held_component *out_held)
{
    struct component_place place;
    bool found;

    if (!blob_find_decoded(server, sha256, &place))
        return false;
    found = open_found(server, &place, true, out_held);
    generation_release(place.generation);
    return found;
}

static bool find_stored(struct server *server, const uint8_t sha256[32],
                        struct held_component *out_held)
{
    bool found = false;

    for (unsigned skip = 0; skip < TRIES_MAX && !found; skip++) {
        struct component_place place;

        if (blob_find(server, sha256, (struct blob_search){skip, true}, &place) != BLOB_FOUND)
            return false;
        found = open_found(server, &place, false, out_held);
        generation_release(place.generation);
    }
    return found;
}

bool held_component_find(struct server *server, const uint8_t sha256[32],
                         struct held_component *out_held)
{
    return find_stored(server, sha256, out_held) || find_decoded(server, sha256, out_held);
}

void held_component_release(struct held_component *held)
{
    generation_release(held->generation);
}
