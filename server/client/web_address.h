/* Addresses that people type and servers redirect to: http and https URLs, taken apart for
 * requests (RFC 3986). */
#ifndef CLIENT_WEB_ADDRESS_H
#define CLIENT_WEB_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "zt/text.h"

#define WEB_ORIGIN_SIZE 320
#define WEB_TARGET_SIZE 4096

struct web_address {
    char origin[WEB_ORIGIN_SIZE]; /* "https://host:8443", scheme and host in lower case, without the
                                   * scheme's default port */
    char target[WEB_TARGET_SIZE]; /* path and query as sent; begins with '/' */
};

/* Returns true if a text begins like a URL that the commands accept. */
bool web_address_is_meant(const char *text);

/* Returns true if a text would be a URL with "http://" before it: "host:8080/x". */
bool web_address_lacks_scheme(const char *text);

/* Parses a URL. Escapes spaces and non-ASCII bytes, and drops a fragment. Returns false if it is
 * not an http or https URL, contains a user name, or is too long. */
bool web_address_read(const char *text, struct web_address *out_address);

/* Resolves a location sent by the server of base (RFC 3986 section 5.2): a whole URL, or
 * "//host/…", "/path", "name", "?query". */
bool web_address_follow(const struct web_address *base, const char *location,
                        struct web_address *out_address);

bool web_address_is_tls(const struct web_address *address);

/* Returns the path without the query; borrowed. */
struct zt_text web_address_path(const struct web_address *address);

/* Returns the last segment of the path, decoded. Returns false if it is empty, or not a file name
 * ("..", or with a slash or a control character). */
bool web_address_file_name(const struct web_address *address, char *out_name, size_t size);

#endif
