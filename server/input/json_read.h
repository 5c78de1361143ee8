/* JSON objects from outside, with jansson: no repeated members, no U+0000, nothing behind the
 * end. */
#ifndef INPUT_JSON_READ_H
#define INPUT_JSON_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "zt/text.h"

struct json_t;

/* What a member is: not there, of the wanted type, or something else. */
enum json_member { JSON_ABSENT, JSON_FOUND, JSON_OTHER };

/* Where and why a text is not an object. */
struct json_mistake {
    int line; /* 0: everything is read, but it is not an object */
    int column;
    char why[160];
};

/* NULL with the mistake, which may be NULL. Freed with json_object_free, which takes NULL. */
struct json_t *json_object_read(struct zt_text text, struct json_mistake *out_mistake);
void json_object_free(struct json_t *object);

/* The same for a text that is a list. */
struct json_t *json_list_read(struct zt_text text, struct json_mistake *out_mistake);

/* Returns true if a text has at most so many commas, and so many opening brackets, outside of its
 * strings. To be called before a text that anybody may send is read: two bytes of it may take
 * hundreds of bytes of memory. */
bool json_is_bounded(struct zt_text text, size_t commas, size_t brackets);

/* The name of a member that is none of the known ones, which end with NULL. NULL: there is no such
 * member. */
const char *json_member_other(const struct json_t *object, const char *const *known);

/* Texts are borrowed from the object, and a NUL follows them. */
enum json_member json_member_text(const struct json_t *object, const char *name,
                                  struct zt_text *out_text);
/* A number, rounded towards 0 and cut to 2^53. */
enum json_member json_member_number(const struct json_t *object, const char *name,
                                    int64_t *out_number);
/* A whole number, exactly: JSON_OTHER for what is negative, has a fraction, or is beyond 2^53 and
 * not written as an integer. */
enum json_member json_member_whole(const struct json_t *object, const char *name,
                                   uint64_t *out_number);
/* False also where it is absent or something else. */
bool json_member_is_true(const struct json_t *object, const char *name);
bool json_member_exists(const struct json_t *object, const char *name);
/* What some clients write in the place of a member that they leave out. */
bool json_member_is_null(const struct json_t *object, const char *name);

/* NULL if the member is absent or no object. */
const struct json_t *json_member_object(const struct json_t *object, const char *name);

/* A list; NULL if the member is absent or something else. */
const struct json_t *json_member_list(const struct json_t *object, const char *name);
size_t json_list_length(const struct json_t *list);
/* NULL if it is no object. */
const struct json_t *json_list_object(const struct json_t *list, size_t index);
/* False if it is no text. */
bool json_list_text(const struct json_t *list, size_t index, struct zt_text *out_text);
/* False if it is no whole number from 0 on. */
bool json_list_whole(const struct json_t *list, size_t index, uint64_t *out_number);
/* False if it is no number that is written as an integer. */
bool json_list_integer(const struct json_t *list, size_t index, int64_t *out_number);

/* An integer, exactly; JSON_OTHER also for a number that is not written as one. */
enum json_member json_member_integer(const struct json_t *object, const char *name,
                                     int64_t *out_number);
/* A number, as the nearest double. */
enum json_member json_member_real(const struct json_t *object, const char *name,
                                  double *out_number);

/* The object as text, indented by two spaces, with its members in their order; NULL without memory.
 * The caller frees it. */
char *json_object_text(const struct json_t *object);

#endif
