/* Reading JSON value by value (RFC 8259), strictly: for the headers of formats and for requests.
 *
 * The reader makes no tree and takes no memory, so that a header of a million entries takes only
 * what its caller keeps. It changes the bytes: escapes are replaced in place, which never makes a
 * text longer. So every text is borrowed from the bytes, and its address is its position. The
 * caller must check for keys that occur twice. */
#ifndef ZT_CBOR_JSON_READ_H
#define ZT_CBOR_JSON_READ_H

#include <stdbool.h>

#include "zt/status.h"

/* The most arrays and objects inside one another. */
#define ZT_JSON_DEPTH_MAX 64

enum zt_json_kind {
    ZT_JSON_OBJECT,
    ZT_JSON_ARRAY,
    ZT_JSON_TEXT, /* text: its characters */
    /* text: as written; also NaN, Infinity and -Infinity if the reader takes them */
    ZT_JSON_NUMBER,
    ZT_JSON_TRUE,
    ZT_JSON_FALSE,
    ZT_JSON_NULL
};

struct zt_json_item {
    enum zt_json_kind kind;
    struct zt_text text;
    uint64_t offset; /* absolute: of the value's first byte */
};

/* What the format calls the rules of JSON. */
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
    /* Take NaN, Infinity and -Infinity as numbers: they are not JSON, but some writers make
     * them. */
    bool takes_non_finite;
    /* zt_json_to_cbor refuses numbers that it would change. */
    bool wants_exact;
    const struct zt_json_rules *rules;
};

/* An object or array being walked. Begins cleared. */
struct zt_json_walk {
    bool begun;
};

/* Reads one value whole, or the opening bracket of an object or array. Texts are valid UTF-8 (no
 * lone surrogates). ZT_INVALID with the rule syntax or depth and the offset of the byte at
 * fault. */
enum zt_status zt_json_next(struct zt_json_reader *reader, struct zt_json_item *out_item,
                            struct zt_error *error);

/* *out_more: another element follows, which zt_json_next or zt_json_skip must read. At the end it
 * leaves the array. */
enum zt_status zt_json_element(struct zt_json_reader *reader, struct zt_json_walk *walk,
                               bool *out_more, struct zt_error *error);

/* *out_more: another member follows. *out_key is its name, a text; its value must be read next. At
 * the end it leaves the object. */
enum zt_status zt_json_member(struct zt_json_reader *reader, struct zt_json_walk *walk,
                              bool *out_more, struct zt_json_item *out_key, struct zt_error *error);

/* Skips one whole value and checks its syntax. */
enum zt_status zt_json_skip(struct zt_json_reader *reader, struct zt_error *error);

/* The value of a whole number below 2^64 written without sign, fraction and exponent; false for any
 * other item. */
bool zt_json_uint(const struct zt_json_item *item, uint64_t *out_value);

/* Refuses anything but spaces (U+0020) after the outermost value. */
enum zt_status zt_json_end(struct zt_json_reader *reader, struct zt_error *error);

#endif
