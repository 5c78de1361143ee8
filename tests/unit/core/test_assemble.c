/* Assembling: what is declared and placed becomes a file that the library's own reader takes. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>

#include "written.h"
#include "zt/assemble.h"
#include "zt/encode.h"
#include "zt/gaps.h"
#include "zt/verify.h"

static struct zt_error error;

static struct zt_shape shape_of(const char *string)
{
    struct zt_shape shape;

    assert_ok(zt_declare_shape(zt_text_from(string), &shape, &error));
    return shape;
}

static struct zt_assembly_component part(const char *name, uint64_t offset,
                                         const struct zt_buffer *data, enum zt_target target)
{
    struct zt_assembly_component component = {.name = zt_text_from(name),
                                              .dtype = ZT_U8,
                                              .logical = ZT_LOGICAL_NONE,
                                              .offset = offset,
                                              .length = data->length,
                                              .decoded_length = data->length};
    struct zt_hasher *hasher;

    assert_ok(zt_hasher_new(zt_target_places(target).digest, &hasher));
    zt_hasher_update(hasher, data->bytes, data->length);
    zt_hasher_finish(hasher, &component.digest);
    zt_hasher_free(hasher);
    return component;
}

/* "a" of five bytes and "b" of seven, each at its place. */
static void make_file(enum zt_target target, struct zt_buffer *out_file)
{
    const struct zt_places places = zt_target_places(target);
    const struct zt_buffer data[2] = {{.bytes = (uint8_t *)(uintptr_t) "12345", .length = 5},
                                      {.bytes = (uint8_t *)(uintptr_t) "abcdefg", .length = 7}};
    const char *const names[2] = {"a", "b"};
    const struct zt_shape shapes[2] = {shape_of("5"), shape_of("7,1")};
    struct zt_declaration file = {0};
    struct zt_assembly *assembly;
    uint64_t offset = places.data_alignment;
    uint8_t *end;
    size_t end_length;

    assert_ok(zt_declare_file(zt_text_from("{\"version\":\"2\",\"attributes\":{\"x\":[1,\"y\"]}}"),
                              &file, &error));
    assert_ok(zt_assembly_new(target, file.attributes, &assembly, &error));
    zt_buffer_append(out_file, places.head, sizeof(places.head));
    for (int i = 0; i < 2; i++) {
        struct zt_assembly_object object = {
            .name = zt_text_from(names[i]), .format = zt_text_from("dense"), .shape = &shapes[i]};
        struct zt_assembly_component component = part("data", offset, &data[i], target);

        assert_ok(zt_assembly_object(assembly, &object, &error));
        assert_ok(zt_assembly_component(assembly, &component, &error));
        while (out_file->length < offset)
            zt_buffer_append(out_file, "", 1);
        zt_buffer_append(out_file, data[i].bytes, data[i].length);
        offset += places.data_alignment;
    }
    while (out_file->length % places.manifest_alignment != 0)
        zt_buffer_append(out_file, "", 1);
    assert_ok(zt_assembly_check(assembly, &error));
    assert_ok(zt_assembly_end(assembly, out_file->length, &end, &end_length, &error));
    zt_buffer_append(out_file, end, end_length);
    free(end);
    zt_assembly_free(assembly);
    zt_declaration_free(&file);
}

static void refuse_gap(void *context, const struct zt_gap *gap)
{
    (void)context;
    assert_true(gap->is_padding);
    assert_true(gap->dirty_at == ZT_NO_OFFSET);
}

static void assert_whole(enum zt_target target)
{
    struct zt_buffer bytes = {0};
    struct written written = {0};
    char buffer[16];

    make_file(target, &bytes);
    written_open(&written, bytes);
    assert_int_equal(written.model->object_count, 2);
    assert_int_equal(written_decode(&written, "a", "data", buffer, sizeof(buffer)), 5);
    assert_memory_equal(buffer, "12345", 5);
    assert_int_equal(written_decode(&written, "b", "data", buffer, sizeof(buffer)), 7);
    assert_memory_equal(buffer, "abcdefg", 7);
    for (uint32_t i = 0; i < written.model->component_count; i++) {
        struct zt_component_check check;

        assert_ok(zt_component_check(written.model, &written.model->components[i], written.source,
                                     NULL, &check, &error));
        assert_int_equal(check.verdict, ZT_VERDICT_VERIFIED);
    }
    assert_ok(zt_gaps_walk(written.model, written.source, refuse_gap, NULL, &error));
    assert_true(written.model->attributes.length > 0);
    written_free(&written);
}

TEST(assembled_zt1_opens_and_verifies)
{
    assert_whole(ZT_TARGET_ZT1);
}

TEST(assembled_zt2_opens_and_verifies)
{
    assert_whole(ZT_TARGET_ZT2);
}

/* --- refusals --- */

static struct zt_assembly *begin(enum zt_target target)
{
    struct zt_assembly *assembly;

    assert_ok(zt_assembly_new(target, zt_text_from(""), &assembly, &error));
    return assembly;
}

static enum zt_status add_object(struct zt_assembly *assembly, struct zt_text name,
                                 const char *format)
{
    static struct zt_shape shape;
    struct zt_assembly_object object = {
        .name = name, .format = zt_text_from(format), .shape = &shape};

    shape = shape_of("2,3");
    return zt_assembly_object(assembly, &object, &error);
}

static enum zt_status add_part(struct zt_assembly *assembly, const char *name, uint64_t length)
{
    struct zt_assembly_component component = {
        .name = zt_text_from(name), .dtype = ZT_U64, .length = length, .decoded_length = length};

    component.digest = (struct zt_digest){.algorithm = ZT_DIGEST_SHA256, .length_bytes = 32};
    return zt_assembly_component(assembly, &component, &error);
}

TEST(names_that_do_not_ascend_are_refused)
{
    struct zt_assembly *assembly = begin(ZT_TARGET_ZT1);

    assert_int_equal(add_part(assembly, "data", 8), ZT_ARGUMENT);
    assert_ok(add_object(assembly, zt_text_from("b"), "dense"));
    assert_int_equal(add_object(assembly, zt_text_from("b"), "dense"), ZT_ARGUMENT);
    assert_int_equal(add_object(assembly, zt_text_from("a"), "dense"), ZT_ARGUMENT);
    assert_string_equal(error.object, "a");
    assert_ok(add_part(assembly, "data", 8));
    assert_int_equal(add_part(assembly, "daat", 8), ZT_ARGUMENT);
    assert_string_equal(error.component, "daat");
    zt_assembly_free(assembly);
}

TEST(zt2_refuses_names_it_cannot_hold)
{
    struct zt_assembly *assembly = begin(ZT_TARGET_ZT2);
    char name[1025];

    memset(name, 'x', sizeof(name));
    assert_int_equal(add_object(assembly, (struct zt_text){name, 1025}, "dense"), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §3 Name", ZT_NO_OFFSET);
    assert_int_equal(add_object(assembly, (struct zt_text){"a\0b", 3}, "dense"), ZT_INVALID);
    assert_int_equal(add_object(assembly, zt_text_from(""), "dense"), ZT_INVALID);
    assert_ok(add_object(assembly, (struct zt_text){name, 1024}, "dense"));
    zt_assembly_free(assembly);
}

TEST(check_names_the_object_that_lacks_something)
{
    struct zt_assembly *assembly = begin(ZT_TARGET_ZT1);

    assert_ok(add_object(assembly, zt_text_from("s"), "sparse_csr"));
    assert_int_equal(zt_assembly_check(assembly, &error), ZT_INVALID);
    assert_string_equal(error.object, "s");
    assert_ok(add_part(assembly, "indices", 16));
    assert_int_equal(zt_assembly_check(assembly, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt1 §3 LayoutRule", ZT_NO_OFFSET);
    assert_non_null(strstr(error.message, "values"));
    zt_assembly_free(assembly);
}

TEST(check_rejects_sizes_that_do_not_fit)
{
    struct zt_assembly *assembly = begin(ZT_TARGET_ZT1);

    assert_ok(add_object(assembly, zt_text_from("w"), "dense"));
    assert_ok(add_part(assembly, "data", 47));
    assert_int_equal(zt_assembly_check(assembly, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt1 §3 DenseSize", ZT_NO_OFFSET);
    assert_string_equal(error.component, "data");
    zt_assembly_free(assembly);
}

static enum zt_status check_part_of(enum zt_target target, const char *format, const char *name,
                                    enum zt_dtype dtype, uint64_t length)
{
    const struct zt_shape shape = shape_of("2,3");
    struct zt_assembly_object object = {
        .name = zt_text_from("o"), .format = zt_text_from(format), .shape = &shape};
    struct zt_assembly_component component = {
        .name = zt_text_from(name), .dtype = dtype, .decoded_length = length};

    return zt_assembly_check_component(target, &object, &component, &error);
}

static enum zt_status check_part(const char *format, const char *name, enum zt_dtype dtype,
                                 uint64_t length)
{
    return check_part_of(ZT_TARGET_ZT2, format, name, dtype, length);
}

TEST(component_alone_is_checked_as_far_as_possible)
{
    assert_ok(check_part("dense", "data", ZT_F32, 24));
    assert_int_equal(check_part("dense", "data", ZT_F32, 20), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §6 DenseSize", ZT_NO_OFFSET);
    assert_int_equal(check_part("dense", "other", ZT_F32, 24), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §6 LayoutRule", ZT_NO_OFFSET);
    assert_string_equal(error.component, "other");
    assert_ok(check_part("zt.sparse_csr/1", "values", ZT_F32, 8));
    assert_int_equal(check_part("zt.sparse_csr/1", "indices", ZT_I64, 8), ZT_INVALID);
    assert_int_equal(check_part("zt.sparse_csr/1", "indptr", ZT_U64, 16), ZT_INVALID);
    assert_ok(check_part("zt.sparse_csr/1", "indptr", ZT_U32, 12));
    assert_int_equal(check_part("zt.sparse_coo/1", "coords", ZT_U64, 24), ZT_INVALID);
    assert_int_equal(check_part("zt.sparse_coo/1", "coords", ZT_F32, 16), ZT_INVALID);
    assert_ok(check_part("zt.sparse_coo/1", "coords", ZT_U64, 32));
    assert_ok(check_part("anything", "at all", ZT_U8, 1));
}

TEST(zt1_writes_indices_as_u64_alone)
{
    static const char *const parts[] = {"indices", "indptr"};

    for (unsigned i = 0; i < 2; i++) {
        assert_ok(check_part_of(ZT_TARGET_ZT1, "sparse_csr", parts[i], ZT_U64, 24));
        assert_int_equal(check_part_of(ZT_TARGET_ZT1, "sparse_csr", parts[i], ZT_U32, 12),
                         ZT_INVALID);
        assert_failure(&error, ZT_INVALID, "zt1 §3 LayoutRule", ZT_NO_OFFSET);
        assert_string_equal(error.component, parts[i]);
    }
    assert_ok(check_part_of(ZT_TARGET_ZT1, "sparse_coo", "coords", ZT_U64, 32));
    assert_int_equal(check_part_of(ZT_TARGET_ZT1, "sparse_coo", "coords", ZT_I64, 32), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt1 §3 LayoutRule", ZT_NO_OFFSET);
    assert_ok(check_part_of(ZT_TARGET_ZT1, "sparse_coo", "values", ZT_U32, 8));
}

/* --- encoding --- */

TEST(encoder_gives_what_the_decoder_takes)
{
    static const enum zt_encoding encodings[] = {ZT_ENCODING_ZSTD, ZT_ENCODING_ZSTD_SEEKABLE};

    for (int i = 0; i < 2; i++) {
        const struct zt_encoder_options options = {.encoding = encodings[i], .bounds_memory = true};
        struct failing_sink packed = {0};
        struct zt_sink sink = failing_sink(&packed);
        struct zt_encoder *encoder;
        struct zt_decoder *decoder;
        struct zt_source *source;
        char buffer[64];
        size_t length;
        struct zt_component component;

        assert_ok(zt_encoder_open(&options, &sink, &encoder, &error));
        assert_ok(zt_encoder_append(encoder, "twice ", 6, &error));
        assert_ok(zt_encoder_append(encoder, "twice ", 6, &error));
        assert_ok(zt_encoder_finish(encoder, &error));
        zt_encoder_close(encoder);
        component = (struct zt_component){.name = "",
                                          .encoding = (uint8_t)encodings[i],
                                          .length = packed.bytes.length,
                                          .decoded_length = 12};
        source = memory_source(packed.bytes.bytes, packed.bytes.length);
        assert_ok(zt_decoder_open(&component, source, &decoder, &error));
        assert_ok(zt_decoder_read(decoder, buffer, sizeof(buffer), &length, &error));
        assert_int_equal(length, 12);
        assert_memory_equal(buffer, "twice twice ", 12);
        zt_decoder_close(decoder);
        zt_source_close(source);
        zt_buffer_free(&packed.bytes);
    }
}

TEST(encoder_has_22_levels)
{
    struct failing_sink packed = {0};
    struct zt_sink sink = failing_sink(&packed);
    struct zt_encoder *encoder;

    assert_int_equal(
        zt_encoder_open(&(struct zt_encoder_options){.encoding = ZT_ENCODING_ZSTD, .level = 23},
                        &sink, &encoder, &error),
        ZT_ARGUMENT);
    assert_int_equal(
        zt_encoder_open(&(struct zt_encoder_options){.encoding = ZT_ENCODING_ZSTD, .level = -1},
                        &sink, &encoder, &error),
        ZT_ARGUMENT);
}
