/* The request target (RFC 9112 section 3.2): its path and its query, as pure functions over
 * text. */
#ifndef HTTP_FIELDS_TARGET_H
#define HTTP_FIELDS_TARGET_H

#include <stdbool.h>

#include "zt/status.h"

enum target_form { TARGET_PATH, TARGET_ASTERISK, TARGET_INVALID };

/* Finds the raw path of a target: up to the query, after the scheme and authority if there are any
 * ("http://host/a" and "/a" are the same). *out_path is borrowed from target and begins with
 * '/'. */
enum target_form target_path(const char *target, struct zt_text *out_path);

/* Whether the path has an empty segment inside ("/a//b"). A trailing slash does not count. */
bool path_has_empty_segment(struct zt_text path);

/* Whether a raw text holds "%2F", a slash that does not separate segments. */
bool path_has_encoded_slash(struct zt_text raw);

/* Decodes percent-escapes ('+' stays '+') into buffer, which has room for raw.length bytes. False
 * if an escape is malformed. */
bool percent_decode(struct zt_text raw, char *buffer, size_t *out_length);

/* Finds the nth (from 0) parameter of that name in the query: pairs "name=value" joined by '&'.
 * Names are compared decoded; *out_raw is the value as it was sent, borrowed from target. */
bool query_find(const char *target, const char *name, unsigned nth, struct zt_text *out_raw);

#endif
