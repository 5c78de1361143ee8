/* Attributes encoded anew, so that equal ones are equal bytes wherever they came from.
 *
 * zTensor 2 wants deterministic CBOR (shorter keys first); in zTensor 1.2 keys ascend bytewise, as
 * its reference writes every map. Both have the shortest heads, definite lengths and the narrowest
 * floats. */
#ifndef ZT_CBOR_ATTRIBUTES_ENCODE_H
#define ZT_CBOR_ATTRIBUTES_ENCODE_H

#include <stdbool.h>

#include "cbor/cbor_write.h"

enum zt_attributes_form { ZT_ATTRIBUTES_ZT1, ZT_ATTRIBUTES_ZT2, ZT_ATTRIBUTES_ZT2_CANONICAL };

/* Appends the map that the bytes of a model's attributes encode. levels: how deep values may lie in
 * it (the map itself is level 0). ZT_UNSUPPORTED with a message for what the form cannot hold: in
 * zTensor 2 tags, undefined, deeper levels, and keys at the top that are not 1 to 1024 bytes
 * without NUL. Its canonical form also composes those keys (NFC). ZT_NO_MEMORY. */
enum zt_status zt_attributes_encode(struct zt_text map, enum zt_attributes_form form,
                                    unsigned levels, struct zt_buffer *buffer,
                                    struct zt_error *error);

/* How many entries a map of a model's attributes has; 0 for no bytes. */
uint64_t zt_attributes_count(struct zt_text map);

#endif
