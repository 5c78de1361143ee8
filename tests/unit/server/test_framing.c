/* Framing: whatever leaves the end of a request in doubt is refused. */
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

static void lengths_that_are_none_are_refused(void **state)
{
    static const char *const values[] = {
        "", "+5", "-5", "0x5", "5 ", "5,5", "9223372036854775808", "99999999999999999999999"};

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        assert_int_equal(CHECK({"Content-Length", values[i]}).verdict, FRAMING_BROKEN);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_requests_are_sound),
        cmocka_unit_test(two_framings_are_refused),
        cmocka_unit_test(repeated_hosts_are_refused),
        cmocka_unit_test(codings_other_than_chunked_are_refused),
        cmocka_unit_test(lengths_that_are_none_are_refused),
        cmocka_unit_test(names_that_hide_a_framing_are_refused),
        cmocka_unit_test(other_expectations_fail),
        cmocka_unit_test(missing_hosts_are_refused),
        cmocka_unit_test(codings_in_http_1_0_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
