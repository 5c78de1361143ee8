/* The keys file: what a line means, what is refused and how, and which key is found. */
#include "tests.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/s3_keys.h"

static char error[512];

static struct s3_keys *parse(const char *text)
{
    error[0] = '\0';
    return s3_keys_parse(zt_text_from(text), "keys", error, sizeof(error));
}

TEST(lines_give_secrets_scopes_and_globs)
{
    struct s3_keys *keys = parse("# robots\n"
                                 "\n"
                                 "runner\tsecret/+=1  write team/* shared # the build\r\n"
                                 "  AKIAEXAMPLE secret#2 read");
    const struct s3_key *runner;
    const struct s3_key *other;

    if (keys == NULL)
        fail_msg("%s", error);
    assert_int_equal(s3_keys_count(keys), 2);
    runner = s3_keys_find(keys, zt_text_from("runner"));
    other = s3_keys_find(keys, zt_text_from("AKIAEXAMPLE"));
    assert_string_equal(runner->grant.name, "runner");
    assert_true(zt_text_is(runner->secret, "secret/+=1"));
    assert_int_equal(runner->grant.scope, SCOPE_WRITE);
    assert_int_equal(runner->grant.line, 3);
    assert_true(grant_covers(&runner->grant, zt_text_from("team/x")));
    assert_false(grant_covers(&runner->grant, zt_text_from("other")));
    assert_true(zt_text_is(other->secret, "secret#2"));
    assert_int_equal(other->grant.scope, SCOPE_READ);
    assert_true(grant_covers(&other->grant, zt_text_from("anything")));
    assert_null(s3_keys_find(keys, zt_text_from("runne")));
    assert_null(s3_keys_find(keys, zt_text_from("runner2")));
    assert_null(s3_keys_find(keys, zt_text_from("")));
    s3_keys_free(keys);
    s3_keys_free(NULL);
}

TEST(every_key_is_found_among_many)
{
    char text[64 * 100] = "";
    char name[8];
    struct s3_keys *keys;

    for (int i = 0; i < 100; i++)
        snprintf(text + strlen(text), 64, "k%d secret-%d read\n", i * 37 % 100, i * 37 % 100);
    keys = parse(text);
    assert_non_null(keys);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "k%d", i);
        assert_string_equal(s3_keys_find(keys, zt_text_from(name))->grant.name, name);
    }
    s3_keys_free(keys);
}

TEST(errors_name_the_line_and_no_secret)
{
    static const struct {
        const char *text;
        const char *expected;
    } rows[] = {
        {"a", "line 1: the secret is missing"},
        {"a # Pa55w0rd", "line 1: the secret is missing"},
        {"\na Pa55w0rd", "line 2: the scope is missing: read, write or admin"},
        {"a Pa55w0rd Pa55w0rd", "line 1: the third field is the scope: read, write or admin"},
        {"a read Pa55w0rd", "line 1: the second field is the secret, of 8 to 128 bytes"},
        {"a Pa55w0r read", "line 1: the second field is the secret, of 8 to 128 bytes"},
        {"a Pa55w0rd read x [a", "line 1: \"[a\" is not a glob: a [ is not closed"},
        {"a,b Pa55w0rd read", "line 1: the first field is the access key: 1 to 63 letters, digits "
                              "and signs without a comma"},
        {"\xC3\xA9 Pa55w0rd read", "line 1: the first field is the access key: 1 to 63 letters, "
                                   "digits and signs without a comma"},
        {"a Pa55w0rd read\nb Pa55w0rd read\na Pa55w0rd admin",
         "line 3: line 1 already has this access key"},
        {"a Pa55w0rd\x01 read", "line 1: the line contains a control character"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char expected[256];

        snprintf(expected, sizeof(expected), "s3.keys: keys, %s", rows[i].expected);
        assert_null(parse(rows[i].text));
        assert_string_equal(error, expected);
        assert_null(strstr(error, "Pa55"));
    }
}

TEST(files_that_others_can_read_are_refused)
{
    static const struct {
        mode_t mode;
        bool is_root_only; /* accepted only because root owns the file */
        bool is_accepted;
    } rows[] = {{0600, false, true}, {0400, false, true}, {0640, true, true},
                {0440, true, true},  {0644, true, false}, {0604, false, false},
                {0660, true, false}, {0601, true, false}};
    char path[] = "/tmp/zt_s3_keys_XXXXXX";
    const int file = mkstemp(path);

    assert_true(file >= 0);
    assert_int_equal(write(file, "a Pa55w0rd read\n", 16), 16);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct s3_keys *keys;

        assert_int_equal(fchmod(file, rows[i].mode), 0);
        keys = s3_keys_load(path, error, sizeof(error));
        if ((keys != NULL) != (rows[i].is_accepted && (!rows[i].is_root_only || geteuid() == 0)))
            fail_msg("%o", (unsigned)rows[i].mode);
        if (keys == NULL)
            assert_non_null(strstr(error, "contains secrets and must be private"));
        s3_keys_free(keys);
    }
    close(file);
    unlink(path);
    assert_null(s3_keys_load(path, error, sizeof(error)));
    assert_non_null(strstr(error, "s3.keys: /tmp/zt_s3_keys_"));
}
