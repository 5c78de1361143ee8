/* The types of torch: dtypes and storage classes, and the corresponding zt types. */
#ifndef ZT_PICKLE_TYPES_H
#define ZT_PICKLE_TYPES_H

#include <stdint.h>

#include "zt/dtype.h"

struct torch_type {
    const char *name;    /* torch.<name> */
    const char *storage; /* the class without "Storage"; NULL: it has none */
    uint8_t dtype;       /* enum zt_dtype */
    uint8_t logical;     /* enum zt_logical */
    uint8_t width_bytes; /* of an element */
    uint8_t is_complex;
    uint8_t is_quantized;
};

/* One byte of a storage without a type. */
extern const struct torch_type torch_untyped;

/* NULL for other names. */
const struct torch_type *torch_type_of_dtype(struct zt_text name);
/* The name of a storage class, with "Storage". */
const struct torch_type *torch_type_of_storage(struct zt_text name);

/* Numbers for types, and back. */
uint32_t torch_type_number(const struct torch_type *type);
const struct torch_type *torch_type_numbered(uint32_t number);

/* Whether the sign of its numbers can be flipped. */
bool torch_type_is_signed_float(const struct torch_type *type);

#endif
