/* GGUF: tables of types. Sizes of blocks are those of ggml's structures. */
#include "formats/gguf_types.h"

#define PLAIN(name, dtype, bytes)   \
    {                               \
        name, NULL, 1, bytes, dtype \
    }
#define BLOCK(name, elements, bytes)                    \
    {                                                   \
        name, "gguf." name "/1", elements, bytes, ZT_U8 \
    }

/* 4, 5, 31 to 33 and 36 to 38 were types once. */
static const struct gguf_type types[GGUF_TYPE_COUNT] = {
    [0] = PLAIN("f32", ZT_F32, 4),    [1] = PLAIN("f16", ZT_F16, 2),
    [2] = BLOCK("q4_0", 32, 18),      [3] = BLOCK("q4_1", 32, 20),
    [6] = BLOCK("q5_0", 32, 22),      [7] = BLOCK("q5_1", 32, 24),
    [8] = BLOCK("q8_0", 32, 34),      [9] = BLOCK("q8_1", 32, 36),
    [10] = BLOCK("q2_k", 256, 84),    [11] = BLOCK("q3_k", 256, 110),
    [12] = BLOCK("q4_k", 256, 144),   [13] = BLOCK("q5_k", 256, 176),
    [14] = BLOCK("q6_k", 256, 210),   [15] = BLOCK("q8_k", 256, 292),
    [16] = BLOCK("iq2_xxs", 256, 66), [17] = BLOCK("iq2_xs", 256, 74),
    [18] = BLOCK("iq3_xxs", 256, 98), [19] = BLOCK("iq1_s", 256, 50),
    [20] = BLOCK("iq4_nl", 32, 18),   [21] = BLOCK("iq3_s", 256, 110),
    [22] = BLOCK("iq2_s", 256, 82),   [23] = BLOCK("iq4_xs", 256, 136),
    [24] = PLAIN("i8", ZT_I8, 1),     [25] = PLAIN("i16", ZT_I16, 2),
    [26] = PLAIN("i32", ZT_I32, 4),   [27] = PLAIN("i64", ZT_I64, 8),
    [28] = PLAIN("f64", ZT_F64, 8),   [29] = BLOCK("iq1_m", 256, 56),
    [30] = PLAIN("bf16", ZT_BF16, 2), [34] = BLOCK("tq1_0", 256, 54),
    [35] = BLOCK("tq2_0", 256, 66),   [39] = BLOCK("mxfp4", 32, 17),
    [40] = BLOCK("nvfp4", 64, 36),    [41] = BLOCK("q1_0", 128, 18),
    [42] = BLOCK("q2_0", 64, 18),
};

const struct gguf_type *gguf_type_find(uint32_t number)
{
    return number < GGUF_TYPE_COUNT && types[number].name != NULL ? &types[number] : NULL;
}

unsigned gguf_value_bytes(enum gguf_value type)
{
    static const unsigned bytes[GGUF_VALUE_COUNT] = {
        [GGUF_U8] = 1,     [GGUF_I8] = 1,  [GGUF_U16] = 2, [GGUF_I16] = 2,
        [GGUF_U32] = 4,    [GGUF_I32] = 4, [GGUF_F32] = 4, [GGUF_BOOL] = 1,
        [GGUF_U64] = 8,    [GGUF_I64] = 8, [GGUF_F64] = 8, [GGUF_STRING] = 8, /* its length */
        [GGUF_ARRAY] = 12, /* the type of its elements, and their count */
    };

    return bytes[type];
}
