/* The JSON body of an export: what it accepts, and that every mistake names its place. */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "derived/export_body.h"

static const char sha256_text[] =
    "sha256:00112233445566778899AABBCCDDEEFF00112233445566778899aabbccddeeff";

static struct export_body *body_of(const char *bytes, size_t length, bool expected)
{
    struct export_body *body = calloc(1, sizeof(*body));

    assert_non_null(body);
    assert_int_equal(export_body_read((struct zt_text){bytes, length}, body), expected);
    assert_false(body->is_out_of_memory);
    assert_int_equal(body->why[0] == '\0', expected);
    return body;
}

static struct export_body *read_body(const char *text)
{
    return body_of(text, strlen(text), true);
}

static void release(struct export_body *body)
{
    export_body_clear(body);
    free(body);
}

static void assert_refused_bytes(const char *bytes, size_t length, const char *why)
{
    struct export_body *body = body_of(bytes, length, false);

    if (strstr(body->why, why) == NULL)
        fail_msg("\"%s\" does not contain \"%s\"", body->why, why);
    release(body);
}

static void assert_refused(const char *text, const char *why)
{
    assert_refused_bytes(text, strlen(text), why);
}

/* --- what is accepted --- */

TEST(an_empty_object_selects_everything_as_safetensors)
{
    struct export_body *body = read_body("{}");

    assert_true(zt_text_is(body->format, "safetensors"));
    assert_int_equal(body->query.prefix.length, 0);
    assert_int_equal(body->query.match_count, 0);
    assert_int_equal(body->query.rule_count, 0);
    assert_int_equal(body->query.cut.parts, 0);
    assert_false(body->query.to_f32);
    assert_false(body->query.leaves_out);
    assert_null(body->query.lists);
    assert_int_equal(body->base.length, 0);
    release(body);
}

TEST(members_mean_what_the_parameters_of_the_query_mean)
{
    struct export_body *body =
        read_body("{\"format\": \"zt\", \"prefix\": \"m.\", \"match\": [\"*.w\", \"m.b\"],"
                  " \"shard\": \"1/4\", \"axis\": [\"*.w:1\", \"@llama\", -2], \"dtype\": \"f32\","
                  " \"base\": \"main\"}");

    assert_true(zt_text_is(body->format, "zt"));
    assert_true(zt_text_is(body->query.prefix, "m."));
    assert_int_equal(body->query.match_count, 2);
    assert_true(zt_text_is(body->query.matches[1], "m.b"));
    assert_int_equal(body->query.cut.part, 1);
    assert_int_equal(body->query.cut.parts, 4);
    assert_int_equal(body->query.rule_count, 3);
    assert_true(zt_text_is(body->query.rules[0].glob, "*.w"));
    assert_int_equal(body->query.rules[0].axis, 1);
    assert_non_null(body->query.rules[1].set);
    assert_int_equal(body->query.rules[2].axis, -2);
    assert_true(body->query.to_f32);
    assert_true(body->query.leaves_out);
    assert_true(zt_text_is(body->base, "main"));
    release(body);
}

TEST(one_glob_and_one_rule_need_no_list)
{
    struct export_body *body = read_body("{\"match\": \"a*\", \"shard\": \"0/2\", \"axis\": 1}");

    assert_int_equal(body->query.match_count, 1);
    assert_int_equal(body->query.rule_count, 1);
    assert_int_equal(body->query.rules[0].axis, 1);
    release(body);
}

TEST(lists_are_sorted_and_without_repetitions)
{
    char text[400];
    struct export_body *body;
    const struct export_lists *lists;

    snprintf(text, sizeof(text), "{\"objects\": [\"b\", \"a\", \"b\"], \"have\": [\"%s\", \"%s\"]}",
             sha256_text, sha256_text);
    body = read_body(text);
    lists = body->query.lists;
    assert_non_null(lists);
    assert_int_equal(lists->name_count, 2);
    assert_true(zt_text_is(lists->names[0], "a"));
    assert_true(export_lists_name(lists, zt_text_from("b")));
    assert_false(export_lists_name(lists, zt_text_from("c")));
    assert_int_equal(lists->have_count, 1);
    assert_int_equal(lists->have[0][1], 0x11);
    assert_true(export_lists_have(lists, lists->have[0]));
    assert_true(body->query.leaves_out);
    release(body);
}

static void digest_lists(const char *text, uint8_t out_sha256[SHA256_BYTES])
{
    struct export_body *body = read_body(text);

    memcpy(out_sha256, body->query.lists->sha256, SHA256_BYTES);
    release(body);
}

TEST(equal_lists_have_equal_digests_and_others_have_not)
{
    uint8_t first[SHA256_BYTES];
    uint8_t second[SHA256_BYTES];

    digest_lists("{\"objects\": [\"ab\", \"c\"]}", first);
    digest_lists("{\"objects\": [\"c\", \"ab\", \"c\"]}", second);
    assert_memory_equal(first, second, sizeof(first));
    digest_lists("{\"objects\": [\"a\", \"bc\"]}", second);
    assert_memory_not_equal(first, second, sizeof(first));
}

TEST(an_empty_list_of_digests_leaves_out_nothing_but_names_it)
{
    struct export_body *body = read_body("{\"have\": []}");

    assert_true(body->query.leaves_out);
    assert_null(body->query.lists);
    release(body);
}

/* --- mistakes --- */

TEST(mistakes_name_their_place)
{
    static const struct {
        const char *text;
        const char *why;
    } cases[] = {
        {"{\"formt\": \"zt\"}", "/formt: unknown member; did you mean format?"},
        {"{\"a/b~c\": 1}", "/a~1b~0c: unknown member; use format"},
        {"{\"format\": 1}", "/format: must be text"},
        {"{\"format\": null}", "/format: must be text"},
        {"{\"prefix\": [\"a\"]}", "/prefix: must be text"},
        {"{\"match\": 1}", "/match: must be a glob"},
        {"{\"match\": [\"a\", \"[\"]}", "/match/1: must be a glob"},
        {"{\"match\": [\"a\", {}]}", "/match/1: must be a glob"},
        {"{\"match\": []}", "/match: must not be empty"},
        {"{\"objects\": []}", "/objects: must not be empty"},
        {"{\"objects\": \"a\"}", "/objects: must be a list"},
        {"{\"objects\": [\"a\", 1]}", "/objects/1: must be the name"},
        {"{\"shard\": \"2/2\"}", "/shard: must be \"R/N\""},
        {"{\"shard\": 1}", "/shard: must be \"R/N\""},
        {"{\"axis\": 1}", "/axis: needs shard"},
        {"{\"shard\": \"0/2\", \"axis\": [0, 1.5]}", "/axis/1: must be an integer"},
        {"{\"shard\": \"0/2\", \"axis\": \"@none\"}", "/axis: must be an integer"},
        {"{\"dtype\": \"f16\"}", "/dtype: must be \"f32\""},
        {"{\"dtype\": true}", "/dtype: must be \"f32\""},
        {"{\"have\": {}}", "/have: must be a list"},
        {"{\"have\": [null]}", "/have/0: must be \"sha256:\""},
        {"{\"have\": [\"sha256:00\"]}", "/have/0: must be \"sha256:\""},
        {"{\"have\": "
         "[\"sha512:0011223344556677889900112233445566778899001122334455667788990011\"]}",
         "/have/0: must be \"sha256:\""},
        {"{\"have\": "
         "[\"sha256:zz11223344556677889900112233445566778899001122334455667788990011\"]}",
         "/have/0: must be \"sha256:\""},
        {"{\"base\": \"\"}", "/base: must name a revision"},
        {"{\"base\": 3}", "/base: must be text"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_refused(cases[i].text, cases[i].why);
}

TEST(texts_that_are_no_json_object_are_refused)
{
    static const char *const texts[] = {"",
                                        " ",
                                        "[]",
                                        "1",
                                        "\"a\"",
                                        "null",
                                        "{",
                                        "{\"a\"",
                                        "{\"a\":",
                                        "{'a': 1}",
                                        "{} {}",
                                        "{}x",
                                        "{\"a\": 01}",
                                        "{\"a\": NaN}",
                                        "{\"a\":1,}",
                                        "\xEF\xBB\xBF{}",
                                        "{\"a\": \"\\ud800\"}",
                                        "{\"prefix\": \"a\\u0000b\"}"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_refused(texts[i], "the body must be");
}

TEST(repeated_members_are_refused)
{
    assert_refused("{\"format\": \"zt\", \"format\": \"npz\"}", "duplicate");
}

TEST(wrong_utf_8_is_refused)
{
    static const char *const wrong[] = {"\xFF", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                                        "\xE2\x82"};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char text[64];

        snprintf(text, sizeof(text), "{\"prefix\": \"%s\"}", wrong[i]);
        assert_refused(text, "the body must be JSON");
    }
}

TEST(huge_numbers_are_refused)
{
    char digits[2001];

    memset(digits, '9', sizeof(digits) - 1);
    digits[sizeof(digits) - 1] = '\0';
    for (unsigned i = 0; i < 2; i++) {
        char text[2100];

        snprintf(text, sizeof(text), "{\"shard\": \"0/2\", \"axis\": %s%s}", digits,
                 i == 0 ? "" : "e99999");
        assert_refused(text, "the body must be JSON");
    }
    assert_refused("{\"shard\": \"0/2\", \"axis\": 1e3}", "/axis: must be an integer");
}

/* --- size --- */

static char *repeat(const char *before, const char *part, size_t count, const char *after)
{
    const size_t length = strlen(part);
    char *text = malloc(strlen(before) + count * length + strlen(after) + 1);
    char *at = text;

    assert_non_null(text);
    at = stpcpy(at, before);
    for (size_t i = 0; i < count; i++, at += length)
        memcpy(at, part, length);
    strcpy(at, after);
    return text;
}

static void assert_repeated_is_refused(const char *before, const char *part, size_t count,
                                       const char *after, const char *why)
{
    char *text = repeat(before, part, count, after);

    assert_refused(text, why);
    free(text);
}

TEST(deep_nesting_and_many_values_are_refused_before_they_take_memory)
{
    assert_repeated_is_refused("{\"match\": ", "[", 1000, "", "too many values");
    assert_repeated_is_refused("{\"match\": ", "[", 4000000, "", "too many values");
    assert_repeated_is_refused("{\"match\": [", "{},", 2000000, "0]}", "too many values");
    assert_repeated_is_refused("{\"match\": [", "0,", 4000000, "0]}", "too many values");
    assert_repeated_is_refused("{\"match\": ", "[", 500, "", "the body must be JSON");
}

TEST(commas_and_brackets_in_texts_do_not_count)
{
    char *text = repeat("{\"prefix\": \"\\\"\\\\", "[{,", 300000, "\"}");
    struct export_body *body = read_body(text);

    assert_int_equal(body->query.prefix.length, 900002);
    release(body);
    free(text);
}

TEST(lists_are_as_long_as_the_limit_and_no_longer)
{
    char part[100];
    char last[100];
    char *text;
    struct export_body *body;

    snprintf(part, sizeof(part), "\"%s\",", sha256_text);
    snprintf(last, sizeof(last), "\"%s\"]}", sha256_text);
    text = repeat("{\"have\": [", part, EXPORT_LIST_MAX - 1, last);
    assert_true(strlen(text) < EXPORT_BODY_MAX);
    body = read_body(text);
    assert_int_equal(body->query.lists->have_count, 1);
    release(body);
    free(text);
    assert_repeated_is_refused("{\"have\": [", part, EXPORT_LIST_MAX, last,
                               "/have: at most 65536 entries");
    assert_repeated_is_refused("{\"objects\": [", "\"a\",", EXPORT_LIST_MAX, "\"a\"]}",
                               "/objects: at most 65536 entries");
    assert_repeated_is_refused("{\"match\": [", "\"a\",", GLOB_SET_MAX, "\"a\"]}",
                               "/match: at most 64 globs");
    assert_repeated_is_refused("{\"shard\": \"0/2\", \"axis\": [", "0,", GLOB_SET_MAX, "0]}",
                               "/axis: at most 64 rules");
}

TEST(every_beginning_of_a_body_is_refused)
{
    char text[400];
    const int length = snprintf(text, sizeof(text),
                                "{\"format\":\"zt\",\"match\":[\"a\",\"[b]\"],\"shard\":\"0/2\","
                                "\"axis\":[1,\"a:0\"],\"have\":[\"%s\"],\"base\":\"main\"}",
                                sha256_text);

    release(read_body(text));
    for (int i = 0; i < length; i++) {
        char *copy = strndup(text, (size_t)i);

        assert_refused_bytes(copy, (size_t)i, "the body must be");
        free(copy);
    }
}
