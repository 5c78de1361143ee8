/* Digests: published vectors, spellings, unknown algorithms and impossible digests. */
#include "tests.h"

#include <stdio.h>
#include <string.h>

#include "zt/digest.h"

static void digest_of(enum zt_digest_algorithm algorithm, const void *bytes, size_t length,
                      char *out_text)
{
    struct zt_hasher *hasher = NULL;
    struct zt_digest digest;

    assert_ok(zt_hasher_new(algorithm, &hasher));
    /* In uneven pieces: an update must not depend on where the pieces end. */
    for (size_t at = 0, part = 1; at < length; at += part, part = part * 3 + 1) {
        part = part < length - at ? part : length - at;
        zt_hasher_update(hasher, (const char *)bytes + at, part);
    }
    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    zt_digest_format(&digest, out_text);
}

static void assert_digest(enum zt_digest_algorithm algorithm, const char *input,
                          const char *expected)
{
    char text[ZT_DIGEST_TEXT_SIZE];

    digest_of(algorithm, input, strlen(input), text);
    assert_string_equal(text, expected);
}

TEST(hashers_give_the_published_vectors)
{
    assert_digest(ZT_DIGEST_CRC32C, "", "crc32c:0x00000000");
    assert_digest(ZT_DIGEST_CRC32C, "123456789", "crc32c:0xE3069283");
    assert_digest(ZT_DIGEST_CRC32, "123456789", "crc32:cbf43926");
    assert_digest(ZT_DIGEST_XXH3, "", "xxh3:2d06800538d394c2");
    assert_digest(ZT_DIGEST_XXH3, "abc", "xxh3:78af5f94892f3950");
    assert_digest(ZT_DIGEST_SHA256, "",
                  "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_digest(ZT_DIGEST_SHA256, "abc",
                  "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_digest(ZT_DIGEST_SHA1, "abc", "sha1:a9993e364706816aba3e25717850c26c9cd0d89d");
    assert_digest(ZT_DIGEST_MD5, "abc", "md5:900150983cd24fb0d6963f7d28e17f72");
    assert_digest(ZT_DIGEST_CRC64, "", "crc64:0000000000000000");
    assert_digest(ZT_DIGEST_CRC64, "123456789", "crc64:ae8b14860a799888");
    assert_digest(ZT_DIGEST_SHA512, "abc",
                  "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                  "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f");
}

TEST(one_shot_functions_agree_with_the_hashers)
{
    static uint8_t bytes[100000];
    char text[ZT_DIGEST_TEXT_SIZE], expected[ZT_DIGEST_TEXT_SIZE];
    uint64_t words[2];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 31 + i / 251);
    snprintf(expected, sizeof(expected), "crc32c:0x%08X", zt_crc32c(0, bytes, sizeof(bytes)));
    digest_of(ZT_DIGEST_CRC32C, bytes, sizeof(bytes), text);
    assert_string_equal(text, expected);
    assert_int_equal(zt_crc32c(zt_crc32c(0, bytes, 777), bytes + 777, sizeof(bytes) - 777),
                     zt_crc32c(0, bytes, sizeof(bytes)));
    snprintf(expected, sizeof(expected), "xxh3:%016llx",
             (unsigned long long)zt_xxh3(bytes, sizeof(bytes)));
    digest_of(ZT_DIGEST_XXH3, bytes, sizeof(bytes), text);
    assert_string_equal(text, expected);
    zt_xxh3_128("", 0, words);
    assert_true(words[0] == 0x99aa06d3014798d8 && words[1] == 0x6001c324468d497f);
}

static void assert_same_digest(const char *spelling, const char *normal)
{
    struct zt_digest digest;
    char text[ZT_DIGEST_TEXT_SIZE];

    assert_ok(zt_digest_parse(zt_text_from(spelling), &digest, NULL));
    zt_digest_format(&digest, text);
    assert_string_equal(text, normal);
}

TEST(parse_takes_every_spelling_of_crc32c)
{
    assert_same_digest("crc32c:0x0000ABCD", "crc32c:0x0000ABCD");
    assert_same_digest("crc32c:0X0000abcd", "crc32c:0x0000ABCD");
    assert_same_digest("crc32c:abcd", "crc32c:0x0000ABCD");
    assert_same_digest("crc32c:ABC", "crc32c:0x00000ABC");
    assert_same_digest("crc32c:0xe3069283", "crc32c:0xE3069283");
    assert_same_digest("crc32c:0", "crc32c:0x00000000");
}

TEST(parse_takes_hex_of_any_case)
{
    assert_same_digest("sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
                       "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_same_digest("xxh3:78AF5F94892F3950", "xxh3:78af5f94892f3950");
}

static void assert_parse_fails(const char *text, enum zt_status status)
{
    struct zt_digest digest, before;
    struct zt_error error;

    memset(&digest, 0x5a, sizeof(digest));
    before = digest;
    zt_error_clear(&error);
    assert_int_equal(zt_digest_parse(zt_text_from(text), &digest, &error), status);
    assert_int_equal(error.status, status);
    assert_memory_equal(&before, &digest, sizeof(digest));
}

TEST(parse_calls_unknown_algorithms_unsupported)
{
    static const char *const texts[] = {
        "",
        ":",
        "sha256",
        "crc32c 00",
        "md5:d41d8cd98f00b204e9800998ecf8427e",
        "crc32:CBF43926",
        "sha512:00",
        "blake3:00",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        assert_parse_fails(texts[i], ZT_UNSUPPORTED);
}

TEST(parse_calls_impossible_digests_corrupt)
{
    static const char *const texts[] = {
        "sha256:",
        "sha256:00",
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a",
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015add",
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ag",
        "SHA256:zz",
        "xxh3:1",
        "xxh3:78af5f94892f395",
        "xxh3:0x78af5f94892f39",
        "crc32c:",
        "crc32c:0x",
        "crc32c:0x123456789",
        "crc32c:12g4",
        "crc32c:xyz",
        "crc32c:-1",
    };
    enum zt_digest_algorithm algorithm;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        assert_parse_fails(texts[i], ZT_CORRUPT);
        assert_true(zt_digest_algorithm(zt_text_from(texts[i]), &algorithm));
    }
    assert_true(zt_digest_algorithm(zt_text_from("crc32c:xyz"), &algorithm));
    assert_int_equal(algorithm, ZT_DIGEST_CRC32C);
    assert_false(zt_digest_algorithm(zt_text_from("md5:00"), &algorithm));
}

TEST(equal_compares_algorithm_and_bytes)
{
    struct zt_digest a, b;

    assert_ok(zt_digest_parse(zt_text_from("crc32c:0x01"), &a, NULL));
    assert_ok(zt_digest_parse(zt_text_from("crc32c:1"), &b, NULL));
    assert_true(zt_digest_equal(&a, &b));
    for (unsigned i = 0; i < a.length_bytes; i++) {
        b = a;
        b.bytes[i] ^= 1;
        assert_false(zt_digest_equal(&a, &b));
    }
    b = a;
    b.length_bytes = 3;
    assert_false(zt_digest_equal(&a, &b));
    b = a;
    b.algorithm = ZT_DIGEST_CRC32;
    assert_false(zt_digest_equal(&a, &b));
}
