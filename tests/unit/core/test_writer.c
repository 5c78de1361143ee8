/* Writing: what is written reads equal, twice the same, and nothing else comes of sizes that lie or
 * sinks that fail. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "container.h"
#include "handmade.h"
#include "written.h"
#include "zt/verify.h"

#define DENSE(dtype, at, length, shape)                                                      \
    "{\"shape\":" shape ",\"format\":\"dense\",\"components\":{\"data\":{\"dtype\":\"" dtype \
    "\",\"offset\":" at ",\"length\":" length "}}}"
/* Data that every target has a type for; "a" and "c" are the same bytes. */
#define PLAIN                                                                                    \
    "{\"version\":\"1.2.0\",\"attributes\":{\"steps\":7},\"objects\":{"                          \
    "\"a\":" DENSE("f32", "64", "24", "[2,3]") ",\"b\":" DENSE(                                  \
        "i32", "128", "300", "[75,1]") ","                                                       \
                                       "\"c\":" DENSE("f32", "64", "24", "[6]") ",\"d\":" DENSE( \
                                           "f16", "448", "2", "[1]") "}}"
#define PLAIN_DATA 512

#define FILE_OF_TWO(object) \
    "{\"version\":\"1.2.0\",\"objects\":{\"x\":" object ",\"y\":" object "}}"

static const enum zt_target targets[] = {ZT_TARGET_ZT1, ZT_TARGET_ZT2_CANONICAL, ZT_TARGET_ZT2,
                                         ZT_TARGET_MAG, ZT_TARGET_SAFETENSORS,   ZT_TARGET_NPZ};
#define TARGETS (sizeof(targets) / sizeof(targets[0]))

static struct written plain;
static struct zt_error error;

static int make_plain(void **state)
{
    (void)state;
    written_from_text(&plain, PLAIN_DATA, PLAIN);
    return 0;
}

static int free_plain(void **state)
{
    (void)state;
    written_free(&plain);
    return 0;
}

static void assert_same_object(const struct written *a, const struct written *b,
                               const struct zt_object *object)
{
    const struct zt_object *other = zt_model_find(b->model, zt_object_name(object));
    uint8_t bytes[2][1024];
    char name[64] = {0};
    size_t length;

    assert_non_null(other);
    assert_int_equal(object->rank, other->rank);
    assert_memory_equal(zt_object_shape(a->model, object), zt_object_shape(b->model, other),
                        object->rank * sizeof(uint64_t));
    assert_int_equal(zt_object_components(a->model, object)->dtype,
                     zt_object_components(b->model, other)->dtype);
    memcpy(name, object->name, object->name_length);
    length = written_decode(a, name, "data", bytes[0], sizeof(bytes[0]));
    assert_int_equal(written_decode(b, name, "data", bytes[1], sizeof(bytes[1])), length);
    assert_memory_equal(bytes[0], bytes[1], length);
}

static void assert_same_model(const struct written *a, const struct written *b)
{
    assert_int_equal(a->model->object_count, b->model->object_count);
    for (uint32_t i = 0; i < a->model->object_count; i++)
        assert_same_object(a, b, &a->model->objects[i]);
}

/* --- what is written --- */

static void every_target_reads_equal(void **state)
{
    (void)state;
    for (size_t i = 0; i < TARGETS; i++) {
        struct written made = {0};

        written_make(&made, &plain, targets[i], NULL);
        assert_same_model(&plain, &made);
        written_free(&made);
    }
}

static void every_pair_of_targets_goes_there_and_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < TARGETS; i++) {
        struct written there = {0};

        written_make(&there, &plain, targets[i], NULL);
        for (size_t j = 0; j < TARGETS; j++) {
            struct written further = {0};
            struct written back = {0};

            written_make(&further, &there, targets[j], NULL);
            written_make(&back, &further, targets[i], NULL);
            assert_same_model(&plain, &back);
            written_free(&further);
            written_free(&back);
        }
        written_free(&there);
    }
}

static void the_same_model_is_the_same_bytes(void **state)
{
    const struct zt_writer_options zstd = {.zstd = true};

    (void)state;
    for (size_t i = 0; i < TARGETS; i++) {
        bool compressed = targets[i] == ZT_TARGET_ZT1 || targets[i] == ZT_TARGET_ZT2;

        for (unsigned packed = 0; packed <= (compressed ? 1u : 0u); packed++) {
            struct zt_buffer once = {0};
            struct zt_buffer twice = {0};

            assert_int_equal(
                written_convert(&plain, targets[i], packed ? &zstd : NULL, &once, &error), ZT_OK);
            assert_int_equal(
                written_convert(&plain, targets[i], packed ? &zstd : NULL, &twice, &error), ZT_OK);
            assert_int_equal(once.length, twice.length);
            assert_memory_equal(once.bytes, twice.bytes, once.length);
            zt_buffer_free(&once);
            zt_buffer_free(&twice);
        }
    }
}

static void canonical_is_canonical_and_shares(void **state)
{
    struct written made = {0};

    (void)state;
    written_make(&made, &plain, ZT_TARGET_ZT2_CANONICAL, NULL);
    assert_int_equal(zt_canonical_check(made.model, made.source, &error), ZT_OK);
    assert_true(made.model->components[0].offset == 65536);
    assert_true(made.model->components[1].offset == 131072);
    assert_true(made.model->components[2].offset == 65536); /* the bytes of "a" again */
    assert_true(made.model->manifest_offset == 4 * UINT64_C(65536));
    written_free(&made);
}

static void zt1_through_zt2_is_equal_bytes(void **state)
{
    static const char manifest[] =
        "{\"version\":\"1.2.0\",\"attributes\":{\"b\":1,\"aa\":[1.5,null,{\"zz\":-1,\"y\":h'00'}]},"
        "\"objects\":{"
        "\"q\":{\"shape\":[2,2],\"format\":\"sparse_csr\",\"attributes\":{\"long\":1,\"s\":true},"
        "\"components\":{"
        "\"values\":{\"dtype\":\"u8\",\"offset\":64,\"length\":0},"
        "\"indices\":{\"dtype\":\"u32\",\"offset\":64,\"length\":0},"
        "\"indptr\":{\"dtype\":\"i16\",\"offset\":512,\"length\":6}}},"
        "\"flags\":" DENSE("bool", "64", "2",
                           "[2]") ","
                                  "\"other\":{\"shape\":[3],\"format\":\"house.made/"
                                  "7\",\"components\":{\"x\":{\"dtype\":\"u8\",\"type\":\"my\","
                                  "\"offset\":192,\"length\":5}}}}}";
    struct container container = {0};
    struct zt_buffer bytes = {0};
    struct written source = {0};
    struct written first = {0};
    struct written second = {0};
    struct written again = {0};

    (void)state;
    container_make(&container, CONTAINER_ZT1, 512, manifest);
    memset(container.bytes + CONTAINER_DATA, 0, 512);
    zt_buffer_append(&bytes, container.bytes, container.length);
    container_free(&container);
    written_open(&source, bytes);
    written_make(&first, &source, ZT_TARGET_ZT1, NULL);
    written_make(&second, &first, ZT_TARGET_ZT2_CANONICAL, NULL);
    assert_int_equal(zt_canonical_check(second.model, second.source, &error), ZT_OK);
    written_make(&again, &second, ZT_TARGET_ZT1, NULL);
    assert_int_equal(first.bytes.length, again.bytes.length);
    assert_memory_equal(first.bytes.bytes, again.bytes.bytes, first.bytes.length);
    written_free(&source);
    written_free(&first);
    written_free(&second);
    written_free(&again);
}

static void zstd_decodes_and_says_how_long_it_was(void **state)
{
    const struct zt_writer_options zstd = {.zstd = true, .zstd_level = 1};
    static const enum zt_encoding encodings[] = {ZT_ENCODING_ZSTD, ZT_ENCODING_ZSTD_SEEKABLE};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct zt_component_check check;
        struct written made = {0};

        written_make(&made, &plain, i == 0 ? ZT_TARGET_ZT1 : ZT_TARGET_ZT2, &zstd);
        assert_same_model(&plain, &made);
        assert_int_equal(made.model->components[1].encoding, encodings[i]);
        assert_true(made.model->components[1].decoded_length == 300);
        /* no content size, one segment or not; a checksum in zTensor 2 */
        assert_int_equal(made.bytes.bytes[made.model->components[1].offset + 4],
                         i == 0 ? 0x00 : 0x04);
        assert_int_equal(zt_component_check(made.model, &made.model->components[1], made.source,
                                            NULL, &check, &error),
                         ZT_OK);
        assert_int_equal(check.verdict, ZT_VERDICT_VERIFIED);
        written_free(&made);
    }
}

static void npz_data_lies_at_multiples_of_64(void **state)
{
    struct written made = {0};

    (void)state;
    written_make(&made, &plain, ZT_TARGET_NPZ, NULL);
    for (uint32_t i = 0; i < made.model->component_count; i++)
        assert_true(made.model->components[i].offset % 64 == 0);
    written_free(&made);
}

/* --- the writer's own rules --- */

static struct zt_projection *projection;
static struct failing_sink state_;
static struct zt_sink sink;

static struct zt_writer *begun(enum zt_target target)
{
    struct zt_writer *writer = NULL;

    memset(&state_, 0, sizeof(state_));
    sink = failing_sink(&state_);
    assert_int_equal(zt_model_project(plain.model, target, &projection, &error), ZT_OK);
    assert_int_equal(zt_writer_begin(projection, NULL, &sink, &writer, &error), ZT_OK);
    return writer;
}

static void abandon(struct zt_writer *writer)
{
    zt_writer_free(writer);
    zt_projection_free(projection);
    zt_buffer_free(&state_.bytes);
}

static void refuses_more_bytes_than_declared(void **state)
{
    static const uint8_t bytes[25];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct zt_writer *writer = begun(i == 0 ? ZT_TARGET_ZT1 : ZT_TARGET_SAFETENSORS);
        uint32_t next;
        uint64_t length;

        assert_true(zt_writer_next(writer, &next));
        assert_int_equal(next, 0);
        assert_int_equal(zt_writer_component(writer, next, &error), ZT_OK);
        length = zt_writer_length(writer);
        assert_int_equal(zt_writer_append(writer, bytes, 25, &error), ZT_ARGUMENT);
        assert_string_equal(error.object, "a");
        assert_true(zt_writer_length(writer) == length);
        /* and it does not go on */
        assert_int_equal(zt_writer_append(writer, bytes, 1, &error), ZT_ARGUMENT);
        assert_int_equal(zt_writer_finish(writer, &error), ZT_ARGUMENT);
        abandon(writer);
    }
}

static void refuses_fewer_bytes_than_declared(void **state)
{
    static const uint8_t bytes[25];

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct zt_writer *writer = begun(i < 2 ? ZT_TARGET_ZT1 : ZT_TARGET_SAFETENSORS);
        uint32_t next;

        assert_true(zt_writer_next(writer, &next));
        assert_int_equal(zt_writer_component(writer, next, &error), ZT_OK);
        assert_int_equal(zt_writer_append(writer, bytes, 23, &error), ZT_OK);
        assert_true(zt_writer_next(writer, &next));
        assert_int_equal(i % 2 == 0 ? zt_writer_component(writer, next, &error)
                                    : zt_writer_finish(writer, &error),
                         ZT_ARGUMENT);
        assert_string_equal(error.object, "a");
        abandon(writer);
    }
}

static void refuses_a_component_out_of_turn_or_twice(void **state)
{
    static const uint8_t bytes[24];
    struct zt_writer *writer = begun(ZT_TARGET_SAFETENSORS);

    (void)state;
    assert_int_equal(zt_writer_component(writer, 1, &error), ZT_ARGUMENT);
    assert_string_equal(error.object, "b");
    abandon(writer);
    writer = begun(ZT_TARGET_ZT1);
    assert_int_equal(zt_writer_component(writer, 2, &error), ZT_OK);
    assert_int_equal(zt_writer_append(writer, bytes, 24, &error), ZT_OK);
    assert_int_equal(zt_writer_component(writer, 2, &error), ZT_ARGUMENT);
    abandon(writer);
    writer = begun(ZT_TARGET_ZT1);
    assert_int_equal(zt_writer_component(writer, 99, &error), ZT_ARGUMENT);
    abandon(writer);
    writer = begun(ZT_TARGET_ZT1);
    assert_int_equal(zt_writer_append(writer, bytes, 1, &error), ZT_ARGUMENT);
    abandon(writer);
}

static void refuses_to_finish_without_a_component(void **state)
{
    struct zt_writer *writer = begun(ZT_TARGET_ZT1);

    (void)state;
    assert_int_equal(zt_writer_finish(writer, &error), ZT_ARGUMENT);
    assert_string_equal(error.object, "a");
    abandon(writer);
}

static void refuses_options_that_the_target_has_not(void **state)
{
    const struct zt_writer_options zstd = {.zstd = true};
    const struct zt_writer_options level = {.zstd = true, .zstd_level = 23};
    struct zt_writer *writer = NULL;

    (void)state;
    sink = failing_sink(&state_);
    assert_int_equal(zt_model_project(plain.model, ZT_TARGET_NPZ, &projection, &error), ZT_OK);
    assert_int_equal(zt_writer_begin(projection, &zstd, &sink, &writer, &error), ZT_ARGUMENT);
    assert_int_equal(zt_writer_begin(projection, NULL, &sink, &writer, &error),
                     ZT_ARGUMENT); /* no CRCs */
    zt_projection_free(projection);
    assert_int_equal(zt_model_project(plain.model, ZT_TARGET_ZT1, &projection, &error), ZT_OK);
    assert_int_equal(zt_writer_begin(projection, &level, &sink, &writer, &error), ZT_ARGUMENT);
    zt_projection_free(projection);
    assert_null(writer);
}

/* Components in any order, in pieces of any size: the bytes are found again. */
static void zt1_takes_components_in_any_order(void **state)
{
    static const uint32_t order[] = {3, 1, 0, 2};
    struct zt_writer *writer = begun(ZT_TARGET_ZT1);
    struct written made = {0};
    uint8_t bytes[1024];

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        char name[2] = {(char)('a' + order[i]), 0};
        size_t length = written_decode(&plain, name, "data", bytes, sizeof(bytes));

        assert_int_equal(zt_writer_component(writer, order[i], &error), ZT_OK);
        for (size_t at = 0; at < length; at++)
            assert_int_equal(zt_writer_append(writer, bytes + at, 1, &error), ZT_OK);
    }
    assert_int_equal(zt_writer_finish(writer, &error), ZT_OK);
    assert_true(zt_writer_length(writer) == state_.bytes.length);
    written_open(&made, state_.bytes);
    memset(&state_, 0, sizeof(state_));
    assert_same_model(&plain, &made);
    written_free(&made);
    abandon(writer);
}

/* --- sinks that fail --- */

static void a_sink_that_fails_at_any_call_ends_it(void **state)
{
    const struct zt_writer_options zstd = {.zstd = true};
    struct zt_source *files[] = {plain.source};

    (void)state;
    for (size_t i = 0; i < TARGETS; i++) {
        struct zt_conversion conversion = {.source = plain.model, .files = files};
        struct zt_projection *made = NULL;
        enum zt_status status = ZT_IO;
        unsigned call = 0;

        assert_int_equal(zt_model_project(plain.model, targets[i], &made, &error), ZT_OK);
        conversion.projection = made;
        if (targets[i] == ZT_TARGET_ZT2)
            conversion.options = zstd;
        while (status != ZT_OK) {
            struct failing_sink failing = {.failing_call = ++call};

            sink = failing_sink(&failing);
            status = zt_model_convert(&conversion, &sink, &error);
            assert_true(status == ZT_OK || status == ZT_IO);
            zt_buffer_free(&failing.bytes);
            assert_true(call < 100);
        }
        assert_true(call > 3);
        zt_projection_free(made);
    }
}

/* --- sources that are not what they say --- */

/* A coordinate list whose values are compressed and whose manifest does not tell their length. */
static void open_unknown_length(struct written *written, size_t values_length)
{
    static const char manifest[] =
        "{\"version\":\"1.1.0\",\"objects\":{\"x\":{\"shape\":[9],\"format\":\"sparse_coo\","
        "\"components\":{"
        "\"coords\":{\"dtype\":\"u64\",\"offset\":64,\"length\":16},"
        "\"values\":{\"dtype\":\"u8\",\"offset\":128,\"length\":%zu,\"encoding\":\"zstd\"}}}}}";
    struct container container = {0};
    struct zt_buffer bytes = {0};
    struct bytes packed = {NULL, 0};
    char text[512];

    bytes_append_zstd(&packed, "\1\2\3\4", values_length, false);
    snprintf(text, sizeof(text), manifest, packed.length);
    container_make(&container, CONTAINER_ZT1, 256, text);
    memset(container.bytes + 64, 0, 16);
    container.bytes[64] = 5;
    memcpy(container.bytes + 128, packed.at, packed.length);
    zt_buffer_append(&bytes, container.bytes, container.length);
    container_free(&container);
    bytes_free(&packed);
    written_open(written, bytes);
}

static void a_length_nobody_told_is_found_and_checked(void **state)
{
    static const enum zt_target zt[] = {ZT_TARGET_ZT1, ZT_TARGET_ZT2, ZT_TARGET_ZT2_CANONICAL};
    struct written written = {0};
    struct zt_buffer out = {0};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct written made = {0};
        uint8_t values[8];

        open_unknown_length(&written, 2);
        assert_true(written.model->components[1].decoded_length == ZT_LENGTH_UNKNOWN);
        written_make(&made, &written, zt[i], NULL);
        assert_int_equal(written_decode(&made, "x", "values", values, sizeof(values)), 2);
        written_free(&made);
        written_free(&written);
        open_unknown_length(&written, 3);
        assert_int_equal(written_convert(&written, zt[i], NULL, &out, &error), ZT_INVALID);
        assert_string_equal(error.object, "x");
        written_free(&written);
    }
}

/* The writer's own check, where nobody looked at the content before. */
static void zt1_refuses_a_length_that_breaks_the_layout(void **state)
{
    struct written written = {0};
    struct zt_writer *writer = NULL;
    static const uint8_t bytes[16];

    (void)state;
    open_unknown_length(&written, 2);
    sink = failing_sink(&state_);
    assert_int_equal(zt_model_project(written.model, ZT_TARGET_ZT1, &projection, &error), ZT_OK);
    assert_int_equal(zt_writer_begin(projection, NULL, &sink, &writer, &error), ZT_OK);
    assert_int_equal(zt_writer_component(writer, 0, &error), ZT_OK);
    assert_int_equal(zt_writer_append(writer, bytes, 16, &error), ZT_OK);
    assert_int_equal(zt_writer_component(writer, 1, &error), ZT_OK);
    assert_int_equal(zt_writer_append(writer, bytes, 3, &error), ZT_OK);
    assert_int_equal(zt_writer_finish(writer, &error), ZT_INVALID);
    assert_string_equal(error.object, "x");
    abandon(writer);
    written_free(&written);
}

/* Nobody asks a writer of safetensors for bytes that are none; they are decoded all the same. */
static void a_damaged_component_of_no_bytes_is_told(void **state)
{
    static const char manifest[] =
        FILE_OF_TWO("{\"shape\":[0],\"format\":\"dense\",\"components\":{\"data\":{\"dtype\":"
                    "\"u8\",\"offset\":64,\"length\":9,"
                    "\"encoding\":\"zstd\",\"uncompressed_length\":0}}}");
    struct written written = {0};
    struct zt_buffer out = {0};

    (void)state;
    written_from_text(&written, 64, manifest);
    for (size_t i = 0; i < TARGETS; i++)
        if (targets[i] != ZT_TARGET_MAG)
            assert_int_equal(written_convert(&written, targets[i], NULL, &out, &error), ZT_CORRUPT);
    written_free(&written);
}

static void a_file_that_changes_between_two_readings_is_told(void **state)
{
    static const enum zt_target twice[] = {ZT_TARGET_NPZ, ZT_TARGET_ZT2_CANONICAL};
    struct zt_source *files[] = {plain.source};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct zt_conversion conversion = {.source = plain.model, .files = files};
        struct zt_projection *made = NULL;
        struct zt_fingerprint *facts = NULL;
        struct failing_sink sunk = {0};

        assert_int_equal(zt_model_project(plain.model, twice[i], &made, &error), ZT_OK);
        conversion.projection = made;
        assert_int_equal(zt_fingerprints_take(&conversion, &facts, &error), ZT_OK);
        facts[1].digest.bytes[0] ^= 1;
        conversion.options.fingerprints = facts;
        sink = failing_sink(&sunk);
        assert_int_equal(zt_model_convert(&conversion, &sink, &error), ZT_CORRUPT);
        assert_string_equal(error.object, "b");
        zt_buffer_free(&sunk.bytes);
        zt_projection_free(made);
        free(facts);
    }
}

static void a_negative_index_is_not_widened(void **state)
{
    struct written written = {0};
    struct zt_projection *made = NULL;
    struct zt_fingerprint *facts = NULL;
    struct zt_conversion conversion;

    (void)state;
    /* byte n of the data is n: the fourth word, of bytes 134 and 135, is negative */
    written_from_text(
        &written, 256,
        "{\"version\":\"1.1.0\",\"objects\":{\"x\":{\"shape\":[9],\"format\":\"sparse_coo\","
        "\"components\":{\"coords\":{\"dtype\":\"i16\",\"offset\":192,\"length\":8},"
        "\"values\":{\"dtype\":\"u8\",\"offset\":64,\"length\":4}}}}}");
    conversion = (struct zt_conversion){.source = written.model, .files = &written.source};
    assert_int_equal(zt_model_project(written.model, ZT_TARGET_ZT1, &made, &error), ZT_OK);
    conversion.projection = made;
    assert_int_equal(zt_fingerprints_take(&conversion, &facts, &error), ZT_INVALID);
    assert_string_equal(error.component, "coords");
    zt_projection_free(made);
    written_free(&written);
}

static void content_that_only_the_target_forbids_is_not_written(void **state)
{
    static const enum zt_target refusing[] = {ZT_TARGET_ZT2_CANONICAL, ZT_TARGET_ZT2};
    struct written written = {0};
    struct zt_buffer bytes = {0};

    (void)state;
    /* byte n of the data is n mod 251: the last coordinate is the first one again */
    written_from_text(
        &written, 256,
        "{\"version\":\"1.1.0\",\"objects\":{\"x\":{\"shape\":[251],\"format\":\"sparse_coo\","
        "\"components\":{\"coords\":{\"dtype\":\"u8\",\"offset\":64,\"length\":252},"
        "\"values\":{\"dtype\":\"u8\",\"offset\":64,\"length\":252}}}}}");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(written_convert(&written, refusing[i], NULL, &bytes, &error),
                         ZT_UNSUPPORTED);
        assert_failure(&error, ZT_UNSUPPORTED, "zt2 §6 LayoutData", 64);
        assert_string_equal(error.object, "x");
        assert_string_equal(error.component, "coords");
        assert_int_equal(bytes.length, 0);
    }
    assert_int_equal(written_convert(&written, ZT_TARGET_ZT1, NULL, &bytes, &error), ZT_OK);
    zt_buffer_free(&bytes);
    written_free(&written);
}

/* --- images --- */

static void an_image_finds_every_position(void **state)
{
    struct zt_projection *made = NULL;
    struct zt_file_plan *image = NULL;

    (void)state;
    assert_int_equal(zt_model_project(plain.model, ZT_TARGET_MAG, &made, &error), ZT_OK);
    assert_int_equal(zt_file_plan_make(made, NULL, &image, &error), ZT_OK);
    for (uint64_t offset = 0; offset < image->length; offset++) {
        size_t found = zt_file_plan_find(image, offset);

        assert_true(found < image->piece_count);
        assert_true(offset < image->pieces[found].offset + image->pieces[found].length);
        assert_true(found == 0 ||
                    image->pieces[found - 1].offset + image->pieces[found - 1].length <= offset);
    }
    assert_true(zt_file_plan_find(image, image->length) == image->piece_count);
    zt_file_plan_free(image);
    zt_projection_free(made);
}

static void an_image_has_a_bound(void **state)
{
    static const char manifest[] =
        FILE_OF_TWO("{\"shape\":[4611686018427387904],\"format\":\"dense\",\"components\":{"
                    "\"data\":{\"dtype\":\"u8\","
                    "\"offset\":64,\"length\":9,\"encoding\":\"zstd\",\"uncompressed_length\":"
                    "4611686018427387904}}}");
    struct written written = {0};
    struct zt_projection *made = NULL;
    struct zt_file_plan *image = NULL;

    (void)state;
    written_from_text(&written, 64, manifest);
    assert_int_equal(zt_model_project(written.model, ZT_TARGET_SAFETENSORS, &made, &error), ZT_OK);
    assert_int_equal(zt_file_plan_make(made, NULL, &image, &error), ZT_LIMIT);
    assert_string_equal(error.object, "y");
    assert_null(image);
    zt_projection_free(made);
    written_free(&written);
}

/* What a conversion streams is what the image of the same facts says. */
static void a_stream_and_an_image_of_zt1_are_the_same(void **state)
{
    struct zt_source *files[] = {plain.source};
    struct zt_conversion conversion = {.source = plain.model, .files = files};
    struct zt_projection *made = NULL;
    struct zt_file_plan *image = NULL;
    struct zt_fingerprint *facts = NULL;
    struct zt_buffer bytes = {0};
    const struct zt_piece *end;

    (void)state;
    assert_int_equal(zt_model_project(plain.model, ZT_TARGET_ZT1, &made, &error), ZT_OK);
    conversion.projection = made;
    assert_int_equal(zt_fingerprints_take(&conversion, &facts, &error), ZT_OK);
    assert_int_equal(zt_file_plan_make(made, facts, &image, &error), ZT_OK);
    assert_int_equal(written_convert(&plain, ZT_TARGET_ZT1, NULL, &bytes, &error), ZT_OK);
    assert_true(image->length == bytes.length);
    end = &image->pieces[image->piece_count - 1];
    assert_memory_equal(bytes.bytes + end->offset, image->added + end->added_at,
                        (size_t)end->length);
    zt_buffer_free(&bytes);
    free(facts);
    zt_file_plan_free(image);
    zt_projection_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_target_reads_equal),
        cmocka_unit_test(every_pair_of_targets_goes_there_and_back),
        cmocka_unit_test(the_same_model_is_the_same_bytes),
        cmocka_unit_test(canonical_is_canonical_and_shares),
        cmocka_unit_test(zt1_through_zt2_is_equal_bytes),
        cmocka_unit_test(zstd_decodes_and_says_how_long_it_was),
        cmocka_unit_test(npz_data_lies_at_multiples_of_64),
        cmocka_unit_test(refuses_more_bytes_than_declared),
        cmocka_unit_test(refuses_fewer_bytes_than_declared),
        cmocka_unit_test(refuses_a_component_out_of_turn_or_twice),
        cmocka_unit_test(refuses_to_finish_without_a_component),
        cmocka_unit_test(refuses_options_that_the_target_has_not),
        cmocka_unit_test(zt1_takes_components_in_any_order),
        cmocka_unit_test(a_sink_that_fails_at_any_call_ends_it),
        cmocka_unit_test(a_length_nobody_told_is_found_and_checked),
        cmocka_unit_test(zt1_refuses_a_length_that_breaks_the_layout),
        cmocka_unit_test(a_damaged_component_of_no_bytes_is_told),
        cmocka_unit_test(a_file_that_changes_between_two_readings_is_told),
        cmocka_unit_test(a_negative_index_is_not_widened),
        cmocka_unit_test(content_that_only_the_target_forbids_is_not_written),
        cmocka_unit_test(an_image_finds_every_position),
        cmocka_unit_test(an_image_has_a_bound),
        cmocka_unit_test(a_stream_and_an_image_of_zt1_are_the_same),
    };

    return cmocka_run_group_tests(tests, make_plain, free_plain);
}
