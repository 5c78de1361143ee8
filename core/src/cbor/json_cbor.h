/* Converting JSON values to CBOR: attributes of requests and of formats that store them as JSON. */
#ifndef ZT_CBOR_JSON_CBOR_H
#define ZT_CBOR_JSON_CBOR_H

#include "base/memory.h"
#include "cbor/json_read.h"

/* Reads one whole value and encodes it in the arena. Integers of up to 64 bits stay exact; other
 * numbers become the nearest float; NaN and infinities, if the reader accepts them, are preserved.
 * ZT_INVALID with the reader's rules; with the syntax rule also for a repeated key, a number of
 * over 400 characters and, if the reader wants_exact, a number too large for 64 bits or for a
 * float. ZT_LIMIT, ZT_NO_MEMORY. */
enum zt_status zt_json_to_cbor(struct zt_json_reader *reader, struct zt_arena *arena,
                               struct zt_text *out_value, struct zt_error *error);

#endif
