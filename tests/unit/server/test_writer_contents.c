/* What a streaming writer's upload holds, without a server: places in its file, objects and
 * components. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>

#include "upload/writer/writer_contents.h"
#include "upload/writer/writer_places.h"

/* --- places --- */

TEST(places_are_aligned_and_apart)
{
    struct writer_places places;
    uint64_t offset;

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

TEST(hole_is_filled_exactly_or_not_at_all)
{
    struct writer_places places;
    uint64_t first;
    uint64_t offset;

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

TEST(places_end_where_the_file_may)
{
    struct writer_places places;
    uint64_t offset;

    writer_places_init(&places, 64);
    assert_false(writer_place_take(&places, 937, 1000, &offset));
    assert_true(writer_place_take(&places, 936, 1000, &offset));
    assert_false(writer_place_take(&places, 1, 1000, &offset));
    assert_false(writer_place_take(&places, UINT64_MAX, UINT64_MAX, &offset));
    writer_place_give(&places, 64, 936);
    assert_true(writer_place_take(&places, 936, 1000, &offset));
    writer_places_free(&places);
}

TEST(skipped_places_are_not_given_out)
{
    struct writer_places places;
    uint64_t offset;

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
    struct writer_component *made = writer_component_new(zt_text_from(name), &shape);

    assert_non_null(made);
    made->length = length;
    return made;
}

static void put(struct writer_contents *contents, const char *object, const char *name,
                uint64_t length, bool expects_replaced)
{
    struct writer_component *replaced;

    assert_true(
        writer_contents_put(contents, zt_text_from(object), component(name, length), &replaced));
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

TEST(contents_are_in_order_of_names)
{
    struct writer_contents contents = {0};
    char order[64] = "";

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

TEST(component_of_the_same_name_replaces)
{
    struct writer_contents contents = {0};
    uint64_t held;
    const struct writer_object *object;

    put(&contents, "x", "a", 1, false);
    put(&contents, "x", "c", 2, false);
    held = contents.held_bytes;
    put(&contents, "x", "a", 3, true);
    put(&contents, "x", "c", 4, true);
    assert_int_equal(contents.held_bytes, held);
    object = writer_contents_find(&contents, zt_text_from("x"));
    assert_int_equal(object->component_count, 2);
    assert_int_equal(writer_object_find(object, zt_text_from("a"))->length, 3);
    assert_int_equal(
        writer_component_shape(writer_object_find(object, zt_text_from("c"))).extents[1], 3);
    assert_null(writer_object_find(object, zt_text_from("b")));
    assert_null(writer_contents_find(&contents, zt_text_from("y")));
    writer_contents_free(&contents);
}
