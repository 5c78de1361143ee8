/* Writes JSON into a growing text, without building a tree, and integers past 2^53 exactly. The
 * outermost object or array ends with a newline. Errors stick, so a sequence of writes is checked
 * once, at the end. */
#ifndef BASE_JSON_WRITE_H
#define BASE_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zt/status.h"

struct json {
    char *text;
    size_t length;
    size_t capacity;
    bool failed;
    bool too_long;    /* set by a writer that gave up at a bound of its own: not out of memory */
    bool pretty;      /* indented by two spaces; raw values stay as they are */
    bool after_value; /* a comma is due before the next one */
    bool after_key;
    unsigned depth;
};

void json_init(struct json *json, bool pretty);
void json_free(struct json *json);

void json_object_begin(struct json *json);
void json_object_end(struct json *json);
void json_array_begin(struct json *json);
void json_array_end(struct json *json);
void json_key(struct json *json, struct zt_text key);
void json_key_string(struct json *json, const char *key);
/* Bytes that are not UTF-8 become U+FFFD, so the result is JSON whatever a file or client sends. */
void json_text(struct json *json, struct zt_text text);
/* Not named json_string and json_null: jansson, in the same program, defines those. */
void json_put_string(struct json *json, const char *text);
void json_put_null(struct json *json);
void json_uint(struct json *json, uint64_t value);
/* Text that is JSON already. */
void json_raw(struct json *json, const char *text, size_t length);

#endif
