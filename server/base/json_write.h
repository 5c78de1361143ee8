/* Writes JSON into a growing text without building a tree, and writes integers above 2^53 exactly.
 * The outermost object or array ends with a newline. Errors persist, so a sequence of writes needs
 * only one check at the end. */
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
    bool too_long;    /* set by a writer that stopped at its own limit: not out of memory */
    bool pretty;      /* indented by two spaces; raw values are unchanged */
    bool after_value; /* a comma is needed before the next value */
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
/* Invalid UTF-8 becomes U+FFFD, so the result is valid JSON whatever a file or client contains. */
void json_text(struct json *json, struct zt_text text);
/* Not named json_string and json_null, because jansson, in the same program, defines those. */
void json_put_string(struct json *json, const char *text);
void json_put_null(struct json *json);
void json_uint(struct json *json, uint64_t value);
/* A key with its value. */
void json_string_member(struct json *json, const char *key, const char *text);
void json_uint_member(struct json *json, const char *key, uint64_t value);
/* A key, and the beginning of its value. */
static inline void json_object_member(struct json *json, const char *key)
{
    json_key_string(json, key);
    json_object_begin(json);
}

static inline void json_array_member(struct json *json, const char *key)
{
    json_key_string(json, key);
    json_array_begin(json);
}
/* A value that is already JSON and is written in one or more pieces. */
void json_raw_begin(struct json *json);
void json_raw_piece(struct json *json, const char *text, size_t length);
/* A value that is already JSON. */
void json_raw(struct json *json, const char *text, size_t length);

#endif
