/* Overlapping ranges of components, in models made by hand. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>

#include "model/extents.h"

#define RULE "zt2 §1 BlobOverlap"

struct range {
    uint64_t offset;
    uint64_t length;
    uint32_t shard;
};

/* One object for each range, named after its number. */
struct fixture {
    struct zt_model model;
    struct zt_object objects[16];
    struct zt_component components[16];
};

static const char letters[] = "abcdefghijklmnop";

static void fill(struct fixture *fixture, const struct range *ranges, uint32_t count)
{
    memset(fixture, 0, sizeof(*fixture));
    for (uint32_t i = 0; i < count; i++) {
        fixture->objects[i] = (struct zt_object){
            .name = &letters[i], .name_length = 1, .first_component = i, .component_count = 1};
        fixture->components[i] = (struct zt_component){.name = "data",
                                                       .name_length = 4,
                                                       .offset = ranges[i].offset,
                                                       .length = ranges[i].length,
                                                       .shard = ranges[i].shard};
    }
    fixture->model = (struct zt_model){.objects = fixture->objects,
                                       .object_count = count,
                                       .components = fixture->components,
                                       .component_count = count,
                                       .manifest_offset = 1000,
                                       .manifest_length = 100};
}

static enum zt_status check(const struct range *ranges, uint32_t count, bool include_manifest,
                            struct zt_error *error)
{
    struct fixture fixture;

    fill(&fixture, ranges, count);
    zt_error_clear(error);
    return zt_extents_check(&fixture.model, include_manifest, RULE, error);
}

TEST(accepts_disjoint_ranges_in_any_order)
{
    static const struct range ordered[] = {{0, 10, 0}, {10, 10, 0}, {30, 1, 0}};
    static const struct range shuffled[] = {
        {30, 1, 0}, {0, 10, 0}, {20, 10, 0}, {10, 10, 0}, {31, 5, 0}};
    struct zt_error error;

    assert_ok(check(ordered, 3, true, &error));
    assert_ok(check(shuffled, 5, true, &error));
    assert_ok(check(NULL, 0, true, &error));
}

TEST(accepts_identical_ranges)
{
    static const struct range ranges[] = {
        {10, 10, 0}, {0, 10, 0}, {10, 10, 0}, {0, 10, 0}, {10, 10, 0}};
    struct zt_error error;

    assert_ok(check(ranges, 5, true, &error));
}

TEST(refuses_overlap_at_the_later_range)
{
    static const struct range ordered[] = {{0, 11, 0}, {10, 10, 0}};
    static const struct range shuffled[] = {{40, 8, 0}, {10, 10, 0}, {19, 2, 0}, {0, 10, 0}};
    static const struct range nested[] = {{0, 100, 0}, {50, 1, 0}};
    struct zt_error error;

    assert_int_equal(check(ordered, 2, false, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, RULE, 10);
    assert_string_equal(error.object, "b");
    assert_string_equal(error.component, "data");
    assert_int_equal(check(shuffled, 4, false, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, RULE, 19);
    assert_string_equal(error.object, "c");
    assert_int_equal(check(nested, 2, false, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, RULE, 50);
}

TEST(refuses_ranges_that_begin_together_and_end_apart)
{
    static const struct range ranges[] = {{0, 10, 0}, {0, 10, 0}, {0, 9, 0}};
    struct zt_error error;

    assert_int_equal(check(ranges, 3, false, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, RULE, 0);
}

TEST(sees_each_shard_by_itself)
{
    static const struct range apart[] = {{0, 10, 2}, {5, 10, 0}, {5, 8, 1}};
    static const struct range together[] = {{0, 10, 2}, {5, 10, 0}, {5, 8, 2}};
    struct zt_error error;

    assert_ok(check(apart, 3, false, &error));
    assert_int_equal(check(together, 3, false, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, RULE, 5);
    assert_string_equal(error.object, "c");
}

TEST(empty_ranges_overlap_nothing)
{
    static const struct range ranges[] = {
        {0, 10, 0}, {5, 0, 0}, {5, 0, 0}, {10, 10, 0}, {1050, 0, 0}};
    struct zt_error error;

    assert_ok(check(ranges, 5, true, &error));
}

TEST(the_manifest_is_a_range_of_the_own_file)
{
    static const struct range into[] = {{990, 11, 0}};
    static const struct range inside[] = {{1001, 1, 0}};
    static const struct range same[] = {{1000, 100, 0}};
    static const struct range in_shard[] = {{990, 11, 1}};
    struct zt_error error;

    assert_int_equal(check(into, 1, true, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, RULE, 1000);
    assert_string_equal(error.object, "a");
    assert_int_equal(check(inside, 1, true, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, RULE, 1001);
    assert_ok(check(into, 1, false, &error));
    assert_ok(check(same, 1, true, &error));
    assert_ok(check(in_shard, 1, true, &error));
}

TEST(ends_past_64_bits_do_not_wrap)
{
    static const struct range ranges[] = {{8, UINT64_MAX, 0}, {4, 2, 0}};
    static const struct range overlapping[] = {{8, UINT64_MAX, 0}, {UINT64_MAX - 1, 4, 0}};
    struct zt_error error;

    assert_ok(check(ranges, 2, false, &error));
    assert_int_equal(check(overlapping, 2, false, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, RULE, UINT64_MAX - 1);
}

/* A million ranges, shuffled by multiplication. If one is made longer, that one is found. */
TEST(sorts_a_million_shuffled_ranges)
{
    enum { COUNT = 1000003 }; /* prime, so that each occurs once */
    struct zt_component *components = calloc(COUNT, sizeof(*components));
    struct zt_model model = {.components = components, .component_count = COUNT};
    struct zt_error error;

    assert_non_null(components);
    for (uint64_t i = 0; i < COUNT; i++)
        components[i] =
            (struct zt_component){.name = "", .offset = i * 765432 % COUNT * 64, .length = 64};
    assert_ok(zt_extents_check(&model, true, RULE, &error));
    components[765].length = 65;
    assert_int_equal(zt_extents_check(&model, true, RULE, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, RULE, components[765].offset + 64);
    free(components);
}
