/* Converting: results read back equal, conversions are deterministic, and damaged or false sources
 * fail. */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "container.h"
#include "handmade.h"
#include "written.h"
#include "zt/verify.h"

#define DENSE(dtype, at, length, shape)                                                          \
    "{'shape':" shape ",'format':'dense','components':{'data':{'dtype':'" dtype "','offset':" at \
    ",'length':" length "}}}"
#define FILE_OF_TWO(object) "{'version':'1.2.0','objects':{'x':" object ",'y':" object "}}"

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

/* --- what is written --- */

TEST(every_target_reads_equal)
{
    for (size_t i = 0; i < TARGETS; i++) {
        struct written made = {0};

        written_make(&made, &plain, targets[i], NULL);
        assert_same_model(&plain, &made);
        written_free(&made);
    }
}

TEST(every_pair_of_targets_round_trips)
{
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

TEST(the_same_model_is_the_same_bytes)
{
    const struct zt_writer_options zstd = {.zstd = true};

    for (size_t i = 0; i < TARGETS; i++) {
        bool compressed = targets[i] == ZT_TARGET_ZT1 || targets[i] == ZT_TARGET_ZT2;

        for (unsigned packed = 0; packed <= (compressed ? 1u : 0u); packed++) {
            struct zt_buffer once = {0};
            struct zt_buffer twice = {0};

            assert_ok(written_convert(&plain, targets[i], packed ? &zstd : NULL, &once, &error));
            assert_ok(written_convert(&plain, targets[i], packed ? &zstd : NULL, &twice, &error));
            assert_int_equal(once.length, twice.length);
            assert_memory_equal(once.bytes, twice.bytes, once.length);
            zt_buffer_free(&once);
            zt_buffer_free(&twice);
        }
    }
}

TEST(canonical_is_canonical_and_shares)
{
    struct written made = {0};

    written_make(&made, &plain, ZT_TARGET_ZT2_CANONICAL, NULL);
    assert_ok(zt_canonical_check(made.model, made.source, &error));
    assert_true(made.model->components[0].offset == 65536);
    assert_true(made.model->components[1].offset == 131072);
    assert_true(made.model->components[2].offset == 65536); /* the bytes of "a" again */
    assert_true(made.model->manifest_offset == 4 * UINT64_C(65536));
    written_free(&made);
}

TEST(zt1_through_zt2_is_equal_bytes)
{
    static const char manifest[] =
        "{'version':'1.2.0','attributes':{'b':1,'aa':[1.5,null,{'zz':-1,'y':h'00'}]},'objects':{'q'"
        ":{'shape':[2,2],'format':'sparse_csr','attributes':{'long':1,'s':true},'components':{'"
        "values':{'dtype':'u8','offset':64,'length':0},'indices':{'dtype':'u32','offset':64,'"
        "length':0},'indptr':{'dtype':'i16','offset':512,'length':6}}},'flags':" DENSE(
            "bool", "64", "2",
            "[2]") ",'other':{'shape':[3],'format':'house.made/"
                   "7','components':{'x':{'dtype':'u8','type':'my','offset':192,'length':5}}}}}";
    struct container container = {0};
    struct zt_buffer bytes = {0};
    struct written source = {0};
    struct written first = {0};
    struct written second = {0};
    struct written again = {0};

    container_make(&container, CONTAINER_ZT1, 512, manifest);
    memset(container.bytes + CONTAINER_DATA, 0, 512);
    zt_buffer_append(&bytes, container.bytes, container.length);
    container_free(&container);
    written_open(&source, bytes);
    written_make(&first, &source, ZT_TARGET_ZT1, NULL);
    written_make(&second, &first, ZT_TARGET_ZT2_CANONICAL, NULL);
    assert_ok(zt_canonical_check(second.model, second.source, &error));
    written_make(&again, &second, ZT_TARGET_ZT1, NULL);
    assert_int_equal(first.bytes.length, again.bytes.length);
    assert_memory_equal(first.bytes.bytes, again.bytes.bytes, first.bytes.length);
    written_free(&source);
    written_free(&first);
    written_free(&second);
    written_free(&again);
}

TEST(zstd_decodes_and_states_its_decoded_length)
{
    const struct zt_writer_options zstd = {.zstd = true, .zstd_level = 1};
    static const enum zt_encoding encodings[] = {ZT_ENCODING_ZSTD, ZT_ENCODING_ZSTD_SEEKABLE};

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
        assert_ok(zt_component_check(made.model, &made.model->components[1], made.source, NULL,
                                     &check, &error));
        assert_int_equal(check.verdict, ZT_VERDICT_VERIFIED);
        written_free(&made);
    }
}

TEST(npz_data_lies_at_multiples_of_64)
{
    struct written made = {0};

    written_make(&made, &plain, ZT_TARGET_NPZ, NULL);
    for (uint32_t i = 0; i < made.model->component_count; i++)
        assert_true(made.model->components[i].offset % 64 == 0);
    written_free(&made);
}

/* --- sources that are not what they say --- */

TEST(an_unknown_length_is_found_and_checked)
{
    static const enum zt_target zt[] = {ZT_TARGET_ZT1, ZT_TARGET_ZT2, ZT_TARGET_ZT2_CANONICAL};
    struct written written = {0};
    struct zt_buffer out = {0};

    for (unsigned i = 0; i < 3; i++) {
        struct written made = {0};
        uint8_t values[8];

        written_unknown_length(&written, 2);
        assert_true(written.model->components[1].decoded_length == ZT_LENGTH_UNKNOWN);
        written_make(&made, &written, zt[i], NULL);
        assert_int_equal(written_decode(&made, "x", "values", values, sizeof(values)), 2);
        written_free(&made);
        written_free(&written);
        written_unknown_length(&written, 3);
        assert_int_equal(written_convert(&written, zt[i], NULL, &out, &error), ZT_INVALID);
        assert_string_equal(error.object, "x");
        written_free(&written);
    }
}

/* The safetensors writer never asks for an empty component, but it must still be decoded. */
TEST(a_damaged_component_of_no_bytes_fails)
{
    static const char manifest[] =
        FILE_OF_TWO("{'shape':[0],'format':'dense','components':{'data':{'dtype':'u8','offset':64,'"
                    "length':9,'encoding':'zstd','uncompressed_length':0}}}");
    struct written written = {0};
    struct zt_buffer out = {0};

    written_from_text(&written, 64, manifest);
    for (size_t i = 0; i < TARGETS; i++)
        if (targets[i] != ZT_TARGET_MAG)
            assert_int_equal(written_convert(&written, targets[i], NULL, &out, &error), ZT_CORRUPT);
    written_free(&written);
}

TEST(a_file_that_changes_between_two_readings_fails)
{
    static const enum zt_target twice[] = {ZT_TARGET_NPZ, ZT_TARGET_ZT2_CANONICAL};
    struct zt_source *files[] = {plain.source};

    for (unsigned i = 0; i < 2; i++) {
        struct zt_conversion conversion = {.source = plain.model, .files = files};
        struct zt_projection *made = NULL;
        struct zt_fingerprint *fingerprints = NULL;
        struct failing_sink sunk = {0};
        const struct zt_sink sink = failing_sink(&sunk);

        assert_ok(zt_model_project(plain.model, twice[i], &made, &error));
        conversion.projection = made;
        assert_ok(zt_fingerprints_take(&conversion, &fingerprints, &error));
        fingerprints[1].digest.bytes[0] ^= 1;
        conversion.options.fingerprints = fingerprints;
        assert_int_equal(zt_model_convert(&conversion, &sink, &error), ZT_CORRUPT);
        assert_string_equal(error.object, "b");
        zt_buffer_free(&sunk.bytes);
        zt_projection_free(made);
        free(fingerprints);
    }
}

/* The fingerprints are of equal data; since then one component became the start of the other. */
TEST(a_component_that_got_shorter_is_not_shared)
{
    struct zt_fingerprint fingerprints[] = {{.length = 24, .same_as = 0},
                                            {.length = 24, .same_as = 1}};
    struct written written = {0};
    struct zt_projection *made = NULL;
    struct zt_conversion conversion;

    written_from_text(
        &written, 512,
        "{'version':'1.2.0','objects':{'x':{'shape':[24],'format':'dense','components':{'data':{'"
        "dtype':'u8','offset':64,'length':24}}},'y':{'shape':[8],'format':'dense','components':{'"
        "data':{'dtype':'u8','offset':320,'length':8}}}}}");
    memcpy(written.bytes.bytes + 320, written.bytes.bytes + 64, 8);
    assert_ok(zt_model_project(written.model, ZT_TARGET_ZT2_CANONICAL, &made, &error));
    conversion = (struct zt_conversion){
        .projection = made, .source = written.model, .files = &written.source};
    assert_ok(zt_fingerprints_match(&conversion, fingerprints, &error));
    assert_int_equal(fingerprints[0].same_as, 0);
    assert_int_equal(fingerprints[1].same_as, 1);
    zt_projection_free(made);
    written_free(&written);
}

TEST(a_negative_index_is_not_widened)
{
    struct written written = {0};
    struct zt_projection *made = NULL;
    struct zt_fingerprint *fingerprints = NULL;
    struct zt_conversion conversion;

    /* byte n of the data is n: the fourth word, of bytes 134 and 135, is negative */
    written_from_text(&written, 256,
                      "{'version':'1.1.0','objects':{'x':{'shape':[9],'format':'sparse_coo','"
                      "components':{'coords':{'dtype':'i16','offset':192,'length':8},'values':{'"
                      "dtype':'u8','offset':64,'length':4}}}}}");
    conversion = (struct zt_conversion){.source = written.model, .files = &written.source};
    assert_ok(zt_model_project(written.model, ZT_TARGET_ZT1, &made, &error));
    conversion.projection = made;
    assert_int_equal(zt_fingerprints_take(&conversion, &fingerprints, &error), ZT_INVALID);
    assert_string_equal(error.component, "coords");
    zt_projection_free(made);
    written_free(&written);
}

TEST(content_that_only_the_target_forbids_is_not_written)
{
    static const enum zt_target refusing[] = {ZT_TARGET_ZT2_CANONICAL, ZT_TARGET_ZT2};
    struct written written = {0};
    struct zt_buffer bytes = {0};

    /* byte n of the data is n mod 251: the last coordinate is the first one again */
    written_from_text(&written, 256,
                      "{'version':'1.1.0','objects':{'x':{'shape':[251],'format':'sparse_coo','"
                      "components':{'coords':{'dtype':'u8','offset':64,'length':252},'values':{'"
                      "dtype':'u8','offset':64,'length':252}}}}}");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(written_convert(&written, refusing[i], NULL, &bytes, &error),
                         ZT_UNSUPPORTED);
        assert_failure(&error, ZT_UNSUPPORTED, "zt2 §6 LayoutData", 64);
        assert_string_equal(error.object, "x");
        assert_string_equal(error.component, "coords");
        assert_int_equal(bytes.length, 0);
    }
    assert_ok(written_convert(&written, ZT_TARGET_ZT1, NULL, &bytes, &error));
    zt_buffer_free(&bytes);
    written_free(&written);
}

/* --- damaged sources --- */

#define X_OF(data)                                                                                \
    "{'version':'1.2.0','objects':{'x':{'shape':[4],'format':'dense','components':{'data':{" data \
    "}}}}}"
#define FOUR_BYTES "'dtype':'u8','offset':64,'length':4"
#define NO_FRAME   "'dtype':'u8','offset':64,'length':9,'encoding':'zstd','uncompressed_length':4"

static void assert_not_converted(const char *manifest, enum zt_target target, enum zt_status wanted)
{
    struct written written = {0};
    struct zt_buffer out = {0};

    written_from_text(&written, 64, manifest);
    assert_int_equal(written_convert(&written, target, NULL, &out, &error), wanted);
    assert_string_equal(error.object, "x");
    assert_string_equal(error.component, "data");
    assert_int_equal(out.length, 0);
    written_free(&written);
}

TEST(a_wrong_digest_ends_the_conversion)
{
    static const char *const manifests[] = {X_OF(FOUR_BYTES ",'digest':'crc32c:0x1'"),
                                            X_OF(FOUR_BYTES ",'digest':'sha256:00'")};

    for (size_t i = 0; i < 2; i++) {
        assert_not_converted(manifests[i], ZT_TARGET_ZT1, ZT_CORRUPT);
        assert_not_converted(manifests[i], ZT_TARGET_ZT2_CANONICAL, ZT_CORRUPT);
        assert_not_converted(manifests[i], ZT_TARGET_SAFETENSORS, ZT_CORRUPT);
    }
}

TEST(data_that_does_not_decode_ends_the_conversion)
{
    assert_not_converted(X_OF(NO_FRAME), ZT_TARGET_ZT1, ZT_CORRUPT);
    assert_not_converted(X_OF(NO_FRAME ",'digest':'crc32c:0x1'"), ZT_TARGET_SAFETENSORS,
                         ZT_CORRUPT);
}

TEST(content_that_breaks_its_type_ends_the_conversion)
{
    assert_not_converted(X_OF("'dtype':'bool','offset':64,'length':4"), ZT_TARGET_ZT2, ZT_INVALID);
}

AROUND_ALL_TESTS(make_plain, free_plain)
