/* Layout rules of zTensor 2 at open: dense and sparse, quantized, blocks. */
#include "tests.h"

#include <stdio.h>
#include <string.h>

#include "model/layout.h"
#include "zt2_file.h"

#define LAYOUT "zt2 §6 LayoutRule"
#define DENSE  "zt2 §6 DenseSize"

static struct zt_error error;

/* A manifest of object "a". The mark is at the object's name, unless a part has one: "@" P(…). */
static const char *object(const char *parts, const char *shape, const char *layout,
                          const char *attributes)
{
    static char manifest[2000];

    snprintf(manifest, sizeof(manifest),
             "{'objects':{%s'a':{'parts':{%s},'shape':%s,'layout':'%s'%s%s}}}",
             strchr(parts, '@') != NULL ? "" : "@", parts, shape, layout,
             *attributes ? ",'attributes':" : "", attributes);
    return manifest;
}

static void accepted(const char *parts, const char *shape, const char *layout,
                     const char *attributes)
{
    const char *manifest = object(parts, shape, layout, attributes);

    if (zt2_text_try(manifest, &error) != ZT_OK)
        fail_msg("%s: %s: %s", manifest, error.rule != NULL ? error.rule : "", error.message);
}

#define P(name, at, length, dtype) "'" name "':{'blob':[" at "," length "],'dtype':'" dtype "'}"
#define T(name, at, length, dtype, type) \
    "'" name "':{'blob':[" at "," length "],'type':'" type "','dtype':'" dtype "'}"

static void refused_by(const char *rule, const char *parts, const char *shape, const char *layout,
                       const char *attributes)
{
    zt2_text_refused(object(parts, shape, layout, attributes), rule, &error);
    assert_string_equal(error.object, "a");
}

static void refused(const char *parts, const char *shape, const char *layout,
                    const char *attributes)
{
    refused_by(LAYOUT, parts, shape, layout, attributes);
}

TEST(names_of_layouts_belong_to_their_family)
{
    static const struct {
        const char *name;
        enum zt_layout zt1;
        enum zt_layout zt2;
    } names[] = {
        {"dense", ZT_LAYOUT_DENSE, ZT_LAYOUT_DENSE},
        {"sparse_csr", ZT_LAYOUT_SPARSE_CSR, ZT_LAYOUT_OTHER},
        {"zt.sparse_csr/1", ZT_LAYOUT_OTHER, ZT_LAYOUT_SPARSE_CSR},
        {"sparse_coo", ZT_LAYOUT_SPARSE_COO, ZT_LAYOUT_OTHER},
        {"zt.sparse_coo/1", ZT_LAYOUT_OTHER, ZT_LAYOUT_SPARSE_COO},
        {"quantized_group", ZT_LAYOUT_QUANT_GROUP, ZT_LAYOUT_OTHER},
        {"zt.quant_group/1", ZT_LAYOUT_OTHER, ZT_LAYOUT_QUANT_GROUP},
        {"zt.mx/1", ZT_LAYOUT_OTHER, ZT_LAYOUT_MX},
        {"gguf.q4_0/1", ZT_LAYOUT_OTHER, ZT_LAYOUT_GGUF},
        {"gguf./1", ZT_LAYOUT_OTHER, ZT_LAYOUT_OTHER},
        {"zt.mx/2", ZT_LAYOUT_OTHER, ZT_LAYOUT_OTHER},
        {"", ZT_LAYOUT_OTHER, ZT_LAYOUT_OTHER},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct zt_text name = {names[i].name, strlen(names[i].name)};

        assert_int_equal(zt_layout_from_name(ZT_LAYOUTS_ZT1, name), names[i].zt1);
        assert_int_equal(zt_layout_from_name(ZT_LAYOUTS_ZT2, name), names[i].zt2);
    }
}

TEST(dense_is_exactly_one_part_of_the_shapes_size)
{
    accepted(P("data", "4096", "12", "f32"), "[3]", "dense", "");
    accepted(P("data", "4096", "0", "f32"), "[0,4]", "dense", "");
    accepted(P("data", "4096", "4", "f32"), "[]", "dense", "");
    accepted(T("data", "4096", "3", "u8", "f4_e2m1"), "[5]", "dense", "");
    accepted(T("data", "4096", "8", "f32", "complex64"), "[1]", "dense", "");
    accepted(T("data", "4096", "1", "u8", "x.future/1"), "[999]", "dense", "");
    refused_by(DENSE, "@" P("data", "4096", "8", "f32"), "[3]", "dense", "");
    refused_by(DENSE, "@" T("data", "4096", "4", "u8", "f4_e2m1"), "[5]", "dense", "");
    refused_by(DENSE, "@" T("data", "4096", "4", "f32", "complex64"), "[1]", "dense", "");
    refused_by(DENSE, "@" P("data", "4096", "0", "f64"), "[2305843009213693952]", "dense", "");
    refused(P("date", "4096", "4", "f32"), "[1]", "dense", "");
    refused(P("b", "4096", "4", "f32") "," P("data", "4096", "4", "f32"), "[1]", "dense", "");
    refused_by(DENSE, "@" P("data", "4096", "16", "f32"), "[3]", "dense", "");
}

#define CSR "zt.sparse_csr/1"
#define COO "zt.sparse_coo/1"

/* Parts in the order of deterministic CBOR: "indptr" precedes "values". */
static const char *csr(const char *values, const char *indptr, const char *indices)
{
    static char parts[600];

    snprintf(parts, sizeof(parts), "%s,%s,%s", indptr, values, indices);
    return parts;
}

TEST(csr_has_parts_that_fit_together)
{
    const char *values = P("values", "4096", "12", "f32");
    const char *indptr = P("indptr", "8192", "24", "u64");
    const char *indices = P("indices", "12288", "24", "u64");

    accepted(csr(values, indptr, indices), "[2,3]", CSR, "");
    accepted(csr(T("values", "4096", "2", "u8", "f4_e2m1"), P("indptr", "8192", "12", "u32"),
                 P("indices", "12288", "12", "u32")),
             "[2,3]", CSR, "");
    accepted(csr(P("values", "4096", "0", "f32"), P("indptr", "8192", "4", "u32"),
                 P("indices", "12288", "0", "u32")),
             "[0,3]", CSR, "");
    refused(csr(values, indptr, indices), "[2]", CSR, "");
    refused(csr(values, indptr, indices), "[2,3,1]", CSR, "");
}

TEST(csr_refuses_parts_that_do_not_fit_together)
{
    const char *values = P("values", "4096", "12", "f32");
    const char *indptr = P("indptr", "8192", "24", "u64");
    const char *indices = P("indices", "12288", "24", "u64");

    refused(P("values", "4096", "12", "f32"), "[2,3]", CSR, "");
    refused(csr(values, "@" P("indptr", "8192", "24", "i64"), indices), "[2,3]", CSR, "");
    refused(csr(values, "@" P("indptr", "8192", "12", "u32"), indices), "[2,3]", CSR, "");
    refused(csr(values, "@" P("indptr", "8192", "16", "u64"), indices), "[2,3]", CSR, "");
    refused(csr(values, "@" T("indptr", "8192", "24", "u64", "x"), indices), "[2,3]", CSR, "");
    refused(csr(values, indptr, "@" P("indices", "12288", "24", "f64")), "[2,3]", CSR, "");
    refused(csr(values, indptr, "@" P("indices", "12288", "23", "u64")), "[2,3]", CSR, "");
    refused(csr("@" P("values", "4096", "8", "f32"), indptr, indices), "[2,3]", CSR, "");
    refused(csr(values, "@" P("indptr", "8192", "0", "u64"), indices), "[18446744073709551615,1]",
            CSR, "");
    refused(csr(values, "@" P("indptr", "8192", "0", "u64"), indices), "[18446744073709551614,1]",
            CSR, "");
}

TEST(coo_has_a_coordinate_for_each_dimension_and_value)
{
    accepted(P("coords", "4096", "48", "u64") "," P("values", "8192", "12", "f32"), "[5,5]", COO,
             "");
    accepted(P("coords", "4096", "0", "u32") "," P("values", "8192", "0", "f32"), "[5]", COO, "");
    refused(P("coords", "4096", "0", "u32") "," P("values", "8192", "0", "f32"), "[]", COO, "");
    refused(P("values", "8192", "12", "f32"), "[5,5]", COO, "");
    refused("@" P("coords", "4096", "48", "i32") "," P("values", "8192", "12", "f32"), "[5,5]", COO,
            "");
    refused("@" P("coords", "4096", "40", "u64") "," P("values", "8192", "12", "f32"), "[5,5]", COO,
            "");
    refused(P("coords", "4096", "48", "u64") ",@" P("values", "8192", "8", "f32"), "[5,5]", COO,
            "");
}

#define MX        "zt.mx/1"
#define MX_ATTR   "{'block_size':32,'scale_form':'e8m0_exponent'}"
#define MX_SCALES T("scales", "8192", "2", "u8", "f8_e8m0")

TEST(mx_has_a_scale_for_each_block)
{
    accepted(T("data", "4096", "32", "u8", "f4_e2m1") "," MX_SCALES, "[2,32]", MX, MX_ATTR);
    accepted(P("data", "4096", "64", "i8") "," MX_SCALES, "[1,64]", MX, MX_ATTR);
    accepted(T("data", "4096", "64", "u8", "f8_e5m2") "," MX_SCALES, "[32,2]", MX,
             "{'axis':0,'block_size':32,'scale_form':'e8m0_exponent'}");
    refused("@" T("data", "4096", "31", "u8", "f4_e2m1") "," MX_SCALES, "[2,32]", MX, MX_ATTR);
    refused("@" P("data", "4096", "64", "u8") "," MX_SCALES, "[2,32]", MX, MX_ATTR);
    refused("@" T("data", "4096", "64", "u8", "f8_e4m3fnuz") "," MX_SCALES, "[2,32]", MX, MX_ATTR);
    refused(P("data", "4096", "64", "i8") ",@" T("scales", "8192", "1", "u8", "f8_e8m0"), "[2,32]",
            MX, MX_ATTR);
    refused(P("data", "4096", "64", "i8") ",@" P("scales", "8192", "2", "u8"), "[2,32]", MX,
            MX_ATTR);
    refused(P("data", "4096", "64", "i8"), "[2,32]", MX, MX_ATTR);
}

TEST(mx_refuses_attributes_that_do_not_fit)
{
    static const char *const attributes[] = {
        "",
        "{'block_size':32}",
        "{'block_size':32,'scale_form':'f32_factors'}",
        "{'scale_form':'e8m0_exponent'}",
        "{'block_size':1,'scale_form':'e8m0_exponent'}",
        "{'block_size':24,'scale_form':'e8m0_exponent'}",
        "{'block_size':-2,'scale_form':'e8m0_exponent'}",
        "{'axis':2,'block_size':32,'scale_form':'e8m0_exponent'}",
        "{'axis':0,'block_size':32,'scale_form':'e8m0_exponent'}",
        "{'axis':'1','block_size':32,'scale_form':'e8m0_exponent'}",
    };

    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
        refused(P("data", "4096", "64", "i8") "," MX_SCALES, "[2,32]", MX, attributes[i]);
    refused(P("data", "4096", "1", "i8") "," MX_SCALES, "[]", MX, MX_ATTR);
}

TEST(gguf_blocks_have_the_bytes_their_attributes_say)
{
    const char *attributes = "{'block_bytes':18,'elems_per_block':32}";
    const char *layout = "gguf.q4_0/1";

    accepted(P("data", "4096", "36", "u8"), "[2,32]", layout, attributes);
    accepted(P("data", "4096", "0", "u8"), "[0,32]", layout, attributes);
    refused("@" P("data", "4096", "35", "u8"), "[2,32]", layout, attributes);
    refused("@" P("data", "4096", "36", "i8"), "[2,32]", layout, attributes);
    refused("@" T("data", "4096", "36", "u8", "x"), "[2,32]", layout, attributes);
    refused(P("data", "4096", "36", "u8"), "[2,31]", layout, attributes);
    refused(P("data", "4096", "36", "u8"), "[2,32]", layout, "");
    refused(P("data", "4096", "36", "u8"), "[2,32]", layout,
            "{'block_bytes':0,'elems_per_block':32}");
    refused(P("data", "4096", "36", "u8"), "[2,32]", layout,
            "{'block_bytes':18,'elems_per_block':0}");
    refused("@" P("data", "4096", "0", "u8"), "[9223372036854775808]", layout,
            "{'block_bytes':2,'elems_per_block':1}");
}

#define QUANT "zt.quant_group/1"

/* Attributes in deterministic order. */
static const char *quant(const char *axis_bits, const char *packing, const char *scale_form_group,
                         const char *zero)
{
    static char attributes[600];

    snprintf(attributes, sizeof(attributes), "{%s,'packing':{%s},%s,'zero_point':{%s}}", axis_bits,
             packing, scale_form_group, zero);
    return attributes;
}

#define BITS    "'axis':0,'bits':4"
#define PACKING "'word':'u32','order':'lsb_first','per_word':8"
#define SCALING "'group_size':8,'scale_form':'f16_factors'"
#define QPARTS  P("data", "4096", "64", "i32") "," P("scales", "8192", "32", "f16")

TEST(quant_groups_have_a_scale_for_each_group)
{
    const char *three = P("data", "4096", "64", "i32") "," P("zeros", "12288", "16", "u8") "," P(
        "scales", "8192", "32", "f16");
    const char *packed = P("data", "4096", "64", "i32") "," P("zeros", "12288", "8", "u8") "," P(
        "scales", "8192", "32", "f16");

    accepted(QPARTS, "[16,8]", QUANT, quant(BITS, PACKING, SCALING, "'form':'none'"));
    accepted(QPARTS, "[16,8]", QUANT, quant(BITS, PACKING, SCALING, "'form':'implied','value':-8"));
    accepted(three, "[16,8]", QUANT,
             quant(BITS, PACKING, SCALING, "'form':'tensor','packing':'plain'"));
    accepted(packed, "[16,8]", QUANT,
             quant(BITS, PACKING, SCALING, "'form':'tensor','packing':'same_as_data'"));
    accepted(P("data", "4096", "64", "i32") "," T("scales", "8192", "128", "u8", "f8_e8m0"),
             "[16,8]", QUANT,
             quant(BITS, PACKING, "'group_size':0,'scale_form':'e8m0_exponent'", "'form':'none'"));
    accepted(
        QPARTS, "[16,8]", QUANT,
        quant(BITS, "'word':'u32','order':'msb_first','per_word':8", SCALING, "'form':'none'"));
    accepted(P("data", "4096", "0", "i32") "," P("scales", "8192", "0", "f16"), "[0,8]", QUANT,
             quant(BITS, PACKING, SCALING, "'form':'none'"));
}

TEST(quant_groups_refuse_parts_that_do_not_fit)
{
    char plain[600];

    snprintf(plain, sizeof(plain), "%s", quant(BITS, PACKING, SCALING, "'form':'none'"));
    refused("@" P("data", "4096", "60", "i32") "," P("scales", "8192", "32", "f16"), "[16,8]",
            QUANT, plain);
    refused(P("data", "4096", "64", "i32") ",@" P("scales", "8192", "30", "f16"), "[16,8]", QUANT,
            plain);
    refused(P("data", "4096", "64", "i32") ",@" P("scales", "8192", "32", "i16"), "[16,8]", QUANT,
            plain);
    refused("@" P("data", "4096", "64", "f32") "," P("scales", "8192", "32", "f16"), "[16,8]",
            QUANT, plain);
    refused("@" P("data", "4096", "64", "i64") "," P("scales", "8192", "32", "f16"), "[16,8]",
            QUANT, plain);
    refused("@" P("data", "4096", "8", "i32") "," P("scales", "8192", "10", "f16"), "[8,5]", QUANT,
            quant("'axis':0,'bits':2", "'word':'u32','order':'lsb_first','per_word':16", SCALING,
                  "'form':'none'")); /* 40 codes do not fill words of 16 */
    refused(QPARTS, "[16,8]", QUANT,
            quant(BITS, PACKING, SCALING, "'form':'tensor','packing':'plain'"));
    refused(P("data", "4096", "64", "i32") ",@" P("zeros", "12288", "15",
                                                  "u8") "," P("scales", "8192", "32", "f16"),
            "[16,8]", QUANT, quant(BITS, PACKING, SCALING, "'form':'tensor','packing':'plain'"));
    refused(P("data", "4096", "64", "i32") "," P("zeros", "12288", "16",
                                                 "u8") "," P("scales", "8192", "32", "f16"),
            "[16,8]", QUANT, plain);
}

TEST(quant_groups_refuse_attributes_that_do_not_fit)
{
    static const char *const attributes[][4] = {
        {"'axis':0,'bits':3", PACKING, SCALING, "'form':'none'"}, /* 3 does not divide 32 */
        {"'axis':0,'bits':7", PACKING, SCALING, "'form':'none'"},
        {"'axis':0,'bits':'4'", PACKING, SCALING, "'form':'none'"},
        {"'axis':2,'bits':4", PACKING, SCALING, "'form':'none'"},
        {"'bits':4", PACKING, SCALING, "'form':'none'"},
        {BITS, "'word':'u32','order':'lsb_first','per_word':4", SCALING, "'form':'none'"},
        {BITS, "'word':'u32','order':'first','per_word':8", SCALING, "'form':'none'"},
        {BITS, "'word':'u32','order':h'6c73625f6669727374','per_word':8", SCALING, "'form':'none'"},
        {"'axis':0,'bits':1", "'word':'u32','order':'lsb_first','per_word':32", SCALING,
         "'form':'none'"},
        {"'axis':0,'bits':16", "'word':'u32','order':'lsb_first','per_word':2", SCALING,
         "'form':'none'"},
        {BITS, PACKING, "'group_size':6,'scale_form':'f16_factors'", "'form':'none'"},
        {BITS, PACKING, "'scale_form':'f16_factors'", "'form':'none'"},
        {BITS, PACKING, "'group_size':8,'scale_form':'f8_factors'", "'form':'none'"},
        {BITS, PACKING, SCALING, "'form':'some'"},
        {BITS, PACKING, SCALING, "'form':'implied'"},
        {BITS, PACKING, SCALING, "'form':'implied','value':1.5"},
        {BITS, PACKING, SCALING, "'form':'tensor','packing':'loose'"},
    };

    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
        const char *const *a = attributes[i];

        /* wrong bits are reported at the data, because it is the word that does not fit */
        refused(i == 0 ? "@" QPARTS : QPARTS, "[16,8]", QUANT, quant(a[0], a[1], a[2], a[3]));
    }
    refused("@" QPARTS, "[16,8]", QUANT,
            quant(BITS, "'word':'u16','order':'lsb_first','per_word':4", SCALING, "'form':'none'"));
    refused("@" QPARTS, "[16,8]", QUANT,
            quant(BITS, "'word':'i32','order':'lsb_first','per_word':8", SCALING, "'form':'none'"));
    refused(
        "@" P("data", "4096", "64", "u8") "," P("scales", "8192", "32", "f16"), "[16,8]", QUANT,
        quant(BITS, "'word':'bool','order':'lsb_first','per_word':2", SCALING, "'form':'none'"));
    refused(P("data", "4096", "64", "i32") ",@" P("scales", "8192", "16", "u8"), "[16,8]", QUANT,
            quant(BITS, PACKING, "'group_size':8,'scale_form':'e8m0_exponent'", "'form':'none'"));
    refused(P("data", "4096", "64", "i32") "," P("zeros", "12288", "8",
                                                 "u8") "," P("scales", "8192", "32", "f16"),
            "[16,8]", QUANT, quant(BITS, PACKING, SCALING, "'form':'tensor','packing':'loose'"));
    refused(P("data", "4096", "64", "i32") "," P("zeros", "12288", "16",
                                                 "u8") "," P("scales", "8192", "32", "f16"),
            "[16,8]", QUANT, quant(BITS, PACKING, SCALING, "'form':'some','packing':'plain'"));
    refused(QPARTS, "[16,8]", QUANT, "");
}
