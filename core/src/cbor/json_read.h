/* A strict reader of JSON (RFC 8259), value by value, for the headers of formats and for requests.
 *
 * The reader builds no tree and takes no memory, so a header of a million entries takes only the
 * memory that its caller keeps. It modifies the bytes: escapes are replaced in place, which never
 * makes a text longer. Every text is borrowed from the bytes, so its address also gives its
 * position. The caller must check for repeated keys. */
#ifndef ZT_CBOR_JSON_READ_H
#define ZT_CBOR_JSON_READ_H

#include <stdbool.h>

#include "zt/status.h"

/* The deepest nesting of arrays and objects, unless a reader has its own. */
#define ZT_JSON_DEPTH_MAX 64

enum zt_json_kind {
    ZT_JSON_OBJECT,
    ZT_JSON_ARRAY,
    ZT_JSON_TEXT, /* text: its characters */
    /* text: as written; also NaN, Infinity and -Infinity if the reader accepts them */
    ZT_JSON_NUMBER,
    ZT_JSON_TRUE,
    ZT_JSON_FALSE,
    ZT_JSON_NULL
};

struct zt_json_item {
    enum zt_json_kind kind;
    struct zt_text text;
    uint64_t offset; /* absolute position of the value's first byte */
};

/* The format's names for the rules of JSON. */
struct zt_json_rules {
    const char *syntax;
    const char *depth;
};

struct zt_json_reader {
    char *bytes;
    size_t length;
    size_t position;
    uint64_t base_offset; /* absolute file position of bytes[0] */
    unsigned depth;
    unsigned depth_max; /* of arrays and objects; 0: ZT_JSON_DEPTH_MAX */
    /* Accept NaN, Infinity and -Infinity as numbers: they are not JSON, but some writers produce
     * them. */
    bool takes_non_finite;
    /* Whether zt_json_to_cbor rejects numbers that are too large to represent. */
    bool wants_exact;
    const struct zt_json_rules *rules;
};

/* An object or array that is being walked. Starts zeroed. */
struct zt_json_walk {
    bool begun;
};

/* Reads one whole value, or the opening bracket of an object or array. Texts are valid UTF-8 (no
 * lone surrogates). ZT_INVALID with rule syntax or depth and the offset of the byte at fault. */
enum zt_status zt_json_next(struct zt_json_reader *reader, struct zt_json_item *out_item,
                            struct zt_error *error);

/* Steps to the next element of an array. If *out_more is true, the caller must read the element
 * next, by zt_json_next or zt_json_skip. Otherwise the array has ended and has been left. */
enum zt_status zt_json_element(struct zt_json_reader *reader, struct zt_json_walk *walk,
                               bool *out_more, struct zt_error *error);

/* Steps to the next member of an object. If *out_more is true, *out_key is the member's name, and
 * the caller must read its value next. Otherwise the object has ended and has been left. */
enum zt_status zt_json_member(struct zt_json_reader *reader, struct zt_json_walk *walk,
                              bool *out_more, struct zt_json_item *out_key, struct zt_error *error);

/* Skips one whole value and checks its syntax. */
enum zt_status zt_json_skip(struct zt_json_reader *reader, struct zt_error *error);

/* The value of an integer below 2^64 that is written without sign, fraction or exponent; false for
 * any other item. */
bool zt_json_uint(const struct zt_json_item *item, uint64_t *out_value);

/* The white space of JSON. */
bool zt_json_is_space(char byte);

/* Checks that only white space follows the last value. ZT_INVALID with rule syntax. */
enum zt_status zt_json_end(struct zt_json_reader *reader, struct zt_error *error);

#endif
