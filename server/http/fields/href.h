/* Builds paths whose segments are percent-encoded names (RFC 3986; http-api section 1). */
#ifndef HTTP_FIELDS_HREF_H
#define HTTP_FIELDS_HREF_H

#include <stdbool.h>

#include "zt/status.h"

/* A growing path, NUL-terminated unless failed (memory is out). It is ASCII that needs no escaping
 * in JSON. */
struct href {
    char *text;
    size_t length;
    size_t capacity;
    bool failed;
};

void href_init(struct href *href);
void href_free(struct href *href);

/* Truncates to an earlier length, so that another name can follow. */
void href_cut(struct href *href, size_t length);

/* Appends text that is already encoded. */
void href_plain(struct href *href, const char *text);
/* Appends a name as one segment: escapes every byte that RFC 3986 does not call unreserved, '/'
 * included. */
void href_segment(struct href *href, struct zt_text name);
/* Appends a path: like a segment, but keeps slashes. */
void href_path(struct href *href, struct zt_text path);

/* Whether a segment can hold the name: it is not empty and has no U+0000 (http-api section 1). */
bool href_can_hold(struct zt_text name);

/* Appends "/v1/models/<name>". */
void href_model(struct href *href, struct zt_text name);

#endif
