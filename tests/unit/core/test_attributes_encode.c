/* Attributes: from JSON to CBOR, encoded again in each form, and counted. */
#include "tests.h"

#include <string.h>

#include "cbor/attributes_encode.h"
#include "cbor/json_cbor.h"

#define LEVELS_MAX 32

static struct zt_error error;

/* Encodes bytes given as a literal; returns the status and leaves the result in buffer. */
static enum zt_status encode(const char *bytes, size_t length, enum zt_attributes_form form,
                             struct zt_buffer *buffer)
{
    zt_buffer_free(buffer);
    zt_error_clear(&error);
    return zt_attributes_encode((struct zt_text){bytes, length}, form, LEVELS_MAX, buffer, &error);
}

#define ASSERT_ENCODES(form, from, to)                             \
    do {                                                           \
        struct zt_buffer buffer_ = {0};                            \
                                                                   \
        assert_ok(encode(from, sizeof(from) - 1, form, &buffer_)); \
        assert_int_equal(buffer_.length, sizeof(to) - 1);          \
        assert_memory_equal(buffer_.bytes, to, sizeof(to) - 1);    \
        zt_buffer_free(&buffer_);                                  \
    } while (0)

static void assert_unsupported(const char *bytes, size_t length)
{
    struct zt_buffer buffer = {0};

    assert_int_equal(encode(bytes, length, ZT_ATTRIBUTES_ZT2, &buffer), ZT_UNSUPPORTED);
    assert_int_equal(error.status, ZT_UNSUPPORTED);
    assert_ok(encode(bytes, length, ZT_ATTRIBUTES_ZT1, &buffer));
    zt_buffer_free(&buffer);
}

TEST(keys_are_put_in_the_order_of_each_form)
{
    /* {"b": 1, "aa": 2}: bytewise "aa" comes first, in deterministic CBOR "b". */
    ASSERT_ENCODES(ZT_ATTRIBUTES_ZT1, "\xA2\x61\x62\x01\x62\x61\x61\x02",
                   "\xA2\x62\x61\x61\x02\x61\x62\x01");
    ASSERT_ENCODES(ZT_ATTRIBUTES_ZT2, "\xA2\x62\x61\x61\x02\x61\x62\x01",
                   "\xA2\x61\x62\x01\x62\x61\x61\x02");
}

TEST(heads_become_shortest_and_definite)
{
    /* {_ "a": [_ 1 (in 8 bytes), "x" in chunks], "f": 1.0 (in 8 bytes)} */
    ASSERT_ENCODES(ZT_ATTRIBUTES_ZT2,
                   "\xBF\x78\x01\x61\x9F\x1B\x00\x00\x00\x00\x00\x00\x00\x01\x7F\x61x\xFF\xFF"
                   "\x61\x66\xFB\x3F\xF0\x00\x00\x00\x00\x00\x00\xFF",
                   "\xA2\x61\x61\x82\x01\x61x\x61\x66\xF9\x3C\x00");
}

TEST(ztensor_2_takes_no_tags_undefined_or_simple_values)
{
    assert_unsupported("\xA1\x61\x61\xC1\x00", 5);
    assert_unsupported("\xA1\x61\x61\xF7", 4);
    assert_unsupported("\xA1\x61\x61\xE0", 4);
    assert_unsupported("\xA1\x61\x61\xF8\xFF", 5);
    assert_unsupported("\xA1\x60\x00", 3);         /* an empty key */
    assert_unsupported("\xA1\x62\x61\x00\x00", 5); /* a key with NUL */
}

TEST(canonical_form_composes_top_keys_and_refuses_those_that_become_one)
{
    static const char twice[] = "\xA2\x62\xC3\xA9\x01\x63\x65\xCC\x81\x02";
    struct zt_buffer buffer = {0};

    ASSERT_ENCODES(ZT_ATTRIBUTES_ZT2_CANONICAL, "\xA1\x63\x65\xCC\x81\x02", "\xA1\x62\xC3\xA9\x02");
    assert_int_equal(encode(twice, sizeof(twice) - 1, ZT_ATTRIBUTES_ZT2_CANONICAL, &buffer),
                     ZT_UNSUPPORTED);
    zt_buffer_free(&buffer);
}

TEST(levels_are_bounded)
{
    static const char levels[] = {(char)0x81, (char)0xC1}; /* an array, a tag */
    char nested[64] = "\xA1\x61\x61";
    struct zt_buffer buffer = {0};

    for (size_t i = 0; i < sizeof(levels); i++) {
        const enum zt_attributes_form form = i == 0 ? ZT_ATTRIBUTES_ZT2 : ZT_ATTRIBUTES_ZT1;

        memset(nested + 3, 0, sizeof(nested) - 3);
        memset(nested + 3, levels[i], LEVELS_MAX - 1);
        assert_ok(encode(nested, 3 + LEVELS_MAX - 1 + 1, form, &buffer));
        memset(nested + 3, levels[i], LEVELS_MAX);
        assert_int_equal(encode(nested, 3 + LEVELS_MAX + 1, form, &buffer), ZT_UNSUPPORTED);
    }
    zt_buffer_free(&buffer);
}

TEST(entries_are_counted_whatever_the_length_of_the_map)
{
    assert_int_equal(zt_attributes_count((struct zt_text){NULL, 0}), 0);
    assert_int_equal(zt_attributes_count((struct zt_text){"\xA0", 1}), 0);
    assert_int_equal(zt_attributes_count((struct zt_text){"\xA2\x61\x61\x01\x61\x62\x02", 7}), 2);
    assert_int_equal(zt_attributes_count((struct zt_text){"\xBF\x61\x61\x01\x61\x62\x02\xFF", 8}),
                     2);
}

/* --- JSON --- */

static const struct zt_json_rules rules = {"test Syntax", "test Depth"};

static enum zt_status convert(const char *json, bool wants_exact, struct zt_buffer *buffer)
{
    char bytes[512];
    struct zt_json_reader reader = {.bytes = bytes,
                                    .length = strlen(json),
                                    .base_offset = 100,
                                    .wants_exact = wants_exact,
                                    .rules = &rules};
    struct zt_arena arena;
    struct zt_text value;
    enum zt_status status;

    memcpy(bytes, json, strlen(json) + 1);
    zt_error_clear(&error);
    zt_arena_init(&arena, 4096);
    status = zt_json_to_cbor(&reader, &arena, &value, &error);
    zt_buffer_free(buffer);
    if (status == ZT_OK)
        zt_buffer_append(buffer, value.bytes, value.length);
    zt_arena_free(&arena);
    return status;
}

#define ASSERT_CONVERTS(json, to)                               \
    do {                                                        \
        struct zt_buffer buffer_ = {0};                         \
                                                                \
        assert_ok(convert(json, true, &buffer_));               \
        assert_int_equal(buffer_.length, sizeof(to) - 1);       \
        assert_memory_equal(buffer_.bytes, to, sizeof(to) - 1); \
        zt_buffer_free(&buffer_);                               \
    } while (0)

TEST(json_values_become_the_same_in_cbor)
{
    ASSERT_CONVERTS("{\"a\": [1, -1, 0.5], \"b\": null}",
                    "\xA2\x61\x61\x83\x01\x20\xF9\x38\x00\x61\x62\xF6");
    ASSERT_CONVERTS("[true, false, \"\\u00e9\"]", "\x83\xF5\xF4\x62\xC3\xA9");
    ASSERT_CONVERTS("18446744073709551615", "\x1B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
    ASSERT_CONVERTS("-18446744073709551615", "\x3B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFE");
    ASSERT_CONVERTS("-0", "\xF9\x80\x00");
}

TEST(numbers_that_would_change_are_refused_if_asked)
{
    static const char *const inexact[] = {"18446744073709551616", "1e400", "-99999999999999999999"};
    struct zt_buffer buffer = {0};

    for (size_t i = 0; i < sizeof(inexact) / sizeof(*inexact); i++) {
        assert_int_equal(convert(inexact[i], true, &buffer), ZT_INVALID);
        assert_string_equal(error.rule, rules.syntax);
        assert_int_equal(error.offset, 100);
        assert_ok(convert(inexact[i], false, &buffer));
    }
    zt_buffer_free(&buffer);
}

TEST(keys_that_occur_twice_are_refused_at_any_depth)
{
    struct zt_buffer buffer = {0};

    assert_int_equal(convert("{\"a\": 1, \"a\": 2}", true, &buffer), ZT_INVALID);
    assert_string_equal(error.rule, rules.syntax);
    assert_int_equal(convert("[{\"a\": {\"b\": 1, \"b\": 2}}]", true, &buffer), ZT_INVALID);
    zt_buffer_free(&buffer);
}
