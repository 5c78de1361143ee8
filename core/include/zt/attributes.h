/* Attributes: CBOR values of a model, written as JSON (RFC 8949 section 6.1). */
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

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
