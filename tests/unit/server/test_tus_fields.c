/* The header fields of tus: what is read of them, and what is malformed. */
#include "tests.h"

#include <string.h>

#include "upload/tus/tus_fields.h"

TEST(numbers_are_digits_up_to_63_bits)
{
    static const char *const bad[] = {"",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "0x1",
                                      "1.0",
                                      "9223372036854775808",
                                      "18446744073709551616",
                                      "00000000000000000001"};
    uint64_t number = 7;

    assert_true(tus_number_parse("0", &number) && number == 0);
    assert_true(tus_number_parse("9223372036854775807", &number) && number == INT64_MAX);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(tus_number_parse(bad[i], &number));
    assert_int_equal(number, INT64_MAX);
}

TEST(metadata_gives_the_value_of_a_key)
{
    static const char *const fields[] = {"model YWJj", "a,b Yg==,model YWJj", "model YWJj , x",
                                         " model YWJj,modelx YQ=="};

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        char value[4];

        assert_int_equal(tus_metadata_find(fields[i], "model", value, sizeof(value)),
                         TUS_METADATA_FOUND);
        assert_string_equal(value, "abc");
    }
}

TEST(metadata_without_the_key_is_absent)
{
    static const char *const fields[] = {"", "Model YWJj", "mode YWJj", "modell YWJj"};
    char value[4];

    for (size_t i = 0; i < 4; i++)
        assert_int_equal(tus_metadata_find(fields[i], "model", value, sizeof(value)),
                         TUS_METADATA_ABSENT);
}

TEST(metadata_that_breaks_a_rule_is_malformed)
{
    static const char *const fields[] = {"model YWJ",             /* no padding */
                                         "model YW=j",            /* padding inside */
                                         "model YWJj,model YWJj", /* twice */
                                         "model YWJjZA==",        /* does not fit */
                                         "model YQAA",            /* NUL */
                                         "model  YWJj",           /* two blanks */
                                         "model YWJj,,x",         /* no key */
                                         ",model YWJj",
                                         "mod\x80l YWJj",
                                         "x Y,model YWJj",
                                         "model ===="};
    char value[4];

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        assert_int_equal(tus_metadata_find(fields[i], "model", value, sizeof(value)),
                         TUS_METADATA_MALFORMED);
}

TEST(checksums_are_read)
{
    struct zt_digest digest;

    assert_int_equal(tus_checksum_parse("sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=", &digest),
                     TUS_CHECKSUM_KNOWN);
    assert_int_equal(digest.algorithm, ZT_DIGEST_SHA1);
    assert_int_equal(digest.length_bytes, 20);
    assert_int_equal(digest.bytes[0], 0x2A);
    assert_int_equal(digest.bytes[19], 0xED);
    assert_int_equal(
        tus_checksum_parse("sha256 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", &digest),
        TUS_CHECKSUM_KNOWN);
    assert_int_equal(digest.algorithm, ZT_DIGEST_SHA256);
}

TEST(malformed_and_unknown_checksums_differ)
{
    static const char *const malformed[] = {"",
                                            "sha1",
                                            "sha1 ",
                                            "sha1 xx",
                                            "sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0",
                                            " Kq5sNclPz7QV2+lfQIuc6R7oRu0=",
                                            "sha1  Kq5sNclPz7QV2+lfQIuc6R7oRu0="};
    static const char *const unknown[] = {"md5 xx", "SHA1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=", "sha x",
                                          "sha11 x"};
    struct zt_digest digest;

    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
        assert_int_equal(tus_checksum_parse(malformed[i], &digest), TUS_CHECKSUM_MALFORMED);
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        assert_int_equal(tus_checksum_parse(unknown[i], &digest), TUS_CHECKSUM_UNKNOWN);
}

TEST(kinds_of_concatenation_are_exact)
{
    static const char *const malformed[] = {
        "",      "Partial", "partial ", "partial;",  "partial, partial",
        "final", "final;",  "final; ",  "final ;/x", "Final;/x"};
    const char *urls = NULL;

    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
        assert_int_equal(tus_concat_parse(malformed[i], &urls), TUS_CONCAT_MALFORMED);
    assert_int_equal(tus_concat_parse("partial", &urls), TUS_CONCAT_PART);
    assert_null(urls);
    assert_int_equal(tus_concat_parse("final;/a /b", &urls), TUS_CONCAT_FINAL);
    assert_string_equal(urls, "/a /b");
}

TEST(urls_of_uploads_give_ids_in_their_order)
{
    const char *at = " /v1/resumable/a  http://x/v1/resumable/b\tHTTPS://x:1/y/v1/resumable/c"
                     " //x/v1/resumable/d resumable/e ";
    struct zt_text id;

    for (const char *wanted = "abcde"; *wanted != '\0'; wanted++) {
        assert_true(tus_concat_next(&at, &id));
        assert_int_equal(id.length, 1);
        assert_int_equal(id.bytes[0], *wanted);
    }
    assert_false(tus_concat_next(&at, &id));
    assert_false(tus_concat_next(&at, &id));
}

TEST(urls_of_anything_else_give_no_ids)
{
    static const char *const others[] = {"a",
                                         "/a",
                                         "/resumable/a",
                                         "/v1/resumable",
                                         "/v1/resumable/",
                                         "v1/resumable/a",
                                         "xresumable/a",
                                         "/v1/uploads/a",
                                         "ftp://x/v1/resumable/a",
                                         "http:/v1/resumable/a",
                                         "/v1/resumable/a/b",
                                         "/V1/resumable/a"};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        const char *at = others[i];
        struct zt_text id;

        assert_true(tus_concat_next(&at, &id));
        assert_int_equal(id.length, 0);
        assert_false(tus_concat_next(&at, &id));
    }
}
