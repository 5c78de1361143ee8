/* Tokens of xet: what one states is what was signed, and nothing else is a token. */
#include "tests.h"

#include <stdio.h>
#include <string.h>

#include "hub/xet/token.h"

#define NOW 1000000

static void make(const char *repo, const char *client, char out_token[XET_TOKEN_SIZE])
{
    struct xet_permit permit = {.end = NOW + 10};

    snprintf(permit.repo, sizeof(permit.repo), "%s", repo);
    snprintf(permit.client, sizeof(permit.client), "%s", client);
    assert_true(xet_token_make(&permit, out_token));
}

static bool read_text(const char *token, time_t now, struct xet_permit *out_permit)
{
    return xet_token_read(zt_text_from(token), now, out_permit);
}

TEST(token_states_what_was_signed)
{
    static const char *const names[][2] = {
        {"owner/a.name", "team"}, {"name", ""}, {"o/n", "::1"}, {"o/n", "a.b c/\xC3\xBC"}};
    char token[XET_TOKEN_SIZE];
    struct xet_permit permit;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        make(names[i][0], names[i][1], token);
        assert_true(read_text(token, NOW, &permit));
        assert_string_equal(permit.repo, names[i][0]);
        assert_string_equal(permit.client, names[i][1]);
        assert_int_equal(permit.end, NOW + 10);
        assert_int_equal(strspn(token, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789-._~+/"),
                         strlen(token));
    }
}

TEST(token_ends)
{
    char token[XET_TOKEN_SIZE];
    struct xet_permit permit;

    make("o/n", "c", token);
    assert_true(read_text(token, NOW + 9, &permit));
    assert_false(read_text(token, NOW + 10, &permit));
}

TEST(every_other_text_is_none)
{
    static const char *const texts[] = {
        "", ".", "...", "1.2.3.4", "99999999999999999999999999.a.b.c", "-1.a.b.c", "hf_token"};
    char token[XET_TOKEN_SIZE];
    struct xet_permit permit;

    make("owner/name", "client", token);
    for (size_t i = 0; token[i] != '\0'; i++) {
        char other[XET_TOKEN_SIZE];

        for (unsigned bit = 0; bit < 7; bit++) {
            strcpy(other, token);
            other[i] = (char)(other[i] ^ 1 << bit);
            assert_false(read_text(other, NOW, &permit));
        }
        assert_false(xet_token_read((struct zt_text){token, i}, NOW, &permit));
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        assert_false(read_text(texts[i], NOW, &permit));
}
