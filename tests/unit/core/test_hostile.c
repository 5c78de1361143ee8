/* Files truncated, flipped bit by bit, and made to cost more than their size. */
#include <string.h>

#include "cbor_text.h"
#include "container.h"
#include "sources.h"
#include "tests.h"
#include "zip_file.h"

#define ATTRIBUTES "'attributes':{'k':[1,2.5,{'z':null,'y':h'0102'}]}"
#define MANIFEST_ZT1                                                                               \
    "{'version':'1.2.0'," ATTRIBUTES                                                               \
    ",'objects':{'b':{'shape':[2,2],'format':'dense','components':{'data':{'dtype':'f32','offset'" \
    ":64,'length':16,'digest':'crc32c:0x00000001'}}},'a':{'shape':[3],'format':'dense'"            \
    "," ATTRIBUTES ",'components':{'data':{'dtype':'u8','type':'f8_e5m2','offset':128,'length':"   \
    "12,'uncompressed_length':3,'encoding':'zstd'}}}}}"
#define MANIFEST_ZT10                                                                              \
    "{'version':'1.0','generator':'g','attributes':{},'tensors':{'x':{'dtype':'int8','shape':[16]" \
    ",'format':'dense','components':{'data':{'offset':64,'length':16}}}}}"
#define MANIFEST_ZT01                                                                              \
    "[{'name':'x','offset':64,'size':16,'dtype':'float32','layout':'dense','shape':[4],'encoding'" \
    ":'raw','data_endianness':'big','checksum':'crc32c:0x1','custom':{'a':[1]}}]"

static const struct {
    enum container_version version;
    const char *manifest;
} files[] = {
    {CONTAINER_ZT01, MANIFEST_ZT01},
    {CONTAINER_ZT10, MANIFEST_ZT10},
    {CONTAINER_ZT1, MANIFEST_ZT1},
};

#define FILE_COUNT (sizeof(files) / sizeof(files[0]))

TEST(open_survives_prefixes_and_flipped_bits)
{
    struct container container = {0};

    for (size_t i = 0; i < FILE_COUNT; i++) {
        container_make(&container, files[i].version, 128, files[i].manifest);
        bytes_assert_survive(&(struct bytes){container.bytes, container.length}, 0,
                             container.length);
    }
    container_free(&container);
}

/* {"version": "1.2.0", "objects": {}, "a": count times opening, one 0, count times closing} */
static void make_deep(struct container *container, size_t count, uint8_t opening)
{
    struct zt_buffer manifest = {0};

    zt_cbor_put_map(&manifest, 3);
    cbor_text_append(&manifest, "'version'");
    cbor_text_append(&manifest, "'1.2.0'");
    cbor_text_append(&manifest, "'objects'");
    cbor_text_append(&manifest, "{}");
    cbor_text_append(&manifest, "'a'");
    for (size_t i = 0; i < count; i++)
        zt_buffer_append(&manifest, &opening, 1);
    zt_cbor_put_uint(&manifest, 0);
    container_make_bytes(container, CONTAINER_ZT1, 0, &manifest);
    zt_buffer_free(&manifest);
}

TEST(open_refuses_values_deeper_than_128)
{
    struct container container = {0};
    struct zt_model *model = NULL;
    uint64_t first;

    /* The root is 0, the field's value 1. */
    make_deep(&container, 127, 0x81);
    model = container_model(&container);
    zt_model_free(model);
    first = container.manifest_offset + container.manifest_length - 128;
    make_deep(&container, 128, 0x81);
    container_assert_refused(&container, "zt1 §1 CborDepth", first + 128);
    make_deep(&container, 100000, 0x81);
    container_assert_refused(&container, "zt1 §1 CborDepth", first + 128);
    make_deep(&container, 100000, 0xC1);
    container_assert_refused(&container, "zt1 §1 CborDepth", first + 128);
    container_free(&container);
}

TEST(open_refuses_many_equal_keys)
{
    struct container container = {0};
    struct zt_buffer manifest = {0};
    size_t pairs = 200000;

    cbor_text_append(&manifest, "!a3");
    cbor_text_append(&manifest, "'version'");
    cbor_text_append(&manifest, "'1.2.0'");
    cbor_text_append(&manifest, "'objects'");
    cbor_text_append(&manifest, "{}");
    cbor_text_append(&manifest, "'a'");
    zt_cbor_put_map(&manifest, pairs);
    for (size_t i = 0; i < pairs; i++) {
        zt_cbor_put_uint(&manifest, (i * 7919) % (pairs - 1));
        zt_cbor_put_uint(&manifest, 0);
    }
    container_make_bytes(&container, CONTAINER_ZT1, 0, &manifest);
    /* Only the last key occurs twice: it is 0, as the first one. */
    container_assert_refused(&container, "zt1 §1 CborDuplicateKey",
                             container.manifest_offset + container.manifest_length - 2);
    zt_buffer_free(&manifest);
    container_free(&container);
}

/* Files of zeros that state a manifest of 1 GiB. */
TEST(open_does_not_read_a_manifest_that_begins_wrong)
{
    static const struct {
        const char *magic;
        const char *tail;
        size_t tail_length;
        const char *rule;
    } cases[] = {
        {"ZTEN0001", "\0\0\0\x40\0\0\0\0", 8, "zt0.1 §Metadata Schema"},
        {"ZTEN1000", "\0\0\0\x40\0\0\0\0", 8, "zt1 §1 Schema"},
        {"ZTEN1000", "\0\0\0\x40\0\0\0\0ZTEN1000", 16, "zt1 §1 Schema"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sparse_source source = {.base = {&sparse_source_ops},
                                       .size = 64 + (1ull << 30) + cases[i].tail_length,
                                       .head = cases[i].magic,
                                       .head_length = 8,
                                       .tail = cases[i].tail,
                                       .tail_length = cases[i].tail_length};
        struct zt_model *model = NULL;
        struct zt_error error;

        assert_int_equal(zt_model_open(&source.base, &model, &error), ZT_INVALID);
        assert_failure(&error, ZT_INVALID, cases[i].rule, 64);
        assert_true(source.read_bytes < 4096);
    }
}
