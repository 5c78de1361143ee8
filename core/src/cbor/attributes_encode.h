/* Encoding attributes in a normalised form, so that equal attributes become equal bytes, even from
 * different formats.
 *
 * zTensor 2 requires deterministic CBOR (shorter keys first). For zTensor 1.2 keys are sorted
 * bytewise, as its reference writer sorts them. Both forms have shortest heads, definite lengths
 * and shortest floats. */
#ifndef ZT_CBOR_ATTRIBUTES_ENCODE_H
#define ZT_CBOR_ATTRIBUTES_ENCODE_H

#include <stdbool.h>

#include "cbor/cbor_write.h"

enum zt_attributes_form { ZT_ATTRIBUTES_ZT1, ZT_ATTRIBUTES_ZT2, ZT_ATTRIBUTES_ZT2_CANONICAL };

/* Appends a model's attributes, the bytes of a CBOR map, in the given form. Values may be nested at
 * most `levels` deep; the map itself is level 0. The canonical form also normalises top-level keys
 * to NFC. ZT_UNSUPPORTED with a message for anything that the form cannot hold: deeper levels, and
 * in zTensor 2 tags, undefined, simple values, and top-level keys that are not 1 to 1024 bytes
 * without NUL. ZT_NO_MEMORY. */
enum zt_status zt_attributes_encode(struct zt_text map, enum zt_attributes_form form,
                                    unsigned levels, struct zt_buffer *buffer,
                                    struct zt_error *error);

/* The number of attributes in a model's map; 0 if the map has no bytes. */
uint64_t zt_attributes_count(struct zt_text map);

#endif
