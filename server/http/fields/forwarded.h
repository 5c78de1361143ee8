/* Forwarded (RFC 7239), X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host: for whom a proxy
 * made its request, and by which address that client reached it. */
#ifndef HTTP_FIELDS_FORWARDED_H
#define HTTP_FIELDS_FORWARDED_H

#include <stdbool.h>

#include "config/network.h"
#include "zt/text.h"

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

struct forwarded_fields {
    const char *forwarded; /* NULL: absent, as the others */
    const char *x_forwarded_proto;
    const char *x_forwarded_host;
};

/* bytes NULL: not said, or not to be believed. */
struct forwarded_place {
    struct zt_text scheme;
    struct zt_text host;
};

/* By which scheme and host a request reached the proxy that it comes from, which is trusted. Of a
 * list only the last element counts, since the proxy itself wrote that; if Forwarded and the other
 * field differ, neither does. The texts are borrowed from the fields, and may be anything. */
void forwarded_place(const struct forwarded_fields *fields, struct forwarded_place *out_place);

#endif
