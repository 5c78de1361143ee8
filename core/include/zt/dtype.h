/* Storage types and logical types (zTensor 1.2 section 2, zTensor 2 types).
 *
 * A component's dtype is the type of its stored words. Its logical type, if it has one, is the type
 * of its elements: f8_e4m3fn is stored as one u8, complex64 as two f32. */
#ifndef ZT_DTYPE_H
#define ZT_DTYPE_H

#include <stdbool.h>

#include "zt/status.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum zt_dtype {
    ZT_F64,
    ZT_F32,
    ZT_F16,
    ZT_BF16,
    ZT_I64,
    ZT_I32,
    ZT_I16,
    ZT_I8,
    ZT_U64,
    ZT_U32,
    ZT_U16,
    ZT_U8,
    ZT_BOOL,
    ZT_DTYPE_COUNT
};

enum zt_logical {
    /* The elements are of the dtype itself. */
    ZT_LOGICAL_NONE,
    /* A type that this library does not know, and so of unknown size. */
    ZT_LOGICAL_UNKNOWN,
    ZT_LOGICAL_BOOL,
    ZT_LOGICAL_F8_E4M3FN,
    ZT_LOGICAL_F8_E5M2,
    ZT_LOGICAL_F8_E4M3FNUZ,
    ZT_LOGICAL_F8_E5M2FNUZ,
    ZT_LOGICAL_F8_E8M0,
    ZT_LOGICAL_F4_E2M1,
    ZT_LOGICAL_COMPLEX64,
    ZT_LOGICAL_COMPLEX128,
    ZT_LOGICAL_COUNT
};

/* "f32" and so on, as zTensor 1.1 and later spell it. Static text. */
const char *zt_dtype_name(enum zt_dtype dtype);
/* Bytes of one word: 1, 2, 4 or 8. */
unsigned zt_dtype_width(enum zt_dtype dtype);
/* Looks up a dtype by the name that zTensor 1.1 and later use (f32), or by the long name of 0.1 and
 * 1.0 (float32). False if the name is unknown. */
bool zt_dtype_from_name(struct zt_text name, enum zt_dtype *out_dtype);
bool zt_dtype_from_long_name(struct zt_text name, enum zt_dtype *out_dtype);

/* Static text; NULL for ZT_LOGICAL_NONE and ZT_LOGICAL_UNKNOWN. */
const char *zt_logical_name(enum zt_logical logical);
/* ZT_LOGICAL_UNKNOWN for any text that is not the name of a known type. */
enum zt_logical zt_logical_from_name(struct zt_text name);
/* The dtype that stores a known logical type (complex64: ZT_F32). */
enum zt_dtype zt_logical_storage(enum zt_logical logical);

/* The size in bytes of a number of elements. f4_e2m1 packs two elements in a byte; an odd number is
 * rounded up. ZT_LIMIT if the size does not fit in 64 bits, ZT_UNSUPPORTED for
 * ZT_LOGICAL_UNKNOWN. */
enum zt_status zt_element_bytes(enum zt_dtype dtype, enum zt_logical logical, uint64_t elements,
                                uint64_t *out_bytes);

/* Bits of one element (4 for f4_e2m1, 128 for complex128); 0 for ZT_LOGICAL_UNKNOWN. */
unsigned zt_element_bits(enum zt_dtype dtype, enum zt_logical logical);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
