/* Projecting: what becomes of names, types, layouts and attributes, and what each target
 * refuses. */
#include "tests.h"

#include <stdio.h>
#include <string.h>

#include "cbor_text.h"
#include "container.h"
#include "written.h"
#include "zt2_file.h"

static struct zt_error error;

#define FILE_OF(objects)    "{'version':'1.2.0','objects':{" objects "}}"
#define DATA(more)          "{'data':{" more "}}"
#define DENSE(shape, parts) "{'shape':" shape ",'format':'dense','components':" parts "}"
#define U8(length)          DATA("'dtype':'u8','offset':64,'length':" length)

/* Opens zTensor 1.2 whose data is zero. */
static void open_zeros(struct written *written, const char *manifest)
{
    struct container container = {0};
    struct zt_buffer bytes = {0};

    container_make(&container, CONTAINER_ZT1, 1024, manifest);
    memset(container.bytes + CONTAINER_DATA, 0, 1024);
    zt_buffer_append(&bytes, container.bytes, container.length);
    container_free(&container);
    written_open(written, bytes);
}

static void open_zt2(struct written *written, const char *manifest)
{
    struct zt2_file file = {0};
    struct zt_buffer bytes = {0};

    zt2_file_make(&file, ZT2_MANIFEST_AT, manifest);
    zt_buffer_append(&bytes, file.bytes, file.length);
    zt2_file_free(&file);
    written_open(written, bytes);
}

/* Fails unless the target refuses the model, naming the object. */
static void assert_refused(const struct written *written, enum zt_target target, const char *object,
                           const char *why)
{
    struct zt_projection *projection = NULL;

    zt_error_clear(&error);
    assert_int_equal(zt_model_project(written->model, target, &projection, &error), ZT_UNSUPPORTED);
    assert_null(projection);
    assert_string_equal(error.object, object);
    if (strstr(error.message, why) == NULL)
        fail_msg("'%s' does not tell '%s'", error.message, why);
}

static void refuses(enum zt_target target, const char *objects, const char *why)
{
    struct written written = {0};

    open_zeros(&written, objects);
    assert_refused(&written, target, "x", why);
    written_free(&written);
}

static void assert_cbor(const void *bytes, size_t length, const char *wanted)
{
    struct zt_buffer buffer = {0};

    cbor_text_append(&buffer, wanted);
    assert_int_equal(length, buffer.length);
    assert_memory_equal(bytes, buffer.bytes, length);
    zt_buffer_free(&buffer);
}

/* --- types --- */

TEST(bool_is_a_dtype_in_zt1_and_a_logical_type_in_zt2)
{
    struct written first = {0};
    struct written second = {0};
    struct written back = {0};

    open_zeros(&first, FILE_OF("'x':" DENSE("[2]", DATA("'dtype':'bool','offset':64,'length':2"))));
    written_make(&second, &first, ZT_TARGET_ZT2_CANONICAL, NULL);
    assert_int_equal(second.model->components[0].dtype, ZT_U8);
    assert_int_equal(second.model->components[0].logical, ZT_LOGICAL_BOOL);
    written_make(&back, &second, ZT_TARGET_ZT1, NULL);
    assert_int_equal(back.model->components[0].dtype, ZT_BOOL);
    assert_null(back.model->components[0].type);
    written_free(&back);
    written_make(&back, &second, ZT_TARGET_SAFETENSORS, NULL);
    assert_int_equal(back.model->components[0].dtype, ZT_BOOL);
    written_free(&first);
    written_free(&second);
    written_free(&back);
}

TEST(types_of_zt2_are_open_types_in_zt1)
{
    struct written first = {0};
    struct written made = {0};

    open_zt2(&first, ZT2_OBJECT("{'blob':[4096,4],'type':'f4_e2m1','dtype':'u8'}", ZT2_REST));
    written_make(&made, &first, ZT_TARGET_ZT1, NULL);
    assert_text(made.model->components[0].type, made.model->components[0].type_length, "f4_e2m1");
    assert_int_equal(made.model->components[0].dtype, ZT_U8);
    written_free(&first);
    written_free(&made);
}

TEST(six_bit_types_of_safetensors_go_through_zt)
{
    static const char objects[] =
        FILE_OF("'x':" DENSE("[8]", DATA("'dtype':'u8','type':'f6_e2m3','offset':64,'length':6")));
    struct zt_buffer twice = {0};
    struct written first = {0};
    struct written made = {0};
    struct written through = {0};

    open_zeros(&first, objects);
    written_make(&made, &first, ZT_TARGET_SAFETENSORS, NULL);
    assert_non_null(memmem(made.bytes.bytes, made.bytes.length, "F6_E2M3", 7));
    written_make(&through, &made, ZT_TARGET_ZT2_CANONICAL, NULL);
    assert_ok(written_convert(&through, ZT_TARGET_SAFETENSORS, NULL, &twice, &error));
    assert_int_equal(twice.length, made.bytes.length);
    assert_memory_equal(twice.bytes, made.bytes.bytes, twice.length);
    zt_buffer_free(&twice);
    written_free(&first);
    written_free(&made);
    written_free(&through);
    refuses(
        ZT_TARGET_SAFETENSORS,
        FILE_OF("'x':" DENSE("[8]", DATA("'dtype':'u8','type':'f6_e2m3','offset':64,'length':5"))),
        "six-bit");
}

/* --- layouts --- */

#define CSR(index)                                                                             \
    FILE_OF("'x':{'shape':[2,2],'format':'sparse_csr','components':{'values':{'dtype':'f32','" \
            "offset':64,'length':0},'indices':{'dtype':'" index                                \
            "','offset':64,'length':0},'indptr':{'dtype':'u16','offset':128,'length':6}}}")

TEST(indices_become_as_wide_as_the_target_wants)
{
    struct written first = {0};
    struct written made = {0};
    uint8_t bytes[64];

    open_zeros(&first, CSR("i32"));
    written_make(&made, &first, ZT_TARGET_ZT2, NULL);
    assert_text(made.model->objects[0].format, made.model->objects[0].format_length,
                "zt.sparse_csr/1");
    assert_int_equal(made.model->components[0].dtype, ZT_U32);
    assert_int_equal(made.model->components[1].dtype, ZT_U32);
    assert_int_equal(written_decode(&made, "x", "indptr", bytes, sizeof(bytes)), 12);
    written_free(&made);
    written_make(&made, &first, ZT_TARGET_ZT1, NULL);
    assert_int_equal(made.model->components[1].dtype, ZT_U64);
    assert_int_equal(written_decode(&made, "x", "indptr", bytes, sizeof(bytes)), 24);
    written_free(&made);
    written_free(&first);
}

/* One word of each type is what it was, whatever pieces the decoder gives. */
TEST(widened_indices_keep_their_value)
{
    struct container container = {0};
    struct zt_buffer file = {0};
    struct written first = {0};
    struct written made = {0};
    uint8_t bytes[64];

    container_make(
        &container, CONTAINER_ZT1, 128,
        FILE_OF("'x':{'shape':[9000,70000],'format':'sparse_coo','components':{'values':{'dtype':'"
                "u8','offset':128,'length':1},'coords':{'dtype':'i16','offset':64,'length':4}}}"));
    memcpy(container.bytes + CONTAINER_DATA, "\x01\x02\xff\x7f", 4);
    zt_buffer_append(&file, container.bytes, container.length);
    container_free(&container);
    written_open(&first, file);
    written_make(&made, &first, ZT_TARGET_ZT1, NULL);
    assert_int_equal(written_decode(&made, "x", "coords", bytes, sizeof(bytes)), 16);
    assert_memory_equal(bytes, "\x01\x02\0\0\0\0\0\0\xff\x7f\0\0\0\0\0\0", 16);
    written_free(&first);
    written_free(&made);
}

TEST(a_text_without_a_name_elsewhere_stays)
{
    struct written first = {0};
    struct written made = {0};

    open_zeros(
        &first,
        FILE_OF("'x':{'shape':[4,4],'format':'quantized_group','attributes':{'bits':4},'components'"
                ":{'packed_weight':{'dtype':'i32','offset':64,'length':8},'scales':{'dtype':'f16','"
                "offset':128,'length':8},'zeros':{'dtype':'f16','offset':192,'length':8}}}"));
    written_make(&made, &first, ZT_TARGET_ZT2, NULL);
    assert_text(made.model->objects[0].format, made.model->objects[0].format_length,
                "quantized_group");
    assert_text(made.model->components[0].name, made.model->components[0].name_length,
                "packed_weight");
    written_free(&made);
    written_free(&first);
}

#define QUANT_ATTRIBUTES                                                                           \
    "{'axis':1,'bits':4,'packing':{'word':'u32','order':'lsb_first','per_word':8},'group_size':8," \
    "'scale_form':'f16_factors','zero_point':{'form':'tensor','packing':'plain'}}"

TEST(quantized_group_is_quant_group_if_attributes_state_everything)
{
    struct written first = {0};
    struct written made = {0};
    struct written back = {0};

    open_zeros(
        &first,
        FILE_OF("'x':{'shape':[2,8],'format':'quantized_group','attributes':" QUANT_ATTRIBUTES
                ",'components':{'packed_weight':{'dtype':'i32','offset':64,'length':8},'scales':{'"
                "dtype':'f16','offset':128,'length':4},'zeros':{'dtype':'f16','offset':192,'length'"
                ":4}}}"));
    written_make(&made, &first, ZT_TARGET_ZT2, NULL);
    assert_int_equal(made.model->objects[0].layout, ZT_LAYOUT_QUANT_GROUP);
    assert_text(made.model->components[0].name, made.model->components[0].name_length, "data");
    written_make(&back, &made, ZT_TARGET_ZT1, NULL);
    assert_text(back.model->objects[0].format, back.model->objects[0].format_length,
                "quantized_group");
    assert_text(back.model->components[0].name, back.model->components[0].name_length,
                "packed_weight");
    written_free(&first);
    written_free(&made);
    written_free(&back);
}

/* --- names --- */

TEST(canonical_names_are_composed_and_sorted_again)
{
    struct written first = {0};
    struct written made = {0};

    /* "e" and a combining acute come before "f"; composed, after it */
    open_zeros(&first, FILE_OF("'e\u0301':" DENSE("[1]", U8("1")) ",'f':" DENSE(
                           "[2]", DATA("'dtype':'u8','offset':128,'length':2"))));
    written_make(&made, &first, ZT_TARGET_ZT2_CANONICAL, NULL);
    assert_text(made.model->objects[0].name, made.model->objects[0].name_length, "f");
    assert_text(made.model->objects[1].name, made.model->objects[1].name_length, "\u00e9");
    assert_true(made.model->dimensions[made.model->objects[0].first_dimension] == 2);
    assert_true(made.model->components[made.model->objects[0].first_component].length == 2);
    written_free(&made);
    written_make(&made, &first, ZT_TARGET_ZT2, NULL);
    assert_text(made.model->objects[0].name, made.model->objects[0].name_length, "e\u0301");
    written_free(&made);
    written_free(&first);
    open_zeros(&first, FILE_OF("'e\u0301':" DENSE("[1]", U8("1")) ",'\u00e9':" DENSE(
                           "[2]", DATA("'dtype':'u8','offset':128,'length':2"))));
    assert_refused(&first, ZT_TARGET_ZT2_CANONICAL, "\u00e9", "become equal");
    written_free(&first);
}

TEST(components_are_composed_too)
{
    struct written first = {0};
    struct written made = {0};

#define OWN(parts)   FILE_OF("'x':{'shape':[1],'format':'own','components':{" parts "}}")
#define BYTES_AT(at) "{'dtype':'u8','offset':" at ",'length':1}"
    open_zeros(&first,
               OWN("'e\u0301':" BYTES_AT("64") ",'f':{'dtype':'u8','offset':128,'length':2}"));
    written_make(&made, &first, ZT_TARGET_ZT2_CANONICAL, NULL);
    assert_text(made.model->components[0].name, made.model->components[0].name_length, "f");
    assert_true(made.model->components[0].length == 2);
    assert_true(made.model->components[1].length == 1);
    written_free(&made);
    written_free(&first);
    refuses(ZT_TARGET_ZT2_CANONICAL, OWN("'e\u0301':" BYTES_AT("64") ",'\u00e9':" BYTES_AT("128")),
            "become equal");
}

/* --- attributes --- */

TEST(attributes_are_in_the_order_of_the_target)
{
    struct written first = {0};
    struct written second = {0};
    struct written third = {0};

    open_zeros(
        &first,
        "{'version':'1.2.0','attributes':{'b':{'z':1,'aa':2},'aa':[{'k':0,'a':-1}]},'objects':{}}");
    written_make(&second, &first, ZT_TARGET_ZT2_CANONICAL, NULL);
    assert_cbor(second.model->attributes.bytes, second.model->attributes.length,
                "{'b':{'z':1,'aa':2},'aa':[{'a':-1,'k':0}]}");
    written_make(&third, &second, ZT_TARGET_ZT1, NULL);
    assert_cbor(third.model->attributes.bytes, third.model->attributes.length,
                "{'aa':[{'a':-1,'k':0}],'b':{'aa':2,'z':1}}");
    written_free(&first);
    written_free(&second);
    written_free(&third);
}

/* The attributes that are left out, in the order of the file. */
static void assert_named(const struct zt_projection *made, const char *const *names, unsigned count)
{
    assert_int_equal(made->named_count, count);
    for (unsigned i = 0; i < count; i++) {
        const struct zt_left_out *left_out = &made->named[i];
        char text[64];

        snprintf(text, sizeof(text), "%.*s%s%.*s", (int)left_out->name.length, left_out->name.bytes,
                 left_out->object.bytes != NULL ? " of " : "", (int)left_out->object.length,
                 left_out->object.bytes != NULL ? left_out->object.bytes : "");
        assert_string_equal(text, names[i]);
    }
}

TEST(dense_targets_keep_what_they_can_and_count_the_rest)
{
    struct zt_projection *made = NULL;
    struct written first = {0};

    open_zeros(&first, "{'version':'1.2.0','attributes':{'n':7,'text':'t','a':'u','f':0.5},'"
                       "objects':{'x':{'shape':[1],'format':'dense','attributes':{'o':1,'p':2},'"
                       "components':{'data':{'dtype':'f32','offset':64,'length':4}}}}}");
    assert_ok(zt_model_project(first.model, ZT_TARGET_SAFETENSORS, &made, &error));
    assert_cbor(made->model->attributes.bytes, made->model->attributes.length,
                "{'a':'u','text':'t'}");
    assert_true(made->left_out == 4);
    assert_named(made, (const char *[]){"n", "f", "o of x", "p of x"}, 4);
    zt_projection_free(made);
    assert_ok(zt_model_project(first.model, ZT_TARGET_MAG, &made, &error));
    assert_cbor(made->model->attributes.bytes, made->model->attributes.length, "{'n':7}");
    assert_true(made->left_out == 5);
    zt_projection_free(made);
    assert_ok(zt_model_project(first.model, ZT_TARGET_NPZ, &made, &error));
    assert_int_equal(made->model->attributes.length, 0);
    assert_true(made->left_out == 6);
    zt_projection_free(made);
    written_free(&first);
}

/* --- what is refused --- */

TEST(dense_targets_refuse_what_is_not_dense)
{
    static const enum zt_target targets[] = {ZT_TARGET_MAG, ZT_TARGET_SAFETENSORS, ZT_TARGET_NPZ,
                                             ZT_TARGET_NPY};

    for (unsigned i = 0; i < 4; i++)
        refuses(targets[i], CSR("u64"), "sparse_csr");
}

TEST(targets_refuse_types_they_lack)
{
    static const struct {
        enum zt_target target;
        const char *data;
        const char *why;
    } cases[] = {
        {ZT_TARGET_MAG, "'dtype':'u8','offset':64,'length':1", "u8"},
        {ZT_TARGET_NPZ, "'dtype':'bf16','offset':64,'length':2", "bf16"},
        {ZT_TARGET_NPY, "'dtype':'u8','type':'f8_e5m2','offset':64,'length':1", "f8_e5m2"},
        {ZT_TARGET_SAFETENSORS, "'dtype':'f64','type':'complex128','offset':64,'length':16",
         "complex128"},
        {ZT_TARGET_SAFETENSORS, "'dtype':'u8','type':'mine','offset':64,'length':1", "mine"},
        {ZT_TARGET_ZT2, "'dtype':'bool','type':'mine','offset':64,'length':1", "bool"},
        {ZT_TARGET_ZT1, "'dtype':'u8','offset':64,'length':1,'encoding':'lz4'", "lz4"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char manifest[400];

        snprintf(manifest, sizeof(manifest), FILE_OF("'x':" DENSE("[1]", DATA("%s"))),
                 cases[i].data);
        refuses(cases[i].target, manifest, cases[i].why);
    }
}

TEST(targets_refuse_shapes_they_lack)
{
    struct written written = {0};

#define F32(length) DATA("'dtype':'f32','offset':64,'length':" length)
    refuses(ZT_TARGET_MAG, FILE_OF("'x':" DENSE("[]", F32("4"))), "0 dimensions");
    refuses(ZT_TARGET_MAG, FILE_OF("'x':" DENSE("[1,1,1,1,1,1,1]", F32("4"))), "7 dimensions");
    refuses(ZT_TARGET_MAG, FILE_OF("'x':" DENSE("[2,0]", F32("0"))), "a dimension of 0");
    open_zt2(&written, "{'objects':{'x':{'parts':{'data':{'blob':[4096,2],'type':'f4_e2m1','dtype':"
                       "'u8'}},'shape':[3],'layout':'dense'}}}");
    assert_refused(&written, ZT_TARGET_SAFETENSORS, "x", "odd");
    written_free(&written);
}

TEST(targets_refuse_names_they_cannot_have)
{
    static const enum zt_target short_names[] = {ZT_TARGET_ZT2, ZT_TARGET_MAG, ZT_TARGET_NPZ};
    static const char head[] = "{'version':'1.2.0','objects':{'";
    static char manifest[66000 + 256];
    struct written written = {0};

    open_zeros(&written, FILE_OF("'__metadata__':" DENSE("[1]", U8("1"))));
    assert_refused(&written, ZT_TARGET_SAFETENSORS, "__metadata__", "is reserved");
    written_free(&written);
    memset(manifest, 'n', sizeof(manifest) - 1);
    memcpy(manifest, head, strlen(head));
    snprintf(manifest + 66000, 256, "':%s}}", DENSE("[1]", F32("4")));
    open_zeros(&written, manifest);
    for (unsigned i = 0; i < 3; i++) {
        struct zt_projection *projection = NULL;

        assert_int_equal(zt_model_project(written.model, short_names[i], &projection, &error),
                         ZT_UNSUPPORTED);
        assert_non_null(strstr(error.message, "a name"));
    }
    written_free(&written);
}

TEST(npy_refuses_more_than_one_object)
{
    struct written written = {0};

    open_zeros(&written, FILE_OF("'x':" DENSE("[1]", U8("1")) ",'y':" DENSE("[1]", U8("1"))));
    assert_refused(&written, ZT_TARGET_NPY, "", "one object");
    written_free(&written);
}

TEST(zt2_refuses_an_object_that_breaks_its_layout)
{
    refuses(ZT_TARGET_ZT2,
            FILE_OF("'x':" DENSE("[1]", "{'data':{'dtype':'u8','offset':64,'length':1},'more':{'"
                                        "dtype':'u8','offset':64,'length':1}}")),
            "dense");
}
