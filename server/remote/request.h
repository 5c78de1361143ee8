/* Sets a handle of libcurl up for one request: its address, method, fields, and limits in time. */
#ifndef REMOTE_REQUEST_H
#define REMOTE_REQUEST_H

#include <curl/curl.h>

#include "remote/remote.h"
#include "remote/sign.h"

#define REQUEST_HOST_SIZE 300

/* Host as sent to an origin: without the scheme's default port. False: it is not an origin. */
bool request_host(const char *origin, char out_host[REQUEST_HOST_SIZE]);

struct request_peer {
    const char *ca_file; /* NULL: libcurl's own choice */
    const char *proxy;   /* NULL: none */
    bool system_proxy;   /* libcurl looks for one in the environment */
};

/* signature: NULL or empty: none. limit_ms: for the whole request. out_fields: to be freed after
 * the request. False: it cannot be sent. */
bool request_prepare(CURL *handle, const struct request_peer *peer,
                     const struct remote_exchange *exchange, const struct signed_fields *signature,
                     uint64_t limit_ms, struct curl_slist **out_fields);

/* Whether requests to an origin go by the peer's proxy. */
bool request_uses_proxy(const struct request_peer *peer, const char *origin);

#endif
