/* Decides whether and how a page may use the answer when the answer's fields are written. This is
 * done for every answer, since a page must be able to read why it was refused. */
#include "http/exchange/cors.h"

#include <assert.h>
#include <string.h>

#include "access/access.h"
#include "http/exchange/base_url.h"
#include "http/exchange/problem.h"
#include "http/exchange/request_state.h"
#include "http/exchange/router.h"
#include "http/fields/grammar.h"
#include "http/fields/origin.h"
#include "http/fields/uri.h"

/* How long a browser may cache the answer. Browsers have limits of a few hours. */
#define PREFLIGHT_SECONDS "3600"
/* The names in a preflight request are echoed up to this length; longer lists are implausible. */
#define ASKED_MAX 2048
/* The maximum length of a field's value in a message. */
#define SHOWN_MAX 200

const char cors_exposed[] =
    "Accept-Query, Accept-Ranges, Allow, Axis-Suggestion, Content-Digest, Content-Disposition, "
    "Content-Encoding, "
    "Content-Range, ETag, Link, Location, Repr-Digest, Retry-After, Server-Timing, "
    "Tus-Checksum-Algorithm, Tus-Extension, Tus-Max-Size, Tus-Resumable, Tus-Version, "
    "Upload-Concat, Upload-Defer-Length, Upload-Expires, Upload-Length, Upload-Metadata, "
    "Upload-Offset, Vary, WWW-Authenticate, X-Error-Code, X-Error-Message, X-Linked-Etag, "
    "X-Linked-Size, X-Repo-Commit, X-Request-Id, X-Xet-Access-Token, X-Xet-Cas-Url, "
    "X-Xet-Token-Expiration, ZT-Base, ZT-Commit, ZT-Dtype, ZT-Format, ZT-Left-Out, ZT-Shape, "
    "ZT-Type, ZT-Verified";

/* --- refusals --- */

/* A GET that needs more than the read scope returns something that would let a page write. */
static bool is_privileged_read(const struct request *request)
{
    const enum needs needs = request->route != NULL
                                 ? route_operation(request->route, request->method)->needs
                                 : NEEDS_BY_METHOD;

    return needs == NEEDS_WRITE || needs == NEEDS_ADMIN;
}

static bool is_write(const struct request *request)
{
    if (request->method == METHOD_OPTIONS)
        return false;
    return !request_is_read(request) || is_privileged_read(request);
}

/* Probes come by address, and their answers reveal nothing. A permit in the target, or an upload's
 * token, is no reason to skip the check: the page may have obtained it. */
static bool is_public_read(const struct request *request)
{
    return request->route != NULL && request->route->audience == AUDIENCE_EVERYBODY &&
           !is_write(request);
}

void cors_check(struct request *request)
{
    const struct origin_rules *rules = &request->access->pages;
    struct origin_claim claim = {.is_write = is_write(request)};

    if (is_public_read(request) || (!claim.is_write && rules->hosts[0] == '\0'))
        return;
    claim.origin = request_header(request, "Origin");
    claim.fetch_site = request_header(request, "Sec-Fetch-Site");
    claim.host = request_own_host(request);
    switch (origin_check(rules, &claim)) {
    case ORIGIN_ACCEPTED:
        break;
    case ORIGIN_FOREIGN_HOST:
        problem_reply(
            request, PROBLEM_FORBIDDEN,
            "the Host \"%.*s\" is not one of this server's names, which the setting hosts lists",
            SHOWN_MAX, claim.host != NULL ? claim.host : "");
        break;
    case ORIGIN_CROSS_SITE:
        problem_reply(
            request, PROBLEM_FORBIDDEN,
            "web pages from the origin \"%.*s\" may not write to this server; the setting "
            "cors.origins can allow it",
            SHOWN_MAX, claim.origin != NULL ? claim.origin : "");
        break;
    }
}

/* --- permissions --- */

const char *cors_vary(struct request *request, const char *vary)
{
    const struct origin_rules *rules = &request->access->pages;

    assert(rules->allows_pages);
    /* Answers are equal for all origins if every page is allowed. */
    if (rules->any_origin)
        return vary;
    return vary == NULL ? "Origin" : request_print(request, "%s, Origin", vary);
}

/* Returns the origin to allow, or NULL. */
static const char *allowed_origin(struct request *request)
{
    const struct origin_rules *rules = &request->access->pages;
    const char *origin;

    if (rules->any_origin)
        return "*";
    if (!rules->allows_pages)
        return NULL;
    origin = request_header(request, "Origin");
    return origin != NULL && origin_is_listed(rules, origin) ? origin : NULL;
}

static const char *allowed_methods(const struct request *request)
{
    const struct representation *reply = &request->reply;

    for (unsigned i = 0; i < reply->field_count; i++)
        if (strcmp(reply->fields[i].name, "Allow") == 0)
            return reply->fields[i].value;
    return NULL;
}

bool cors_is_preflight(struct request *request)
{
    const char *method = request_header(request, "Access-Control-Request-Method");

    assert(request->method == METHOD_OPTIONS);
    if (method == NULL || method[0] == '\0')
        return false;
    for (const char *at = method; *at != '\0'; at++)
        if (!is_token_char(*at))
            return false;
    return allowed_origin(request) != NULL;
}

/* Returns true if the text is only a list of field names. */
static bool is_name_list(const char *text)
{
    const size_t length = strlen(text);

    for (size_t i = 0; i < length; i++)
        if (!is_token_char(text[i]) && text[i] != ',' && text[i] != ' ')
            return false;
    return length > 0 && length <= ASKED_MAX;
}

struct cors_list {
    struct field *fields;
    unsigned count;
};

static void add(struct cors_list *list, const char *name, const char *value)
{
    assert(list->count < CORS_FIELDS);
    if (value != NULL)
        list->fields[list->count++] = (struct field){name, value};
}

/* Adds the answer to a preflight request (Fetch, section 3.2.2). It allows all names that the
 * request lists, because the server ignores unknown fields. */
static void add_preflight(struct request *request, struct cors_list *list)
{
    const char *names = request_header(request, "Access-Control-Request-Headers");
    const char *private_network = request_header(request, "Access-Control-Request-Private-Network");

    add(list, "Access-Control-Allow-Methods", allowed_methods(request));
    if (names != NULL && is_name_list(names))
        add(list, "Access-Control-Allow-Headers", names);
    add(list, "Access-Control-Max-Age", PREFLIGHT_SECONDS);
    if (private_network != NULL && strcmp(private_network, "true") == 0)
        add(list, "Access-Control-Allow-Private-Network", "true");
}

unsigned cors_fields(struct request *request, struct field *out_fields)
{
    struct cors_list list = {out_fields, 0};
    const char *origin = allowed_origin(request);

    if (origin == NULL)
        return 0;
    add(&list, "Access-Control-Allow-Origin", origin);
    if (request->method == METHOD_OPTIONS && cors_is_preflight(request))
        add_preflight(request, &list);
    else
        add(&list, "Access-Control-Expose-Headers", cors_exposed);
    return list.count;
}
