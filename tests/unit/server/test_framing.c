/* Framing: a header that leaves the end of the request or its host in doubt is refused. */
#include "support.h"

#include <string.h>

#include "http/fields/framing.h"

#define MOST 4

static struct framing check(const char *const fields[][2], unsigned count, bool http_1_0)
{
    struct header_field headers[MOST];
    struct framing framing;

    assert_true(count <= MOST);
    for (unsigned i = 0; i < count; i++)
        headers[i] =
            (struct header_field){fields[i][0], fields[i][1], (uint32_t)strlen(fields[i][0]),
                                  (uint32_t)strlen(fields[i][1])};
    framing_check(headers, count, http_1_0, &framing);
    return framing;
}

#define CHECK_VERSION(http_1_0, ...)             \
    check((const char *const[][2]){__VA_ARGS__}, \
          sizeof((const char *const[][2]){__VA_ARGS__}) / (2 * sizeof(char *)), http_1_0)
#define CHECK(...) CHECK_VERSION(false, __VA_ARGS__)

static void plain_requests_are_sound(void **state)
{
    struct framing framing = CHECK({"Host", "x"}, {"Accept", "*/*"});

    (void)state;
    assert_int_equal(framing.verdict, FRAMING_SOUND);
    assert_true(framing.body_length == 0);
    framing = CHECK({"Host", "x"}, {"content-length", "1099511627776"}, {"Expect", "100-Continue"});
    assert_int_equal(framing.verdict, FRAMING_SOUND);
    assert_true(framing.body_length == UINT64_C(1099511627776));
    framing = CHECK({"Host", "x"}, {"Transfer-Encoding", "Chunked"});
    assert_int_equal(framing.verdict, FRAMING_SOUND);
    assert_true(framing.body_length == UINT64_MAX);
}

static void two_framings_are_refused(void **state)
{
    (void)state;
    assert_int_equal(CHECK({"Content-Length", "5"}, {"Transfer-Encoding", "chunked"}).verdict,
                     FRAMING_BROKEN);
    assert_int_equal(CHECK({"Content-Length", "5"}, {"Content-Length", "6"}).verdict,
                     FRAMING_BROKEN);
    assert_int_equal(CHECK({"Content-Length", "5"}, {"Content-Length", "5"}).verdict,
                     FRAMING_BROKEN);
    assert_int_equal(
        CHECK({"Transfer-Encoding", "chunked"}, {"Transfer-Encoding", "chunked"}).verdict,
        FRAMING_BROKEN);
}

static void repeated_hosts_are_refused(void **state)
{
    (void)state;
    assert_int_equal(CHECK({"Host", "x"}, {"host", "x"}).verdict, FRAMING_BROKEN);
}

static void missing_hosts_are_refused(void **state)
{
    (void)state;
    assert_string_equal(CHECK({"Accept", "*/*"}).why, "Host is missing");
    assert_int_equal(CHECK_VERSION(true, {"Accept", "*/*"}).verdict, FRAMING_SOUND);
}

static void codings_in_http_1_0_are_refused(void **state)
{
    (void)state;
    assert_string_equal(CHECK_VERSION(true, {"Transfer-Encoding", "chunked"}).why,
                        "HTTP/1.0 has no Transfer-Encoding");
    assert_int_equal(CHECK_VERSION(true, {"Content-Length", "5"}).verdict, FRAMING_SOUND);
}

static void codings_other_than_chunked_are_refused(void **state)
{
    (void)state;
    assert_int_equal(CHECK({"Transfer-Encoding", "gzip, chunked"}).verdict, FRAMING_BROKEN);
    assert_int_equal(CHECK({"Transfer-Encoding", "xchunked"}).verdict, FRAMING_BROKEN);
    assert_int_equal(CHECK({"Transfer-Encoding", "chunked "}).verdict, FRAMING_BROKEN);
    assert_int_equal(CHECK({"Transfer-Encoding", "identity"}).verdict, FRAMING_BROKEN);
    assert_int_equal(CHECK({"Transfer-Encoding", ""}).verdict, FRAMING_BROKEN);
}

static void malformed_lengths_are_refused(void **state)
{
    static const char *const values[] = {
        "", "+5", "-5", "0x5", "5 ", "5,5", "99999999999999999999999x"};

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        assert_int_equal(CHECK({"Content-Length", values[i]}).verdict, FRAMING_BROKEN);
}

static void lengths_that_no_file_has_are_lengths(void **state)
{
    static const char *const values[] = {"9223372036854775808", "18446744073709551615",
                                         "18446744073709551616", "99999999999999999999999"};
    struct framing framing = CHECK({"Host", "x"}, {"Content-Length", "9223372036854775807"});

    (void)state;
    assert_int_equal(framing.verdict, FRAMING_SOUND);
    assert_true(framing.body_length == INT64_MAX);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        framing = CHECK({"Host", "x"}, {"Content-Length", values[i]});
        assert_int_equal(framing.verdict, FRAMING_SOUND);
        assert_true(framing.body_length == FRAMING_LENGTH_MAX);
    }
}

static void hosts_of_the_grammar_are_sound(void **state)
{
    static const char *const values[] = {"",
                                         "x",
                                         "example.org",
                                         "example.org:",
                                         "example.org:8080",
                                         ":80",
                                         "my_host~1",
                                         "127.0.0.1:1",
                                         "a%20b",
                                         "a!$&'()*+,;=b",
                                         "[::1]",
                                         "[::1]:8080",
                                         "[2001:db8::7]:",
                                         "[::ffff:192.0.2.1]",
                                         "[v1.a:b]"};

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        assert_true(host_is_valid(values[i], strlen(values[i])));
        assert_int_equal(CHECK({"Host", values[i]}).verdict, FRAMING_SOUND);
    }
}

static void other_hosts_are_refused(void **state)
{
    static const char *const values[] = {"a b",
                                         "a/b",
                                         "a@b",
                                         "http://a",
                                         "a:b",
                                         "a:80:80",
                                         "a,b c",
                                         "a%2",
                                         "a%zz",
                                         "a\"b",
                                         "[::1",
                                         "::1",
                                         "[::1]x",
                                         "[]",
                                         "[:::]",
                                         "[1.2]",
                                         "[v.a]",
                                         "[v1]",
                                         "[v1.]",
                                         "[::1]:x",
                                         "[fe80::1%25eth0]",
                                         "\xc3\xa9",
                                         "a#",
                                         "a?b",
                                         "[0000:0000:0000:0000:0000:0000:0000:0000:0000:0001]"};

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        assert_false(host_is_valid(values[i], strlen(values[i])));
        assert_int_equal(CHECK({"Host", values[i]}).verdict, FRAMING_BROKEN);
    }
}

static void blanks_after_a_host_do_not_count(void **state)
{
    (void)state;
    assert_int_equal(CHECK({"Host", "x \t"}).verdict, FRAMING_SOUND);
    assert_int_equal(CHECK({"Host", "[::1]:80\t"}).verdict, FRAMING_SOUND);
    assert_int_equal(CHECK({"Host", " \t "}).verdict, FRAMING_SOUND);
    assert_int_equal(CHECK({"Host", "x y "}).verdict, FRAMING_BROKEN);
}

static void blanks_after_other_values_count(void **state)
{
    (void)state;
    assert_int_equal(CHECK({"Host", "x"}, {"Expect", "100-continue "}).verdict,
                     FRAMING_EXPECTATION);
    assert_int_equal(CHECK({"Host", "x"}, {"Transfer-Encoding", "chunked\t"}).verdict,
                     FRAMING_BROKEN);
    assert_int_equal(CHECK({"Host", "x"}, {"Content-Length", "5\t"}).verdict, FRAMING_BROKEN);
}

static void a_host_is_not_read_past_its_end(void **state)
{
    (void)state;
    assert_true(host_is_valid("a%20", 1));
    assert_false(host_is_valid("a%20", 3));
    assert_false(host_is_valid("[::1]", 4));
    assert_true(host_is_valid("a:80x", 4));
}

static void names_that_hide_a_framing_are_refused(void **state)
{
    (void)state;
    assert_int_equal(CHECK({"Content-Length5", ""}).verdict, FRAMING_BROKEN);
    assert_int_equal(CHECK({"Transfer-Encodingchunked", ""}).verdict, FRAMING_BROKEN);
    assert_int_equal(CHECK({"Content-Length ", "5"}).verdict, FRAMING_BROKEN);
    assert_int_equal(CHECK({"X Y", "5"}).verdict, FRAMING_BROKEN);
    assert_int_equal(CHECK({"", "5"}).verdict, FRAMING_BROKEN);
    assert_int_equal(CHECK({"X", "a\rb"}).verdict, FRAMING_BROKEN);
}

static void other_expectations_fail(void **state)
{
    (void)state;
    assert_int_equal(CHECK({"Host", "x"}, {"Expect", "200-ok"}).verdict, FRAMING_EXPECTATION);
}

/* --- the header in memory: NULs where the library overwrote separators --- */

#define LINE        "GET\0/a?b\0HTTP/1.1\0\0"
#define LINE_LENGTH (sizeof(LINE) - 1)

/* Fields stand where the texts of the list are found, one after the other. */
static bool is_plain(const char *bytes, size_t length, const char *const *texts, unsigned count)
{
    const struct header_block block = {bytes, length, 4, bytes + 9};
    struct header_field fields[4];
    const char *from = bytes + LINE_LENGTH;

    for (unsigned i = 0; i < count; i++) {
        const char *name =
            memmem(from, (size_t)(bytes + length - from), texts[2 * i], strlen(texts[2 * i]));
        const char *value;

        assert_non_null(name);
        from = name + strlen(name) + 1;
        value = memmem(from, (size_t)(bytes + length - from), texts[2 * i + 1],
                       strlen(texts[2 * i + 1]));
        assert_non_null(value);
        from = value + strlen(value);
        fields[i] =
            (struct header_field){name, value, (uint32_t)strlen(name), (uint32_t)strlen(value)};
    }
    return header_block_is_plain(&block, fields, count);
}

#define IS_PLAIN(fields, count, ...)                        \
    is_plain(LINE fields, LINE_LENGTH + sizeof(fields) - 1, \
             (const char *const[]){__VA_ARGS__, NULL}, count)

static void a_method_is_a_token(void **state)
{
    (void)state;
    assert_true(method_is_token("GET"));
    assert_true(method_is_token("M-SEARCH"));
    assert_false(method_is_token(""));
    assert_false(method_is_token("\tGET"));
    assert_false(method_is_token("[GET]"));
    assert_false(method_is_token("G\xC9T"));
}

static void lines_without_a_gap_are_plain(void **state)
{
    (void)state;
    assert_true(IS_PLAIN("\0\0", 0, NULL));
    assert_true(IS_PLAIN("Host\0 x\0\0\0\0", 1, "Host", "x"));
    assert_true(IS_PLAIN("Host\0x\0\0Long\0\t  y z  \0\0\0\0", 2, "Host", "x", "Long", "y z  "));
}

static void an_empty_name_is_seen(void **state)
{
    (void)state;
    assert_false(IS_PLAIN("Host\0 x\0\0\0 y\0\0", 1, "Host", "x"));
    assert_false(IS_PLAIN("Host\0 x\0\0\0\0\0", 1, "Host", "x"));
    assert_false(IS_PLAIN("Host\0 x\0\0\0: y\0\0", 1, "Host", "x"));
}

static void what_a_value_hides_is_seen(void **state)
{
    (void)state;
    assert_false(IS_PLAIN("Host\0 x\0y\0\0\0\0", 1, "Host", "x"));
    assert_false(IS_PLAIN("Host\0 x\0\0\0\0\0", 1, "Host", "x"));
    assert_false(IS_PLAIN("Host\0 x\0\0 folded\0\0\0\0", 1, "Host", "x"));
    assert_false(IS_PLAIN("Host\0 x\0\0Gone\0 y\0\0\0\0", 1, "Host", "x"));
}

static void a_bare_line_feed_is_seen(void **state)
{
    (void)state;
    assert_false(IS_PLAIN("Host\0 x\0\0\0", 1, "Host", "x"));
    assert_false(IS_PLAIN("Host\0 x\0Gone\0 y\0\0\0\0", 2, "Host", "x", "Gone", "y"));
    assert_false(IS_PLAIN("\0", 0, NULL));
}

static void a_cut_target_is_seen(void **state)
{
    static const char bytes[] = "GET\0/a\0b\0HTTP/1.1\0\0\0\0";
    struct header_block block = {bytes, sizeof(bytes) - 1, 2, bytes + 9};

    (void)state;
    assert_false(header_block_is_plain(&block, NULL, 0));
    block.target_length = 4;
    assert_true(header_block_is_plain(&block, NULL, 0));
    block.target_length = sizeof(bytes);
    assert_false(header_block_is_plain(&block, NULL, 0));
}

static void texts_elsewhere_are_seen(void **state)
{
    static const char elsewhere[] = "Host";
    static const char bytes[] = LINE "Host\0 x\0\0\0";
    const struct header_block block = {bytes, sizeof(bytes), 4, bytes + 9};
    const struct header_field field = {elsewhere, bytes + LINE_LENGTH + 6, 4, 1};

    (void)state;
    assert_false(header_block_is_plain(&block, &field, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_requests_are_sound),
        cmocka_unit_test(two_framings_are_refused),
        cmocka_unit_test(repeated_hosts_are_refused),
        cmocka_unit_test(codings_other_than_chunked_are_refused),
        cmocka_unit_test(malformed_lengths_are_refused),
        cmocka_unit_test(names_that_hide_a_framing_are_refused),
        cmocka_unit_test(other_expectations_fail),
        cmocka_unit_test(missing_hosts_are_refused),
        cmocka_unit_test(codings_in_http_1_0_are_refused),
        cmocka_unit_test(blanks_after_a_host_do_not_count),
        cmocka_unit_test(blanks_after_other_values_count),
        cmocka_unit_test(a_host_is_not_read_past_its_end),
        cmocka_unit_test(other_hosts_are_refused),
        cmocka_unit_test(hosts_of_the_grammar_are_sound),
        cmocka_unit_test(lengths_that_no_file_has_are_lengths),
        cmocka_unit_test(texts_elsewhere_are_seen),
        cmocka_unit_test(a_cut_target_is_seen),
        cmocka_unit_test(a_bare_line_feed_is_seen),
        cmocka_unit_test(what_a_value_hides_is_seen),
        cmocka_unit_test(an_empty_name_is_seen),
        cmocka_unit_test(lines_without_a_gap_are_plain),
        cmocka_unit_test(a_method_is_a_token),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
