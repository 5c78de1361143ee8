/* NPY arrays: headers as NumPy writes them, and others. */
#include "tests.h"

#include <stdio.h>
#include <string.h>

#include "zip_file.h"
#include "zt/decode.h"

#define DICT(descr, order, shape) \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"
#define TEXT_AT 10

static void opens(const char *dict, size_t data_length, struct zt_model **out_model)
{
    static const uint8_t data[4096];
    struct bytes bytes = {NULL, 0};
    struct zt_error error;

    npy_append(&bytes, dict, data, data_length);
    if (bytes_open(&bytes, bytes.length, out_model, &error) != ZT_OK)
        fail_msg("%s: %s", dict, error.message);
    bytes_free(&bytes);
}

TEST(open_makes_one_object_of_the_array)
{
    struct zt_model *model = NULL;
    const struct zt_object *object;
    const struct zt_component *component;

    opens(DICT("'>f4'", "True", "(2, 3)"), 24, &model);
    assert_int_equal(model->format, ZT_FORMAT_NPY);
    assert_string_equal(model->format_name, "npy");
    assert_int_equal(model->object_count, 1);
    object = zt_model_find(model, zt_text_from("data"));
    component = zt_object_components(model, object);
    assert_int_equal(object->rank, 2);
    assert_int_equal(object->layout, ZT_LAYOUT_DENSE);
    assert_int_equal(zt_object_shape(model, object)[1], 3);
    assert_int_equal(component->dtype, ZT_F32);
    assert_true(component->big_endian);
    assert_int_equal(component->offset, model->file_size - 24);
    assert_int_equal(component->length, 24);
    assert_int_equal(component->arrangement->lead_bytes, component->offset);
    assert_true(component->arrangement->fortran);
    assert_ptr_equal(component->arrangement->shape, zt_object_shape(model, object));
    assert_false(zt_component_is_plain(component));
    zt_model_free(model);
}

TEST(open_takes_every_dtype_of_numbers)
{
    static const struct {
        const char *descr;
        enum zt_dtype dtype;
        enum zt_logical logical;
        unsigned bytes;
    } cases[] = {
        {"'<f8'", ZT_F64, ZT_LOGICAL_NONE, 8},
        {"'<f4'", ZT_F32, ZT_LOGICAL_NONE, 4},
        {"'<f2'", ZT_F16, ZT_LOGICAL_NONE, 2},
        {"'<i8'", ZT_I64, ZT_LOGICAL_NONE, 8},
        {"'=i4'", ZT_I32, ZT_LOGICAL_NONE, 4},
        {"'i2'", ZT_I16, ZT_LOGICAL_NONE, 2},
        {"'|i1'", ZT_I8, ZT_LOGICAL_NONE, 1},
        {"'>i1'", ZT_I8, ZT_LOGICAL_NONE, 1},
        {"'<u8'", ZT_U64, ZT_LOGICAL_NONE, 8},
        {"'<u4'", ZT_U32, ZT_LOGICAL_NONE, 4},
        {"'<u2'", ZT_U16, ZT_LOGICAL_NONE, 2},
        {"'|u1'", ZT_U8, ZT_LOGICAL_NONE, 1},
        {"'|b1'", ZT_BOOL, ZT_LOGICAL_NONE, 1},
        {"'<c8'", ZT_F32, ZT_LOGICAL_COMPLEX64, 8},
        {"'?'", ZT_BOOL, ZT_LOGICAL_NONE, 1},
        {"'float32'", ZT_F32, ZT_LOGICAL_NONE, 4},
        {"'<d'", ZT_F64, ZT_LOGICAL_NONE, 8},
        {"'|f4'", ZT_F32, ZT_LOGICAL_NONE, 4},
        {"'>?'", ZT_BOOL, ZT_LOGICAL_NONE, 1},
        {"'e'", ZT_F16, ZT_LOGICAL_NONE, 2},
        {"'half'", ZT_F16, ZT_LOGICAL_NONE, 2},
        {"'=L'", ZT_U64, ZT_LOGICAL_NONE, 8},
        {"'intc'", ZT_I32, ZT_LOGICAL_NONE, 4},
        {"'f04'", ZT_F32, ZT_LOGICAL_NONE, 4},
        {"'D'", ZT_F64, ZT_LOGICAL_COMPLEX128, 16},
        {"'complex64'", ZT_F32, ZT_LOGICAL_COMPLEX64, 8},
        {"'int'", ZT_I64, ZT_LOGICAL_NONE, 8},
        {"u'<f4'", ZT_F32, ZT_LOGICAL_NONE, 4},
        {"'<c16'", ZT_F64, ZT_LOGICAL_COMPLEX128, 16},
        {"\"<f4\"", ZT_F32, ZT_LOGICAL_NONE, 4},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct zt_model *model = NULL;
        char dict[128];

        snprintf(dict, sizeof(dict), DICT("%s", "False", "(3,)"), cases[i].descr);
        opens(dict, 3 * cases[i].bytes, &model);
        assert_int_equal(model->components[0].dtype, cases[i].dtype);
        assert_int_equal(model->components[0].logical, cases[i].logical);
        assert_true(zt_component_is_plain(&model->components[0]));
        zt_model_free(model);
    }
}

TEST(open_takes_every_header_that_numpy_writes)
{
    static const struct {
        const char *dict;
        size_t bytes;
        unsigned rank;
    } cases[] = {
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (), }          ", 8, 0},
        {"{'shape':(2L,3L),'fortran_order':False,'descr':'|u1'}", 6, 2},
        {"  { 'fortran_order' : True ,\t'descr':'|u1', 'shape':( 2 , 3 , ) , } ", 6, 2},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 18446744073709551615), }", 0, 2},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct zt_model *model = NULL;

        opens(cases[i].dict, cases[i].bytes, &model);
        assert_int_equal(model->objects[0].rank, cases[i].rank);
        zt_model_free(model);
    }
}

TEST(open_takes_all_three_versions)
{
    for (uint8_t version = 1; version <= 3; version++) {
        struct bytes bytes = {NULL, 0};
        struct zt_model *model = NULL;
        const char *dict = DICT("'|u1'", "False", "(2,)");
        uint8_t head[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', version, 0, (uint8_t)strlen(dict)};

        bytes_append(&bytes, head, version == 1 ? 10 : 12);
        bytes_append(&bytes, dict, strlen(dict));
        bytes_append(&bytes, "ab", 2);
        model = bytes_model(&bytes);
        zt_model_free(model);
        bytes_free(&bytes);
    }
}

/* ^ marks the offset of the failure in the text of the dictionary. */
static void refuses(const char *marked, size_t data_length, const char *rule)
{
    static const uint8_t data[64];
    struct bytes bytes = {NULL, 0};
    size_t mark = strcspn(marked, "^");
    char dict[2048];

    assert_true(strlen(marked) < sizeof(dict));
    strcpy(dict, marked);
    if (marked[mark] == '^')
        memmove(dict + mark, dict + mark + 1, strlen(marked) - mark);
    else
        mark = 0;
    npy_append(&bytes, dict, data, data_length);
    bytes_assert_refused(&bytes, rule, TEXT_AT + mark);
    bytes_free(&bytes);
}

TEST(open_refuses_headers_that_are_not_a_dictionary)
{
    static const char *const dicts[] = {
        "^['descr']",
        "{^descr: '<f4'}",
        "{'descr' ^'<f4'}",
        "{'descr': ^<f4}",
        "{'descr': ^'<f\\4'}",
        "{'descr': '<f4' ^'shape': ()}",
        DICT("'<f4'", "False", "(3 ^4)"),
        DICT("'<f4'", "False", "(^03,)"),
        DICT("'<f4'", "False", "()") " ^{}",
        "{^__import__('os')}",
    };

    for (size_t i = 0; i < sizeof(dicts) / sizeof(*dicts); i++)
        refuses(dicts[i], 0, "npy §Header Syntax");
}

TEST(open_refuses_headers_cut_short)
{
    struct bytes bytes = {NULL, 0};

    npy_append(&bytes, "{'descr': '<f4', ", NULL, 0);
    bytes_assert_refused(&bytes, "npy §Header Syntax", bytes.length);
    bytes_free(&bytes);
    npy_append(&bytes, "{'descr': '<f4", NULL, 0);
    bytes_assert_refused(&bytes, "npy §Header Syntax", TEXT_AT + 10);
    bytes_free(&bytes);
}

TEST(open_refuses_wrong_fields)
{
    static const char *const dicts[] = {
        "{'descr': '<f4', 'fortran_order': False, }",
        "{'descr': '<f4', 'shape': ()}",
        "{}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (), ^'shape': ()}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (), ^'more': 1}",
        DICT("'<f4'", "^0", "()"),
        DICT("'<f4'", "False", "^[3]"),
        DICT("'<f4'", "False", "(3)^"),
        DICT("'<f4'", "False", "(^-1,)"),
        DICT("'<f4'", "False", "(^None,)"),
    };

    for (size_t i = 0; i < sizeof(dicts) / sizeof(*dicts); i++)
        refuses(dicts[i], 0, "npy §Header Fields");
}

TEST(open_refuses_shapes_that_do_not_fit)
{
    char shape[256] = "(";
    char dict[512];

    refuses(DICT("'<f4'", "False", "(^18446744073709551616,)"), 0, "npy §Header Shape");
    refuses(DICT("'<f4'", "False", "(4294967296, 4294967296, 0)"), 0, "npy §Header Shape");
    refuses(DICT("'<f4'", "False", "(4611686018427387904,)"), 0, "npy §Header Shape");
    refuses(DICT("'|u1'", "False", "(18446744073709551615,)"), 0, "npy §Header Shape");
    for (unsigned i = 0; i < 64; i++)
        strcat(shape, "1,");
    strcat(shape, "^1)");
    snprintf(dict, sizeof(dict), DICT("'<f4'", "False", "%s"), shape);
    refuses(dict, 0, "npy §Header Shape");
}

TEST(open_refuses_data_of_another_length)
{
    for (size_t length = 11; length <= 13; length += 2) {
        struct bytes bytes = {NULL, 0};
        static const uint8_t data[16];
        size_t header = npy_append(&bytes, DICT("'<f4'", "False", "(3,)"), data, length);

        bytes_assert_refused(&bytes, "npy §Data DataSize", header);
        bytes_free(&bytes);
    }
}

TEST(open_refuses_preambles_with_wrong_numbers)
{
    struct bytes bytes = {NULL, 0};

    npy_append(&bytes, DICT("'<f4'", "False", "()"), "abcd", 4);
    bytes.at[6] = 4;
    bytes_assert_refused(&bytes, "npy §Header Version", 6);
    bytes.at[6] = 1;
    bytes.at[7] = 1;
    bytes_assert_refused(&bytes, "npy §Header Version", 6);
    bytes.at[7] = 0;
    bytes_put_le(bytes.at + 8, bytes.length - 10 + 1, 2);
    bytes_assert_refused(&bytes, "npy §Header HeaderBounds", 8);
    bytes.length = 9;
    bytes_assert_refused(&bytes, "npy §Header HeaderBounds", 8);
    bytes_free(&bytes);
    bytes_append(&bytes, "\x93NUMPY\2\0\0\0\1\0", 12);
    for (unsigned i = 0; i < 66000; i++)
        bytes_append(&bytes, " ", 1);
    bytes_assert_refused(&bytes, "npy §Header HeaderTooLarge", 8);
    bytes_put_le(bytes.at + 8, UINT32_MAX, 4);
    bytes_assert_refused(&bytes, "npy §Header HeaderBounds", 8);
    bytes_free(&bytes);
}

TEST(open_calls_other_kinds_of_arrays_unsupported)
{
    static const char *const descrs[] = {
        "'|O'",   "'|S3'",  "'<U2'",  "'<M8[D]'",       "'<m8'",         "'|V2'",
        "'<f16'", "'<c32'", "'g'",    "[('a', '<f4')]", "('<f4', (2,))", "'<f3'",
        "''",     "'<'",    "'\x01'", "'a\xFF'",        "'<float32'",    "'f4,f4'",
        "'!f4'",  "'f256'", "'O'",    "'object'",       "'str'",         "'2f4'"};

    for (size_t i = 0; i < sizeof(descrs) / sizeof(*descrs); i++) {
        struct bytes bytes = {NULL, 0};
        char dict[128];

        snprintf(dict, sizeof(dict), DICT("%s", "False", "(0,)"), descrs[i]);
        npy_append(&bytes, dict, NULL, 0);
        bytes_assert_unsupported(&bytes, "dtype");
        bytes_free(&bytes);
    }
}

TEST(open_survives_prefixes_and_flipped_bits)
{
    struct bytes bytes = {NULL, 0};
    size_t header =
        npy_append(&bytes, DICT("'>f4'", "True", "(2, 3)"), "012345678901234567890123", 24);

    bytes_assert_survive(&bytes, 6, header);
    bytes_free(&bytes);
}
