/* Adding a list of texts to attributes: the other pairs stay as they are. */
#include <stdlib.h>

#include "tests.h"
#include "zt/attributes.h"

static const struct zt_text names[] = {{"a", 1}, {"b\"c", 3}};

static void check(const char *cbor, size_t length, bool is_json, const char *json)
{
    const struct zt_attribute_list list = {"left", names, 2, is_json};
    struct zt_text map;
    struct zt_error error;

    assert_int_equal(zt_attributes_with_list((struct zt_text){cbor, length}, &list, &map, &error),
                     ZT_OK);
    assert_json(map, json);
    free((char *)(uintptr_t)map.bytes);
}

/* The bytes of a literal, without its NUL. */
#define CHECK(cbor, is_json, json) check(cbor, sizeof(cbor) - 1, is_json, json)

TEST(a_list_is_added_to_no_attributes)
{
    check(NULL, 0, false, "{\"left\":[\"a\",\"b\\\"c\"]}");
    CHECK("\xA0", false, "{\"left\":[\"a\",\"b\\\"c\"]}");
}

TEST(a_list_may_be_one_text_of_json)
{
    CHECK("\xA0", true, "{\"left\":\"[\\\"a\\\",\\\"b\\\\\\\"c\\\"]\"}");
}

TEST(other_attributes_are_kept)
{
    CHECK("\xA2\x61x\x01\x61y\xA1\x61z\x82\x01\x02", false,
          "{\"x\":1,\"y\":{\"z\":[1,2]},\"left\":[\"a\",\"b\\\"c\"]}");
    /* Of indefinite length, with a text in chunks. */
    CHECK("\xBF\x61x\x7F\x61p\x61q\xFF\xFF", false, "{\"x\":\"pq\",\"left\":[\"a\",\"b\\\"c\"]}");
}

TEST(an_earlier_list_is_replaced)
{
    CHECK("\xA2\x64left\x83\x01\x02\x03\x61y\x02", false, "{\"y\":2,\"left\":[\"a\",\"b\\\"c\"]}");
}

TEST(a_list_may_be_empty)
{
    const struct zt_attribute_list list = {"left", NULL, 0, true};
    struct zt_text map;
    struct zt_error error;

    assert_int_equal(zt_attributes_with_list((struct zt_text){NULL, 0}, &list, &map, &error),
                     ZT_OK);
    assert_json(map, "{\"left\":\"[]\"}");
    free((char *)(uintptr_t)map.bytes);
}
