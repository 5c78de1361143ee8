/* Writing CBOR with shortest heads and definite lengths (RFC 8949 section 4.2.1). The caller writes
 * keys in their order. */
#ifndef ZT_CBOR_CBOR_WRITE_H
#define ZT_CBOR_CBOR_WRITE_H

#include <stdbool.h>

#include "base/memory.h"
#include "zt/status.h"

void zt_cbor_put_uint(struct zt_buffer *buffer, uint64_t value);
/* Writes the number -1 - value. */
void zt_cbor_put_nint(struct zt_buffer *buffer, uint64_t value);
void zt_cbor_put_int(struct zt_buffer *buffer, int64_t value);
void zt_cbor_put_text(struct zt_buffer *buffer, struct zt_text text);
void zt_cbor_put_string(struct zt_buffer *buffer, const char *text);
void zt_cbor_put_bytes(struct zt_buffer *buffer, const void *bytes, size_t length);
void zt_cbor_put_array(struct zt_buffer *buffer, uint64_t count);
void zt_cbor_put_map(struct zt_buffer *buffer, uint64_t count);
void zt_cbor_put_bool(struct zt_buffer *buffer, bool value);
void zt_cbor_put_null(struct zt_buffer *buffer);
/* Writes the shortest float that preserves the value; NaN as F9 7E00. */
void zt_cbor_put_float(struct zt_buffer *buffer, double value);
/* Width in bytes of the shortest float that preserves the value: 2 (also for NaN), 4 or 8. */
unsigned zt_cbor_float_width(double value);

#endif
