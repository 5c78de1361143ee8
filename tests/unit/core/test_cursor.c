/* Cursors over files and over memory. */
#include <stdlib.h>
#include <string.h>

#include "bytes/cursor.h"
#include "tests.h"

#define RULE "test §Bounds"
/* Larger than the largest window. */
#define FILE_BYTES ((size_t)600 << 10)

static uint8_t *make_bytes(size_t length)
{
    uint8_t *bytes = malloc(length);

    assert_non_null(bytes);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(i % 251);
    return bytes;
}

TEST(cursor_reads_a_file_through_windows)
{
    static const size_t lengths[] = {1, 4096, 17, ZT_CURSOR_TAKE_MAX, 8};
    uint8_t *bytes = make_bytes(FILE_BYTES);
    struct zt_cursor cursor;
    struct zt_source *source = memory_source(bytes, FILE_BYTES);

    assert_ok(zt_cursor_open(&cursor, source, NULL));
    for (unsigned i = 0; zt_cursor_left(&cursor) > 0; i++) {
        uint64_t at = cursor.position;
        uint64_t length = lengths[i % 5];
        const uint8_t *taken;

        if (length > zt_cursor_left(&cursor))
            length = zt_cursor_left(&cursor);
        assert_ok(zt_cursor_take(&cursor, length, &taken, NULL));
        assert_memory_equal(taken, bytes + at, (size_t)length);
        assert_int_equal(cursor.position, at + length);
    }
    zt_cursor_close(&cursor);
    zt_source_close(source);
    free(bytes);
}

TEST(cursor_skips_without_reading)
{
    uint8_t *bytes = make_bytes(FILE_BYTES);
    struct zt_cursor cursor;
    const uint8_t *taken;
    struct zt_source *source = memory_source(bytes, FILE_BYTES);

    assert_ok(zt_cursor_open(&cursor, source, NULL));
    assert_ok(zt_cursor_take(&cursor, 1, &taken, NULL));
    assert_ok(zt_cursor_skip(&cursor, FILE_BYTES - 3, NULL));
    assert_ok(zt_cursor_take(&cursor, 2, &taken, NULL));
    assert_memory_equal(taken, bytes + FILE_BYTES - 2, 2);
    assert_ok(zt_cursor_take(&cursor, 0, &taken, NULL));
    zt_cursor_close(&cursor);
    zt_source_close(source);
    free(bytes);
}

TEST(cursor_reads_numbers_and_borrows_from_memory)
{
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 'z'};
    struct zt_cursor cursor;
    uint32_t narrow;
    uint64_t wide;
    const uint8_t *taken;

    zt_cursor_over(&cursor, bytes, sizeof(bytes));
    assert_ok(zt_cursor_u32(&cursor, &narrow, NULL));
    assert_true(narrow == 0x04030201);
    assert_ok(zt_cursor_u64(&cursor, &wide, NULL));
    assert_true(wide == 0x0C0B0A0908070605);
    assert_ok(zt_cursor_take(&cursor, 1, &taken, NULL));
    assert_ptr_equal(taken, bytes + 12);
}

TEST(cursor_fails_at_its_position_and_stays_there)
{
    static const uint8_t bytes[10] = {0};
    struct zt_cursor cursor;
    struct zt_error error;
    const uint8_t *taken = NULL;
    uint32_t narrow = 5;
    uint64_t wide = 5;

    zt_cursor_over(&cursor, bytes, sizeof(bytes));
    cursor.bounds_rule = RULE;
    assert_ok(zt_cursor_skip(&cursor, 7, &error));
    zt_cursor_take(&cursor, 4, &taken, &error);
    assert_failure(&error, ZT_INVALID, RULE, 7);
    assert_null(taken);
    zt_cursor_u32(&cursor, &narrow, &error);
    assert_failure(&error, ZT_INVALID, RULE, 7);
    zt_cursor_u64(&cursor, &wide, &error);
    assert_failure(&error, ZT_INVALID, RULE, 7);
    zt_cursor_skip(&cursor, UINT64_MAX, &error);
    assert_failure(&error, ZT_INVALID, RULE, 7);
    assert_true(narrow == 5 && wide == 5);
    assert_int_equal(zt_cursor_left(&cursor), 3);
}
