/* The tokens file: what a line means, what is refused and how, and who is found. */
#include "tests.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/grants.h"
#include "base/glob.h"

/* printf %s one | sha256sum */
#define ONE "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
#define TWO "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"
/* "two" with the last bit different. */
#define NEARLY_TWO "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f2"

static char error[512];

static struct zt_text text_of(const char *text)
{
    return zt_text_from(text);
}

static struct grants *parse(const char *text)
{
    return grants_parse(text_of(text), "tokens", error, sizeof(error));
}

static struct grants *parsed(const char *text)
{
    struct grants *grants = parse(text);

    if (grants == NULL)
        fail_msg("%s", error);
    return grants;
}

static const struct grant *of_token(const struct grants *grants, struct zt_text token)
{
    struct token_hash hash;

    assert_true(token_hash_make(token, &hash));
    return grants_of_token(grants, &hash);
}

static void assert_refused(const char *text, const char *expected)
{
    error[0] = '\0';
    assert_null(parse(text));
    assert_string_equal(error, expected);
}

static const char *name_of(const struct grant *grant)
{
    return grant != NULL ? grant->name : "nobody";
}

/* --- what is accepted --- */

TEST(lines_give_names_scopes_and_globs)
{
    struct grants *grants = parsed("# clients\n"
                                   "\n"
                                   "ci\twrite  " ONE " team/* shared-[ab] # the build\r\n"
                                   "  boss admin " TWO);
    const struct grant *ci = of_token(grants, text_of("one"));
    const struct grant *boss = of_token(grants, text_of("two"));

    assert_string_equal(name_of(ci), "ci");
    assert_int_equal(ci->scope, SCOPE_WRITE);
    assert_int_equal(ci->line, 3);
    assert_true(grant_covers(ci, text_of("team/x")));
    assert_true(grant_covers(ci, text_of("shared-b")));
    assert_false(grant_covers(ci, text_of("shared-c")));
    assert_false(grant_covers(ci, text_of("team")));
    assert_string_equal(name_of(boss), "boss");
    assert_int_equal(boss->scope, SCOPE_ADMIN);
    assert_true(grant_covers(boss, text_of("anything/at/all")));
    assert_true(grants_limit_models(grants));
    assert_true(grant_covers_all(ci, text_of("team/x/")));
    assert_false(grant_covers_all(ci, text_of("shared-")));
    assert_true(grant_covers_all(boss, text_of("anything/")));
    grants_free(grants);
}

TEST(lines_without_globs_limit_no_models)
{
    struct grants *grants = parsed("a write " ONE "\nb write jwt:* # team/*\n");

    assert_false(grants_limit_models(grants));
    grants_free(grants);
    grants = parsed("a write " ONE "\nb read jwt:* team/*\n");
    assert_true(grants_limit_models(grants));
    grants_free(grants);
}

TEST(empty_file_lets_nobody_in)
{
    struct grants *grants = parsed("");

    assert_null(of_token(grants, text_of("")));
    grants_free(grants);
}

TEST(digests_may_be_written_in_upper_case)
{
    char text[] = "a read " ONE "\n";
    struct grants *grants;

    for (char *at = text + sizeof("a read ") - 1; *at != '\n'; at++)
        if (*at >= 'a')
            *at = (char)(*at - 'a' + 'A');
    grants = parsed(text);
    assert_non_null(of_token(grants, text_of("one")));
    grants_free(grants);
}

TEST(only_the_whole_token_is_right)
{
    struct grants *grants = parsed("a read " ONE "\nb read " NEARLY_TWO "\n");

    assert_string_equal(name_of(of_token(grants, text_of("one"))), "a");
    assert_null(of_token(grants, text_of("on")));
    assert_null(of_token(grants, text_of("one ")));
    assert_null(of_token(grants, text_of("two")));
    assert_null(of_token(grants, text_of("")));
    /* The digest is not a token. */
    assert_null(of_token(grants, text_of(ONE)));
    grants_free(grants);
}

TEST(every_digit_of_a_digest_counts)
{
    char text[] = "a read " TWO "\n";

    for (char *at = text + sizeof("a read ") - 1; *at != '\n'; at++) {
        const char before = *at;
        struct grants *grants;

        *at = before == '0' ? '1' : '0';
        grants = parsed(text);
        assert_null(of_token(grants, text_of("two")));
        grants_free(grants);
        *at = before;
    }
}

TEST(first_line_that_fits_a_certificate_counts)
{
    static const char *const both[] = {"two", "one", NULL};
    static const char *const second[] = {"two", NULL};
    static const char *const none[] = {NULL};
    struct grants *grants = parsed("a read mtls:one\nb write mtls:two\nc admin jwt:*\n");

    assert_string_equal(name_of(grants_of_certificate(grants, both)), "a");
    assert_string_equal(name_of(grants_of_certificate(grants, second)), "b");
    assert_null(grants_of_certificate(grants, none));
    /* A name is no token, and no subject either. */
    assert_null(of_token(grants, text_of("mtls:one")));
    grants_free(grants);
}

TEST(first_line_that_fits_a_subject_counts)
{
    struct grants *grants = parsed("trainer write jwt:system:serviceaccount:ml:trainer\n"
                                   "pods read jwt:system:serviceaccount:ml:*\n");

    assert_string_equal(
        name_of(grants_of_subject(grants, text_of("system:serviceaccount:ml:trainer"))), "trainer");
    assert_string_equal(name_of(grants_of_subject(grants, text_of("system:serviceaccount:ml:web"))),
                        "pods");
    assert_null(grants_of_subject(grants, text_of("system:serviceaccount:other:web")));
    assert_null(grants_of_subject(grants, text_of("")));
    grants_free(grants);
}

/* --- what is refused --- */

TEST(wrong_lines_are_named)
{
    assert_refused("a\n", "auth.tokens: tokens, line 1: the scope is missing: read, write or "
                          "admin");
    assert_refused("# x\na root " ONE "\n", "auth.tokens: tokens, line 2: the second field is the "
                                            "scope: read, write or admin");
    assert_refused("a Read " ONE, "auth.tokens: tokens, line 1: the second field is the scope: "
                                  "read, write or admin");
    assert_refused("a read", "auth.tokens: tokens, line 1: the proof is missing: the token's "
                             "SHA-256, mtls:NAME or jwt:SUBJECT");
    assert_refused("a read # " ONE, "auth.tokens: tokens, line 1: the proof is missing: the "
                                    "token's SHA-256, mtls:NAME or jwt:SUBJECT");
    assert_refused("a read secret", "auth.tokens: tokens, line 1: the third field is the token's "
                                    "SHA-256 (64 hexadecimal digits), mtls:NAME or jwt:SUBJECT");
    assert_refused("a read " ONE "0", "auth.tokens: tokens, line 1: the third field is the "
                                      "token's SHA-256 (64 hexadecimal digits), mtls:NAME or "
                                      "jwt:SUBJECT");
    assert_refused("a read g692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed",
                   "auth.tokens: tokens, line 1: the SHA-256 contains other characters than "
                   "hexadecimal digits");
    assert_refused("a read mtls:",
                   "auth.tokens: tokens, line 1: the third field has no text after its colon");
    assert_refused("a read jwt:",
                   "auth.tokens: tokens, line 1: the third field has no text after its colon");
    assert_refused("a read jwt:[a", "auth.tokens: tokens, line 1: the subject is not a glob: a [ "
                                    "is not closed");
    assert_refused("a read " ONE " x [a", "auth.tokens: tokens, line 1: \"[a\" is not a glob: a [ "
                                          "is not closed");
}

TEST(repetitions_are_refused_with_both_lines)
{
    assert_refused("a read " ONE "\n\na read " TWO "\n",
                   "auth.tokens: tokens, line 3: line 1 already has this name");
    assert_refused("a read " ONE "\nb read " ONE "\n",
                   "auth.tokens: tokens, line 2: line 1 already has this SHA-256");
    assert_refused("a read mtls:x\nb read mtls:x\n",
                   "auth.tokens: tokens, line 2: line 1 already has this name of a certificate");
    assert_refused("a read jwt:x\nb read jwt:x\n",
                   "auth.tokens: tokens, line 2: line 1 already has this subject");
    grants_free(parsed("a read mtls:x\nb read jwt:x\n"));
}

TEST(bytes_that_are_not_text_are_refused)
{
    assert_refused("ok read " ONE "\na\xff read " TWO "\n",
                   "auth.tokens: tokens, line 2: the line is not UTF-8");
    assert_refused("a\x01 read " ONE "\n",
                   "auth.tokens: tokens, line 1: the line contains a control character");
    assert_refused("a\r read " ONE "\n",
                   "auth.tokens: tokens, line 1: the line contains a control character");
    assert_null(grants_parse((struct zt_text){"a read\0 " ONE, sizeof("a read\0 " ONE) - 1},
                             "tokens", error, sizeof(error)));
    assert_string_equal(error,
                        "auth.tokens: tokens, line 1: the line contains a control character");
}

static char *repeat(const char *text, size_t count)
{
    const size_t length = strlen(text);
    char *all = malloc(length * count + 1);

    assert_non_null(all);
    for (size_t i = 0; i < count; i++)
        memcpy(all + i * length, text, length);
    all[length * count] = '\0';
    return all;
}

static void assert_long_refused(const char *before, const char *repeated, size_t count,
                                const char *after, const char *expected)
{
    char *middle = repeat(repeated, count);
    char *text;

    assert_true(asprintf(&text, "%s%s%s", before, middle, after) > 0);
    assert_refused(text, expected);
    free(text);
    free(middle);
}

TEST(everything_is_bounded)
{
    assert_long_refused("", "n", GRANT_NAME_MAX + 1, " read " ONE,
                        "auth.tokens: tokens, line 1: the name is longer than 63 bytes");
    assert_long_refused("a read mtls:", "n", 1025, "",
                        "auth.tokens: tokens, line 1: the third field is longer than 1024 bytes");
    assert_long_refused("a read " ONE " ", "n", GLOB_MAX + 1, "",
                        "auth.tokens: tokens, line 1: a glob of models is longer than 1024 bytes");
    assert_long_refused("a read " ONE, " x", GLOB_SET_MAX + 1, "",
                        "auth.tokens: tokens, line 1: there are more than 64 globs of models");
    assert_long_refused("a read " ONE, " ", 10000, "",
                        "auth.tokens: tokens, line 1: the line is longer than 9216 bytes");
}

TEST(number_of_clients_is_bounded)
{
    char *text = malloc((size_t)(GRANTS_MAX + 1) * 32);
    size_t length = 0;
    struct grants *grants;

    assert_non_null(text);
    for (int i = 0; i < GRANTS_MAX; i++)
        length += (size_t)sprintf(text + length, "n%d read mtls:m%d\n", i, i);
    grants = parsed(text);
    grants_free(grants);
    sprintf(text + length, "one-more read mtls:one-more\n");
    assert_refused(text, "auth.tokens: tokens, line 4097: there are more than 4096 clients");
    free(text);
}

TEST(messages_do_not_repeat_what_may_be_a_token)
{
    static const char *const texts[] = {
        "hunter2 read\n",
        "a hunter2 " ONE "\n",
        "a read hunter2\n",
        "hunter2\n",
        "hunter2 read " ONE "\nhunter2 read " TWO "\n",
        "a read " ONE " hunter2\nb read x",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_null(parse(texts[i]));
        assert_null(strstr(error, "hunter2"));
    }
}

TEST(every_cut_of_a_file_is_read_or_refused)
{
    static const char whole[] = "# x\r\nci write " ONE " team/* b\nk read jwt:a:*\nm read mtls:a\n";

    for (size_t length = 0; length < sizeof(whole); length++) {
        struct grants *grants;

        error[0] = '\0';
        grants = grants_parse((struct zt_text){whole, length}, "tokens", error, sizeof(error));
        assert_true((grants == NULL) == (error[0] != '\0'));
        grants_free(grants);
    }
}

/* --- the file --- */

static void assert_not_loaded(const char *path, const char *reason)
{
    assert_null(grants_load(path, error, sizeof(error)));
    assert_non_null(strstr(error, path));
    assert_non_null(strstr(error, reason));
}

TEST(files_that_cannot_be_read_are_named)
{
    char path[] = "/tmp/zt-test-grants-XXXXXX";
    int descriptor = mkstemp(path);
    struct grants *grants;

    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, "a read " ONE, 71), 71);
    grants = grants_load(path, error, sizeof(error));
    assert_non_null(grants);
    grants_free(grants);
    assert_int_equal(ftruncate(descriptor, (1 << 20) + 1), 0);
    assert_not_loaded(path, "is larger than 1 MiB");
    close(descriptor);
    unlink(path);
    assert_not_loaded(path, "No such file or directory");
    assert_not_loaded("/tmp", "is not a regular file");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_not_loaded(path, "is not a regular file");
    unlink(path);
}
