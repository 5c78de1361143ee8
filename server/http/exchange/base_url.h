/* By which address a client reached the server, for answers that hold whole addresses. */
#ifndef HTTP_EXCHANGE_BASE_URL_H
#define HTTP_EXCHANGE_BASE_URL_H

#include "http/exchange/request.h"

/* What an answer that holds request_base_url varies by, besides the address itself. */
#define BASE_URL_VARY "Forwarded, X-Forwarded-Host, X-Forwarded-Proto"

/* What whole addresses of this server begin with, as its client knows it: scheme, host, perhaps a
 * port, and base_path, without a slash at the end ("https://example.org/models"). Scheme and host
 * are those that a proxy in trusted_proxies states, else the server's own scheme and the Host of
 * the request, which has passed the setting hosts (cors_check). NULL if the request names no host
 * that an address can hold, or if out of memory. Lives as long as the request.
 *
 * An answer that holds it depends on who asks and must not be `lasting`. */
const char *request_base_url(struct request *request);

/* The name by which the request itself reached the server, as it is: of the target in absolute
 * form, else the field Host; NULL if there is neither. Lives as long as the request. */
const char *request_own_host(struct request *request);

#endif
