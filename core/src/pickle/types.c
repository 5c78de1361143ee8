/* The types of torch. Those without a storage class are saved with an untyped storage. */
#include "pickle/types.h"

#include <assert.h>

#define PLAIN(name, storage, dtype, width)                         \
    {                                                              \
        name, storage, dtype, ZT_LOGICAL_NONE, width, false, false \
    }
#define LOGICAL(name, dtype, logical, width, complex)     \
    {                                                     \
        name, NULL, dtype, logical, width, complex, false \
    }
#define COMPLEX(name, storage, dtype, logical, width)     \
    {                                                     \
        name, storage, dtype, logical, width, true, false \
    }
#define QUANTIZED(name, storage, dtype, width)                    \
    {                                                             \
        name, storage, dtype, ZT_LOGICAL_NONE, width, false, true \
    }

static const struct torch_type types[] = {
    PLAIN("float64", "Double", ZT_F64, 8),
    PLAIN("float32", "Float", ZT_F32, 4),
    PLAIN("float16", "Half", ZT_F16, 2),
    PLAIN("bfloat16", "BFloat16", ZT_BF16, 2),
    PLAIN("int64", "Long", ZT_I64, 8),
    PLAIN("int32", "Int", ZT_I32, 4),
    PLAIN("int16", "Short", ZT_I16, 2),
    PLAIN("int8", "Char", ZT_I8, 1),
    PLAIN("uint8", "Byte", ZT_U8, 1),
    PLAIN("bool", "Bool", ZT_BOOL, 1),
    COMPLEX("complex64", "ComplexFloat", ZT_F32, ZT_LOGICAL_COMPLEX64, 8),
    COMPLEX("complex128", "ComplexDouble", ZT_F64, ZT_LOGICAL_COMPLEX128, 16),
    QUANTIZED("qint8", "QInt8", ZT_I8, 1),
    QUANTIZED("quint8", "QUInt8", ZT_U8, 1),
    QUANTIZED("qint32", "QInt32", ZT_I32, 4),
    PLAIN("uint16", NULL, ZT_U16, 2),
    PLAIN("uint32", NULL, ZT_U32, 4),
    PLAIN("uint64", NULL, ZT_U64, 8),
    LOGICAL("float8_e4m3fn", ZT_U8, ZT_LOGICAL_F8_E4M3FN, 1, false),
    LOGICAL("float8_e5m2", ZT_U8, ZT_LOGICAL_F8_E5M2, 1, false),
    LOGICAL("float8_e4m3fnuz", ZT_U8, ZT_LOGICAL_F8_E4M3FNUZ, 1, false),
    LOGICAL("float8_e5m2fnuz", ZT_U8, ZT_LOGICAL_F8_E5M2FNUZ, 1, false),
    LOGICAL("float8_e8m0fnu", ZT_U8, ZT_LOGICAL_F8_E8M0, 1, false),
    LOGICAL("float4_e2m1fn_x2", ZT_U8, ZT_LOGICAL_F4_E2M1, 1, false),
    LOGICAL("complex32", ZT_F16, ZT_LOGICAL_UNKNOWN, 4, true),
    LOGICAL("bcomplex32", ZT_BF16, ZT_LOGICAL_UNKNOWN, 4, true),
    LOGICAL("bits8", ZT_U8, ZT_LOGICAL_UNKNOWN, 1, false),
    LOGICAL("bits1x8", ZT_U8, ZT_LOGICAL_UNKNOWN, 1, false),
    LOGICAL("bits2x4", ZT_U8, ZT_LOGICAL_UNKNOWN, 1, false),
    LOGICAL("bits4x2", ZT_U8, ZT_LOGICAL_UNKNOWN, 1, false),
    LOGICAL("bits16", ZT_U16, ZT_LOGICAL_UNKNOWN, 2, false),
};

#define TYPE_COUNT ((uint32_t)(sizeof(types) / sizeof(types[0])))

const struct torch_type torch_untyped = PLAIN("uint8", "Untyped", ZT_U8, 1);

const struct torch_type *torch_type_of_dtype(struct zt_text name)
{
    for (uint32_t i = 0; i < TYPE_COUNT; i++)
        if (zt_text_is(name, types[i].name))
            return &types[i];
    return NULL;
}

const struct torch_type *torch_type_of_storage(struct zt_text name)
{
    const struct zt_text suffix = zt_text_from("Storage");

    if (!zt_text_ends_with(name, suffix))
        return NULL;
    name.length -= suffix.length;
    for (uint32_t i = 0; i < TYPE_COUNT; i++)
        if (types[i].storage != NULL && zt_text_is(name, types[i].storage))
            return &types[i];
    return NULL;
}

uint32_t torch_type_number(const struct torch_type *type)
{
    return type == &torch_untyped ? TYPE_COUNT : (uint32_t)(type - types);
}

const struct torch_type *torch_type_numbered(uint32_t number)
{
    assert(number <= TYPE_COUNT);
    return number == TYPE_COUNT ? &torch_untyped : &types[number];
}

bool torch_type_is_signed_float(const struct torch_type *type)
{
    return type->dtype == ZT_F64 || type->dtype == ZT_F32 || type->dtype == ZT_F16 ||
           type->dtype == ZT_BF16;
}
