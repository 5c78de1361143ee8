/* Reading CBOR item by item (RFC 8949), over libcbor's streaming decoder.
 *
 * There are three profiles. ZT01 and ZT1 are lenient: they allow indefinite lengths, heads of any
 * width, any order of keys, and 128 levels. ZT2 is deterministic: shortest heads, sorted keys,
 * shortest floats, no tags, and 32 levels. All profiles reject repeated keys in a map, invalid
 * UTF-8, declared counts that exceed the remaining bytes, and bytes after the item. The profile
 * also determines the names of the rules: "zt0.1 §Metadata CborSyntax", "zt1 §1 CborSyntax", "zt2
 * §2 CborSyntax", and likewise CborDeterminism, CborDuplicateKey and CborDepth.
 *
 * The reader takes memory only for joined texts and for the keys of unsorted maps. */
#ifndef ZT_CBOR_CBOR_READ_H
#define ZT_CBOR_CBOR_READ_H

#include <stdbool.h>

#include "base/memory.h"
#include "zt/status.h"

enum zt_cbor_profile { ZT_CBOR_ZT01, ZT_CBOR_ZT1, ZT_CBOR_ZT2 };

enum zt_cbor_kind {
    ZT_CBOR_UINT,  /* value */
    ZT_CBOR_NINT,  /* the number is -1 - value */
    ZT_CBOR_BYTES, /* bytes, length value */
    ZT_CBOR_TEXT,  /* bytes, length value: valid UTF-8 */
    ZT_CBOR_ARRAY, /* value items follow; if indefinite, any number and a break */
    ZT_CBOR_MAP,   /* value pairs follow */
    ZT_CBOR_TAG,   /* value is the tag; its item follows (lenient only) */
    ZT_CBOR_FALSE,
    ZT_CBOR_TRUE,
    ZT_CBOR_NULL,
    ZT_CBOR_UNDEFINED, /* lenient only */
    ZT_CBOR_SIMPLE,    /* value: an unassigned simple value (lenient only) */
    ZT_CBOR_FLOAT,     /* number */
    ZT_CBOR_BREAK      /* end of an indefinite array or map; zt_cbor_more consumes it */
};

struct zt_cbor_item {
    enum zt_cbor_kind kind;
    bool indefinite;
    uint64_t value;
    double number;
    const uint8_t *bytes;
    uint64_t offset; /* absolute position of the item's head */
};

/* The content of a text or byte string. */
static inline struct zt_text zt_cbor_content(const struct zt_cbor_item *item)
{
    return (struct zt_text){(const char *)item->bytes, (size_t)item->value};
}

struct zt_cbor_reader {
    const uint8_t *bytes;
    size_t length;
    size_t position;
    uint64_t base_offset; /* absolute file position of bytes[0] */
    enum zt_cbor_profile profile;
    unsigned depth;
    /* Holds the joined chunks of strings of indefinite length (lenient profiles). If it is NULL,
     * such strings are ZT_UNSUPPORTED. */
    struct zt_arena *arena;
};

/* A map or array that is being walked. */
struct zt_cbor_walk {
    uint64_t remaining; /* items or pairs; UINT64_MAX while indefinite */
    bool indefinite;
    bool is_map;
    const uint8_t *previous_key; /* ZT2: the encoded previous key */
    size_t previous_key_length;
};

void zt_cbor_reader_init(struct zt_cbor_reader *reader, const void *bytes, size_t length,
                         uint64_t base_offset, enum zt_cbor_profile profile,
                         struct zt_arena *arena);

/* Reads one head and, for a string, its content; the chunks of a string of indefinite length are
 * joined in the arena. ZT_INVALID with the profile's rule and the offset; ZT_LIMIT and ZT_NO_MEMORY
 * from the arena. */
enum zt_status zt_cbor_next(struct zt_cbor_reader *reader, struct zt_cbor_item *out_item,
                            struct zt_error *error);

/* Like zt_cbor_next, but reads only the head of a string of indefinite length: zt_cbor_pass_chunks
 * skips the rest. */
enum zt_status zt_cbor_head(struct zt_cbor_reader *reader, struct zt_cbor_item *out_item,
                            struct zt_error *error);
enum zt_status zt_cbor_pass_chunks(struct zt_cbor_reader *reader, enum zt_cbor_kind kind,
                                   struct zt_error *error);

/* Like zt_cbor_next, but skips tags: the item is never a tag. In ZT2 a tag is an error. */
enum zt_status zt_cbor_next_untagged(struct zt_cbor_reader *reader, struct zt_cbor_item *out_item,
                                     struct zt_error *error);

/* Skips one whole value and checks every rule in it, including repeated keys at any level. */
enum zt_status zt_cbor_skip(struct zt_cbor_reader *reader, struct zt_error *error);

/* Like zt_cbor_skip; *out_span is the encoded value, borrowed from the reader's bytes. */
enum zt_status zt_cbor_skip_span(struct zt_cbor_reader *reader, struct zt_text *out_span,
                                 struct zt_error *error);
/* Like zt_cbor_skip_span, for a value that has already been validated: takes no memory, so it
 * cannot fail for lack of it, and does not look for repeated keys. */
enum zt_status zt_cbor_pass_span(struct zt_cbor_reader *reader, struct zt_text *out_span,
                                 struct zt_error *error);

/* Enters the array or map whose head has just been read as item. Call zt_cbor_more until it returns
 * false, or the reader's depth will be wrong. */
struct zt_cbor_walk zt_cbor_enter(struct zt_cbor_reader *reader, const struct zt_cbor_item *item);
/* Whether another item of the array, or pair of the map, follows; false leaves the array or map. */
bool zt_cbor_more(struct zt_cbor_reader *reader, struct zt_cbor_walk *walk);
/* Reads the whole next key of a map; in ZT2 it also checks the order of keys. If the key is an
 * array, map or tag, out_key->bytes and value give its encoded bytes. In the lenient profiles the
 * caller must check the keys that it reads for repetition (zt_cbor_keys); zt_cbor_skip checks the
 * keys that it skips. */
enum zt_status zt_cbor_key(struct zt_cbor_reader *reader, struct zt_cbor_walk *walk,
                           struct zt_cbor_item *out_key, struct zt_error *error);

/* --- keys of a map in any order --- */

/* The keys read so far from a map and from the maps around it. Starts zeroed; freed with
 * zt_cbor_keys_free. */
struct zt_cbor_keys {
    struct zt_cbor_key *list;
    size_t count;
    size_t capacity;
};

/* Adds the key that zt_cbor_key has just read. ZT_NO_MEMORY. */
enum zt_status zt_cbor_keys_add(struct zt_cbor_keys *keys, const struct zt_cbor_reader *reader,
                                const struct zt_cbor_item *key, struct zt_error *error);
/* Rejects a repetition among the keys from index `first` on (CborDuplicateKey, at the second
 * occurrence), and drops these keys. */
enum zt_status zt_cbor_keys_check(struct zt_cbor_keys *keys, size_t first,
                                  const struct zt_cbor_reader *reader, struct zt_error *error);
void zt_cbor_keys_free(struct zt_cbor_keys *keys);

/* The profile's name for a rule. */
enum zt_cbor_rule { ZT_CBOR_SYNTAX, ZT_CBOR_DETERMINISM, ZT_CBOR_DUPLICATE_KEY, ZT_CBOR_DEPTH };
const char *zt_cbor_rule_name(const struct zt_cbor_reader *reader, enum zt_cbor_rule rule);

/* Rejects bytes after the item (CborSyntax). */
enum zt_status zt_cbor_end(const struct zt_cbor_reader *reader, struct zt_error *error);

/* Finds the value of a text key in an encoded map that has already been validated; false if there
 * is no such key. *out_value is a reader at the head of the value. */
bool zt_cbor_map_find(struct zt_text map, const char *key, struct zt_cbor_reader *out_value);

#endif
