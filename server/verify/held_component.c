/* The index of blobs covers stored bytes, which for plain components are the tensor's bytes.
 * Compressed components are found by the recorded digests of their decoded bytes. */
#include "verify/held_component.h"

#include <assert.h>

#include "catalog/catalog.h"
#include "verify/blob_index.h"
#include "zt/decode.h"

/* Maximum number of candidates tried per digest: some may be compressed or not verified, or their
 * file may be gone. */
#define TRIES_MAX 16

/* The index may refer to a generation whose file is closed or has changed, so the file is opened
 * and compared again. */
static bool open_found(struct server *server, const struct component_place *place, bool is_decoded,
                       bool only_verified, struct held_component *out_held)
{
    struct generation *generation = catalog_update(server->catalog, place->generation->path);

    if (generation != NULL && generation == place->generation && generation->model != NULL) {
        const struct zt_component *component = &generation->model->components[place->component];
        struct zt_files files = generation_files(generation);

        assert(place->component < generation->model->component_count);
        *out_held = (struct held_component){generation, place->component, component,
                                            zt_files_source(&files, component)};
        if (out_held->source != NULL && (is_decoded || zt_component_is_plain(component)) &&
            !(only_verified && generation_is_unverified(generation)))
            return true;
    }
    generation_release(generation);
    return false;
}

static bool find_place(struct server *server, const uint8_t sha256[SHA256_BYTES], bool is_decoded,
                       struct blob_search search, struct component_place *out_place)
{
    return is_decoded ? blob_find_decoded(server, sha256, search, out_place)
                      : blob_find(server, sha256, search, out_place) == BLOB_FOUND;
}

static bool find(struct server *server, const uint8_t sha256[SHA256_BYTES], bool is_decoded,
                 struct name_filter filter, bool only_verified, struct held_component *out_held)
{
    bool found = false;

    for (unsigned skip = 0; skip < TRIES_MAX && !found; skip++) {
        const struct blob_search search = {skip, true, filter};
        struct component_place place;

        if (!find_place(server, sha256, is_decoded, search, &place))
            return false;
        found = open_found(server, &place, is_decoded, only_verified, out_held);
        generation_release(place.generation);
    }
    return found;
}

bool held_component_find(struct server *server, const uint8_t sha256[SHA256_BYTES],
                         struct name_filter filter, bool only_verified,
                         struct held_component *out_held)
{
    return find(server, sha256, false, filter, only_verified, out_held) ||
           find(server, sha256, true, filter, only_verified, out_held);
}
