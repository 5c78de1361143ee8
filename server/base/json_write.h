/* Writing JSON into a growing text: manifests of a hundred thousand objects are written without a
 * tree in between, and integers past 2^53 exactly. Errors stick, so that a sequence of writes is
 * checked once. */
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
    bool too_long;    /* failed, and because its writer set it a bound: not for want of memory */
    bool pretty;      /* two spaces a level, a newline at the end; raw values stay on one line */
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
/* Bytes that are not UTF-8 become U+FFFD: what is written is JSON, whatever a file or a client
 * says. */
void json_text(struct json *json, struct zt_text text);
/* Not json_string and json_null: jansson, linked into the same program, has functions of those
 * names. */
void json_put_string(struct json *json, const char *text);
void json_put_null(struct json *json);
void json_uint(struct json *json, uint64_t value);
/* A value that is JSON already. */
void json_raw(struct json *json, const char *text, size_t length);

#endif
