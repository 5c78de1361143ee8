/* The catalog: lists of models, in order, in pages, and with a filter. */
#include "model_world.h"
#include "tests.h"

AROUND_EACH_TEST(world_set_up, world_tear_down)

TEST_ON(struct world *world, lists_come_in_order_and_in_pages)
{
    static const char *const names[] = {"a", "a-b", "a/b", "a/c", "b"};
    struct generation *found[8];
    char after[64] = "";
    bool more = true;

    world_command(world,
                  "mkdir a; for n in a a-b a/b a/c b; do echo x > $n.zt; echo y > $n.npz; done");
    world_load(world);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(world_list(world, (struct world_bounds){"", after}, 1, found, &more), 1);
        snprintf(after, sizeof(after), "%.*s", (int)found[0]->name_length, found[0]->path);
        assert_string_equal(after, names[i]);
        assert_int_equal(more, i < 4);
        generation_release(found[0]);
    }
    assert_int_equal(world_list(world, (struct world_bounds){"a/", ""}, 8, found, &more), 2);
    assert_string_equal(found[0]->path, "a/b.zt");
    assert_string_equal(found[1]->path, "a/c.zt");
    assert_false(more);
    generation_release(found[0]);
    generation_release(found[1]);
    assert_int_equal(world_list(world, (struct world_bounds){"a/", "a/c"}, 8, found, &more), 0);
    assert_int_equal(world_list(world, (struct world_bounds){"b", "a"}, 8, found, &more), 1);
    generation_release(found[0]);
}

static bool is_even(const void *context, struct zt_text name)
{
    (void)context;
    return (name.bytes[name.length - 1] - '0') % 2 == 0;
}

TEST_ON(struct world *world, lists_with_a_filter_count_only_what_passes)
{
    struct catalog_page page = {.prefix = text_of("m"), .filter = {is_even, NULL}, .limit = 2};
    struct generation *found[8];
    struct catalog_page_end end;

    world_command(world, "for n in m0 m1 m2 m3 m4 m5; do echo x > $n.npy; done");
    world_load(world);
    assert_int_equal(catalog_list(world->server.catalog, &page, found, &end), 2);
    assert_string_equal(found[0]->path, "m0.npy");
    assert_string_equal(found[1]->path, "m2.npy");
    assert_true(end.more);
    generation_release(found[0]);
    generation_release(found[1]);
    page.after = text_of("m2");
    assert_int_equal(catalog_list(world->server.catalog, &page, found, &end), 1);
    assert_string_equal(found[0]->path, "m4.npy");
    /* m5 follows, but does not pass. */
    assert_false(end.more);
    generation_release(found[0]);
}

struct counting_filter {
    const char *wanted;
    size_t asked;
};

static bool is_wanted(const void *context, struct zt_text name)
{
    struct counting_filter *filter = (struct counting_filter *)(uintptr_t)context;

    filter->asked++;
    return zt_text_is(name, filter->wanted);
}

/* And never at only some of the files of a name, of which each has two here. */
TEST_ON(struct world *world, a_list_looks_at_so_many_names_at_a_time)
{
    struct counting_filter filter = {"c", 0};
    struct catalog_page page = {
        .prefix = text_of(""), .filter = {is_wanted, &filter}, .limit = 8, .looks = 3};
    struct generation *found[8];
    struct catalog_page_end end;

    world_command(world, "for n in a b c d e f g; do echo x > $n.npy; echo y > $n.npz; done");
    world_load(world);
    assert_int_equal(catalog_list(world->server.catalog, &page, found, &end), 0);
    assert_int_equal(filter.asked, 2);
    assert_false(end.more);
    assert_non_null(end.reached);
    assert_true(zt_text_is(generation_name(end.reached), "b"));
    page.after = text_of("b");
    generation_release(end.reached);
    assert_int_equal(catalog_list(world->server.catalog, &page, found, &end), 1);
    assert_int_equal(filter.asked, 4);
    assert_true(zt_text_is(generation_name(found[0]), "c"));
    generation_release(found[0]);
    assert_true(zt_text_is(generation_name(end.reached), "d"));
    generation_release(end.reached);
    /* Whatever the limit, a step ends; and the last one says so. */
    page.limit = 0;
    page.after = text_of("e");
    assert_int_equal(catalog_list(world->server.catalog, &page, found, &end), 0);
    assert_null(end.reached);
    assert_false(end.more);
    page.after = text_of("b");
    page.prefix = text_of("c");
    assert_int_equal(catalog_list(world->server.catalog, &page, found, &end), 0);
    assert_true(end.more);
    assert_null(end.reached);
}
