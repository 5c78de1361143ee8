/* Encoding attributes again, so that equal ones are equal bytes whatever file they come from.
 *
 * zTensor 2 requires deterministic CBOR (shorter keys first). In zTensor 1.2 keys ascend bytewise,
 * as in the maps of its reference writer. Both have shortest heads, definite lengths and shortest
 * floats. */
#ifndef ZT_CBOR_ATTRIBUTES_ENCODE_H
#define ZT_CBOR_ATTRIBUTES_ENCODE_H

#include <stdbool.h>

#include "cbor/cbor_write.h"

enum zt_attributes_form { ZT_ATTRIBUTES_ZT1, ZT_ATTRIBUTES_ZT2, ZT_ATTRIBUTES_ZT2_CANONICAL };

/* Appends a model's attributes, the bytes of a CBOR map, in a form. Values may be nested levels
 * deep; the map itself is level 0. The canonical form also composes the top keys (NFC).
 * ZT_UNSUPPORTED with a message for what the form cannot hold: deeper levels, and in zTensor 2
 * tags, undefined, simple values, and top keys that are not 1 to 1024 bytes without NUL.
 * ZT_NO_MEMORY. */
enum zt_status zt_attributes_encode(struct zt_text map, enum zt_attributes_form form,
                                    unsigned levels, struct zt_buffer *buffer,
                                    struct zt_error *error);

/* The number of a model's attributes; 0 for no bytes. */
uint64_t zt_attributes_count(struct zt_text map);

#endif
