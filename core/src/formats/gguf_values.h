/* GGUF: the values of metadata, passed over or turned into CBOR. Called by gguf.c alone. */
#ifndef ZT_FORMATS_GGUF_VALUES_H
#define ZT_FORMATS_GGUF_VALUES_H

#include "cbor/cbor_write.h"
#include "formats/gguf_cursor.h"

/* Arrays inside one another. */
#define GGUF_DEPTH_MAX 32

/* Reads the number of a value's type. Rule "gguf §Metadata ValueType". */
enum zt_status gguf_take_value_type(struct gguf_cursor *cursor, enum gguf_value *out_type,
                                    struct zt_error *error);

/* Passes over one value of the type, checking that everything in it ends before the cursor's end.
 * Rules "gguf §Metadata Bounds", "ValueType", "Depth". */
enum zt_status gguf_value_skip(struct gguf_cursor *cursor, enum gguf_value type,
                               struct zt_error *error);

/* Reads one value, over memory, and appends it as CBOR: integers without their width, floats in the
 * shortest form that keeps them, strings as text, or as byte strings where they are not UTF-8. The
 * rules above, and "gguf §Metadata Bool". A buffer that failed is the caller's to find. */
enum zt_status gguf_value_encode(struct gguf_cursor *cursor, enum gguf_value type,
                                 struct zt_buffer *buffer, struct zt_error *error);

#endif
