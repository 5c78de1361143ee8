/* CBOR, item by item (RFC 8949), over libcbor's streaming decoder. cbor_read.c alone includes
 * <cbor.h>.
 *
 * Profiles. ZT01 and ZT1 are lenient: indefinite lengths, heads of any width and any key order are
 * fine; 128 levels. ZT2 is deterministic: its rules on shortest heads, key order, floats, tags and
 * 32 levels. In all: no duplicate key in any map, valid UTF-8, declared counts compared with the
 * bytes that remain before anything trusts them, nothing after the item. The reader holds no memory
 * of its own but for the check of unordered keys. The profile also names the rules: "zt0.1
 * §Metadata CborSyntax", "zt1 §1 CborSyntax", "zt2 §2 CborSyntax" and likewise CborDeterminism,
 * CborDuplicateKey and CborDepth. */
#ifndef ZT_CBOR_CBOR_READ_H
#define ZT_CBOR_CBOR_READ_H

#include <stdbool.h>

#include "base/arena.h"
#include "zt/status.h"

enum zt_cbor_profile { ZT_CBOR_ZT01, ZT_CBOR_ZT1, ZT_CBOR_ZT2 };

enum zt_cbor_kind {
    ZT_CBOR_UINT,  /* value */
    ZT_CBOR_NINT,  /* the number is -1 - value */
    ZT_CBOR_BYTES, /* bytes, length value */
    ZT_CBOR_TEXT,  /* bytes, length value: valid UTF-8 */
    ZT_CBOR_ARRAY, /* value items follow, then (indefinite) a break */
    ZT_CBOR_MAP,   /* value pairs follow */
    ZT_CBOR_TAG,   /* value is the tag; its item follows (lenient only) */
    ZT_CBOR_FALSE,
    ZT_CBOR_TRUE,
    ZT_CBOR_NULL,
    ZT_CBOR_UNDEFINED, /* lenient only */
    ZT_CBOR_SIMPLE,    /* value: a simple value that nobody has given a meaning (lenient only) */
    ZT_CBOR_FLOAT,     /* number */
    ZT_CBOR_BREAK      /* end of an indefinite array or map; seen only through zt_cbor_more */
};

struct zt_cbor_item {
    enum zt_cbor_kind kind;
    bool indefinite;
    uint64_t value;
    double number;
    const uint8_t *bytes;
    uint64_t offset; /* absolute: of the item's head */
};

struct zt_cbor_reader {
    const uint8_t *bytes;
    size_t length;
    size_t position;
    uint64_t base_offset; /* absolute file position of bytes[0] */
    enum zt_cbor_profile profile;
    unsigned depth;
    /* Joined chunks of indefinite texts go here (lenient); where it is NULL such texts are
     * ZT_UNSUPPORTED. */
    struct zt_arena *arena;
};

/* A map or array being walked. */
struct zt_cbor_walk {
    uint64_t remaining; /* items or pairs; UINT64_MAX while indefinite */
    bool indefinite;
    bool is_map;
    const uint8_t *previous_key; /* ZT2: encoded key before this one */
    size_t previous_key_length;
};

void zt_cbor_reader_init(struct zt_cbor_reader *reader, const void *bytes, size_t length,
                         uint64_t base_offset, enum zt_cbor_profile profile,
                         struct zt_arena *arena);

/* Reads one head, and for texts and byte strings the content. ZT_INVALID with the profile's rule
 * and the offset. Texts of indefinite length are joined in the arena. */
enum zt_status zt_cbor_next(struct zt_cbor_reader *reader, struct zt_cbor_item *out_item,
                            struct zt_error *error);

/* Like zt_cbor_next, but of a string of indefinite length only the head: zt_cbor_pass_chunks goes
 * on after it. */
enum zt_status zt_cbor_head(struct zt_cbor_reader *reader, struct zt_cbor_item *out_item,
                            struct zt_error *error);
enum zt_status zt_cbor_pass_chunks(struct zt_cbor_reader *reader, enum zt_cbor_kind kind,
                                   struct zt_error *error);

/* Like zt_cbor_next, but passes over tags (lenient; in ZT2 a tag is an error): the item is never a
 * tag. */
enum zt_status zt_cbor_next_untagged(struct zt_cbor_reader *reader, struct zt_cbor_item *out_item,
                                     struct zt_error *error);

/* Skips one whole value, checking every rule inside it (duplicate keys at any level included). */
enum zt_status zt_cbor_skip(struct zt_cbor_reader *reader, struct zt_error *error);

/* Skips one whole value and gives its encoded bytes, borrowed from the reader's. */
enum zt_status zt_cbor_skip_span(struct zt_cbor_reader *reader, struct zt_text *out_span,
                                 struct zt_error *error);
/* The same for a value that was validated before: takes no memory, so that none can be out, and
 * does not look for keys that occur twice. */
enum zt_status zt_cbor_pass_span(struct zt_cbor_reader *reader, struct zt_text *out_span,
                                 struct zt_error *error);

/* Enters the array or map whose head was just read as item. Every walk is driven to its end by
 * zt_cbor_more, which counts depth. */
enum zt_status zt_cbor_enter(struct zt_cbor_reader *reader, const struct zt_cbor_item *item,
                             struct zt_cbor_walk *out_walk, struct zt_error *error);
/* *out_more: another item (array) or pair (map) follows. At the end leaves the container. */
enum zt_status zt_cbor_more(struct zt_cbor_reader *reader, struct zt_cbor_walk *walk,
                            bool *out_more, struct zt_error *error);
/* Reads a map's next key whole, checking key order in ZT2: of a key that is an array, map or tag
 * out_key->bytes and value are the encoded bytes. In the lenient profiles the caller finds
 * duplicates among the keys it walks itself (zt_cbor_keys); zt_cbor_skip finds them in what it
 * skips. */
enum zt_status zt_cbor_key(struct zt_cbor_reader *reader, struct zt_cbor_walk *walk,
                           struct zt_cbor_item *out_key, struct zt_error *error);

/* --- keys of a map in any order --- */

/* One key as it is compared: numbers by value, texts and byte strings by content, all others by
 * their encoded bytes. */
struct zt_cbor_key {
    union {
        uint64_t number;
        const uint8_t *bytes;
    } is;
    uint32_t length;
    uint32_t position; /* of the key's head, relative to the reader's bytes */
    enum zt_cbor_kind kind;
};

/* The keys read so far of a map and of the maps around it. Zero-initialised; freed with
 * zt_cbor_keys_free. */
struct zt_cbor_keys {
    struct zt_cbor_key *list;
    size_t count;
    size_t capacity;
};

/* Remembers the key that zt_cbor_key read just before. ZT_NO_MEMORY. */
enum zt_status zt_cbor_keys_add(struct zt_cbor_keys *keys, const struct zt_cbor_reader *reader,
                                const struct zt_cbor_item *key, struct zt_error *error);
/* Refuses a key that occurs twice among those from number first on (CborDuplicateKey, at the second
 * one), and forgets them. */
enum zt_status zt_cbor_keys_check(struct zt_cbor_keys *keys, size_t first,
                                  const struct zt_cbor_reader *reader, struct zt_error *error);
void zt_cbor_keys_free(struct zt_cbor_keys *keys);

/* The profile's name for a rule of this file, as errors carry it. */
enum zt_cbor_rule { ZT_CBOR_SYNTAX, ZT_CBOR_DETERMINISM, ZT_CBOR_DUPLICATE_KEY, ZT_CBOR_DEPTH };
const char *zt_cbor_rule_name(const struct zt_cbor_reader *reader, enum zt_cbor_rule rule);

/* ZT_INVALID ("Syntax") when bytes are left. */
enum zt_status zt_cbor_end(const struct zt_cbor_reader *reader, struct zt_error *error);

/* Looks a text key up in an encoded map that was validated before; false when it is not there. The
 * value's reader stands at its head. */
bool zt_cbor_map_find(struct zt_text map, const char *key, struct zt_cbor_reader *out_value);

#endif
