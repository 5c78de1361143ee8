#include "client/api_address.h"

#include <stdio.h>
#include <string.h>

#include "store/store.h"

#define MODELS "/v1/models/"
#define FILES  "/files/"

static bool ends_like_file(struct zt_text name)
{
    for (unsigned rank = 0; model_extension(rank) != NULL; rank++)
        if (model_extension_ends(name, rank))
            return true;
    return model_path_is_index(name);
}

/* A model's name is followed by one of its resources. The first segment always belongs to the
 * name. */
static bool has_reserved_segment(struct zt_text name)
{
    const char *first = memchr(name.bytes, '/', name.length);
    size_t start = first != NULL ? (size_t)(first - name.bytes) + 1 : name.length;

    while (start < name.length) {
        const char *slash = memchr(name.bytes + start, '/', name.length - start);
        const size_t end = slash != NULL ? (size_t)(slash - name.bytes) : name.length;

        if (model_segment_is_resource((struct zt_text){name.bytes + start, end - start}))
            return true;
        start = end + 1;
    }
    return false;
}

static enum api_kind kind_below_models(const struct api_address *api)
{
    const bool is_foreign = api->base.length > 0 && ends_like_file(api->name);

    return is_foreign || has_reserved_segment(api->name) ? API_FILE : API_MODEL;
}

struct api_address api_address_read(const struct web_address *address)
{
    const struct zt_text path = web_address_path(address);
    const char *models = memmem(path.bytes, path.length, MODELS, strlen(MODELS));
    const bool is_file = path.length >= strlen(FILES) && !memcmp(path.bytes, FILES, strlen(FILES));
    struct api_address api = {API_SHORT, {path.bytes, 0}, {path.bytes + 1, path.length - 1}};

    if (models != NULL && !is_file) {
        api.base.length = (size_t)(models - path.bytes);
        api.name.bytes = models + strlen(MODELS);
        api.name.length = path.length - api.base.length - strlen(MODELS);
        while (api.base.length > 0 && api.base.bytes[api.base.length - 1] == '/')
            api.base.length--;
        api.kind = kind_below_models(&api);
    } else if (is_file || ends_like_file(path) || address->target[path.length] == '?') {
        api.kind = API_FILE;
    }
    return api;
}

enum zt_status api_address_beside(const struct client_place *place, const char *target,
                                  struct client_place *out_place, struct zt_error *error)
{
    const struct zt_text base = api_address_read(&place->address).base;
    char below[2 * WEB_TARGET_SIZE];

    if (base.length + strlen(target) >= sizeof(below))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the URL is too long");
    snprintf(below, sizeof(below), "%.*s%s", (int)base.length, base.bytes, target);
    return client_place_beside(place, below, out_place, error);
}
