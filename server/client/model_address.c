#include "client/model_address.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/api_address.h"
#include "client/json_answer.h"
#include "http/fields/uri.h"
#include "input/json_read.h"
#include "store/store.h"
#include "zt/join.h"

bool model_wish_is_set(const struct model_wish *wish)
{
    return wish->format != NULL || wish->shard != NULL || wish->dtype != NULL ||
           wish->glob_count > 0 || wish->axis_count > 0;
}

/* --- names --- */

static enum zt_status refuse_nameless(struct zt_error *error)
{
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                   "the URL does not name a model: use http://HOST/NAME (ztserve ls http://HOST/ "
                   "lists the models)");
}

/* Decodes the raw text and appends it as part of a segment. Returns false if an escape is
 * malformed. */
static bool encode_again(struct href *href, struct zt_text raw, const char *behind)
{
    char decoded[WEB_TARGET_SIZE];
    size_t length;

    assert(behind != NULL);
    if (raw.length + strlen(behind) >= sizeof(decoded) || !percent_decode(raw, decoded, &length))
        return false;
    strcpy(decoded + length, behind);
    href_segment(href, (struct zt_text){decoded, length + strlen(behind)});
    return true;
}

/* Encodes a name again, whichever way it was encoded, with slashes as %2F. An unescaped '@' stays
 * one: it separates a revision from the name. */
static bool encode_pieces(struct href *href, struct zt_text raw, const char *behind)
{
    const char *at;

    while ((at = memchr(raw.bytes, '@', raw.length)) != NULL) {
        const size_t length = (size_t)(at - raw.bytes);

        if (!encode_again(href, (struct zt_text){raw.bytes, length}, ""))
            return false;
        href_plain(href, "@");
        raw.bytes += length + 1;
        raw.length -= length + 1;
    }
    return encode_again(href, raw, behind);
}

/* Returns true if the name is empty or ends in a slash, however it is encoded. */
static bool names_folder(struct zt_text raw)
{
    return raw.length == 0 || raw.bytes[raw.length - 1] == '/' ||
           (raw.length >= 3 && strncasecmp(raw.bytes + raw.length - 3, "%2f", 3) == 0);
}

static enum zt_status encode_model(const struct api_address *api, const char *name,
                                   char out_path[WEB_TARGET_SIZE], struct zt_error *error)
{
    struct href href;
    bool is_read;
    bool fits;

    if (names_folder(api->name) && name == NULL)
        return refuse_nameless(error);
    href_init(&href);
    href_plain(&href, "/v1/models/");
    is_read = encode_pieces(&href, api->name, names_folder(api->name) ? name : "");
    fits = !href.failed && api->base.length + href.length < WEB_TARGET_SIZE;
    if (is_read && fits)
        snprintf(out_path, WEB_TARGET_SIZE, "%.*s%s", (int)api->base.length, api->base.bytes,
                 href.text);
    href_free(&href);
    if (!is_read)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the URL has a malformed escape");
    return fits ? ZT_OK
                : zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the model's name is too long");
}

static bool is_listing(struct zt_text path)
{
    static const char listing[] = "/v1/models";
    const size_t length = strlen(listing);

    return path.length >= length && memcmp(path.bytes + path.length - length, listing, length) == 0;
}

enum zt_status model_address_of_api(const struct web_address *address, const char *name,
                                    char out_path[WEB_TARGET_SIZE], struct zt_error *error)
{
    const struct api_address api = api_address_read(address);

    if (api.kind == API_SHORT && name == NULL && is_listing(web_address_path(address)))
        return refuse_nameless(error);
    if (api.kind == API_FILE &&
        zt_text_starts_with(web_address_path(address), zt_text_from("/files/")))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "files are read below /files/: a model's URL is http://HOST/v1/models/NAME");
    return encode_model(&api, name, out_path, error);
}

static enum zt_status name_file(struct model_file *file, struct zt_error *error)
{
    if (web_address_file_name(&file->place.address, file->name, sizeof(file->name)))
        return ZT_OK;
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                   "the URL does not end in a file name: choose one with -o");
}

/* --- exports --- */

static void add(struct href *href, const char *name, const char *value)
{
    href_plain(href, href->text != NULL && strchr(href->text, '?') != NULL ? "&" : "?");
    href_plain(href, name);
    href_plain(href, "=");
    href_segment(href, zt_text_from(value));
}

static enum zt_status find_export(const struct client_place *place, const char *model_path,
                                  const struct model_wish *wish, struct model_file *out_file,
                                  struct zt_error *error)
{
    const char *format = wish->format != NULL ? wish->format : "zt";
    const char *extension = strcmp(format, "zt2") == 0 ? "zt" : format;
    const char *slash = strrchr(model_path, '/');
    char decoded[WEB_TARGET_SIZE];
    struct href href;
    enum zt_status status;
    const char *base;
    size_t length;

    href_init(&href);
    href_plain(&href, model_path);
    href_plain(&href, "/export");
    add(&href, "format", format);
    for (unsigned i = 0; i < wish->glob_count; i++)
        add(&href, "match", wish->globs[i]);
    if (wish->shard != NULL)
        add(&href, "shard", wish->shard);
    for (unsigned i = 0; i < wish->axis_count; i++)
        add(&href, "axis", wish->axes[i]);
    if (wish->dtype != NULL)
        add(&href, "dtype", wish->dtype);
    status = href.failed ? zt_fail_memory(error, "a URL")
                         : client_place_beside(place, href.text, &out_file->place, error);
    href_free(&href);
    if (status != ZT_OK)
        return status;
    if (strlen(slash + 1) >= sizeof(decoded) ||
        !percent_decode(zt_text_from(slash + 1), decoded, &length))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the model's name is too long");
    decoded[length] = '\0';
    base = strrchr(decoded, '/') != NULL ? strrchr(decoded, '/') + 1 : decoded;
    snprintf(out_file->name, sizeof(out_file->name), "%.*s.%s", (int)(sizeof(out_file->name) - 16),
             base, extension);
    return ZT_OK;
}

/* --- models of the API --- */

/* Requests a path and parses its JSON. A server of models returns JSON with every 404. */
static enum zt_status ask_json(struct client *client, struct client_place *place,
                               struct json_t **out_object, struct zt_error *error)
{
    bool is_problem;
    const enum zt_status status = json_answer_ask(client, place, out_object, &is_problem, error);

    if (status != ZT_IO || is_problem || error->os_error != ENOENT)
        return status;
    zt_fail(error, status, NULL, ZT_NO_OFFSET,
            "there is no model of that name (404), and this does not seem to be a model server: "
            "the URL of another server's file must end in its extension");
    error->os_error = ENOENT;
    return status;
}

/* Requests a manifest without its objects. */
static enum zt_status ask_manifest(struct client *client, const struct client_place *place,
                                   const char *model_path, struct json_t **out_manifest,
                                   struct zt_error *error)
{
    char target[WEB_TARGET_SIZE + 64];
    struct client_place manifest;
    enum zt_status status;

    snprintf(target, sizeof(target), "%s?fields=shape&prefix=%%01", model_path);
    status = client_place_beside(place, target, &manifest, error);
    return status == ZT_OK ? ask_json(client, &manifest, out_manifest, error) : status;
}

/* Sets the place to the file that a manifest names. Returns false if it names none. */
static bool place_source(const struct client_place *place, const struct json_t *manifest,
                         struct model_file *out_file, enum zt_status *out_status,
                         struct zt_error *error)
{
    const struct json_t *source = json_member_object(manifest, "source");
    struct zt_text href;

    if (source == NULL || json_member_text(source, "href", &href) != JSON_FOUND)
        return false;
    *out_status = client_place_beside(place, href.bytes, &out_file->place, error);
    return true;
}

/* Finds the own file of a model that is in the listing. */
static enum zt_status find_own(struct client *client, const struct client_place *place,
                               struct zt_text name, struct model_file *out_file,
                               struct zt_error *error)
{
    struct json_t *manifest = NULL;
    struct href href;
    enum zt_status status;

    href_init(&href);
    href_model(&href, name);
    status = href.failed || href.length >= WEB_TARGET_SIZE
                 ? zt_fail_memory(error, "a URL")
                 : ask_manifest(client, place, href.text, &manifest, error);
    href_free(&href);
    if (status == ZT_OK && !place_source(place, manifest, out_file, &status, error))
        status = zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                         "the first part of the model has no file");
    json_object_free(manifest);
    return status;
}

static enum zt_status fail_without_index(struct zt_error *error)
{
    return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                   "the model has several files, but no index");
}

/* Finds the first model in the listing whose name has this prefix, if the model has its own
 * file. */
static enum zt_status find_listed(struct client *client, const struct client_place *place,
                                  const char *beginning, struct model_file *out_file,
                                  struct zt_error *error)
{
    struct client_place listing;
    struct json_t *answer = NULL;
    const struct json_t *first;
    struct zt_text format;
    struct zt_text name;
    struct href href;
    enum zt_status status;

    href_init(&href);
    href_plain(&href, "/v1/models?limit=1&prefix=");
    href_segment(&href, zt_text_from(beginning));
    status = href.failed ? zt_fail_memory(error, "a URL")
                         : api_address_beside(place, href.text, &listing, error);
    href_free(&href);
    if (status == ZT_OK)
        status = ask_json(client, &listing, &answer, error);
    if (status != ZT_OK)
        return status;
    first = json_list_object(json_member_list(answer, "models"), 0);
    if (first != NULL && json_member_text(first, "format", &format) == JSON_FOUND &&
        zt_text_is(format, "gguf") && json_member_text(first, "name", &name) == JSON_FOUND)
        status = find_own(client, place, name, out_file, error);
    else
        status = fail_without_index(error);
    json_object_free(answer);
    return status;
}

/* Finds the first file with this prefix in its folder. The listing has no models of commits. */
static enum zt_status find_in_folder(struct client *client, const struct client_place *place,
                                     const char *beginning, struct model_file *out_file,
                                     struct zt_error *error)
{
    const char *base = strrchr(beginning, '/') != NULL ? strrchr(beginning, '/') + 1 : beginning;
    struct client_place folder;
    struct json_t *answer = NULL;
    const struct json_t *first;
    struct zt_text href_text;
    struct href href;
    enum zt_status status;

    href_init(&href);
    href_plain(&href, "/files/");
    href_path(&href, (struct zt_text){beginning, (size_t)(base - beginning)});
    href_plain(&href, "?limit=1&after=");
    href_segment(&href, zt_text_from(base));
    status = href.failed ? zt_fail_memory(error, "a URL")
                         : api_address_beside(place, href.text, &folder, error);
    href_free(&href);
    if (status == ZT_OK)
        status = ask_json(client, &folder, &answer, error);
    if (status != ZT_OK)
        return status;
    first = json_list_object(json_member_list(answer, "entries"), 0);
    out_file->place = folder;
    if (first == NULL || json_member_text(first, "href", &href_text) != JSON_FOUND ||
        !zt_text_starts_with(href_text, zt_text_from(base)) ||
        !web_address_follow(&folder.address, href_text.bytes, &out_file->place.address))
        status = fail_without_index(error);
    json_object_free(answer);
    return status;
}

static bool is_there(struct client *client, const struct client_place *place)
{
    struct client_place asked = *place;
    struct remote_exchange exchange;
    struct zt_error error;
    bool is_found;

    client_prepare(client, &asked, &exchange);
    exchange.method = "HEAD";
    is_found =
        client_ask(client, &asked, &exchange, &error) == ZT_OK && exchange.head.status == 200;
    remote_exchange_free(&exchange);
    return is_found;
}

/* A model in several files: its index, or the first part of a split GGUF. */
static enum zt_status find_main_file(struct client *client, const struct client_place *place,
                                     struct zt_text name, struct model_file *out_file,
                                     struct zt_error *error)
{
    char beginning[MODEL_FILE_NAME_SIZE];

    char model[MODEL_NAME_MAX + 1];
    char path[MODEL_PATH_SIZE];

    snprintf(model, sizeof(model), "%.*s", (int)name.length, name.bytes);
    for (unsigned rank = 0; model_file_path(model, rank, path); rank++) {
        enum zt_status status;
        struct href href;

        if (!model_rank_is_index(rank))
            continue;
        href_init(&href);
        href_plain(&href, "/files/");
        href_path(&href, zt_text_from(path));
        status = href.failed ? zt_fail_memory(error, "a URL")
                             : api_address_beside(place, href.text, &out_file->place, error);
        href_free(&href);
        if (status != ZT_OK || is_there(client, &out_file->place))
            return status;
    }
    snprintf(beginning, sizeof(beginning), "%.*s-00001-of-", (int)name.length, name.bytes);
    return strchr(beginning, '@') != NULL
               ? find_in_folder(client, place, beginning, out_file, error)
               : find_listed(client, place, beginning, out_file, error);
}

/* The file that the manifest names. */
static enum zt_status find_source(struct client *client, const struct client_place *place,
                                  const char *model_path, struct model_file *out_file,
                                  struct zt_error *error)
{
    struct json_t *answer = NULL;
    struct zt_text name;
    enum zt_status status = ask_manifest(client, place, model_path, &answer, error);

    if (status != ZT_OK || place_source(place, answer, out_file, &status, error)) {
        json_object_free(answer);
        return status;
    }
    if (json_member_object(answer, "source") != NULL &&
        json_member_text(answer, "name", &name) == JSON_FOUND)
        status = find_main_file(client, place, name, out_file, error);
    else
        status = zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET,
                         "the server's response is not a manifest: is it a model server?");
    json_object_free(answer);
    return status;
}

enum zt_status model_address_check(const char *url, struct zt_error *error)
{
    struct client_place place;
    char model_path[WEB_TARGET_SIZE];
    const enum zt_status status = client_place_read(url, &place, error);

    if (status != ZT_OK || api_address_read(&place.address).kind == API_FILE)
        return status;
    return model_address_of_api(&place.address, NULL, model_path, error);
}

enum zt_status model_address_find(struct client *client, const char *url,
                                  const struct model_wish *wish, struct model_file *out_file,
                                  struct zt_error *error)
{
    struct model_file file = {.name = ""};
    struct client_place place;
    char model_path[WEB_TARGET_SIZE];
    struct api_address api;
    enum zt_status status = client_place_read(url, &place, error);

    if (status != ZT_OK)
        return status;
    file.place = place;
    api = api_address_read(&place.address);
    if (api.kind == API_SHORT && strstr(place.address.target, "/files/") != NULL &&
        is_there(client, &place))
        api.kind = API_FILE;
    if (api.kind == API_MODEL && strchr(place.address.target, '?') != NULL)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "a model's URL must not have parameters: use pull's options");
    if (api.kind == API_FILE) {
        if (model_wish_is_set(wish))
            return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                           "only models can be selected from or converted, not files: use "
                           "http://host/v1/models/NAME");
        status = name_file(&file, error);
        file.is_named_by_url = true;
        file.may_be_other = strstr(place.address.target, "/files/") != NULL;
    } else {
        status = model_address_of_api(&place.address, NULL, model_path, error);
        if (status == ZT_OK && model_wish_is_set(wish))
            status = find_export(&place, model_path, wish, &file, error);
        else if (status == ZT_OK)
            status = find_source(client, &place, model_path, &file, error);
        if (status == ZT_OK && file.name[0] == '\0')
            status = name_file(&file, error);
    }
    if (status == ZT_OK)
        *out_file = file;
    return status;
}
