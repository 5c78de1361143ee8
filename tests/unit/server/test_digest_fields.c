/* Digest fields and the structured fields they are written as. */
#include "tests.h"

#include "http/fields/digest_fields.h"
#include "http/fields/structured.h"

/* SHA-256 and SHA-512 of nothing. */
#define SHA256 "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
#define SHA512 \
    "z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="

static const uint8_t sha256_bytes[32] = {
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
    0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55};

TEST(a_digest_is_written_as_a_byte_sequence)
{
    char text[DIGEST_FIELD_SIZE];

    digest_field_format(sha256_bytes, text);
    assert_string_equal(text, "sha-256=:" SHA256 ":");
}

TEST(a_written_digest_is_read_back)
{
    uint8_t bytes[32];
    char text[DIGEST_FIELD_SIZE];
    struct digest_field field;

    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (uint8_t)(255 - i * 7);
    digest_field_format(bytes, text);
    assert_true(digest_field_parse(text, &field));
    assert_true(field.has_sha256);
    assert_false(field.has_sha512);
    assert_memory_equal(field.sha256, bytes, 32);
}

TEST(both_algorithms_are_read_and_others_skipped)
{
    struct digest_field field;

    assert_true(
        digest_field_parse("md5=:AAAA:, sha-512=:" SHA512 ":;q=1 ,\tsha-256=:" SHA256 ":", &field));
    assert_true(field.has_sha256);
    assert_true(field.has_sha512);
    assert_memory_equal(field.sha256, sha256_bytes, 32);
    assert_int_equal(field.sha512[0], 0xcf);
    assert_int_equal(field.sha512[63], 0x3e);
    assert_true(digest_field_parse(
        "unixsum=:GQU=:, x=1.5, y=token/1, z=\"a\\\"b\", l=(1 2);p, b=?1, k", &field));
    assert_false(field.has_sha256);
    assert_true(digest_field_parse("", &field));
}

TEST(padding_may_be_left_out)
{
    struct digest_field field;

    assert_true(
        digest_field_parse("sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU:", &field));
    assert_memory_equal(field.sha256, sha256_bytes, 32);
}

TEST(a_malformed_field_is_refused)
{
    static const char *const texts[] = {"sha-256=" SHA256,
                                        "sha-256=:" SHA256,
                                        "sha-256=:AAAA:",
                                        "sha-256=::",
                                        "sha-256=:" SHA512 ":",
                                        "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuF=U:",
                                        "sha-256=:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=:",
                                        "sha-256=\"x\"",
                                        "sha-256=10",
                                        "sha-256",
                                        "sha-512=:" SHA256 ":",
                                        "SHA-256=:" SHA256 ":",
                                        "sha-256=:" SHA256 ":,",
                                        "sha-256=:" SHA256 ":;",
                                        ", sha-256=:" SHA256 ":",
                                        "sha-256=:" SHA256 ": x",
                                        "sha-256 =:" SHA256 ":",
                                        "x=(1",
                                        "x=(1;)",
                                        "x=(\"a\"\"b\")",
                                        "x=:AA",
                                        "x=:AA!",
                                        "x=\"",
                                        "x=\"\\x\"",
                                        "x=?2",
                                        "x=",
                                        "x=-",
                                        "x=1.",
                                        "x=1.2345",
                                        "x=1234567890123456",
                                        "x=1234567890123.1",
                                        "=1"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct digest_field field = {.has_sha256 = true, .sha256 = {42}};

        assert_false(digest_field_parse(texts[i], &field));
        assert_int_equal(field.sha256[0], 42);
    }
}

TEST(wanted_digests_have_a_weight)
{
    assert_int_equal(digest_field_wants_sha256(NULL), 0);
    assert_int_equal(digest_field_wants_sha256("sha-256=10"), 10);
    assert_int_equal(digest_field_wants_sha256("sha-512=3, sha-256=1, unixsum=0"), 1);
    assert_int_equal(digest_field_wants_sha256("sha-256=0"), 0);
    assert_int_equal(digest_field_wants_sha256("sha-512=10"), 0);
    assert_int_equal(digest_field_wants_sha256("sha-256=1, sha-256=2"), 2);
}

TEST(malformed_wishes_are_ignored)
{
    static const char *const texts[] = {
        "",           "sha-256",     "sha-256=11", "sha-256=-1",   "sha-256=1.0",
        "sha-256=ok", "sha-256=10,", "10",         "sha-256=10 5", "sha-256:10"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(digest_field_wants_sha256(texts[i]), 0);
}

TEST(members_have_a_key_and_a_kind)
{
    struct structured_reader reader;
    struct structured_member member;
    uint8_t bytes[2];

    structured_begin(&reader, "  a=-12;x=\"y\", *b.c=:AQI=:");
    assert_int_equal(structured_next(&reader, &member), STRUCTURED_MEMBER);
    assert_int_equal(member.kind, STRUCTURED_INTEGER);
    assert_true(member.integer == -12);
    assert_int_equal(structured_next(&reader, &member), STRUCTURED_MEMBER);
    assert_int_equal(member.key.length, 4);
    assert_memory_equal(member.key.bytes, "*b.c", 4);
    assert_true(structured_decode(member.text, bytes, 2));
    assert_memory_equal(bytes, "\x01\x02", 2);
    assert_int_equal(structured_next(&reader, &member), STRUCTURED_END);
}
