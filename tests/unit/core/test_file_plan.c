/* File plans, and files read through them: every range equals that of the written file. */
#include "tests.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "container.h"
#include "written.h"

#define DENSE(dtype, at, length, shape)                                                          \
    "{'shape':" shape ",'format':'dense','components':{'data':{'dtype':'" dtype "','offset':" at \
    ",'length':" length "}}}"
/* "a" and "c" are the same bytes, "e" has no bytes. */
#define FIVE                                                                                \
    "{'version':'1.2.0','attributes':{'steps':7},'objects':{"                               \
    "'a':" DENSE("f32", "64", "24", "[2,3]") ",'b':" DENSE(                                 \
        "i32", "128", "300",                                                                \
        "[75,1]") ",'c':" DENSE("f32", "64", "24",                                          \
                                "[6]") ",'d':" DENSE("f16", "448", "2",                     \
                                                     "[1]") ",'e':" DENSE("u8", "512", "0", \
                                                                          "[0]") "}}"
#define DATA_LENGTH 512

#define FILE_OF_TWO(object) "{'version':'1.2.0','objects':{'x':" object ",'y':" object "}}"

static const enum zt_target targets[] = {ZT_TARGET_ZT1, ZT_TARGET_ZT2_CANONICAL,
                                         ZT_TARGET_SAFETENSORS, ZT_TARGET_NPZ};
#define TARGETS (sizeof(targets) / sizeof(targets[0]))

static struct zt_error error;

/* A planned file, and the file that the writer makes. */
struct pair {
    struct written from;
    struct zt_projection *projection;
    struct zt_file_plan *plan;
    struct zt_source *source;
    struct zt_buffer file;
    unsigned reads; /* 0: as many as wanted; else the one that fails */
};

static enum zt_status read_component(void *context, uint32_t component, uint64_t offset,
                                     void *buffer, size_t length, struct zt_error *failure)
{
    struct pair *pair = context;
    const struct zt_component *from =
        &pair->from.model->components[pair->projection->origins[component].component];

    assert_true(length > 0);
    if (pair->reads > 0 && --pair->reads == 0)
        return zt_fail(failure, ZT_IO, NULL, ZT_NO_OFFSET, "no more");
    return zt_source_read_at(pair->from.source, from->offset + offset, buffer, length, failure);
}

static void pair_make(struct pair *pair, enum zt_target target)
{
    struct zt_component_bytes bytes = {read_component, pair};
    struct zt_fingerprint *fingerprints = NULL;
    struct zt_conversion conversion;

    written_from_text(&pair->from, DATA_LENGTH, FIVE);
    assert_ok(zt_model_project(pair->from.model, target, &pair->projection, &error));
    conversion = (struct zt_conversion){
        .projection = pair->projection, .source = pair->from.model, .files = &pair->from.source};
    assert_ok(zt_fingerprints_take(&conversion, &fingerprints, &error));
    assert_ok(zt_file_plan_make(pair->projection, fingerprints, &pair->plan, &error));
    free(fingerprints);
    assert_ok(zt_file_plan_source(pair->plan, &bytes, &pair->source, &error));
    assert_ok(written_convert(&pair->from, target, NULL, &pair->file, &error));
}

static void pair_free(struct pair *pair)
{
    zt_source_close(pair->source);
    zt_file_plan_free(pair->plan);
    zt_projection_free(pair->projection);
    zt_buffer_free(&pair->file);
    written_free(&pair->from);
}

static void assert_range(struct pair *pair, uint64_t first, uint64_t end)
{
    uint8_t *bytes;

    if (end > pair->file.length)
        end = pair->file.length;
    if (first >= end)
        return;
    bytes = malloc((size_t)(end - first));
    memset(bytes, 0xA5, (size_t)(end - first));
    assert_ok(zt_source_read_at(pair->source, first, bytes, (size_t)(end - first), &error));
    assert_memory_equal(bytes, pair->file.bytes + first, (size_t)(end - first));
    free(bytes);
}

/* --- claims --- */

TEST(every_range_is_the_written_files)
{
    for (size_t i = 0; i < TARGETS; i++) {
        struct pair pair = {0};

        pair_make(&pair, targets[i]);
        assert_int_equal(zt_source_size(pair.source), pair.file.length);
        assert_range(&pair, 0, pair.file.length);
        for (size_t j = 0; j < pair.plan->piece_count; j++) {
            const struct zt_piece *piece = &pair.plan->pieces[j];
            const uint64_t borders[] = {piece->offset, piece->offset + piece->length};

            for (size_t k = 0; k < 2; k++)
                for (uint64_t before = 0; before <= 2 && before <= borders[k]; before++)
                    for (uint64_t length = 1; length <= 70000; length += length / 2 + 1)
                        assert_range(&pair, borders[k] - before, borders[k] - before + length);
        }
        pair_free(&pair);
    }
}

TEST(ranges_outside_are_refused)
{
    struct pair pair = {0};
    uint8_t byte;

    pair_make(&pair, ZT_TARGET_ZT1);
    assert_ok(zt_source_read_at(pair.source, pair.file.length, &byte, 0, &error));
    assert_int_equal(zt_source_read_at(pair.source, pair.file.length, &byte, 1, &error), ZT_IO);
    assert_int_equal(zt_source_read_at(pair.source, UINT64_MAX, &byte, 1, &error), ZT_IO);
    assert_null(zt_source_map(pair.source));
    assert_int_equal(zt_source_descriptor(pair.source), -1);
    pair_free(&pair);
}

TEST(a_failing_component_fails_the_read)
{
    struct pair pair = {0};
    uint8_t bytes[512];

    pair_make(&pair, ZT_TARGET_ZT1);
    pair.reads = 2;
    assert_int_equal(zt_source_read_at(pair.source, 0, bytes, sizeof(bytes), &error), ZT_IO);
    assert_string_equal(error.message, "no more");
    pair_free(&pair);
}

TEST(digests_are_taken_over_only_from_the_trusted)
{
    struct written plain = {0};
    struct written digested = {0};
    struct zt_projection *projection = NULL;
    struct zt_fingerprint taken;
    struct zt_fingerprint read;
    struct zt_conversion conversion;

    written_from_text(&plain, DATA_LENGTH, FIVE);
    written_make(&digested, &plain, ZT_TARGET_ZT1, NULL);
    assert_ok(zt_model_project(digested.model, ZT_TARGET_ZT1, &projection, &error));
    conversion = (struct zt_conversion){.projection = projection,
                                        .source = digested.model,
                                        .files = &digested.source,
                                        .trusted = true};
    assert_ok(zt_fingerprint_take(&conversion, 1, &taken, &error));
    conversion.trusted = false;
    assert_ok(zt_fingerprint_take(&conversion, 1, &read, &error));
    assert_true(zt_digest_equal(&taken.digest, &read.digest));
    assert_int_equal(taken.length, read.length);
    /* A changed byte is noticed if the data is read, not if it is trusted. */
    digested.bytes.bytes[digested.model->components[1].offset] ^= 1;
    assert_int_equal(zt_fingerprint_take(&conversion, 1, &read, &error), ZT_CORRUPT);
    conversion.trusted = true;
    assert_ok(zt_fingerprint_take(&conversion, 1, &read, &error));
    assert_true(zt_digest_equal(&taken.digest, &read.digest));
    zt_projection_free(projection);
    written_free(&digested);
    written_free(&plain);
}

/* --- plans --- */

TEST(a_plan_finds_every_position)
{
    struct written from = {0};
    struct zt_projection *made = NULL;
    struct zt_file_plan *plan = NULL;

    written_plain(&from);
    assert_ok(zt_model_project(from.model, ZT_TARGET_MAG, &made, &error));
    assert_ok(zt_file_plan_make(made, NULL, &plan, &error));
    for (uint64_t offset = 0; offset < plan->length; offset++) {
        size_t found = zt_file_plan_find(plan, offset);

        assert_true(found < plan->piece_count);
        assert_true(offset < plan->pieces[found].offset + plan->pieces[found].length);
        assert_true(found == 0 ||
                    plan->pieces[found - 1].offset + plan->pieces[found - 1].length <= offset);
    }
    assert_true(zt_file_plan_find(plan, plan->length) == plan->piece_count);
    zt_file_plan_free(plan);
    zt_projection_free(made);
    written_free(&from);
}

TEST(a_plan_has_a_bound)
{
    static const char manifest[] = FILE_OF_TWO(
        "{'shape':[4611686018427387904],'format':'dense','components':{'data':{'dtype':'u8','"
        "offset':64,'length':9,'encoding':'zstd','uncompressed_length':4611686018427387904}}}");
    struct written written = {0};
    struct zt_projection *made = NULL;
    struct zt_file_plan *plan = NULL;

    written_from_text(&written, 64, manifest);
    assert_ok(zt_model_project(written.model, ZT_TARGET_SAFETENSORS, &made, &error));
    assert_int_equal(zt_file_plan_make(made, NULL, &plan, &error), ZT_LIMIT);
    assert_string_equal(error.object, "y");
    assert_null(plan);
    zt_projection_free(made);
    written_free(&written);
}

/* Plans a file of one component of INT64_MAX - missing bytes, of a type that every target has. */
static enum zt_status plan_almost_all(enum zt_target target, uint64_t missing)
{
    uint64_t length = (uint64_t)INT64_MAX - missing;
    struct zt_fingerprint fingerprint = {.length = length};
    struct written written = {0};
    struct zt_projection *made = NULL;
    struct zt_file_plan *plan = NULL;
    char manifest[512];
    enum zt_status status;

    snprintf(manifest, sizeof(manifest),
             "{'version':'1.2.0','objects':{'x':{'shape':[%" PRIu64
             "],'format':'dense','components':{'data':{'dtype':'bool','offset':64,'length':9,'"
             "encoding':'zstd','uncompressed_length':%" PRIu64 "}}}}}",
             length, length);
    written_from_text(&written, 64, manifest);
    assert_ok(zt_model_project(written.model, target, &made, &error));
    zt_target_fingerprint(target, &fingerprint.digest.algorithm);
    zt_error_clear(&error);
    status = zt_file_plan_make(made, &fingerprint, &plan, &error);
    assert_true(status == ZT_OK || status == ZT_LIMIT);
    assert_true(status != ZT_OK || plan->length <= INT64_MAX);
    zt_file_plan_free(plan);
    zt_projection_free(made);
    written_free(&written);
    return status;
}

/* The component fits alone, but not with its padding and the format's own bytes. */
TEST(a_plan_of_almost_the_bound_is_refused)
{
    static const enum zt_target all[] = {ZT_TARGET_ZT1, ZT_TARGET_ZT2_CANONICAL,
                                         ZT_TARGET_MAG, ZT_TARGET_SAFETENSORS,
                                         ZT_TARGET_NPZ, ZT_TARGET_NPY};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        bool fits = false;

        for (uint64_t missing = 0; missing < 300000; missing += missing < 300 ? 1 : 997) {
            enum zt_status status = plan_almost_all(all[i], missing);

            assert_true(missing >= 8 || status == ZT_LIMIT);
            assert_true(!fits || status == ZT_OK);
            fits = status == ZT_OK;
        }
        assert_true(fits);
    }
}

/* A streamed conversion equals the plan made from the same fingerprints. */
TEST(a_stream_and_a_plan_of_zt1_are_the_same)
{
    struct written from = {0};
    struct zt_conversion conversion;
    struct zt_projection *made = NULL;
    struct zt_file_plan *plan = NULL;
    struct zt_fingerprint *fingerprints = NULL;
    struct zt_buffer bytes = {0};
    const struct zt_piece *end;

    written_plain(&from);
    assert_ok(zt_model_project(from.model, ZT_TARGET_ZT1, &made, &error));
    conversion =
        (struct zt_conversion){.projection = made, .source = from.model, .files = &from.source};
    assert_ok(zt_fingerprints_take(&conversion, &fingerprints, &error));
    assert_ok(zt_file_plan_make(made, fingerprints, &plan, &error));
    assert_ok(written_convert(&from, ZT_TARGET_ZT1, NULL, &bytes, &error));
    assert_true(plan->length == bytes.length);
    end = &plan->pieces[plan->piece_count - 1];
    assert_memory_equal(bytes.bytes + end->offset, plan->added + end->added_at,
                        (size_t)end->length);
    zt_buffer_free(&bytes);
    free(fingerprints);
    zt_file_plan_free(plan);
    zt_projection_free(made);
    written_free(&from);
}
