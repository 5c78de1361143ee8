/* URIs: the request target (RFC 9112 section 3.2), its path and its query, as pure functions over
 * text; and paths built from percent-encoded names (RFC 3986). */
#ifndef HTTP_FIELDS_URI_H
#define HTTP_FIELDS_URI_H

#include <stdbool.h>

#include "zt/status.h"

enum target_form { TARGET_PATH, TARGET_ASTERISK, TARGET_INVALID };

/* Finds the raw path of a target: without the query, and without scheme and authority
 * ("http://host/a" and "/a" are equal). *out_path points into target and begins with '/'. */
enum target_form target_path(const char *target, struct zt_text *out_path);

/* Finds the host of a target in absolute form ("http://host:80/a": "host:80"), with its port if
 * present and without user information. Returns false for other forms. *out_host points into
 * target. */
bool target_host(const char *target, struct zt_text *out_host);

/* Returns true if the path has an empty segment inside ("/a//b"). A trailing slash does not
 * count. */
bool path_has_empty_segment(struct zt_text path);

/* Returns true if a raw text contains "%2F", a slash that does not separate segments. */
bool path_has_encoded_slash(struct zt_text raw);

/* Decodes percent-escapes ('+' stays '+') into buffer, which must have room for raw.length bytes.
 * Returns false if an escape is malformed. */
bool percent_decode(struct zt_text raw, char *buffer, size_t *out_length);
/* Does the same for clients that escape some characters but not '%': malformed escapes are kept
 * literally. Returns the length. */
size_t percent_decode_where_escaped(struct zt_text raw, char *buffer);

/* Removes a base path ("/models") from the start of the path; returns "/" if the rest is empty. A
 * path without that prefix is returned unchanged, and so is any path if the base path is empty. */
struct zt_text path_below(struct zt_text path, const char *base_path);

/* Returns the start of a target's query, for query_next; NULL if there is none. */
const char *query_begin(const char *target);
/* Finds the next parameter with this name in the query ("name=value" pairs joined by '&'), and
 * moves the position after it. Names are compared decoded. *out_raw is the raw value and points
 * into target. */
bool query_next(const char **position, const char *name, struct zt_text *out_raw);
/* Finds the nth parameter with this name, counting from 0. */
bool query_find(const char *target, const char *name, unsigned nth, struct zt_text *out_raw);

/* Finds the first parameter whose name is not among the known names, which are separated by spaces.
 * *out_raw is its raw name and points into target. */
bool query_find_other(const char *target, const char *known, struct zt_text *out_raw);

/* --- building paths --- */

/* A growing path, NUL-terminated unless failed (out of memory). It is ASCII that needs no escaping
 * in JSON. */
struct href {
    char *text;
    size_t length;
    size_t capacity;
    bool failed;
};

/* href_init starts an empty path; href_begin starts with the prefix of the server's addresses
 * (setting base_path). */
void href_init(struct href *href);
void href_begin(struct href *href, const char *base_path);
void href_free(struct href *href);

/* Truncates to an earlier length, so that another name can be appended. */
void href_cut(struct href *href, size_t length);

/* Appends text that is already encoded. */
void href_plain(struct href *href, const char *text);
/* Appends a name as one segment: escapes all bytes except the unreserved ones of RFC 3986,
 * including '/'. */
void href_segment(struct href *href, struct zt_text name);
/* Appends a path: like a segment, but keeps slashes. */
void href_path(struct href *href, struct zt_text path);

/* Appends "/v1/models/<name>". */
void href_model(struct href *href, struct zt_text name);

#endif
