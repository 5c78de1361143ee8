/* Attributes: CBOR values of a model, shown as JSON (RFC 8949 section 6.1). */
#ifndef ZT_ATTRIBUTES_H
#define ZT_ATTRIBUTES_H

#include "zt/status.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* Writes one CBOR value as compact JSON through emit, piece by piece. Byte strings become base64url
 * text without padding (inside tags 22 and 23 base64 and base16), NaN, infinities and undefined
 * null, integers exact, keys that are not text their diagnostic notation, tags their content;
 * bignums (tags 2 and 3) base64url text, the negative one preceded by "~". value must come from a
 * model, which has validated it; an empty one is {}. After a failure what was emitted is not JSON.
 */
enum zt_status zt_attributes_write_json(struct zt_text value,
                                        void (*emit)(void *context, const char *text,
                                                     size_t length),
                                        void *context, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
