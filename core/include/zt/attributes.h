/* Attributes: CBOR values of a model, written as JSON (RFC 8949 section 6.1), and adding one. */
#ifndef ZT_ATTRIBUTES_H
#define ZT_ATTRIBUTES_H

#include "zt/status.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* Writes one CBOR value as compact JSON through emit, piece by piece:
 *
 *     integers                        exact
 *     NaN, infinities, undefined      null
 *     byte strings                    base64url without padding; base64 in tag 22, base16 in tag 23
 *     bignums (tags 2 and 3)          base64url, the negative one preceded by "~"
 *     other tags                      their content
 *     keys that are not text          their diagnostic notation
 *
 * value comes from a model, so it is valid CBOR; an empty value is written as {}. After a failure
 * (ZT_LIMIT, ZT_NO_MEMORY) the text emitted so far is incomplete. */
enum zt_status zt_attributes_write_json(struct zt_text value,
                                        void (*emit)(void *context, const char *text,
                                                     size_t length),
                                        void *context, struct zt_error *error);

/* An attribute whose value is a list of texts, which are valid UTF-8. */
struct zt_attribute_list {
    const char *key;
    const struct zt_text *texts;
    size_t count;
    /* The value is one text, the list as compact JSON: for formats whose attributes are all
     * texts. */
    bool is_json;
};

/* Copies a model's attributes (the bytes of a CBOR map, or empty) and sets one of them to a list;
 * an earlier value of the key is dropped. out_map->bytes is freed with free(). ZT_NO_MEMORY. */
enum zt_status zt_attributes_with_list(struct zt_text map, const struct zt_attribute_list *list,
                                       struct zt_text *out_map, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
