/* Storage types and logical types: names, widths, sizes (zTensor 1.2 section 2; zTensor 2 types).
 *
 * The readers check which logical type a file may combine with which dtype. */
#include "zt/dtype.h"

#include <assert.h>

struct dtype_row {
    const char *name;
    const char *long_name; /* of zTensor 0.1 and 1.0 */
    unsigned width_bytes;
};

static const struct dtype_row dtypes[ZT_DTYPE_COUNT] = {
    [ZT_F64] = {"f64", "float64", 8}, [ZT_F32] = {"f32", "float32", 4},
    [ZT_F16] = {"f16", "float16", 2}, [ZT_BF16] = {"bf16", "bfloat16", 2},
    [ZT_I64] = {"i64", "int64", 8},   [ZT_I32] = {"i32", "int32", 4},
    [ZT_I16] = {"i16", "int16", 2},   [ZT_I8] = {"i8", "int8", 1},
    [ZT_U64] = {"u64", "uint64", 8},  [ZT_U32] = {"u32", "uint32", 4},
    [ZT_U16] = {"u16", "uint16", 2},  [ZT_U8] = {"u8", "uint8", 1},
    [ZT_BOOL] = {"bool", "bool", 1},
};

struct logical_row {
    const char *name;
    enum zt_dtype storage;
    unsigned bits; /* of one element */
};

static const struct logical_row logicals[ZT_LOGICAL_COUNT] = {
    [ZT_LOGICAL_BOOL] = {"bool", ZT_U8, 8},
    [ZT_LOGICAL_F8_E4M3FN] = {"f8_e4m3fn", ZT_U8, 8},
    [ZT_LOGICAL_F8_E5M2] = {"f8_e5m2", ZT_U8, 8},
    [ZT_LOGICAL_F8_E4M3FNUZ] = {"f8_e4m3fnuz", ZT_U8, 8},
    [ZT_LOGICAL_F8_E5M2FNUZ] = {"f8_e5m2fnuz", ZT_U8, 8},
    [ZT_LOGICAL_F8_E8M0] = {"f8_e8m0", ZT_U8, 8},
    [ZT_LOGICAL_F4_E2M1] = {"f4_e2m1", ZT_U8, 4},
    [ZT_LOGICAL_COMPLEX64] = {"complex64", ZT_F32, 64},
    [ZT_LOGICAL_COMPLEX128] = {"complex128", ZT_F64, 128},
};

const char *zt_dtype_name(enum zt_dtype dtype)
{
    assert(dtype < ZT_DTYPE_COUNT);
    return dtypes[dtype].name;
}

unsigned zt_dtype_width(enum zt_dtype dtype)
{
    assert(dtype < ZT_DTYPE_COUNT);
    return dtypes[dtype].width_bytes;
}

bool zt_dtype_from_name(struct zt_text name, enum zt_dtype *out_dtype)
{
    for (int i = 0; i < ZT_DTYPE_COUNT; i++) {
        if (zt_text_is(name, dtypes[i].name)) {
            *out_dtype = (enum zt_dtype)i;
            return true;
        }
    }
    return false;
}

bool zt_dtype_from_long_name(struct zt_text name, enum zt_dtype *out_dtype)
{
    for (int i = 0; i < ZT_DTYPE_COUNT; i++) {
        if (zt_text_is(name, dtypes[i].long_name)) {
            *out_dtype = (enum zt_dtype)i;
            return true;
        }
    }
    return false;
}

const char *zt_logical_name(enum zt_logical logical)
{
    assert(logical < ZT_LOGICAL_COUNT);
    return logicals[logical].name;
}

enum zt_logical zt_logical_from_name(struct zt_text name)
{
    for (int i = ZT_LOGICAL_BOOL; i < ZT_LOGICAL_COUNT; i++)
        if (zt_text_is(name, logicals[i].name))
            return (enum zt_logical)i;
    return ZT_LOGICAL_UNKNOWN;
}

enum zt_dtype zt_logical_storage(enum zt_logical logical)
{
    assert(logical >= ZT_LOGICAL_BOOL && logical < ZT_LOGICAL_COUNT);
    return logicals[logical].storage;
}

unsigned zt_element_bits(enum zt_dtype dtype, enum zt_logical logical)
{
    if (logical == ZT_LOGICAL_NONE)
        return 8 * dtypes[dtype].width_bytes;
    return logicals[logical].bits;
}

enum zt_status zt_element_bytes(enum zt_dtype dtype, enum zt_logical logical, uint64_t elements,
                                uint64_t *out_bytes)
{
    unsigned bits = zt_element_bits(dtype, logical);
    uint64_t bytes;

    if (bits == 0)
        return ZT_UNSUPPORTED;
    assert(bits == 4 || bits % 8 == 0);
    if (bits < 8) /* the last byte may hold one element only */
        bytes = elements / 2 + elements % 2;
    else if (__builtin_mul_overflow(elements, bits / 8, &bytes))
        return ZT_LIMIT;
    *out_bytes = bytes;
    return ZT_OK;
}
