/* GGUF: keys and values, read and refused. */
#include <string.h>

#include "formats/gguf/gguf.h"
#include "gguf_file.h"
#include "tests.h"

TEST(open_reads_every_value)
{
    struct gguf_file file = {0};
    struct container container = {0};
    struct zt_model *model;

    gguf_begin(&file);
    gguf_put_key(&file, "u8", GGUF_U8), gguf_put(&file, 255, 1);
    gguf_put_key(&file, "i8", GGUF_I8), gguf_put(&file, 0x80, 1);
    gguf_put_key(&file, "u16", GGUF_U16), gguf_put(&file, 65535, 2);
    gguf_put_key(&file, "i16", GGUF_I16), gguf_put(&file, 0xFFFF, 2);
    gguf_put_key(&file, "u32", GGUF_U32), gguf_put(&file, UINT32_MAX, 4);
    gguf_put_key(&file, "i32", GGUF_I32), gguf_put(&file, 5, 4);
    gguf_put_key(&file, "f32", GGUF_F32), gguf_put(&file, 0x3DCCCCCD, 4);
    gguf_put_key(&file, "bool", GGUF_BOOL), gguf_put(&file, 1, 1);
    gguf_put_key(&file, "string", GGUF_STRING), gguf_put_string(&file, "\xc3\xa9");
    gguf_put_key(&file, "u64", GGUF_U64), gguf_put(&file, UINT64_MAX, 8);
    gguf_put_key(&file, "i64", GGUF_I64), gguf_put(&file, 1ull << 63, 8);
    gguf_put_key(&file, "f64", GGUF_F64), gguf_put(&file, 0x3FB999999999999A, 8);
    gguf_put_key(&file, "tokens", GGUF_ARRAY), gguf_put(&file, GGUF_STRING, 4),
        gguf_put(&file, 2, 8);
    gguf_put_string(&file, "a"), gguf_put_string(&file, "\xff");
    gguf_put_key(&file, "nested", GGUF_ARRAY), gguf_put(&file, GGUF_ARRAY, 4),
        gguf_put(&file, 2, 8);
    gguf_put(&file, GGUF_BOOL, 4), gguf_put(&file, 1, 8), gguf_put(&file, 0, 1);
    gguf_put(&file, GGUF_F64, 4), gguf_put(&file, 0, 8);
    gguf_finish(&file, 32, 0, &container);
    model = container_model(&container);
    assert_int_equal(model->manifest_length, container.length);
    assert_json(
        model->attributes,
        "{\"u8\":255,\"i8\":-128,\"u16\":65535,\"i16\":-1,\"u32\":4294967295,\"i32\":5,\"f32\":"
        "0.10000000149011612,\"bool\":true,\"string\":\"\xc3\xa9\",\"u64\":18446744073709551615,"
        "\"i64\":-9223372036854775808,\"f64\":0.1,\"tokens\":[\"a\",\"_w\"],"
        "\"nested\":[[false],[]]}");
    zt_model_free(model);
    container_free(&container);
}

/* Names of every length, so that the header ends at every distance from the next multiple, and on
 * one. */
TEST(open_aligns_data_as_the_file_says)
{
    char name[] = "12345678";
    struct container container = {0};

    for (unsigned length = 1; length <= 8; length++) {
        struct gguf_file file = {0};
        struct zt_model *model;

        name[length] = '\0';
        gguf_begin(&file);
        gguf_put_key(&file, "general.alignment", GGUF_U32), gguf_put(&file, 8, 4);
        gguf_put_tensor(&file, name, 1, (const uint64_t[1]){3}, 24);
        gguf_put_offset(&file, 8);
        gguf_finish(&file, 8, 11, &container);
        model = container_model(&container);
        assert_int_equal(model->components[0].offset, container.length - 3);
        zt_model_free(model);
        memcpy(name, "12345678", sizeof(name));
    }
    container_free(&container);
}

TEST(open_refuses_alignments)
{
    static const struct {
        enum gguf_value type;
        uint64_t value;
    } cases[] = {{GGUF_U32, 0},  {GGUF_U32, 4},  {GGUF_U32, 24},         {GGUF_U32, 33},
                 {GGUF_U64, 32}, {GGUF_I32, 32}, {GGUF_U32, 0xFFFFFFFF}, {GGUF_F32, 0x42000000}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gguf_file file = {0};
        uint64_t at;

        gguf_begin(&file);
        gguf_put_key(&file, "general.alignment", cases[i].type);
        at = file.bytes.length;
        gguf_put(&file, cases[i].value, cases[i].type == GGUF_U64 ? 8 : 4);
        gguf_assert_refused(&file, 0, "gguf §Metadata Alignment", at);
    }
}

TEST(open_refuses_keys)
{
    static char long_key[65537];
    const char *const keys[] = {"", "\xff", long_key};
    struct gguf_file file;
    uint64_t second;

    memset(long_key, 'k', sizeof(long_key) - 1);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        file = (struct gguf_file){0};
        gguf_begin(&file);
        gguf_put_key(&file, keys[i], GGUF_U64), gguf_put(&file, 0, 8);
        gguf_assert_refused(&file, 0, "gguf §Metadata Key", 24);
    }
    file = (struct gguf_file){0};
    gguf_begin(&file);
    gguf_put_key(&file, "b", GGUF_U64), gguf_put(&file, 0, 8);
    gguf_put_key(&file, "a", GGUF_U64), gguf_put(&file, 0, 8);
    second = file.bytes.length + 8;
    gguf_put_key(&file, "b", GGUF_U64), gguf_put(&file, 0, 8);
    gguf_assert_refused(&file, 0, "gguf §Metadata DuplicateKey", second);
}

TEST(open_refuses_values)
{
    struct gguf_file file = {0};

    gguf_begin(&file);
    gguf_put_key(&file, "k", GGUF_VALUE_COUNT), gguf_put(&file, 0, 8);
    gguf_assert_refused(&file, 0, "gguf §Metadata ValueType", 24 + 9);
    gguf_begin(&file);
    gguf_put_key(&file, "k", GGUF_ARRAY), gguf_put(&file, 99, 4), gguf_put(&file, 0, 8);
    gguf_assert_refused(&file, 0, "gguf §Metadata ValueType", 24 + 9 + 4);
    gguf_begin(&file);
    gguf_put_key(&file, "k", GGUF_BOOL), gguf_put(&file, 2, 1);
    gguf_assert_refused(&file, 0, "gguf §Metadata Bool", 24 + 9 + 4);
}

static void put_nested(struct gguf_file *file, unsigned levels)
{
    gguf_begin(file);
    gguf_put_key(file, "k", GGUF_ARRAY);
    for (unsigned i = 1; i < levels; i++)
        gguf_put(file, GGUF_ARRAY, 4), gguf_put(file, 1, 8);
    gguf_put(file, GGUF_U8, 4), gguf_put(file, 0, 8);
}

TEST(open_refuses_arrays_deeper_than_32)
{
    struct gguf_file file = {0};
    struct container container = {0};

    put_nested(&file, GGUF_DEPTH_MAX);
    gguf_finish(&file, 32, 0, &container);
    zt_model_free(container_model(&container));
    container_free(&container);
    put_nested(&file, GGUF_DEPTH_MAX + 1);
    gguf_assert_refused(&file, 0, "gguf §Metadata Depth", 24 + 9 + 4 + 12 * GGUF_DEPTH_MAX);
    put_nested(&file, 100000);
    gguf_assert_refused(&file, 0, "gguf §Metadata Depth", 24 + 9 + 4 + 12 * GGUF_DEPTH_MAX);
}
