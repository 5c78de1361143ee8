/* zTensor 2's canonical form: files that have it, and each way to violate it. */
#include "support.h"

#include <string.h>

#include "zt/verify.h"
#include "zt2_file.h"

#define BLOB 65536
/* XXH3-64 of nothing, and of eight bytes 1 and 2. */
#define EMPTY "xxh3:2d06800538d394c2"
#define ONES  ",\"digest\":\"xxh3:71e702e0b0fb1d66\""
#define TWOS  ",\"digest\":\"xxh3:e4952c07c3685efe\""

static struct zt2_file file;
static struct zt_error error;

static enum zt_status check(void)
{
    struct zt_model *model;
    struct zt_source *source;
    enum zt_status status;

    zt2_file_seal(&file);
    zt_error_clear(&error);
    assert_int_equal(zt2_file_open(&file, &model, &error), ZT_OK);
    assert_int_equal(zt_source_from_memory(file.bytes, file.length, &source, &error), ZT_OK);
    status = zt_canonical_check(model, source, &error);
    zt_source_close(source);
    zt_model_free(model);
    return status;
}

/* A file with eight bytes of each fill at BLOB and 2 BLOB. */
static void make_two(const char *manifest, uint8_t first, uint8_t second)
{
    zt2_file_make(&file, 3 * BLOB, manifest);
    memset(file.bytes + BLOB, first, 8);
    memset(file.bytes + 2L * BLOB, second, 8);
}

#define PART(at, more)     "{\"data\":{\"blob\":[" at ",8],\"dtype\":\"u8\"" more "}}"
#define OBJECT(at, digest) "{\"parts\":" PART(at, digest) ",\"shape\":[8],\"layout\":\"dense\"}"
#define TWO                "{\"objects\":{\"a\":" OBJECT("65536", ONES) ",\"b\":" OBJECT("131072", TWOS) "}}"

static void refused(const char *rule, uint64_t offset)
{
    assert_int_equal(check(), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, rule, offset);
}

/* The position of text in the manifest, counted from 0 for the n-th time it is there. */
static uint64_t position_of(const char *text, unsigned n)
{
    const uint8_t *at = file.bytes + file.manifest_offset;
    const uint8_t *end = file.bytes + file.length;

    for (;; at++) {
        at = memmem(at, (size_t)(end - at), text, strlen(text));
        assert_non_null(at);
        if (n-- == 0)
            return (uint64_t)(at - file.bytes);
    }
}

static void accepts_blobs_packed_in_the_order_of_names(void **state)
{
    (void)state;
    make_two(TWO, 1, 2);
    assert_int_equal(check(), ZT_OK);
}

static void orders_blobs_by_bytes_and_manifest_by_length(void **state)
{
    (void)state;
    /* "b" comes first in the manifest, being shorter; "aa" comes first in the file */
    make_two("{\"objects\":{\"b\":" OBJECT("131072", TWOS) ",\"aa\":" OBJECT("65536", ONES) "}}", 1,
             2);
    assert_int_equal(check(), ZT_OK);
}

static void accepts_an_empty_model_and_attributes(void **state)
{
    (void)state;
    zt2_file_make(&file, BLOB, "{\"objects\":{}}");
    assert_int_equal(check(), ZT_OK);
    zt2_file_make(&file, BLOB, "{\"objects\":{},\"attributes\":{\"k\":[1.5,null]}}");
    assert_int_equal(check(), ZT_OK);
}

static void accepts_one_blob_for_the_same_bytes(void **state)
{
    (void)state;
    zt2_file_make(
        &file, 2 * BLOB,
        "{\"objects\":{\"a\":" OBJECT("65536", ONES) ",\"b\":" OBJECT("65536", ONES) "}}");
    memset(file.bytes + BLOB, 1, 8);
    assert_int_equal(check(), ZT_OK);
}

static void parts_of_no_bytes_may_lie_anywhere(void **state)
{
    (void)state;
    zt2_file_make(&file, 2 * BLOB,
                  "{\"objects\":{\"a\":{\"parts\":{\"data\":{\"blob\":[4096,0],\"dtype\":\"f32\","
                  "\"digest\":\"" EMPTY "\"}},\"shape\":[0],\"layout\":\"dense\"},\"b\":" OBJECT(
                      "65536", ONES) ",\"c\":{\"parts\":{\"data\":{\"blob\":[65536,0],\"dtype\":"
                                     "\"f32\",\"digest\":\"" EMPTY
                                     "\"}},\"shape\":[0],\"layout\":\"dense\"}}}");
    memset(file.bytes + BLOB, 1, 8);
    assert_int_equal(check(), ZT_OK);
}

static void refuses_a_wrong_digest_of_nothing(void **state)
{
    (void)state;
    zt2_file_make(
        &file, BLOB,
        "{\"objects\":{\"a\":{\"parts\":{\"data\":{\"blob\":[65536,0],\"dtype\":\"f32\",\"digest\":"
        "\"xxh3:0000000000000000\"}},\"shape\":[0],\"layout\":\"dense\"}}}");
    refused("zt2 §7 Digest", position_of("data", 0));
}

static void refuses_blobs_out_of_order_or_place(void **state)
{
    (void)state;
    make_two("{\"objects\":{\"a\":" OBJECT("131072", ONES) ",\"b\":" OBJECT("65536", TWOS) "}}", 1,
             2);
    refused("zt2 §7 Placement", position_of("data", 0));
    assert_string_equal(error.object, "a");
    make_two("{\"objects\":{\"a\":" OBJECT("65536", ONES) ",\"b\":" OBJECT("135168", TWOS) "}}", 1,
             2);
    refused("zt2 §7 Placement", position_of("data", 1));
    assert_string_equal(error.object, "b");
}

static void refuses_a_blob_before_the_first_place(void **state)
{
    (void)state;
    make_two("{\"objects\":{\"a\":" OBJECT("65536", ONES) ",\"b\":" OBJECT("4096", ONES) "}}", 1,
             0);
    refused("zt2 §7 Placement", position_of("data", 1));
}

static void refuses_a_blob_that_nothing_refers_to(void **state)
{
    (void)state;
    zt2_file_make(&file, 3 * BLOB, "{\"objects\":{\"a\":" OBJECT("65536", ONES) "}}");
    memset(file.bytes + BLOB, 1, 8);
    refused("zt2 §7 Placement", 3 * BLOB);
}

static void refuses_bytes_between_manifest_and_footer(void **state)
{
    uint8_t hash[8];
    uint64_t value;
    struct zt_model *model;
    struct zt_source *source;

    (void)state;
    zt2_file_make(&file, BLOB,
                  "{\"objects\":{}} 0"); /* the footer is made to leave out the last byte */
    file.bytes[file.length - 32]--;
    value = zt_xxh3(file.bytes + BLOB, file.length - ZT2_FILE_FOOTER - BLOB - 1);
    for (int i = 0; i < 8; i++)
        hash[i] = (uint8_t)(value >> (8 * i));
    memcpy(file.bytes + file.length - 24, hash, 8);

    assert_int_equal(zt2_file_open(&file, &model, &error), ZT_OK);
    assert_int_equal(zt_source_from_memory(file.bytes, file.length, &source, &error), ZT_OK);
    assert_int_equal(zt_canonical_check(model, source, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §7 Unreferenced", file.length - ZT2_FILE_FOOTER - 1);
    zt_source_close(source);
    zt_model_free(model);
}

static void refuses_the_same_bytes_twice(void **state)
{
    (void)state;
    make_two("{\"objects\":{\"a\":" OBJECT("65536", ONES) ",\"b\":" OBJECT("131072", ONES) "}}", 1,
             1);
    refused("zt2 §7 Sharing", position_of("data", 1));
    assert_string_equal(error.object, "b");
}

static void refuses_the_same_bytes_twice_with_others_between(void **state)
{
    (void)state;
    zt2_file_make(&file, 4 * BLOB,
                  "{\"objects\":{\"a\":" OBJECT("65536", ONES) ",\"b\":" OBJECT(
                      "131072", TWOS) ",\"c\":" OBJECT("196608", ONES) "}}");
    memset(file.bytes + BLOB, 1, 8);
    memset(file.bytes + 2L * BLOB, 2, 8);
    memset(file.bytes + 3L * BLOB, 1, 8);
    refused("zt2 §7 Sharing", position_of("data", 2));
}

static void refuses_dirty_padding_and_the_reserved_word(void **state)
{
    static const size_t places[] = {8, BLOB - 1, BLOB + 8, 2 * BLOB + 8, 3 * BLOB - 1};

    (void)state;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        make_two(TWO, 1, 2);
        file.bytes[places[i]] = 0x80;
        refused("zt2 §7 Padding", places[i]);
    }
    make_two(TWO, 1, 2);
    file.bytes[file.length - 9] = 1;
    refused("zt2 §7 Reserved", file.length - 9);
}

static void refuses_data_that_is_not_its_digest(void **state)
{
    (void)state;
    make_two(TWO, 1, 2);
    file.bytes[2 * BLOB + 7] ^= 1;
    refused("zt2 §7 Digest", position_of("data", 1));
}

static void refuses_two_digests_of_one_blob(void **state)
{
    (void)state;
    make_two("{\"objects\":{\"a\":" OBJECT("65536", ONES) ",\"b\":" OBJECT("65536", TWOS) "}}", 1,
             2);
    refused("zt2 §7 Digest", position_of("data", 1));
}

static void refuses_digests_missing_or_by_another_algorithm(void **state)
{
    (void)state;
    zt2_file_make(&file, 2 * BLOB, "{\"objects\":{\"a\":" OBJECT("65536", "") "}}");
    refused("zt2 §7 Digest", position_of("data", 0));
    zt2_file_make(&file, 2 * BLOB,
                  "{\"objects\":{\"a\":" OBJECT("65536", ",\"digest\":\"crc32c:00000000\"") "}}");
    refused("zt2 §7 Digest", position_of("data", 0));
    zt2_file_make(&file, 2 * BLOB,
                  "{\"objects\":{\"a\":" OBJECT("65536", ",\"digest\":\"xxh3:00\"") "}}");
    refused("zt2 §7 Digest", position_of("data", 0));
}

static void refuses_encoded_parts(void **state)
{
    (void)state;
    zt2_file_make(
        &file, 2 * BLOB,
        "{\"objects\":{\"a\":" OBJECT("65536", ",\"digest\":\"xxh3:0000000000000000\",\"encoding\":"
                                               "\"zt.zstd-seekable/1\",\"decoded_length\":8") "}}");
    refused("zt2 §7 Encoding", position_of("data", 0));
}

static void refuses_shards(void **state)
{
    (void)state;
    zt2_file_make(&file, BLOB,
                  "{\"shards\":{@\"s\":{\"size\":48,\"digest\":\"xxh3:00\"}},\"objects\":{}}");
    refused("zt2 §7 Shards", file.mark);
}

static void refuses_what_a_fresh_manifest_would_not_hold(void **state)
{
    (void)state;
    zt2_file_make(&file, BLOB, "{\"x\":1,\"objects\":{}}");
    refused("zt2 §7 Manifest", BLOB);
    zt2_file_make(&file, BLOB, "{\"shards\":{},\"objects\":{}}");
    refused("zt2 §7 Manifest", BLOB);
    make_two("{\"objects\":{\"a\":" OBJECT("65536", ONES
                                           ",\"future\":1") ",\"b\":" OBJECT("131072", TWOS) "}}",
             1, 2);
    refused("zt2 §7 Manifest",
            position_of("data", 0) + 4); /* the head of the part's map counts one more */
}

static void refuses_names_that_are_not_composed(void **state)
{
    (void)state;
    zt2_file_make(&file, BLOB, "{\"objects\":{},\"attributes\":{@\"e\xcc\x81\":1}}");
    refused("zt2 §7 Name", file.mark);
    zt2_file_make(&file, BLOB, "{\"objects\":{},\"attributes\":{\"\xc3\xa9\":{\"e\xcc\x81\":1}}}");
    assert_int_equal(check(), ZT_OK); /* composed; what is nested is not a name */
    zt2_file_make(&file, 2 * BLOB,
                  "{\"objects\":{@\"e\xcc\x81\":" OBJECT(
                      "65536", ",\"digest\":\"xxh3:0000000000000000\"") "}}");
    refused("zt2 §7 Name", file.mark);
}

static void is_asked_of_zt2_alone(void **state)
{
    const struct zt_model model = {.format = ZT_FORMAT_ZT1};

    (void)state;
    assert_int_equal(zt_canonical_check(&model, NULL, &error), ZT_ARGUMENT);
}

static int free_file(void **state)
{
    (void)state;
    zt2_file_free(&file);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_blobs_packed_in_the_order_of_names),
        cmocka_unit_test(orders_blobs_by_bytes_and_manifest_by_length),
        cmocka_unit_test(accepts_an_empty_model_and_attributes),
        cmocka_unit_test(accepts_one_blob_for_the_same_bytes),
        cmocka_unit_test(parts_of_no_bytes_may_lie_anywhere),
        cmocka_unit_test(refuses_a_wrong_digest_of_nothing),
        cmocka_unit_test(refuses_blobs_out_of_order_or_place),
        cmocka_unit_test(refuses_a_blob_before_the_first_place),
        cmocka_unit_test(refuses_a_blob_that_nothing_refers_to),
        cmocka_unit_test(refuses_bytes_between_manifest_and_footer),
        cmocka_unit_test(refuses_the_same_bytes_twice),
        cmocka_unit_test(refuses_the_same_bytes_twice_with_others_between),
        cmocka_unit_test(refuses_dirty_padding_and_the_reserved_word),
        cmocka_unit_test(refuses_data_that_is_not_its_digest),
        cmocka_unit_test(refuses_two_digests_of_one_blob),
        cmocka_unit_test(refuses_digests_missing_or_by_another_algorithm),
        cmocka_unit_test(refuses_encoded_parts),
        cmocka_unit_test(refuses_shards),
        cmocka_unit_test(refuses_what_a_fresh_manifest_would_not_hold),
        cmocka_unit_test(refuses_names_that_are_not_composed),
        cmocka_unit_test(is_asked_of_zt2_alone),
    };

    return cmocka_run_group_tests(tests, NULL, free_file);
}
