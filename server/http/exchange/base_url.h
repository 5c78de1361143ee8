/* The address under which a client reached the server, for answers that contain absolute URLs;
 * redirects to relative ones. */
#ifndef HTTP_EXCHANGE_BASE_URL_H
#define HTTP_EXCHANGE_BASE_URL_H

#include "http/exchange/request.h"
#include "http/fields/uri.h"

/* The Vary value of an answer that contains request_base_url. */
#define BASE_URL_VARY "Forwarded, X-Forwarded-Host, X-Forwarded-Proto"

/* Returns the start of this server's absolute URLs as its client knows them: scheme, host, optional
 * port and base_path, without a trailing slash ("https://example.org/models"). Scheme and host come
 * from a proxy in trusted_proxies, else from the server's own scheme and the request's Host, which
 * has passed the setting hosts (cors_check). Returns NULL if the request has no host that is valid
 * in a URL, or if out of memory. Valid as long as the request.
 *
 * An answer that contains it depends on the client and must not be `lasting`. */
const char *request_base_url(struct request *request);

/* Returns the unmodified host under which the request reached the server: from a target in absolute
 * form, else from the field Host; NULL if neither exists. Valid as long as the request. */
const char *request_own_host(struct request *request);

/* Replies with a redirect to a reference, which it frees. */
enum outcome reply_redirect(struct request *request, unsigned status, struct href *href);

#endif
