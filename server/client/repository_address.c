#include "client/repository_address.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "client/api_address.h"
#include "http/fields/uri.h"

static enum zt_status refuse(struct zt_error *error)
{
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                   "the URL does not name a repository: use http://HOST/OWNER/NAME");
}

/* Splits BASE/files/NAME, unless there is no name. */
static void split_files(struct zt_text path, struct zt_text *out_base, struct zt_text *out_name)
{
    static const char files[] = "/files/";
    const size_t length = sizeof(files) - 1;
    const char *found = memmem(path.bytes, path.length, files, length);
    const size_t before = found != NULL ? (size_t)(found - path.bytes) : path.length;

    if (before + length >= path.length)
        return;
    *out_base = (struct zt_text){path.bytes, before};
    *out_name = (struct zt_text){found + length, path.length - before - length};
}

static bool read_name(struct zt_text raw, struct repository_address *address)
{
    char decoded[WEB_TARGET_SIZE];
    size_t length;

    if (raw.length >= sizeof(decoded) || !percent_decode(raw, decoded, &length))
        return false;
    while (length > 0 && decoded[length - 1] == '/')
        length--;
    if (length >= sizeof(address->name))
        return false;
    memcpy(address->name, decoded, length);
    address->name[length] = '\0';
    return length == 0 || store_path_is_served((struct zt_text){decoded, length});
}

enum zt_status repository_address_read(const char *url, struct repository_address *out_address,
                                       struct zt_error *error)
{
    struct repository_address address = {.base = ""};
    enum zt_status status = client_place_read(url, &address.place, error);
    struct zt_text path;
    struct api_address api;

    if (status != ZT_OK)
        return status;
    path = web_address_path(&address.place.address);
    api = api_address_read(&address.place.address);
    if (address.place.address.target[path.length] == '?')
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "a repository's URL must not have parameters");
    if (api.kind != API_MODEL)
        split_files(path, &api.base, &api.name);
    assert(api.base.length < sizeof(address.base));
    memcpy(address.base, api.base.bytes, api.base.length);
    address.ends_in_slash = path.bytes[path.length - 1] == '/';
    if (!read_name(api.name, &address))
        return refuse(error);
    *out_address = address;
    return ZT_OK;
}

enum zt_status repository_address_beside(const struct repository_address *address, const char *path,
                                         const char *query, struct client_place *out_place,
                                         struct zt_error *error)
{
    struct href href;
    enum zt_status status;

    href_init(&href);
    href_plain(&href, address->base);
    href_plain(&href, "/files/");
    href_path(&href, zt_text_from(address->name));
    href_plain(&href, "/");
    href_path(&href, zt_text_from(path));
    href_plain(&href, query);
    status = href.failed ? zt_fail_memory(error, "a URL")
                         : client_place_beside(&address->place, href.text, out_place, error);
    href_free(&href);
    return status;
}
