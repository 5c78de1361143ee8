/* Framing: a header that leaves the end of the request or its host in doubt is refused. */
#include "tests.h"

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
#define CHECK(...)        CHECK_VERSION(false, __VA_ARGS__)
#define IS(verdict_, ...) assert_int_equal(CHECK(__VA_ARGS__).verdict, FRAMING_##verdict_)

static void assert_broken(const char *name, const char *value, const char *why)
{
    const struct framing framing = CHECK({"Host", "x"}, {name, value});

    if (framing.why == NULL || strcmp(framing.why, why) != 0)
        fail_msg("%s: \"%s\": %s", name, value, framing.why == NULL ? "sound" : framing.why);
}

TEST(plain_requests_are_sound)
{
    struct framing framing = CHECK({"Host", "x"}, {"Accept", "*/*"});

    assert_int_equal(framing.verdict, FRAMING_SOUND);
    assert_true(framing.body_length == 0);
    framing = CHECK({"Host", "x"}, {"content-length", "1099511627776"}, {"Expect", "100-Continue"});
    assert_int_equal(framing.verdict, FRAMING_SOUND);
    assert_true(framing.body_length == UINT64_C(1099511627776));
    framing = CHECK({"Host", "x"}, {"Transfer-Encoding", "Chunked"});
    assert_int_equal(framing.verdict, FRAMING_SOUND);
    assert_true(framing.body_length == UINT64_MAX);
}

TEST(two_framings_are_refused)
{
    IS(BROKEN, {"Content-Length", "5"}, {"Transfer-Encoding", "chunked"});
    IS(BROKEN, {"Content-Length", "5"}, {"Content-Length", "6"});
    IS(BROKEN, {"Content-Length", "5"}, {"Content-Length", "5"});
    IS(BROKEN, {"Transfer-Encoding", "chunked"}, {"Transfer-Encoding", "chunked"});
}

TEST(repeated_hosts_are_refused)
{
    IS(BROKEN, {"Host", "x"}, {"host", "x"});
}

TEST(missing_hosts_are_refused)
{
    assert_string_equal(CHECK({"Accept", "*/*"}).why, "Host is missing");
    assert_int_equal(CHECK_VERSION(true, {"Accept", "*/*"}).verdict, FRAMING_SOUND);
}

TEST(codings_in_http_1_0_are_refused)
{
    assert_string_equal(CHECK_VERSION(true, {"Transfer-Encoding", "chunked"}).why,
                        "HTTP/1.0 has no Transfer-Encoding");
    assert_int_equal(CHECK_VERSION(true, {"Content-Length", "5"}).verdict, FRAMING_SOUND);
}

TEST(codings_other_than_chunked_are_refused)
{
    static const char *const values[] = {
        "",         "gzip",     "gzip, chunked", "chunked, identity", "chunked, chunked",
        ",chunked", "chunked,", "chunked;q=1",   "\"chunked\"",       "identity",
        "xchunked", "chunke",   "chunked ",      "\xa0 chunked",      "chunked\xff"};

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        assert_broken("Transfer-Encoding", values[i], "Transfer-Encoding is not chunked");
}

TEST(malformed_lengths_are_refused)
{
    static const char *const values[] = {
        "",    "+5",   "-5",  "-0",   "0x5",   "0o5",    "1_0",
        "1 0", "5.0",  "1e1", "five", "5x",    "5;x",    "\"5\"",
        "5 ",  "5, 6", "5,5", ",5",   "5,5,5", "\u0665", "99999999999999999999999x"};

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        assert_broken("Content-Length", values[i], "Content-Length is not a length");
}

TEST(lengths_that_no_file_has_are_lengths)
{
    static const char *const values[] = {"9223372036854775808", "18446744073709551615",
                                         "18446744073709551616", "99999999999999999999999"};
    struct framing framing = CHECK({"Host", "x"}, {"Content-Length", "9223372036854775807"});

    assert_int_equal(framing.verdict, FRAMING_SOUND);
    assert_true(framing.body_length == INT64_MAX);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        framing = CHECK({"Host", "x"}, {"Content-Length", values[i]});
        assert_int_equal(framing.verdict, FRAMING_SOUND);
        assert_true(framing.body_length == FRAMING_LENGTH_MAX);
    }
}

TEST(hosts_of_the_grammar_are_sound)
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

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        assert_true(host_is_valid(values[i], strlen(values[i])));
        IS(SOUND, {"Host", values[i]});
    }
}

TEST(other_hosts_are_refused)
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

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        assert_false(host_is_valid(values[i], strlen(values[i])));
        IS(BROKEN, {"Host", values[i]});
    }
}

TEST(blanks_after_a_host_do_not_count)
{
    IS(SOUND, {"Host", "x \t"});
    IS(SOUND, {"Host", "[::1]:80\t"});
    IS(SOUND, {"Host", " \t "});
    IS(BROKEN, {"Host", "x y "});
}

TEST(blanks_after_other_values_count)
{
    IS(EXPECTATION, {"Host", "x"}, {"Expect", "100-continue "});
    IS(BROKEN, {"Host", "x"}, {"Transfer-Encoding", "chunked\t"});
    IS(BROKEN, {"Host", "x"}, {"Content-Length", "5\t"});
}

TEST(a_host_is_not_read_past_its_end)
{
    assert_true(host_is_valid("a%20", 1));
    assert_false(host_is_valid("a%20", 3));
    assert_false(host_is_valid("[::1]", 4));
    assert_true(host_is_valid("a:80x", 4));
}

TEST(names_that_hide_a_framing_are_refused)
{
    IS(BROKEN, {"Content-Length5", ""});
    IS(BROKEN, {"Transfer-Encodingchunked", ""});
    IS(BROKEN, {"Content-Length ", "5"});
    IS(BROKEN, {"X Y", "5"});
    IS(BROKEN, {"", "5"});
    IS(BROKEN, {"X", "a\rb"});
}

TEST(other_expectations_fail)
{
    IS(EXPECTATION, {"Host", "x"}, {"Expect", "200-ok"});
    IS(EXPECTATION, {"Host", "x"}, {"Expect", ""});
    IS(EXPECTATION, {"Host", "x"}, {"Expect", "y 100-continue"});
    IS(EXPECTATION, {"Host", "x"}, {"Expect", "100-continue, 200-ok"});
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

TEST(a_method_is_a_token)
{
    assert_true(method_is_token("GET"));
    assert_true(method_is_token("M-SEARCH"));
    assert_false(method_is_token(""));
    assert_false(method_is_token("\tGET"));
    assert_false(method_is_token("[GET]"));
    assert_false(method_is_token("G\xC9T"));
}

TEST(lines_without_a_gap_are_plain)
{
    assert_true(IS_PLAIN("\0\0", 0, NULL));
    assert_true(IS_PLAIN("Host\0 x\0\0\0\0", 1, "Host", "x"));
    assert_true(IS_PLAIN("Host\0x\0\0Long\0\t  y z  \0\0\0\0", 2, "Host", "x", "Long", "y z  "));
}

TEST(an_empty_name_is_seen)
{
    assert_false(IS_PLAIN("Host\0 x\0\0\0 y\0\0", 1, "Host", "x"));
    assert_false(IS_PLAIN("Host\0 x\0\0\0\0\0", 1, "Host", "x"));
    assert_false(IS_PLAIN("Host\0 x\0\0\0: y\0\0", 1, "Host", "x"));
}

TEST(what_a_value_hides_is_seen)
{
    assert_false(IS_PLAIN("Host\0 x\0y\0\0\0\0", 1, "Host", "x"));
    assert_false(IS_PLAIN("Host\0 x\0\0\0\0\0", 1, "Host", "x"));
    assert_false(IS_PLAIN("Host\0 x\0\0 folded\0\0\0\0", 1, "Host", "x"));
    assert_false(IS_PLAIN("Host\0 x\0\0Gone\0 y\0\0\0\0", 1, "Host", "x"));
}

TEST(a_bare_line_feed_is_seen)
{
    assert_false(IS_PLAIN("Host\0 x\0\0\0", 1, "Host", "x"));
    assert_false(IS_PLAIN("Host\0 x\0Gone\0 y\0\0\0\0", 2, "Host", "x", "Gone", "y"));
    assert_false(IS_PLAIN("\0", 0, NULL));
}

TEST(a_cut_target_is_seen)
{
    static const char bytes[] = "GET\0/a\0b\0HTTP/1.1\0\0\0\0";
    struct header_block block = {bytes, sizeof(bytes) - 1, 2, bytes + 9};

    assert_false(header_block_is_plain(&block, NULL, 0));
    block.target_length = 4;
    assert_true(header_block_is_plain(&block, NULL, 0));
    block.target_length = sizeof(bytes);
    assert_false(header_block_is_plain(&block, NULL, 0));
}

TEST(texts_elsewhere_are_seen)
{
    static const char elsewhere[] = "Host";
    static const char bytes[] = LINE "Host\0 x\0\0\0";
    const struct header_block block = {bytes, sizeof(bytes), 4, bytes + 9};
    const struct header_field field = {elsewhere, bytes + LINE_LENGTH + 6, 4, 1};

    assert_false(header_block_is_plain(&block, &field, 1));
}
