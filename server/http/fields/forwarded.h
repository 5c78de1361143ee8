/* Forwarded (RFC 7239), X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host: the client for
 * which a proxy made its request, and the address under which that client reached the proxy. */
#ifndef HTTP_FIELDS_FORWARDED_H
#define HTTP_FIELDS_FORWARDED_H

#include <stdbool.h>

#include "config/network.h"
#include "zt/text.h"

/* Tells which addresses belong to trusted proxies. */
struct trust {
    bool (*is_trusted)(const void *context, const struct address *address);
    const void *context;
};

/* Finds the client of a request that came from a trusted proxy. Each proxy appends the address that
 * it saw to the right end of the list. So the client is the rightmost address that is not a trusted
 * proxy; if all are trusted, it is the leftmost. Either field may be NULL. A proxy may pass on the
 * field that it does not write, which the client can then forge: if both fields are present, they
 * must agree. Returns false if no address can be trusted. */
bool forwarded_client(const char *forwarded, const char *x_forwarded_for, const struct trust *trust,
                      struct address *out_client);

struct forwarded_fields {
    const char *forwarded; /* NULL: absent; the same for the other fields */
    const char *x_forwarded_proto;
    const char *x_forwarded_host;
};

/* A text whose bytes are NULL is absent or not trusted. */
struct forwarded_place {
    struct zt_text scheme;
    struct zt_text host;
};

/* Finds the scheme and the host under which a request reached the proxy that sent it, which must be
 * trusted. Only the last element of a list counts, since the proxy itself wrote it. If Forwarded
 * and the X-Forwarded field differ, neither counts. The texts point into the fields and may be
 * arbitrary. */
void forwarded_place(const struct forwarded_fields *fields, struct forwarded_place *out_place);

#endif
