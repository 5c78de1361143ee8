/* Addresses to which an upstream sends its clients: redirects, and links to the next page. */
#ifndef UPSTREAM_ADDRESS_H
#define UPSTREAM_ADDRESS_H

#include <stdbool.h>

#include "remote/remote.h"
#include "zt/text.h"

#define ADDRESS_ORIGIN_SIZE 300

struct upstream_address {
    char origin[ADDRESS_ORIGIN_SIZE];  /* "https://host": lower case, without a default port */
    char target[REMOTE_LOCATION_SIZE]; /* path and query; begins with '/' */
};

/* Reads "http(s)://host[:port][/path][?query]". A fragment is dropped. False: it is something else,
 * has a user, or characters that must be escaped. */
bool address_read(struct zt_text url, struct upstream_address *out_address);

bool address_is_tls(const struct upstream_address *address);
bool address_is_same_origin(const struct upstream_address *a, const struct upstream_address *b);
/* How far inside a network the host is, as far as its name says. */
enum reach address_reach(const struct upstream_address *address);

/* Reads a Location (RFC 9110 section 10.2.2) of a response from this address: an absolute URL, or a
 * path that begins with one '/'. False: another kind. */
bool address_follow(const struct upstream_address *from, struct zt_text location,
                    struct upstream_address *out_address);

/* Finds the target with rel="next" in the value of a Link field (RFC 8288). */
enum address_link { ADDRESS_LINK_NONE, ADDRESS_LINK_FOUND, ADDRESS_LINK_MALFORMED };
enum address_link address_next(struct zt_text link, struct zt_text *out_url);

#endif
