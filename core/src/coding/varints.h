/* Numbers of a repeated field in protobuf's wire format (ONNX), read as little-endian words of the
 * component's dtype. ZT_ENCODING_VARINT is the payload of one packed field of integers, of which
 * the low bits count. ZT_ENCODING_PROTOBUF is a run of fields with their tags: those with the
 * number of the first hold integers or, in TensorProto's float_data and double_data, floats, one
 * each or packed; fields between them with other numbers are passed over. */
#ifndef ZT_CODING_VARINTS_H
#define ZT_CODING_VARINTS_H

#include "zt/model.h"

struct zt_varints;

/* Starts reading a component of one of these encodings. component and source are borrowed.
 * ZT_NO_MEMORY. */
enum zt_status zt_varints_open(const struct zt_component *component, struct zt_source *source,
                               struct zt_varints **out_varints, struct zt_error *error);

/* Reads up to capacity bytes; *out_length is 0 at the end. ZT_CORRUPT with the rule "onnx §Data
 * Varint" for an integer of more than 64 bits, for too few integers, and for bytes that follow the
 * last one; ZT_IO. */
enum zt_status zt_varints_read(struct zt_varints *varints, uint8_t *buffer, size_t capacity,
                               size_t *out_length, struct zt_error *error);

/* Number of stored bytes read. */
uint64_t zt_varints_consumed(const struct zt_varints *varints);

/* Takes NULL. */
void zt_varints_close(struct zt_varints *varints);

#endif
