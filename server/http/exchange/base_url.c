/* Copies a host only if it is valid, because it becomes part of addresses that programs open. */
#include "http/exchange/base_url.h"

#include <string.h>
#include <strings.h>

#include "config/browsers.h"
#include "http/exchange/client.h"
#include "http/exchange/problem.h"
#include "http/fields/forwarded.h"

/* In absolute form the target overrides Host (RFC 9112 section 3.2.2). */
const char *request_own_host(struct request *request)
{
    struct zt_text host;
    const char *printed;

    if (!target_host(request_target(request), &host))
        return request_header(request, "Host");
    printed = request_copy(request, host.bytes, host.length);
    /* If out of memory, return an invalid host: a missing host would be accepted. */
    return printed != NULL ? printed : "";
}

static bool is_word(struct zt_text text, const char *word)
{
    return text.length == strlen(word) && strncasecmp(text.bytes, word, text.length) == 0;
}

/* HTTP has no schemes other than these two. */
static const char *scheme_of(const struct request *request, struct zt_text forwarded)
{
    if (is_word(forwarded, "https"))
        return "https";
    if (is_word(forwarded, "http"))
        return "http";
    return request->server->config->tls.cert[0] != '\0' ? "https" : "http";
}

static bool is_host(struct zt_text text)
{
    return text.length > 0 && config_is_host_and_port(text.bytes, text.length);
}

/* Returns the host; empty if there is none. */
static struct zt_text host_of(struct request *request, struct zt_text forwarded)
{
    const char *own;
    struct zt_text host;

    if (is_host(forwarded))
        return forwarded;
    own = request_own_host(request);
    host = zt_text_from(own != NULL ? own : "");
    while (host.length > 0 && strchr(" \t", host.bytes[host.length - 1]) != NULL)
        host.length--;
    return host;
}

const char *request_base_url(struct request *request)
{
    struct forwarded_place place = {.scheme = {NULL, 0}};
    struct zt_text host;

    if (request_is_from_proxy(request)) {
        const struct forwarded_fields fields = {request_header(request, "Forwarded"),
                                                request_header(request, "X-Forwarded-Proto"),
                                                request_header(request, "X-Forwarded-Host")};

        forwarded_place(&fields, &place);
    }
    host = host_of(request, place.host);
    if (!is_host(host))
        return NULL;
    return request_print(request, "%s://%.*s%s", scheme_of(request, place.scheme), (int)host.length,
                         host.bytes, request->server->config->base_path);
}

enum outcome reply_redirect(struct request *request, unsigned status, struct href *href)
{
    const char *location = href->failed ? NULL : request_copy(request, href->text, href->length);

    href_free(href);
    if (location == NULL)
        return problem_reply_no_memory(request);
    reply_empty(request, status);
    representation_field(&request->reply, "Location", location);
    request->reply.cache_control = "no-cache";
    return OUTCOME_READY;
}
