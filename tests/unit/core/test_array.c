/* Growing arrays and buffers, and the numbers in them. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "base/memory.h"

TEST(array_keeps_its_elements_as_it_grows)
{
    uint32_t *items = NULL;
    size_t capacity = 0;
    unsigned growths = 0;

    for (uint32_t i = 0; i < 300000; i++) {
        size_t before = capacity;

        assert_ok(zt_array_reserve(&items, &capacity, i + 1, sizeof(*items), SIZE_MAX));
        growths += capacity != before;
        items[i] = i;
    }
    for (uint32_t i = 0; i < 300000; i++)
        assert_int_equal(items[i], i);
    assert_in_range(growths, 10, 40);
    free(items);
}

TEST(array_never_grows_past_its_cap)
{
    uint64_t *items = NULL;
    uint64_t *kept;
    size_t capacity = 0;

    for (size_t count = 1; count <= 11; count++)
        assert_ok(zt_array_reserve(&items, &capacity, count, sizeof(*items), 11));
    assert_int_equal(capacity, 11);
    kept = items;
    assert_int_equal(zt_array_reserve(&items, &capacity, 12, sizeof(*items), 11), ZT_LIMIT);
    assert_ptr_equal(items, kept);
    assert_int_equal(capacity, 11);
    free(items);
}

TEST(array_rejects_sizes_that_overflow)
{
    uint64_t *items = NULL;
    size_t capacity = 0;

    assert_int_equal(
        zt_array_reserve(&items, &capacity, SIZE_MAX / 8 + 2, sizeof(*items), SIZE_MAX), ZT_LIMIT);
    assert_int_equal(zt_array_reserve(&items, &capacity, SIZE_MAX, sizeof(*items), SIZE_MAX),
                     ZT_LIMIT);
    assert_null(items);
    assert_int_equal(capacity, 0);
}

TEST(trimmed_array_holds_just_its_elements)
{
    uint16_t *items = NULL;
    size_t capacity = 0;

    assert_ok(zt_array_reserve(&items, &capacity, 3, sizeof(*items), 100));
    assert_true(capacity > 3);
    memset(items, 7, 3 * sizeof(*items));
    zt_array_trim(&items, &capacity, 3, sizeof(*items));
    assert_int_equal(capacity, 3);
    assert_int_equal(items[2], 0x0707);
    zt_array_trim(&items, &capacity, 0, sizeof(*items));
    assert_int_equal(capacity, 0);
    assert_null(items);
}

TEST(buffer_appends_bytes_and_little_endian_numbers)
{
    struct zt_buffer buffer = {0};

    zt_buffer_append(&buffer, "ab", 2);
    zt_buffer_append(&buffer, NULL, 0);
    zt_buffer_append_le16(&buffer, 0x0201);
    zt_buffer_append_le32(&buffer, 0x06050403);
    zt_buffer_append_le64(&buffer, 0x0E0D0C0B0A090807);
    assert_false(buffer.failed);
    assert_int_equal(buffer.length, 16);
    assert_memory_equal(buffer.bytes, "ab\1\2\3\4\5\6\7\x8\x9\xa\xb\xc\xd\xe", 16);
    assert_int_equal(zt_load_le16(buffer.bytes + 2), 0x0201);
    assert_int_equal(zt_load_le32(buffer.bytes + 4), 0x06050403);
    assert_true(zt_load_le64(buffer.bytes + 8) == 0x0E0D0C0B0A090807);
    zt_buffer_free(&buffer);
    assert_null(buffer.bytes);
}

TEST(loads_use_every_bit)
{
    static const uint8_t bytes[] = {0xFF, 0xFE, 0xFD, 0xFC, 0xFB, 0xFA, 0xF9, 0xF8, 0xF7};

    assert_int_equal(zt_load_le16(bytes + 1), 0xFDFE);
    assert_true(zt_load_le32(bytes + 1) == 0xFBFCFDFE);
    assert_true(zt_load_le64(bytes + 1) == 0xF7F8F9FAFBFCFDFE);
}

TEST(failed_buffer_stays_failed_and_keeps_what_it_has)
{
    struct zt_buffer buffer = {0};

    zt_buffer_append(&buffer, "kept", 4);
    assert_null(zt_buffer_reserve(&buffer, SIZE_MAX - 2));
    assert_true(buffer.failed);
    zt_buffer_append(&buffer, "lost", 4);
    assert_int_equal(buffer.length, 4);
    assert_memory_equal(buffer.bytes, "kept", 4);
    zt_buffer_free(&buffer);
    assert_false(buffer.failed);
}
