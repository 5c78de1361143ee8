/* The viewer's page and files, and the root of the server.
 *
 * The files come from server/web. The page is the same at every path below /ui, and shows what its
 * own path names, so a link into the viewer can be shared and reloaded. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "api/handlers.h"
#include "api/json_reply.h"
#include "api/web_files.h"
#include "http/exchange/authorize.h"
#include "http/exchange/problem.h"
#include "zt/digest.h"

/* Allows only the viewer's own files and the server's own API. */
#define POLICY                                                                  \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " \
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

/* --- the page below a path --- */

/* An attribute whose value is an address of this server. */
static const char address[] = "=\"/";

/* Returns the start of the next address in the page, or the page's end. */
static const char *next_address(const char *at, const char *end)
{
    const char *found = memmem(at, (size_t)(end - at), address, strlen(address));

    return found != NULL ? found + strlen(address) - 1 : end;
}

/* Writes the page with base_path before each of its addresses. Returns false if out of memory. */
static bool write_page_below(struct request *request, const char *base_path,
                             struct zt_text *out_text)
{
    const char *start = (const char *)web_page.forms[CODING_IDENTITY].bytes;
    const char *end = start + web_page.forms[CODING_IDENTITY].length;
    const size_t base_length = strlen(base_path);
    size_t count = 0;
    char *text;
    char *to;

    for (const char *at = next_address(start, end); at < end; at = next_address(at, end))
        count++;
    text = request_allocate(request, (size_t)(end - start) + count * base_length);
    if (text == NULL)
        return false;
    to = text;
    for (const char *at = start; at < end;) {
        const char *next = next_address(at, end);

        to = mempcpy(to, at, (size_t)(next - at));
        if (next < end)
            to = mempcpy(to, base_path, base_length);
        at = next;
    }
    assert((size_t)(to - text) == (size_t)(end - start) + count * base_length);
    *out_text = (struct zt_text){text, (size_t)(to - text)};
    return true;
}

/* Not compressed, because it is short. */
static enum outcome reply_page_below(struct request *request, const char *base_path)
{
    struct json_reply coded = {.json = NULL};
    struct zt_text text;

    if (!json_reply_negotiate(request, &coded))
        return OUTCOME_READY;
    if (!coded.accepts_identity)
        return problem_reply(request, PROBLEM_NOT_ACCEPTABLE, "the page is available unencoded");
    if (!write_page_below(request, base_path, &text))
        return problem_reply_no_memory(request);
    request->reply.media_type = web_page.media_type;
    request->reply.etag =
        request_print(request, "%.*s-%016" PRIx64 "\"", (int)strlen(web_page.etag) - 1,
                      web_page.etag, zt_xxh3(base_path, strlen(base_path)));
    request->reply.cache_control = "no-cache";
    request->reply.lasting = true;
    add_fields(&request->reply);
    representation_memory(&request->reply, text.bytes, text.length);
    return OUTCOME_READY;
}

enum outcome page_get(struct request *request)
{
    const char *base_path = request->server->config->base_path;

    if (!is_on(request))
        return reply_off(request);
    return base_path[0] != '\0' ? reply_page_below(request, base_path)
                                : reply_file(request, &web_page, "no-cache");
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

/* Returns true if the client names HTML as its preferred type; programs that accept anything get
 * JSON. */
static bool prefers_page(struct request *request)
{
    const char *accept = request_header(request, "Accept");
    unsigned html;

    if (accept == NULL)
        return false;
    html = negotiate_media_type(accept, "text/html", true);
    return html > 0 && html >= negotiate_media_type(accept, "application/json", true);
}

static void put_link(struct request *request, struct json *json, const char *path)
{
    const char *link = request_print(request, "%s%s", request->server->config->base_path, path);

    json->failed = json->failed || link == NULL;
    json_put_string(json, link != NULL ? link : "");
}

/* If clients must authenticate, unauthenticated ones do not learn the version, as with GET
 * /version. */
static enum outcome reply_links(struct request *request)
{
    struct json *json = json_reply_new(request, false);

    if (json == NULL)
        return OUTCOME_READY;
    json_object_begin(json);
    json_string_member(json, "name", "ztserve");
    if (request->access == NULL || authorize_knows_client(request))
        json_string_member(json, "version", ZTSERVE_VERSION);
    json_key_string(json, "models");
    put_link(request, json, "/v1/models");
    json_key_string(json, "openapi");
    put_link(request, json, "/openapi.json");
    if (is_on(request)) {
        json_key_string(json, "ui");
        put_link(request, json, "/ui/");
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
    request->reply.vary = request->access != NULL && request->access->needs_client
                              ? "Accept, Authorization"
                              : "Accept";
    return outcome;
}
