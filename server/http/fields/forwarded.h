/* Forwarded (RFC 7239) and X-Forwarded-For: for whom a proxy made its request. */
#ifndef HTTP_FIELDS_FORWARDED_H
#define HTTP_FIELDS_FORWARDED_H

#include <stdbool.h>

#include "config/network.h"

/* Which addresses are those of proxies that are believed. */
struct trust {
    bool (*is_trusted)(const void *context, const struct address *address);
    const void *context;
};

/* The client of a request that came from a trusted proxy: each proxy added the address that it saw
 * to the right end of the list, so it is the rightmost address that is not itself a trusted
 * proxy's; if all are, the leftmost. Either field may be NULL. A proxy may pass on the field that
 * it does not write, and then it says what the client likes: if there are both, they must agree.
 * False if nothing can be believed. */
bool forwarded_client(const char *forwarded, const char *x_forwarded_for, const struct trust *trust,
                      struct address *out_client);

#endif
