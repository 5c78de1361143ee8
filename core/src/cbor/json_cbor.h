/* JSON values as CBOR, for attributes that a format keeps as JSON. */
#ifndef ZT_CBOR_JSON_CBOR_H
#define ZT_CBOR_JSON_CBOR_H

#include "base/arena.h"
#include "cbor/json_read.h"

/* Reads one value whole and encodes it in the arena: whole numbers exactly where they fit, others
 * as the nearest float, NaN and the infinities of a reader that takes them as themselves.
 * ZT_INVALID with the reader's syntax rule also for a key that occurs twice, a number of over 400
 * digits and, where the reader wants_exact, a whole number of more than 64 bits and one above all
 * floats. */
enum zt_status zt_json_to_cbor(struct zt_json_reader *reader, struct zt_arena *arena,
                               struct zt_text *out_value, struct zt_error *error);

#endif
