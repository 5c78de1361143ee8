/* References to resources: paths whose segments are percent-encoded names (http-api section 1). */
#ifndef DERIVED_HREF_H
#define DERIVED_HREF_H

#include <stdbool.h>

#include "zt/status.h"

/* A growing path, NUL-terminated unless failed. What comes out is plain ASCII that JSON takes as it
 * is. */
struct href {
    char *text;
    size_t length;
    size_t capacity;
    bool failed;
};

void href_init(struct href *href);
void href_free(struct href *href);

/* Cuts back to an earlier length, to go on from there with another name. */
void href_cut(struct href *href, size_t length);

/* Appends what is encoded already. */
void href_plain(struct href *href, const char *text);
/* Appends a name as one segment: every byte that RFC 3986 does not call unreserved is escaped, '/'
 * too. */
void href_segment(struct href *href, struct zt_text name);
/* Appends a path: like a segment, but slashes stay. */
void href_path(struct href *href, struct zt_text path);

/* Whether a segment can hold the name: not an empty one, nor one with U+0000 (http-api section 1).
 */
bool href_can_hold(struct zt_text name);

/* "/v1/models/<name>" */
void href_model(struct href *href, struct zt_text name);

#endif
