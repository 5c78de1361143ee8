/* The writer's own rules: components out of turn, lengths that lie, sinks that fail. */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "written.h"
#include "zt/verify.h"

static const enum zt_target targets[] = {ZT_TARGET_ZT1, ZT_TARGET_ZT2_CANONICAL, ZT_TARGET_ZT2,
                                         ZT_TARGET_MAG, ZT_TARGET_SAFETENSORS,   ZT_TARGET_NPZ};
#define TARGETS (sizeof(targets) / sizeof(targets[0]))

static struct written plain;
static struct zt_error error;

static int make_plain(void **state)
{
    (void)state;
    written_plain(&plain);
    return 0;
}

static int free_plain(void **state)
{
    (void)state;
    written_free(&plain);
    return 0;
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
    assert_ok(zt_model_project(plain.model, target, &projection, &error));
    assert_ok(zt_writer_begin(projection, NULL, &sink, &writer, &error));
    return writer;
}

static void abandon(struct zt_writer *writer)
{
    zt_writer_free(writer);
    zt_projection_free(projection);
    zt_buffer_free(&state_.bytes);
}

TEST(refuses_more_bytes_than_declared)
{
    static const uint8_t bytes[25];

    for (unsigned i = 0; i < 2; i++) {
        struct zt_writer *writer = begun(i == 0 ? ZT_TARGET_ZT1 : ZT_TARGET_SAFETENSORS);
        uint32_t next;
        uint64_t length;

        assert_true(zt_writer_next(writer, &next));
        assert_int_equal(next, 0);
        assert_ok(zt_writer_component(writer, next, &error));
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

TEST(refuses_fewer_bytes_than_declared)
{
    static const uint8_t bytes[25];

    for (unsigned i = 0; i < 4; i++) {
        struct zt_writer *writer = begun(i < 2 ? ZT_TARGET_ZT1 : ZT_TARGET_SAFETENSORS);
        uint32_t next;

        assert_true(zt_writer_next(writer, &next));
        assert_ok(zt_writer_component(writer, next, &error));
        assert_ok(zt_writer_append(writer, bytes, 23, &error));
        assert_true(zt_writer_next(writer, &next));
        assert_int_equal(i % 2 == 0 ? zt_writer_component(writer, next, &error)
                                    : zt_writer_finish(writer, &error),
                         ZT_ARGUMENT);
        assert_string_equal(error.object, "a");
        abandon(writer);
    }
}

TEST(refuses_a_component_out_of_turn_or_twice)
{
    static const uint8_t bytes[24];
    struct zt_writer *writer = begun(ZT_TARGET_SAFETENSORS);

    assert_int_equal(zt_writer_component(writer, 1, &error), ZT_ARGUMENT);
    assert_string_equal(error.object, "b");
    abandon(writer);
    writer = begun(ZT_TARGET_ZT1);
    assert_ok(zt_writer_component(writer, 2, &error));
    assert_ok(zt_writer_append(writer, bytes, 24, &error));
    assert_int_equal(zt_writer_component(writer, 2, &error), ZT_ARGUMENT);
    abandon(writer);
    writer = begun(ZT_TARGET_ZT1);
    assert_int_equal(zt_writer_component(writer, 99, &error), ZT_ARGUMENT);
    abandon(writer);
    writer = begun(ZT_TARGET_ZT1);
    assert_int_equal(zt_writer_append(writer, bytes, 1, &error), ZT_ARGUMENT);
    abandon(writer);
}

TEST(refuses_to_finish_without_a_component)
{
    struct zt_writer *writer = begun(ZT_TARGET_ZT1);

    assert_int_equal(zt_writer_finish(writer, &error), ZT_ARGUMENT);
    assert_string_equal(error.object, "a");
    abandon(writer);
}

TEST(refuses_options_that_the_target_lacks)
{
    const struct zt_writer_options zstd = {.zstd = true};
    const struct zt_writer_options level = {.zstd = true, .zstd_level = 23};
    struct zt_writer *writer = NULL;

    sink = failing_sink(&state_);
    assert_ok(zt_model_project(plain.model, ZT_TARGET_NPZ, &projection, &error));
    assert_int_equal(zt_writer_begin(projection, &zstd, &sink, &writer, &error), ZT_ARGUMENT);
    assert_int_equal(zt_writer_begin(projection, NULL, &sink, &writer, &error),
                     ZT_ARGUMENT); /* no CRCs */
    zt_projection_free(projection);
    assert_ok(zt_model_project(plain.model, ZT_TARGET_ZT1, &projection, &error));
    assert_int_equal(zt_writer_begin(projection, &level, &sink, &writer, &error), ZT_ARGUMENT);
    zt_projection_free(projection);
    assert_null(writer);
}

/* Components in any order, in pieces of any size: the bytes are found again. */
TEST(zt1_takes_components_in_any_order)
{
    static const uint32_t order[] = {3, 1, 0, 2};
    struct zt_writer *writer = begun(ZT_TARGET_ZT1);
    struct written made = {0};
    uint8_t bytes[1024];

    for (unsigned i = 0; i < 4; i++) {
        char name[2] = {(char)('a' + order[i]), 0};
        size_t length = written_decode(&plain, name, "data", bytes, sizeof(bytes));

        assert_ok(zt_writer_component(writer, order[i], &error));
        for (size_t at = 0; at < length; at++)
            assert_ok(zt_writer_append(writer, bytes + at, 1, &error));
    }
    assert_ok(zt_writer_finish(writer, &error));
    assert_true(zt_writer_length(writer) == state_.bytes.length);
    written_open(&made, state_.bytes);
    memset(&state_, 0, sizeof(state_));
    assert_same_model(&plain, &made);
    written_free(&made);
    abandon(writer);
}

/* --- sinks that fail --- */

TEST(a_sink_that_fails_at_any_call_ends_it)
{
    const struct zt_writer_options zstd = {.zstd = true};
    struct zt_source *files[] = {plain.source};

    for (size_t i = 0; i < TARGETS; i++) {
        struct zt_conversion conversion = {.source = plain.model, .files = files};
        struct zt_projection *made = NULL;
        enum zt_status status = ZT_IO;
        unsigned call = 0;

        assert_ok(zt_model_project(plain.model, targets[i], &made, &error));
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

/* The writer checks this itself: no conversion has checked the content before. */
TEST(zt1_refuses_a_length_that_breaks_the_layout)
{
    struct written written = {0};
    struct zt_writer *writer = NULL;
    static const uint8_t bytes[16];

    written_unknown_length(&written, 2);
    sink = failing_sink(&state_);
    assert_ok(zt_model_project(written.model, ZT_TARGET_ZT1, &projection, &error));
    assert_ok(zt_writer_begin(projection, NULL, &sink, &writer, &error));
    assert_ok(zt_writer_component(writer, 0, &error));
    assert_ok(zt_writer_append(writer, bytes, 16, &error));
    assert_ok(zt_writer_component(writer, 1, &error));
    assert_ok(zt_writer_append(writer, bytes, 3, &error));
    assert_int_equal(zt_writer_finish(writer, &error), ZT_INVALID);
    assert_string_equal(error.object, "x");
    abandon(writer);
    written_free(&written);
}

AROUND_ALL_TESTS(make_plain, free_plain)
