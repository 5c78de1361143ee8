/* The viewer: its page, its files, and what is at the root of the server.
 *
 * The files are those of server/web. The page is the same at every path below /ui, and shows what
 * its own path names; so a link into the viewer can be shared, and loaded again. */
#include <string.h>

#include "api/handlers.h"
#include "api/json_reply.h"
#include "api/web_files.h"
#include "http/exchange/problem.h"

/* Nothing but the viewer's own files and the server's own API. blob: is for pictures that came from
 * the API with a token, which an address of a picture cannot carry. */
#define POLICY                                                                        \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; " \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static bool is_on(const struct request *request)
{
    return config_flag(&request->server->config->ui);
}

static enum outcome reply_off(struct request *request)
{
    return problem_reply(request, PROBLEM_NOT_FOUND, "the viewer is turned off");
}

static void add_fields(struct representation *reply)
{
    representation_field(reply, "Content-Security-Policy", POLICY);
    representation_field(reply, "X-Content-Type-Options", "nosniff");
    representation_field(reply, "Referrer-Policy", "no-referrer");
    representation_field(reply, "Cross-Origin-Opener-Policy", "same-origin");
}

static enum outcome reply_file(struct request *request, const struct web_file *file,
                               const char *cache_control)
{
    struct representation *reply = &request->reply;
    struct json_reply coded = {.json = NULL};

    if (!json_reply_negotiate(request, &coded))
        return OUTCOME_READY;
    reply->media_type = file->media_type;
    reply->coding = coding_name(coded.coding);
    reply->etag = json_reply_etag(request, &coded, file->etag);
    reply->cache_control = cache_control;
    reply->lasting = true;
    add_fields(reply);
    representation_memory(reply, file->forms[coded.coding].bytes, file->forms[coded.coding].length);
    return OUTCOME_READY;
}

enum outcome page_get(struct request *request)
{
    return is_on(request) ? reply_file(request, &web_page, "no-cache") : reply_off(request);
}

enum outcome asset_get(struct request *request)
{
    if (!is_on(request))
        return reply_off(request);
    for (size_t i = 0; i < web_asset_count; i++)
        if (zt_text_is(request->names[0], web_assets[i].path))
            return reply_file(request, &web_assets[i], "public, max-age=31536000, immutable");
    return problem_reply(request, PROBLEM_NOT_FOUND,
                         "this release of the viewer has no such file; load the page again");
}

/* --- the root --- */

/* Whether a client names HTML as what it likes best; programs that take anything get JSON. */
static bool prefers_page(struct request *request)
{
    const char *accept = request_header(request, "Accept");
    unsigned html;

    if (accept == NULL)
        return false;
    html = negotiate_media_type(accept, "text/html", true);
    return html > 0 && html >= negotiate_media_type(accept, "application/json", true);
}

/* Nothing here depends on who asks. Where clients must say who they are, it leaves out the version,
 * as GET /version does. */
static enum outcome reply_links(struct request *request)
{
    struct json *json = json_reply_new(request, false);

    if (json == NULL)
        return OUTCOME_READY;
    json_object_begin(json);
    json_key_string(json, "name");
    json_put_string(json, "ztserve");
    if (request->access == NULL || !request->access->needs_client) {
        json_key_string(json, "version");
        json_put_string(json, ZTSERVE_VERSION);
    }
    json_key_string(json, "models");
    json_put_string(json, "/v1/models");
    json_key_string(json, "openapi");
    json_put_string(json, "/openapi.json");
    if (is_on(request)) {
        json_key_string(json, "ui");
        json_put_string(json, "/ui/");
    }
    json_key_string(json, "writable");
    if (request->server->config->writable)
        json_raw(json, "true", strlen("true"));
    else
        json_raw(json, "false", strlen("false"));
    json_object_end(json);
    json_reply_send(request, json);
    request->reply.cache_control = "no-cache";
    return OUTCOME_READY;
}

enum outcome root_get(struct request *request)
{
    enum outcome outcome;

    if (is_on(request) && prefers_page(request)) {
        outcome = page_get(request);
        request->reply.vary = "Accept, Accept-Encoding";
        return outcome;
    }
    outcome = reply_links(request);
    request->reply.vary = "Accept";
    return outcome;
}
