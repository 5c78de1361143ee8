/* JSON, value by value (RFC 8259): a strict reader for the headers of formats that are written in
 * it.
 *
 * It makes no tree and holds no memory, so that a header of a million entries costs what its caller
 * keeps. The bytes are the caller's to give away: texts with escapes are turned into UTF-8 where
 * they stand, which never makes them longer, so every text is borrowed from them and its address
 * tells its position. Whether a key occurs twice is the caller's to find, among the keys it keeps.
 */
#ifndef ZT_CBOR_JSON_READ_H
#define ZT_CBOR_JSON_READ_H

#include <stdbool.h>

#include "zt/status.h"

/* Arrays and objects inside one another; the outermost is the first level. */
#define ZT_JSON_DEPTH_MAX 64

enum zt_json_kind {
    ZT_JSON_OBJECT,
    ZT_JSON_ARRAY,
    ZT_JSON_TEXT, /* text: its characters */
    /* text: as it is written; also NaN, Infinity and -Infinity where the reader takes them */
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

/* What a format calls the rules that this file applies. */
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
    bool
        /* NaN, Infinity and -Infinity are numbers: not JSON, but what some writers make */
        takes_non_finite;
    bool wants_exact; /* for zt_json_to_cbor: a number that would become another is refused */
    const struct zt_json_rules *rules;
};

/* An object or array being walked; begin with a cleared one. */
struct zt_json_walk {
    bool begun;
};

/* Reads one value: texts, numbers and words whole, of an object or array the bracket. Texts are
 * valid UTF-8 (no lone surrogates). ZT_INVALID with the rule syntax or depth and the offset of the
 * byte at fault. */
enum zt_status zt_json_next(struct zt_json_reader *reader, struct zt_json_item *out_item,
                            struct zt_error *error);

/* *out_more: another element follows, to be read by zt_json_next or zt_json_skip. At the end leaves
 * the array. */
enum zt_status zt_json_element(struct zt_json_reader *reader, struct zt_json_walk *walk,
                               bool *out_more, struct zt_error *error);

/* *out_more: another member follows: *out_key is its name, a text, and its value is to be read. At
 * the end leaves the object. */
enum zt_status zt_json_member(struct zt_json_reader *reader, struct zt_json_walk *walk,
                              bool *out_more, struct zt_json_item *out_key, struct zt_error *error);

/* Passes over one whole value, checking its syntax. */
enum zt_status zt_json_skip(struct zt_json_reader *reader, struct zt_error *error);

/* A whole number, exactly: digits alone, no sign, fraction or exponent, below 2^64. False for any
 * other item. */
bool zt_json_uint(const struct zt_json_item *item, uint64_t *out_value);

/* Refuses anything but spaces (0x20) after the outermost value. */
enum zt_status zt_json_end(struct zt_json_reader *reader, struct zt_error *error);

#endif
