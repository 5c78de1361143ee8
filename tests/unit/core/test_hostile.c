/* Files truncated, flipped bit by bit, and made to cost more than their size. */
#include <string.h>

#include "cbor_text.h"
#include "container.h"
#include "support.h"

#define ATTRIBUTES "\"attributes\":{\"k\":[1,2.5,{\"z\":null,\"y\":h'0102'}]}"
#define MANIFEST_ZT1                                                                               \
    "{\"version\":\"1.2.0\"," ATTRIBUTES                                                           \
    ",\"objects\":{\"b\":{\"shape\":[2,2],\"format\":\"dense\",\"components\":{"                   \
    "\"data\":{\"dtype\":\"f32\",\"offset\":64,\"length\":16,\"digest\":\"crc32c:0x00000001\"}}}," \
    "\"a\":{\"shape\":[3]"                                                                         \
    ",\"format\":\"dense\"," ATTRIBUTES                                                            \
    ",\"components\":{\"data\":{\"dtype\":\"u8\",\"type\":\"f8_e5m2\",\"offset\":"                 \
    "128,\"length\":12,\"uncompressed_length\":3,\"encoding\":\"zstd\"}}}}}"
#define MANIFEST_ZT10                                                                           \
    "{\"version\":\"1.0\",\"generator\":\"g\",\"attributes\":{},\"tensors\":{\"x\":{\"dtype\":" \
    "\"int8\",\"shape\":[16]"                                                                   \
    ",\"format\":\"dense\",\"components\":{\"data\":{\"offset\":64,\"length\":16}}}}}"
#define MANIFEST_ZT01                                                                           \
    "[{\"name\":\"x\",\"offset\":64,\"size\":16,\"dtype\":\"float32\",\"layout\":\"dense\","    \
    "\"shape\":[4],"                                                                            \
    "\"encoding\":\"raw\",\"data_endianness\":\"big\",\"checksum\":\"crc32c:0x1\",\"custom\":{" \
    "\"a\":[1]}}]"

static const struct {
    enum container_version version;
    const char *manifest;
} files[] = {
    {CONTAINER_ZT01, MANIFEST_ZT01},
    {CONTAINER_ZT10, MANIFEST_ZT10},
    {CONTAINER_ZT1, MANIFEST_ZT1},
};

#define FILE_COUNT (sizeof(files) / sizeof(files[0]))

static void open_refuses_every_prefix(void **state)
{
    struct container container = {0};

    (void)state;
    for (size_t i = 0; i < FILE_COUNT; i++) {
        container_make(&container, files[i].version, 128, files[i].manifest);
        for (size_t length = 0; length < container.length; length++) {
            struct zt_model *model = NULL;
            struct zt_error error;

            assert_int_equal(container_open(&container, length, &model, &error), ZT_INVALID);
            assert_non_null(error.rule);
            assert_null(model);
        }
    }
    container_free(&container);
}

/* Touches what a user of the model reads. */
static uint64_t touch(const struct zt_model *model)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];

        assert_ptr_equal(zt_model_find(model, zt_object_name(object)), object);
        sum += zt_object_elements(model, object);
        for (uint32_t j = 0; j < object->attributes_length; j++)
            sum += object->attributes[j];
    }
    for (uint32_t i = 0; i < model->component_count; i++) {
        const struct zt_component *component = &model->components[i];

        assert_true(component->offset <= model->manifest_offset);
        assert_true(component->length <= model->manifest_offset - component->offset);
        for (uint32_t j = 0; j < component->digest_length; j++)
            sum += (unsigned char)component->digest[j];
    }
    return sum;
}

static void open_survives_every_flipped_bit(void **state)
{
    struct container container = {0};

    (void)state;
    for (size_t i = 0; i < FILE_COUNT; i++) {
        container_make(&container, files[i].version, 128, files[i].manifest);
        for (size_t bit = (size_t)container.manifest_offset * 8; bit < container.length * 8;
             bit++) {
            struct zt_model *model = NULL;
            struct zt_error error;
            enum zt_status status;

            container.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            status = container_open(&container, container.length, &model, &error);
            assert_true(status == ZT_OK ? model != NULL
                                        : status == ZT_INVALID && error.rule != NULL);
            if (model != NULL)
                touch(model);
            zt_model_free(model);
            container.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
    container_free(&container);
}

/* {"version": "1.2.0", "objects": {}, "a": count times opening, one 0, count times closing} */
static void make_deep(struct container *container, size_t count, uint8_t opening)
{
    struct zt_buffer manifest = {0};

    zt_cbor_put_map(&manifest, 3);
    cbor_text_append(&manifest, "\"version\"");
    cbor_text_append(&manifest, "\"1.2.0\"");
    cbor_text_append(&manifest, "\"objects\"");
    cbor_text_append(&manifest, "{}");
    cbor_text_append(&manifest, "\"a\"");
    for (size_t i = 0; i < count; i++)
        zt_buffer_append(&manifest, &opening, 1);
    zt_cbor_put_uint(&manifest, 0);
    container_make_bytes(container, CONTAINER_ZT1, 0, &manifest);
    zt_buffer_free(&manifest);
}

static void open_refuses_values_deeper_than_128(void **state)
{
    struct container container = {0};
    struct zt_model *model = NULL;
    uint64_t first;

    (void)state;
    /* The root is 0, the field's value 1. */
    make_deep(&container, 127, 0x81);
    assert_int_equal(container_open(&container, container.length, &model, NULL), ZT_OK);
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

static void open_refuses_many_equal_keys(void **state)
{
    struct container container = {0};
    struct zt_buffer manifest = {0};
    size_t pairs = 200000;

    (void)state;
    cbor_text_append(&manifest, "!a3");
    cbor_text_append(&manifest, "\"version\"");
    cbor_text_append(&manifest, "\"1.2.0\"");
    cbor_text_append(&manifest, "\"objects\"");
    cbor_text_append(&manifest, "{}");
    cbor_text_append(&manifest, "\"a\"");
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

/* A file of zeros that states a manifest of 1 GiB, and counts the bytes read from it. */
struct hollow {
    struct zt_source source;
    const char *magic;
    bool has_tail_magic;
    uint64_t read_bytes;
};

#define HOLLOW_MANIFEST_BYTES (1ull << 30)

static uint64_t hollow_size(const struct zt_source *source)
{
    const struct hollow *hollow = (const struct hollow *)source;

    return 64 + HOLLOW_MANIFEST_BYTES + (hollow->has_tail_magic ? 16 : 8);
}

static enum zt_status hollow_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                     size_t length, struct zt_error *error)
{
    struct hollow *hollow = (struct hollow *)source;
    const uint64_t stated = HOLLOW_MANIFEST_BYTES;
    uint8_t tail[16] = {0};
    uint64_t tail_length = hollow->has_tail_magic ? 16 : 8;
    uint64_t tail_at = hollow_size(source) - tail_length;

    (void)error;
    memcpy(tail, &stated, sizeof(stated));
    memcpy(tail + 8, hollow->magic, 8);
    hollow->read_bytes += length;
    for (size_t i = 0; i < length; i++) {
        uint64_t at = offset + i;
        uint8_t byte = at < 8 ? (uint8_t)hollow->magic[at] : at >= tail_at ? tail[at - tail_at] : 0;

        ((uint8_t *)buffer)[i] = byte;
    }
    return ZT_OK;
}

static void open_does_not_read_a_manifest_that_begins_wrong(void **state)
{
    static const struct zt_source_ops ops = {.size = hollow_size, .read_at = hollow_read_at};
    static const char *const rules[] = {"zt0.1 §Metadata Schema", "zt1 §1 Schema", "zt1 §1 Schema"};
    struct hollow hollows[] = {
        {{&ops}, "ZTEN0001", false, 0},
        {{&ops}, "ZTEN1000", false, 0},
        {{&ops}, "ZTEN1000", true, 0},
    };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct zt_model *model = NULL;
        struct zt_error error;

        assert_int_equal(zt_model_open(&hollows[i].source, &model, &error), ZT_INVALID);
        assert_failure(&error, ZT_INVALID, rules[i], 64);
        assert_true(hollows[i].read_bytes < 4096);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_does_not_read_a_manifest_that_begins_wrong),
        cmocka_unit_test(open_refuses_every_prefix),
        cmocka_unit_test(open_survives_every_flipped_bit),
        cmocka_unit_test(open_refuses_values_deeper_than_128),
        cmocka_unit_test(open_refuses_many_equal_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
