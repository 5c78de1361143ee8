/* Reading CBOR: what each profile accepts and refuses, and skipping. */
#include <stdlib.h>
#include <string.h>

#include "cbor/cbor_read.h"
#include "tests.h"

#define BASE 1000 /* absolute position of the first byte */

/* Skips one whole value given in hexadecimal. */
static enum zt_status skip_hex(enum zt_cbor_profile profile, const char *hex,
                               struct zt_error *error)
{
    size_t length = strlen(hex) / 2;
    uint8_t *bytes = malloc(length > 0 ? length : 1);
    struct zt_cbor_reader reader;
    struct zt_arena arena;
    enum zt_status status;

    assert_non_null(bytes);
    for (size_t i = 0; i < length; i++) {
        char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};

        bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    zt_error_clear(error);
    zt_arena_init(&arena, 1 << 16);
    zt_cbor_reader_init(&reader, bytes, length, BASE, profile, &arena);
    status = zt_cbor_skip(&reader, error);
    if (status == ZT_OK) {
        assert_int_equal(reader.depth, 0);
        status = zt_cbor_end(&reader, error);
    }
    zt_arena_free(&arena);
    free(bytes);
    return status;
}

struct refused {
    const char *rule;
    unsigned position;
    const char *hex;
};

static void assert_refused(enum zt_cbor_profile profile, const struct refused *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct zt_error error;

        skip_hex(profile, list[i].hex, &error);
        if (error.rule == NULL)
            print_error("%s: not refused\n", list[i].hex);
        assert_failure(&error, ZT_INVALID, list[i].rule, BASE + list[i].position);
    }
}

#define ASSERT_REFUSED(profile, list) assert_refused(profile, list, sizeof(list) / sizeof(list[0]))

TEST(zt2_accepts_deterministic_items)
{
    static const char *const accepted[] = {"00",
                                           "17",
                                           "1818",
                                           "190100",
                                           "1a00010000",
                                           "1b0000000100000000",
                                           "20",
                                           "3818",
                                           "40",
                                           "4101",
                                           "60",
                                           "6161",
                                           "62c3a9",
                                           "80",
                                           "820102",
                                           "a0",
                                           "a10102",
                                           "a201020203",
                                           "a261620162616102",
                                           "f4",
                                           "f5",
                                           "f6",
                                           "f90000",
                                           "f98000",
                                           "f97c00",
                                           "f97e00",
                                           "f90001",
                                           "fa47c35000",
                                           "fa7f7fffff",
                                           "fb3ff199999999999a",
                                           "fa33000000",
                                           "a182010203"};

    for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
        struct zt_error error;

        if (skip_hex(ZT_CBOR_ZT2, accepted[i], &error) != ZT_OK)
            fail_msg("%s: %s %s", accepted[i], error.rule, error.message);
    }
}

TEST(zt2_refuses_nondeterministic_items)
{
    static const char determinism[] = "zt2 §2 CborDeterminism";
    const struct refused list[] = {
        {determinism, 0, "1817"},
        {determinism, 0, "1900ff"},
        {determinism, 0, "1a0000ffff"},
        {determinism, 0, "1b00000000ffffffff"},
        {determinism, 0, "3800"},
        {determinism, 0, "580101"},
        {determinism, 0, "780161"},
        {determinism, 0, "980101"},
        {determinism, 0, "b8010102"},
        {determinism, 0, "f97e01"},
        {determinism, 0, "f9fe00"},
        {determinism, 0, "fa7fc00000"},
        {determinism, 0, "fb7ff8000000000000"},
        {determinism, 0, "fa3f800000"},
        {determinism, 0, "fb3ff0000000000000"},
        {determinism, 0, "fb40f86a0000000000"},
        {determinism, 0, "fa33800000"},
        {determinism, 3, "a202010102"},
        {determinism, 5, "a262616101616202"},
        {"zt2 §2 CborDuplicateKey", 3, "a201020103"},
    };

    ASSERT_REFUSED(ZT_CBOR_ZT2, list);
}

TEST(zt2_refuses_items_outside_its_set)
{
    static const char syntax[] = "zt2 §2 CborSyntax";
    const struct refused list[] = {
        {syntax, 0, "c000"},
        {syntax, 0, "c600"},
        {syntax, 0, "9fff"},
        {syntax, 0, "bfff"},
        {syntax, 0, "7fff"},
        {syntax, 0, "5fff"},
        {syntax, 0, "f7"},
        {syntax, 0, "e0"},
        {syntax, 0, "f3"},
        {syntax, 0, "f820"},
        {syntax, 0, "f8ff"},
        {syntax, 0, "f800"},
        {syntax, 0, "f816"},
        {syntax, 0, "ff"},
        {syntax, 1, "81ff"},
        {syntax, 0, ""},
        {syntax, 0, "18"},
        {syntax, 0, "6261"},
        {syntax, 1, "0000"},
        {syntax, 0, "1c"},
        {syntax, 0, "9a10000000"},
        {syntax, 0, "bb7fffffffffffffff"},
        {syntax, 0, "5bffffffffffffffff"},
        {syntax, 0, "61ff"},
        {syntax, 0, "62c080"},
        {syntax, 0, "63eda080"},
        {syntax, 0, "64f4908080"},
        {syntax, 0, "63e08080"},
        {syntax, 0, "64f0808080"},
        {syntax, 0, "62c3"},
        {syntax, 0, "a101"},
    };

    ASSERT_REFUSED(ZT_CBOR_ZT2, list);
}

TEST(lenient_profiles_accept_any_encoding)
{
    static const char *const accepted[] = {"1817",
                                           "9fff",
                                           "bfff",
                                           "7fff",
                                           "5fff",
                                           "5f4101580102ff",
                                           "7f6161780162ff",
                                           "c000",
                                           "c600",
                                           "d400",
                                           "d9d9f700",
                                           "f7",
                                           "e0",
                                           "f3",
                                           "f820",
                                           "f8ff",
                                           "81f8ff",
                                           "a2e000f82000",
                                           "fb3ff0000000000000",
                                           "fb7ff8000000000001",
                                           "a202010102",
                                           "bf02010102ff",
                                           "9f9fffbfffff",
                                           "a26161a1617801617802",
                                           "a241010062010100",
                                           "a220000000"};

    for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
        struct zt_error error;

        if (skip_hex(ZT_CBOR_ZT1, accepted[i], &error) != ZT_OK)
            fail_msg("%s: %s %s", accepted[i], error.rule, error.message);
    }
}

TEST(lenient_profiles_refuse_broken_items)
{
    static const char syntax[] = "zt0.1 §Metadata CborSyntax";
    static const char duplicate[] = "zt0.1 §Metadata CborDuplicateKey";
    const struct refused list[] = {
        {syntax, 1, "7f4161ff"},
        {syntax, 1, "7f7fffff"},
        {syntax, 2, "9f00"},
        {syntax, 3, "bf0000"},
        {syntax, 2, "bf00ff"},
        {syntax, 1, "c0"},
        {syntax, 1, "7f61c3ff"},
        {syntax, 1, "5f6161ff"},
        {syntax, 0, "f8"},
        {syntax, 0, "f800"},
        {syntax, 0, "f814"},
        {syntax, 1, "81f81f"},
        {syntax, 0, "fc"},
        {duplicate, 3, "a3010201020304"},
        {duplicate, 3, "bf01020103ff"},
        {duplicate, 3, "a20000180000"},
        {duplicate, 3, "a22000380000"},
        {duplicate, 4, "a26161007f6161ff00"},
        {duplicate, 5, "a2f97e0000f97e0000"},
        {duplicate, 3, "a2e000e000"},
        {duplicate, 4, "a2f82000f82000"},
    };

    ASSERT_REFUSED(ZT_CBOR_ZT01, list);
}

/* Skips a map of count keys below 65536 (two bytes wide each), all with the value 0. */
static enum zt_status skip_keys(const uint16_t *keys, size_t count, struct zt_error *error)
{
    uint8_t bytes[3 + 4 * 1024];
    struct zt_cbor_reader reader;
    size_t length = 0;

    assert_in_range(count, 0, 1024);
    bytes[length++] = 0xB9;
    bytes[length++] = (uint8_t)(count >> 8);
    bytes[length++] = (uint8_t)count;
    for (size_t i = 0; i < count; i++) {
        bytes[length++] = 0x19;
        bytes[length++] = (uint8_t)(keys[i] >> 8);
        bytes[length++] = (uint8_t)keys[i];
        bytes[length++] = 0x00;
    }
    zt_error_clear(error);
    zt_cbor_reader_init(&reader, bytes, length, 0, ZT_CBOR_ZT1, NULL);
    return zt_cbor_skip(&reader, error);
}

TEST(equal_keys_are_found_in_any_order)
{
    uint16_t keys[1024];
    uint32_t random = 1;

    for (size_t count = 2; count <= 1000; count += 1 + count / 16) {
        struct zt_error error;
        size_t first;

        /* Odd multipliers permute the 16-bit numbers. */
        random = random * 1664525 + 1013904223;
        for (size_t i = 0; i < count; i++)
            keys[i] = (uint16_t)((i + 1) * (random >> 8 | 1));
        assert_ok(skip_keys(keys, count, &error));
        first = random % count;
        keys[count] = keys[first];
        skip_keys(keys, count + 1, &error);
        assert_failure(&error, ZT_INVALID, "zt1 §1 CborDuplicateKey", 3 + 4 * count);
    }
}

TEST(depth_is_counted_for_keys_and_values)
{
    char hex[2 * 40 + 1];
    struct zt_error error;

    for (unsigned i = 0; i < 40; i++)
        memcpy(hex + 2 * i, "81", 3);
    memcpy(hex + 2 * 32, "00", 3);
    assert_ok(skip_hex(ZT_CBOR_ZT2, hex, &error));
    memcpy(hex + 2 * 32, "8100", 5);
    skip_hex(ZT_CBOR_ZT2, hex, &error);
    assert_failure(&error, ZT_INVALID, "zt2 §2 CborDepth", BASE + 33);
    memcpy(hex + 2 * 32, "80", 3);
    assert_ok(skip_hex(ZT_CBOR_ZT2, hex, &error));
    memcpy(hex + 2 * 32, "a10000", 7);
    skip_hex(ZT_CBOR_ZT2, hex, &error);
    assert_failure(&error, ZT_INVALID, "zt2 §2 CborDepth", BASE + 33);
}

TEST(next_joins_a_chunked_text)
{
    static const uint8_t bytes[] = "\x7F\x62ze\x60\x63nso\xFF\x01";
    struct zt_cbor_reader reader;
    struct zt_cbor_item item;
    struct zt_arena arena;
    struct zt_error error;

    zt_arena_init(&arena, 4096);
    zt_cbor_reader_init(&reader, bytes, sizeof(bytes) - 1, 0, ZT_CBOR_ZT1, &arena);
    assert_ok(zt_cbor_next(&reader, &item, NULL));
    assert_int_equal(item.kind, ZT_CBOR_TEXT);
    assert_int_equal(item.value, 5);
    assert_memory_equal(item.bytes, "zenso", 5);
    assert_ok(zt_cbor_next(&reader, &item, NULL));
    assert_int_equal(item.value, 1);
    zt_cbor_reader_init(&reader, bytes, sizeof(bytes) - 1, 0, ZT_CBOR_ZT1, NULL);
    assert_int_equal(zt_cbor_next(&reader, &item, &error), ZT_UNSUPPORTED);
    zt_arena_free(&arena);
}

TEST(next_untagged_counts_tags_as_levels)
{
    uint8_t bytes[130];
    struct zt_cbor_reader reader;
    struct zt_cbor_item item;
    struct zt_error error;

    memset(bytes, 0xC1, sizeof(bytes));
    bytes[128] = 0x07;
    zt_cbor_reader_init(&reader, bytes, sizeof(bytes), 0, ZT_CBOR_ZT1, NULL);
    assert_ok(zt_cbor_next_untagged(&reader, &item, NULL));
    assert_int_equal(item.value, 7);
    assert_int_equal(reader.depth, 0);
    bytes[128] = 0xC1;
    bytes[129] = 0x07;
    zt_cbor_reader_init(&reader, bytes, sizeof(bytes), 0, ZT_CBOR_ZT1, NULL);
    zt_cbor_next_untagged(&reader, &item, &error);
    assert_failure(&error, ZT_INVALID, "zt1 §1 CborDepth", 129);
}

TEST(map_find_gives_the_value_of_a_text_key)
{
    static const char map[] = "\xA3\x01\x02\x61\x61\xA1\x61\x62\x00\x7F\x61\x62\x61\x63\xFF\x07";
    struct zt_text text;
    struct zt_cbor_reader value;
    struct zt_cbor_item item;

    /* {1: 2, "a": {"b": 0}, (_ "b", "c"): 7} */
    text = (struct zt_text){map, sizeof(map) - 1};
    assert_true(zt_cbor_map_find(text, "bc", &value));
    assert_ok(zt_cbor_next(&value, &item, NULL));
    assert_int_equal(item.value, 7);
    assert_true(zt_cbor_map_find(text, "a", &value));
    assert_ok(zt_cbor_next(&value, &item, NULL));
    assert_int_equal(item.kind, ZT_CBOR_MAP);
    assert_false(zt_cbor_map_find(text, "b", &value));
    assert_false(zt_cbor_map_find((struct zt_text){NULL, 0}, "b", &value));
}

TEST(key_of_items_is_read_whole)
{
    static const uint8_t bytes[] = {0xA1, 0x82, 0x01, 0x02, 0x03};
    struct zt_cbor_reader reader;
    struct zt_cbor_item item;
    struct zt_cbor_walk walk;

    zt_cbor_reader_init(&reader, bytes, sizeof(bytes), 0, ZT_CBOR_ZT2, NULL);
    assert_ok(zt_cbor_next(&reader, &item, NULL));
    walk = zt_cbor_enter(&reader, &item);
    assert_true(zt_cbor_more(&reader, &walk));
    assert_ok(zt_cbor_key(&reader, &walk, &item, NULL));
    assert_int_equal(item.kind, ZT_CBOR_ARRAY);
    assert_int_equal(item.value, 3);
    assert_ptr_equal(item.bytes, bytes + 1);
    assert_int_equal(reader.position, 4);
}
