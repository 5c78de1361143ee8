/* The request target (RFC 9112 section 3.2) and the path in it, as pure functions over text. */
#ifndef HTTP_FIELDS_TARGET_H
#define HTTP_FIELDS_TARGET_H

#include <stdbool.h>

#include "zt/status.h"

enum target_form { TARGET_PATH, TARGET_ASTERISK, TARGET_INVALID };

/* Finds the raw path of a target: up to the query, behind scheme and authority where they are given
 * ("http://host/a" and "/a" are the same). *out_path is borrowed from target and begins with '/'.
 */
enum target_form target_path(const char *target, struct zt_text *out_path);

/* Whether an empty segment stands inside the path ("/a//b"). A trailing slash is not inside. */
bool path_has_empty_segment(struct zt_text path);

/* Whether a raw text holds "%2F", a slash that does not separate. */
bool path_has_encoded_slash(struct zt_text raw);

/* Decodes percent-escapes into buffer, which holds raw.length bytes. False when an escape is
 * malformed. */
bool path_decode(struct zt_text raw, char *buffer, size_t *out_length);

#endif
