/* Authorization: Bearer. */
#include "tests.h"

#include "http/fields/authorization.h"

static struct header_field field_of(const char *name, const char *value)
{
    return (struct header_field){name, value, (uint32_t)strlen(name), (uint32_t)strlen(value)};
}

static enum authorization read_value(const char *value, struct zt_text *out_token)
{
    const struct header_field fields[] = {field_of("Host", "x"), field_of("authorization", value)};

    *out_token = (struct zt_text){NULL, 0};
    return authorization_read(fields, 2, out_token);
}

static void assert_token(const char *value, const char *token)
{
    struct zt_text found;

    assert_int_equal(read_value(value, &found), AUTHORIZATION_BEARER);
    assert_true(zt_text_is(found, token));
}

static void assert_kind(const char *value, enum authorization expected)
{
    struct zt_text found;

    assert_int_equal(read_value(value, &found), expected);
    assert_null(found.bytes);
}

TEST(token_is_found_whatever_the_case_of_the_scheme)
{
    assert_token("Bearer abc", "abc");
    assert_token("bearer abc", "abc");
    assert_token("BEARER abc", "abc");
    assert_token("Bearer    abc", "abc");
    assert_token("  Bearer abc \t ", "abc");
}

TEST(token_may_have_every_character_of_its_alphabet)
{
    assert_token("Bearer azAZ09-._~+/", "azAZ09-._~+/");
    assert_token("Bearer a==", "a==");
    assert_token("Bearer eyJ.eyJ.sig", "eyJ.eyJ.sig");
}

TEST(malformed_token_is_no_token)
{
    static const char *const values[] = {
        "Bearer",    "Bearer ",    "Bearer a b",   "Bearer =",     "Bearer a=b",
        "Bearer\ta", "Bearer a,b", "Bearer \"a\"", "Bearer a\x80", "Bearer token=a",
        "Bearer a%", "",           "Bearer a\x7f", "Bearer a b,",  "Bearer a, Bearer b",
        "=Bearer a", ",",
    };

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        assert_kind(values[i], AUTHORIZATION_MALFORMED);
}

TEST(other_schemes_are_told_apart)
{
    assert_kind("Basic dXNlcjpwYXNz", AUTHORIZATION_OTHER);
    assert_kind("Bearerx abc", AUTHORIZATION_OTHER);
    assert_kind("Digest username=\"a\"", AUTHORIZATION_OTHER);
    assert_kind("abc", AUTHORIZATION_OTHER);
}

TEST(repeated_field_is_malformed_even_if_both_are_equal)
{
    const struct header_field fields[] = {field_of("Authorization", "Bearer a"),
                                          field_of("authorization", "Bearer a")};
    struct zt_text token;

    assert_int_equal(authorization_read(fields, 2, &token), AUTHORIZATION_MALFORMED);
    assert_int_equal(authorization_read(fields, 1, &token), AUTHORIZATION_BEARER);
    assert_int_equal(authorization_read(fields, 0, &token), AUTHORIZATION_ABSENT);
}

TEST(field_of_a_longer_name_is_another_field)
{
    const struct header_field fields[] = {field_of("Authorization-Info", "Bearer a"),
                                          field_of("Proxy-Authorization", "Bearer a")};
    struct zt_text token;

    assert_int_equal(authorization_read(fields, 2, &token), AUTHORIZATION_ABSENT);
}
