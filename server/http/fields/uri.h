/* URIs: the request target (RFC 9112 section 3.2), its path and its query, as pure functions over
 * text; and paths built from percent-encoded names (RFC 3986). */
#ifndef HTTP_FIELDS_URI_H
#define HTTP_FIELDS_URI_H

#include <stdbool.h>

#include "zt/status.h"

enum target_form { TARGET_PATH, TARGET_ASTERISK, TARGET_INVALID };

/* Finds the raw path of a target: up to the query, after the scheme and authority if there are any
 * ("http://host/a" and "/a" are the same). *out_path is borrowed from target and begins with
 * '/'. */
enum target_form target_path(const char *target, struct zt_text *out_path);

/* The host of a target in absolute form ("http://host:80/a": "host:80"), with its port if there is
 * one, without a user's name. False for another form. *out_host is borrowed from target. */
bool target_host(const char *target, struct zt_text *out_host);

/* Whether the path has an empty segment inside ("/a//b"). A trailing slash does not count. */
bool path_has_empty_segment(struct zt_text path);

/* Whether a raw text contains "%2F", a slash that does not separate segments. */
bool path_has_encoded_slash(struct zt_text raw);

/* Decodes percent-escapes ('+' stays '+') into buffer, which has room for raw.length bytes. False
 * if an escape is malformed. */
bool percent_decode(struct zt_text raw, char *buffer, size_t *out_length);
/* The same for clients that escape some characters, but not '%': what is no escape stands for
 * itself. Returns the length. */
size_t percent_decode_where_escaped(struct zt_text raw, char *buffer);

/* The path without a base path ("/models") that it begins with; "/" if nothing is left. A path that
 * does not begin with it, and any path if it is empty, stays as it is. */
struct zt_text path_below(struct zt_text path, const char *base_path);

/* Finds the nth (from 0) parameter of that name in the query: pairs "name=value" joined by '&'.
 * Names are compared decoded; *out_raw is the value as it was sent, borrowed from target. */
bool query_find(const char *target, const char *name, unsigned nth, struct zt_text *out_raw);

/* Finds the first parameter of the query whose name is none of the known ones, which are separated
 * by spaces. *out_raw is its name as it was sent, borrowed from target. */
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

/* Empty at first, or what the addresses of a server begin with (the setting base_path). */
void href_init(struct href *href);
void href_begin(struct href *href, const char *base_path);
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

/* Whether a segment can hold the name: it is not empty and contains no U+0000. */
bool href_can_hold(struct zt_text name);

/* Appends "/v1/models/<name>". */
void href_model(struct href *href, struct zt_text name);

#endif
