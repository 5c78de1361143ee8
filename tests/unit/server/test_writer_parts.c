/* The streaming writer's parts without a server: records, places, contents. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "upload/writer/writer_contents.h"
#include "upload/writer/writer_places.h"
#include "upload/writer/writer_record.h"

static struct zt_text text(const char *string)
{
    return (struct zt_text){string, strlen(string)};
}

/* --- records --- */

static void make_record(struct record *record, uint8_t kind, uint64_t number)
{
    record_begin(record, kind);
    record_put_uint(record, number);
    record_put_text(record, text("name"));
    record_put_string(record, NULL);
    record_put_string(record, "");
    assert_true(record_close(record));
}

static void assert_record(struct record_reader *reader, uint64_t number)
{
    struct zt_text name;
    char *empty;

    assert_int_equal(record_get_uint(reader), number);
    name = record_get_text(reader);
    assert_int_equal(name.length, 4);
    assert_memory_equal(name.bytes, "name", 4);
    assert_null(record_get_string(reader));
    empty = record_get_string(reader);
    assert_string_equal(empty, "");
    free(empty);
    assert_false(reader->failed);
}

static void records_follow_one_another_to_the_end(void **state)
{
    uint8_t bytes[512] = {0};
    struct record_reader reader;
    struct record records[2];
    size_t length = 0;
    size_t whole;
    uint8_t kind;
    size_t at;

    (void)state;
    for (int i = 0; i < 2; i++) {
        make_record(&records[i], (uint8_t)(7 + i), (uint64_t)i);
        memcpy(bytes + length, records[i].bytes, records[i].length);
        length += records[i].length - RECORD_END_BYTES;
        record_free(&records[i]);
    }
    at = 0;
    for (int i = 0; i < 2; i++) {
        assert_true(record_read(bytes + at, sizeof(bytes) - at, &kind, &reader, &whole));
        assert_int_equal(kind, 7 + i);
        assert_record(&reader, (uint64_t)i);
        at += whole;
    }
    assert_int_equal(at, length);
    assert_false(record_read(bytes + at, sizeof(bytes) - at, &kind, &reader, &whole));
}

static void every_prefix_of_a_record_is_none(void **state)
{
    struct record_reader reader;
    struct record record;
    size_t whole;
    uint8_t kind;

    (void)state;
    make_record(&record, 1, 5);
    for (size_t length = 0; length < record.length - RECORD_END_BYTES; length++)
        assert_false(record_read(record.bytes, length, &kind, &reader, &whole));
    record_free(&record);
}

static void every_bit_of_a_record_counts(void **state)
{
    struct record_reader reader;
    struct record record;
    size_t whole;
    uint8_t kind;

    (void)state;
    make_record(&record, 1, 5);
    for (size_t bit = 0; bit < (record.length - RECORD_END_BYTES) * 8; bit++) {
        record.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(record_read(record.bytes, record.length, &kind, &reader, &whole));
        record.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    record_free(&record);
}

static void fields_past_the_end_are_nothing(void **state)
{
    struct record_reader reader;
    struct record record;
    size_t whole;
    uint8_t kind;

    (void)state;
    record_begin(&record, 1);
    record_put_uint(&record, UINT64_MAX);
    assert_true(record_close(&record));
    assert_true(record_read(record.bytes, record.length, &kind, &reader, &whole));
    assert_int_equal(record_get_text(&reader).length, 0);
    assert_true(reader.failed);
    assert_int_equal(record_get_uint(&reader), 0);
    assert_null(record_get_bytes(&reader, 0));
    record_free(&record);
}

/* --- places --- */

static void places_are_aligned_and_apart(void **state)
{
    struct writer_places places;
    uint64_t offset;

    (void)state;
    writer_places_init(&places, 64);
    assert_true(writer_place_take(&places, 1, 1000, &offset));
    assert_int_equal(offset, 64);
    assert_true(writer_place_take(&places, 65, 1000, &offset));
    assert_int_equal(offset, 128);
    assert_true(writer_place_take(&places, 0, 1000, &offset));
    assert_true(writer_place_take(&places, 1, 1000, &offset));
    assert_int_equal(offset, 256);
    writer_places_free(&places);
}

static void hole_is_filled_exactly_or_not_at_all(void **state)
{
    struct writer_places places;
    uint64_t first;
    uint64_t offset;

    (void)state;
    writer_places_init(&places, 64);
    assert_true(writer_place_take(&places, 100, 10000, &first));
    writer_place_give(&places, first, 100);
    assert_true(writer_place_take(&places, 99, 10000, &offset));
    assert_true(offset > first);
    assert_true(writer_place_take(&places, 100, 10000, &offset));
    assert_int_equal(offset, first);
    assert_true(writer_place_take(&places, 100, 10000, &offset));
    assert_true(offset > first);
    writer_places_free(&places);
}

static void places_end_where_the_file_may(void **state)
{
    struct writer_places places;
    uint64_t offset;

    (void)state;
    writer_places_init(&places, 64);
    assert_false(writer_place_take(&places, 937, 1000, &offset));
    assert_true(writer_place_take(&places, 936, 1000, &offset));
    assert_false(writer_place_take(&places, 1, 1000, &offset));
    assert_false(writer_place_take(&places, UINT64_MAX, UINT64_MAX, &offset));
    writer_place_give(&places, 64, 936);
    assert_true(writer_place_take(&places, 936, 1000, &offset));
    writer_places_free(&places);
}

static void skipped_places_are_not_given_out(void **state)
{
    struct writer_places places;
    uint64_t offset;

    (void)state;
    writer_places_init(&places, 64);
    writer_places_skip(&places, 1001);
    writer_places_skip(&places, 500);
    assert_true(writer_place_take(&places, 1, 10000, &offset));
    assert_int_equal(offset, 1024);
    writer_places_free(&places);
}

/* --- contents --- */

static struct writer_component *component(const char *name, uint64_t length)
{
    const struct zt_shape shape = {.stated = true, .rank = 2, .extents = {2, 3}};
    struct writer_component *made = writer_component_new(text(name), &shape);

    assert_non_null(made);
    made->length = length;
    return made;
}

static void put(struct writer_contents *contents, const char *object, const char *name,
                uint64_t length, bool expects_replaced)
{
    struct writer_component *replaced;

    assert_true(writer_contents_put(contents, text(object), component(name, length), &replaced));
    assert_int_equal(replaced != NULL, expects_replaced);
    free(replaced);
}

static bool note_order(void *context, const struct writer_object *object)
{
    char *order = context;

    strncat(order, object->name.bytes, object->name.length);
    for (const struct writer_component *one = object->components; one != NULL; one = one->next) {
        struct zt_text name = writer_component_name(one);

        strncat(order, name.bytes, name.length);
    }
    return object->name.bytes[0] != 'y';
}

static void contents_are_in_order_of_names(void **state)
{
    struct writer_contents contents = {0};
    char order[64] = "";

    (void)state;
    put(&contents, "x", "3", 1, false);
    put(&contents, "b", "1", 1, false);
    put(&contents, "x", "1", 1, false);
    put(&contents, "y", "1", 1, false);
    put(&contents, "x", "2", 1, false);
    put(&contents, "z", "1", 1, false);
    writer_contents_walk(&contents, note_order, order);
    assert_string_equal(order, "b1x123y1");
    assert_int_equal(contents.object_count, 4);
    writer_contents_free(&contents);
}

static void component_of_the_same_name_replaces(void **state)
{
    struct writer_contents contents = {0};
    uint64_t held;
    const struct writer_object *object;

    (void)state;
    put(&contents, "x", "a", 1, false);
    put(&contents, "x", "c", 2, false);
    held = contents.held_bytes;
    put(&contents, "x", "a", 3, true);
    put(&contents, "x", "c", 4, true);
    assert_int_equal(contents.held_bytes, held);
    object = writer_contents_find(&contents, text("x"));
    assert_int_equal(object->component_count, 2);
    assert_int_equal(writer_object_find(object, text("a"))->length, 3);
    assert_int_equal(writer_component_shape(writer_object_find(object, text("c"))).extents[1], 3);
    assert_null(writer_object_find(object, text("b")));
    assert_null(writer_contents_find(&contents, text("y")));
    writer_contents_free(&contents);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_follow_one_another_to_the_end),
        cmocka_unit_test(every_prefix_of_a_record_is_none),
        cmocka_unit_test(every_bit_of_a_record_counts),
        cmocka_unit_test(fields_past_the_end_are_nothing),
        cmocka_unit_test(places_are_aligned_and_apart),
        cmocka_unit_test(hole_is_filled_exactly_or_not_at_all),
        cmocka_unit_test(places_end_where_the_file_may),
        cmocka_unit_test(skipped_places_are_not_given_out),
        cmocka_unit_test(contents_are_in_order_of_names),
        cmocka_unit_test(component_of_the_same_name_replaces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
