/* GGUF: the container and the tensors, read and refused. */
#include <stdio.h>
#include <string.h>

#include "base/little_endian.h"
#include "formats/gguf/gguf.h"
#include "gguf_file.h"
#include "sources.h"
#include "tests.h"
#include "zip_file.h"

static const uint64_t dims[] = {256, 2, 1, 1, 1};

/* --- tensors --- */

TEST(open_reads_tensors)
{
    struct gguf_file file = {0};
    struct container container = {0};
    struct zt_model *model;
    uint64_t data;
    const struct zt_object *object;
    const struct zt_component *part;

    gguf_begin(&file);
    gguf_put_tensor(&file, "w", 2, (const uint64_t[2]){3, 2}, 0);
    gguf_put_offset(&file, 32);
    gguf_put_tensor(&file, "s", 0, NULL, 28);
    gguf_put_offset(&file, 0);
    gguf_put_tensor(&file, "same", 1, (const uint64_t[1]){24}, 24);
    gguf_put_offset(&file, 32);
    gguf_put_tensor(&file, "none", 1, (const uint64_t[1]){0}, 12);
    gguf_put_offset(&file, 32);
    gguf_finish(&file, 32, 56, &container);
    model = container_model(&container);
    data = container.length - 56;
    assert_int_equal(model->format, ZT_FORMAT_GGUF);
    assert_string_equal(model->format_name, "gguf");
    assert_memory_equal(model->version.bytes, "3", 1);
    assert_int_equal(model->manifest_offset, 0);
    assert_int_equal(model->manifest_length, container.manifest_length);
    assert_int_equal(model->attributes.length, 0);
    assert_int_equal(model->object_count, 4);
    object = zt_model_find(model, zt_text_from("w"));
    assert_non_null(object);
    assert_string_equal(object->format, "dense");
    assert_int_equal(object->layout, ZT_LAYOUT_DENSE);
    assert_null(object->attributes);
    assert_int_equal(object->rank, 2);
    assert_int_equal(zt_object_shape(model, object)[0], 2);
    assert_int_equal(zt_object_shape(model, object)[1], 3);
    part = zt_object_components(model, object);
    assert_string_equal(part->name, "data");
    assert_int_equal(part->dtype, ZT_F32);
    assert_int_equal(part->offset, data + 32);
    assert_int_equal(part->length, 24);
    assert_int_equal(part->decoded_length, 24);
    object = zt_model_find(model, zt_text_from("s"));
    assert_int_equal(object->rank, 0);
    assert_int_equal(zt_object_components(model, object)->dtype, ZT_F64);
    assert_int_equal(zt_object_components(model, object)->offset, data);
    zt_model_free(model);
    container.bytes[4] = 2;
    model = container_model(&container);
    assert_memory_equal(model->version.bytes, "2", 1);
    zt_model_free(model);
    container_free(&container);
}

static void check_type(uint32_t number, const char *layout, unsigned elements, unsigned bytes)
{
    struct gguf_file file = {0};
    struct container container = {0};
    char wanted[64];
    uint64_t shape[2] = {elements, 3};
    struct zt_model *model;
    const struct zt_object *object;

    gguf_begin(&file);
    gguf_put_tensor(&file, "t", 2, shape, number);
    gguf_put_offset(&file, 0);
    gguf_finish(&file, 32, (size_t)3 * bytes, &container);
    model = container_model(&container);
    object = &model->objects[0];
    assert_string_equal(object->format, layout);
    assert_int_equal(model->components[0].length, 3 * bytes);
    assert_int_equal(zt_object_shape(model, object)[1], elements);
    if (object->layout == ZT_LAYOUT_GGUF) {
        assert_int_equal(model->components[0].dtype, ZT_U8);
        snprintf(wanted, sizeof(wanted), "{\"block_bytes\":%u,\"elems_per_block\":%u}", bytes,
                 elements);
        assert_json((struct zt_text){(const char *)object->attributes, object->attributes_length},
                    wanted);
    }
    zt_model_free(model);
    container_free(&container);
}

TEST(open_reads_every_type)
{
    static const struct {
        uint32_t number;
        const char *layout;
        unsigned elements;
        unsigned bytes;
    } types[] = {
        {0, "dense", 1, 4},
        {1, "dense", 1, 2},
        {2, "gguf.q4_0/1", 32, 18},
        {3, "gguf.q4_1/1", 32, 20},
        {6, "gguf.q5_0/1", 32, 22},
        {7, "gguf.q5_1/1", 32, 24},
        {8, "gguf.q8_0/1", 32, 34},
        {9, "gguf.q8_1/1", 32, 36},
        {10, "gguf.q2_k/1", 256, 84},
        {11, "gguf.q3_k/1", 256, 110},
        {12, "gguf.q4_k/1", 256, 144},
        {13, "gguf.q5_k/1", 256, 176},
        {14, "gguf.q6_k/1", 256, 210},
        {15, "gguf.q8_k/1", 256, 292},
        {16, "gguf.iq2_xxs/1", 256, 66},
        {17, "gguf.iq2_xs/1", 256, 74},
        {18, "gguf.iq3_xxs/1", 256, 98},
        {19, "gguf.iq1_s/1", 256, 50},
        {20, "gguf.iq4_nl/1", 32, 18},
        {21, "gguf.iq3_s/1", 256, 110},
        {22, "gguf.iq2_s/1", 256, 82},
        {23, "gguf.iq4_xs/1", 256, 136},
        {24, "dense", 1, 1},
        {25, "dense", 1, 2},
        {26, "dense", 1, 4},
        {27, "dense", 1, 8},
        {28, "dense", 1, 8},
        {29, "gguf.iq1_m/1", 256, 56},
        {30, "dense", 1, 2},
        {34, "gguf.tq1_0/1", 256, 54},
        {35, "gguf.tq2_0/1", 256, 66},
        {39, "gguf.mxfp4/1", 32, 17},
        {40, "gguf.nvfp4/1", 64, 36},
        {41, "gguf.q1_0/1", 128, 18},
        {42, "gguf.q2_0/1", 64, 18},
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        check_type(types[i].number, types[i].layout, types[i].elements, types[i].bytes);
}

TEST(open_refuses_types_that_were_removed)
{
    static const uint32_t numbers[] = {4, 5, 31, 32, 33, 36, 37, 38, 43, 1000, UINT32_MAX};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct gguf_file file = {0};

        gguf_begin(&file);
        gguf_put_tensor(&file, "t", 1, dims, numbers[i]);
        gguf_put_offset(&file, 0);
        gguf_assert_refused(&file, 4096, "gguf §Tensor Type", file.bytes.length - 12);
    }
}

/* Each begins a new file, puts one tensor, and states how far before the end of its entry the fault
 * is. */
static void refuse_tensor(unsigned rank, const uint64_t *shape, uint32_t type, const char *rule)
{
    struct gguf_file file = {0};

    gguf_begin(&file);
    gguf_put_tensor(&file, "t", rank, shape, type);
    gguf_put_offset(&file, 0);
    /* The number of dimensions follows the name. */
    gguf_assert_refused(&file, 64, rule, 24 + 8 + 1);
}

TEST(open_refuses_impossible_shapes)
{
    refuse_tensor(5, dims, 0, "gguf §Tensor Rank");
    refuse_tensor(4, (const uint64_t[4]){0, 1ull << 32, 1ull << 32, 1}, 0, "gguf §Tensor Shape");
    refuse_tensor(1, (const uint64_t[1]){1ull << 62}, 0, "gguf §Tensor Shape");
    refuse_tensor(1, (const uint64_t[1]){33}, 2, "gguf §Tensor Shape");
    refuse_tensor(2, (const uint64_t[2]){16, 2}, 2, "gguf §Tensor Shape");
    refuse_tensor(0, NULL, 8, "gguf §Tensor Shape");
}

TEST(open_refuses_tensors_that_are_not_there)
{
    static const struct {
        uint64_t offset;
        const char *rule;
    } cases[] = {
        {4, "gguf §Data BlobAlignment"},   {16, "gguf §Data BlobAlignment"},
        {64, "gguf §Data BlobBounds"},     {1ull << 63, "gguf §Data BlobBounds"},
        {~31ull, "gguf §Data BlobBounds"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gguf_file file = {0};
        uint64_t at;

        gguf_begin(&file);
        gguf_put_tensor(&file, "t", 1, (const uint64_t[1]){32}, 24);
        at = file.bytes.length;
        gguf_put_offset(&file, cases[i].offset);
        gguf_assert_refused(&file, 95, cases[i].rule, at);
    }
}

TEST(open_refuses_tensors_that_overlap)
{
    struct gguf_file file = {0};
    struct container container = {0};

    gguf_begin(&file);
    gguf_put_tensor(&file, "b", 1, (const uint64_t[1]){33}, 24);
    gguf_put_offset(&file, 0);
    gguf_put_tensor(&file, "a", 1, (const uint64_t[1]){32}, 24);
    gguf_put_offset(&file, 32);
    gguf_finish(&file, 32, 64, &container);
    container_assert_refused(&container, "gguf §Data BlobOverlap", container.length - 32);
    container_free(&container);
}

TEST(open_refuses_names)
{
    static char long_name[1026];
    const char *const names[] = {"", "\xff", long_name};
    struct gguf_file file;
    uint64_t second;

    memset(long_name, 'n', sizeof(long_name) - 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        file = (struct gguf_file){0};
        gguf_begin(&file);
        gguf_put_tensor(&file, names[i], 1, dims, 0);
        gguf_put_offset(&file, 0);
        gguf_assert_refused(&file, 1024, "gguf §Tensor Name", 24);
    }
    second = 0;
    file = (struct gguf_file){0};
    gguf_begin(&file);
    for (unsigned i = 0; i < 2; i++) {
        second = file.bytes.length + 8;
        gguf_put_tensor(&file, "twice", 1, dims, 24);
        gguf_put_offset(&file, 0);
    }
    gguf_assert_refused(&file, 256, "gguf §Tensor DuplicateName", second);
}

/* --- the head, and lies --- */

TEST(open_refuses_versions)
{
    static const struct {
        uint32_t version;
        enum zt_status status;
        const char *message_part;
    } cases[] = {{1, ZT_UNSUPPORTED, "version 1"},
                 {0x03000000, ZT_UNSUPPORTED, "big-endian"},
                 {0x02000000, ZT_UNSUPPORTED, "big-endian"},
                 {0, ZT_INVALID, "version 0"},
                 {4, ZT_INVALID, "version 4"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gguf_file file = {0};
        struct container container = {0};
        struct zt_model *model = NULL;
        struct zt_error error;

        zt_error_clear(&error);
        gguf_begin(&file);
        gguf_finish(&file, 32, 0, &container);
        for (unsigned j = 0; j < 4; j++)
            container.bytes[4 + j] = (uint8_t)(cases[i].version >> 8 * j);
        container_open(&container, container.length, &model, &error);
        assert_failure(&error, cases[i].status, "gguf §Header Version", 4);
        assert_non_null(strstr(error.message, cases[i].message_part));
        assert_null(model);
        container_free(&container);
    }
}

/* A file of one string, one array and one tensor; each count and length in turn is made wrong. */
static void make_whole(struct container *container, uint64_t places[5])
{
    struct gguf_file file = {0};

    gguf_begin(&file);
    places[0] = file.bytes.length;
    gguf_put_key(&file, "key", GGUF_STRING);
    places[1] = file.bytes.length;
    gguf_put_string(&file, "value");
    gguf_put_key(&file, "array", GGUF_ARRAY), gguf_put(&file, GGUF_STRING, 4);
    places[2] = file.bytes.length;
    gguf_put(&file, 2, 8);
    places[3] = file.bytes.length;
    gguf_put_string(&file, "a"), gguf_put_string(&file, "bc");
    gguf_put_key(&file, "general.alignment", GGUF_U32), gguf_put(&file, 64, 4);
    places[4] = file.bytes.length;
    gguf_put_tensor(&file, "tensor", 2, dims, 12);
    gguf_put_offset(&file, 0);
    gguf_put_tensor(&file, "other", 1, dims, 24);
    gguf_put_offset(&file, 320);
    gguf_finish(&file, 64, 576, container);
}

TEST(open_refuses_wrong_lengths_and_counts)
{
    static const uint64_t lies[] = {UINT64_MAX, 1ull << 63, 1ull << 40, 4096};
    uint64_t places[5];
    struct container container = {0};

    make_whole(&container, places);
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        for (unsigned j = 0; j < 5; j++) {
            uint8_t kept[8];

            memcpy(kept, container.bytes + places[j], 8);
            zt_store_le64(container.bytes + places[j], lies[i]);
            container_assert_refused(
                &container, j < 4 ? "gguf §Metadata Bounds" : "gguf §Tensor Bounds", places[j]);
            memcpy(container.bytes + places[j], kept, 8);
        }
        for (unsigned at = 8; at <= 16; at += 8) {
            uint8_t kept[8];

            memcpy(kept, container.bytes + at, 8);
            zt_store_le64(container.bytes + at, lies[i]);
            container_assert_refused(&container, "gguf §Header Counts", at);
            memcpy(container.bytes + at, kept, 8);
        }
    }
    container_free(&container);
}

TEST(open_survives_prefixes_and_flipped_bits)
{
    uint64_t places[5];
    struct container container = {0};
    struct zt_model *model = NULL;
    struct zt_error error;

    make_whole(&container, places);
    bytes_assert_survive(&(struct bytes){container.bytes, container.length}, 0,
                         container.manifest_length);
    container_open(&container, 23, &model, &error);
    assert_failure(&error, ZT_INVALID, "gguf §Header FileTooSmall", 0);
    container_free(&container);
}

TEST(open_refuses_headers_above_1_gib)
{
    /* A head, one key and its string's length, and zeros. */
    static const char head[] =
        "GGUF\3\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0k\10\0\0\0"
        "\0\0\0\200\0\0\0\0";
    struct sparse_source source = {.base = {&sparse_source_ops},
                                   .size = 3ull << 30,
                                   .head = head,
                                   .head_length = sizeof(head)};
    struct zt_model *model = NULL;
    struct zt_error error;

    zt_error_clear(&error);
    zt_model_open(&source.base, &model, &error);
    assert_failure(&error, ZT_INVALID, "gguf §Header HeaderTooLarge", 0);
    assert_null(model);
}

/* The window over the file is refilled many times, and long strings reach past it. */
TEST(open_reads_headers_larger_than_the_window)
{
    static char text[300001];
    struct gguf_file file = {0};
    struct container container = {0};
    struct zt_model *model;

    memset(text, 't', sizeof(text) - 1);
    gguf_begin(&file);
    gguf_put_key(&file, "long", GGUF_STRING), gguf_put_string(&file, text);
    gguf_put_key(&file, "many", GGUF_ARRAY), gguf_put(&file, GGUF_STRING, 4),
        gguf_put(&file, 100000, 8);
    for (unsigned i = 0; i < 100000; i++)
        gguf_put_string(&file, text + sizeof(text) - 1 - i % 13);
    gguf_put_tensor(&file, "t", 1, dims, 24);
    gguf_put_offset(&file, 0);
    gguf_finish(&file, 32, 256, &container);
    model = container_model(&container);
    assert_int_equal(model->manifest_length, container.manifest_length);
    assert_int_equal(model->components[0].offset, container.length - 256);
    zt_model_free(model);
    container_free(&container);
}
