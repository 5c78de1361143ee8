/* Generations of readable and unreadable files, their tags and side tables. */
#include "model_world.h"
#include "tests.h"

static struct generation *open_path(const struct world *world, const char *path)
{
    return generation_open(&world->server, path, NULL);
}

AROUND_EACH_TEST(world_set_up, world_tear_down)

TEST_ON(struct world *world, generation_of_a_model_has_name_format_and_tag)
{
    struct generation *generation;
    char derived[64];

    world_command(world, "mkdir x");
    world_model(world, "x/m.zt", true);
    world_command(world, "touch -d '2024-01-02T03:04:05.9Z' x/m.zt");
    generation = open_path(world, "x/m.zt");
    assert_non_null(generation->model);
    assert_int_equal(generation->error->status, ZT_OK);
    assert_int_equal(generation_name(generation).length, 3);
    assert_memory_equal(generation_name(generation).bytes, "x/m", 3);
    assert_string_equal(generation_format(generation), "zt");
    assert_int_equal(generation_modified(generation), 1704164645);
    assert_int_equal(strlen(generation->etag), 34);
    generation_etag(generation, "zstd", derived, sizeof(derived));
    assert_int_equal(strlen(derived), 39);
    assert_memory_equal(derived, generation->etag, 33);
    assert_string_equal(derived + 33, "-zstd\"");
    assert_ptr_equal(generation_hold(generation), generation);
    generation_release(generation);
    generation_release(generation);
    generation_release(NULL);
}

TEST_ON(struct world *world, tags_follow_the_version_of_the_file)
{
    struct generation *first;
    struct generation *same;
    struct generation *other;

    world_model(world, "m.zt", true);
    first = open_path(world, "m.zt");
    same = open_path(world, "m.zt");
    assert_string_equal(first->etag, same->etag);
    generation_release(same);
    /* No byte changed, but a writer that sets the time of modification back leaves no other
     * trace. */
    pause_ms(20);
    world_command(world, "chmod 600 m.zt");
    same = open_path(world, "m.zt");
    assert_string_not_equal(first->etag, same->etag);
    assert_true(first->identity.changed_ns != same->identity.changed_ns);
    world_command(world, "touch -d '2024-01-02' m.zt");
    other = open_path(world, "m.zt");
    assert_string_not_equal(first->etag, other->etag);
    generation_release(other);
    world_command(world, "cp -p m.zt n.zt && mv n.zt m.zt");
    other = open_path(world, "m.zt");
    assert_string_not_equal(first->etag, other->etag);
    generation_release(other);
    generation_release(same);
    generation_release(first);
}

TEST_ON(struct world *world, renamed_files_are_unwritten_but_not_the_same)
{
    struct generation *generation;

    world_model(world, "m.zt", true);
    generation = open_path(world, "m.zt");
    assert_true(generation_is_same(generation));
    assert_true(generation_is_unwritten(generation));
    pause_ms(20);
    world_command(world, "mv m.zt n.zt");
    assert_false(generation_is_same(generation));
    assert_true(generation_is_unwritten(generation));
    world_overwrite(world, "n.zt", 64);
    assert_false(generation_is_unwritten(generation));
    generation_release(generation);
}

struct counted_table {
    struct side_table base;
    unsigned *freed;
};

static void free_counted(struct side_table *table, const struct generation *generation)
{
    struct counted_table *counted = (struct counted_table *)table;

    assert_non_null(generation->model);
    ++*counted->freed;
    free(counted);
}

static struct side_table *counted_new(unsigned *freed)
{
    struct counted_table *table = calloc(1, sizeof(*table));

    assert_non_null(table);
    *table = (struct counted_table){.base = {free_counted}, .freed = freed};
    return &table->base;
}

TEST_ON(struct world *world, the_first_side_table_is_kept_and_freed_with_the_generation)
{
    struct generation *generation;
    struct side_table *first;
    unsigned freed = 0;

    world_model(world, "m.zt", true);
    generation = open_path(world, "m.zt");
    assert_null(generation_side_table(generation, SIDE_TABLE_PASSTHROUGH));
    first = counted_new(&freed);
    assert_ptr_equal(generation_attach(generation, SIDE_TABLE_PASSTHROUGH, first), first);
    assert_ptr_equal(generation_attach(generation, SIDE_TABLE_PASSTHROUGH, counted_new(&freed)),
                     first);
    assert_int_equal(freed, 1);
    assert_ptr_equal(generation_side_table(generation, SIDE_TABLE_PASSTHROUGH), first);
    generation_release(generation);
    assert_int_equal(freed, 2);
}

TEST_ON(struct world *world, times_of_the_future_are_now)
{
    struct generation *generation;
    time_t before = time(NULL);

    world_model(world, "m.zt", true);
    world_command(world, "touch -d '2100-01-01T00:00:00Z' m.zt");
    generation = open_path(world, "m.zt");
    assert_int_equal(generation->identity.modified_ns, INT64_C(4102444800000000000));
    assert_true(generation_modified(generation) >= before &&
                generation_modified(generation) <= time(NULL));
    generation_release(generation);
}

TEST_ON(struct world *world, unreadable_files_are_generations_with_an_error)
{
    struct generation *generation;

    world_command(world, "echo nonsense > m.gguf");
    generation = open_path(world, "m.gguf");
    assert_non_null(generation);
    assert_null(generation->model);
    assert_int_not_equal(generation->error->status, ZT_OK);
    assert_true(generation->error->message[0] != '\0');
    assert_string_equal(generation_format(generation), "gguf");
    assert_int_equal(strlen(generation->etag), 34);
    assert_int_equal(zt_source_size(generation->source), 9);
    generation_release(generation);
}

TEST_ON(struct world *world, missing_files_have_no_generation)
{
    assert_null(open_path(world, "missing.zt"));
    assert_null(open_path(world, "../m.zt"));
    assert_null(open_path(world, "name-without-extension"));
}

TEST_ON(struct world *world, replaced_files_stay_as_they_were_while_they_are_held)
{
    struct generation *generation;
    uint8_t before[16];
    uint8_t after[16];

    world_model(world, "m.zt", true);
    generation = open_path(world, "m.zt");
    assert_int_equal(zt_source_read_at(generation->source, 64, before, 16, NULL), ZT_OK);
    world_command(world, "head -c 4096 /dev/zero > n && mv n m.zt && rm m.zt");
    assert_int_equal(zt_source_read_at(generation->source, 64, after, 16, NULL), ZT_OK);
    assert_memory_equal(before, after, 16);
    generation_release(generation);
}
