/* DELETE of a model: its files, its shards, and what is left alone. */
#include "upload_request.h"

#include "zt2_file.h"

#define TARGET "/v1/models/m"

static void assert_deletes(struct world *world)
{
    assert_status(world, to_ask("DELETE", TARGET), 204);
}

static void model_is_gone_from_disk_and_catalog(void **state)
{
    struct world *world = *state;

    world_model(world, "m.zt", true);
    assert_deletes(world);
    assert_exists(world, "m.zt", false);
    assert_null(world_find(world, "m"));
    assert_fails_after_body(world, to_ask("DELETE", TARGET), 404, "model-not-found");
}

/* The one whose extension comes later would appear as soon as the other is gone. */
static void hidden_files_of_the_name_go_too(void **state)
{
    struct world *world = *state;

    world_model(world, "m.zt", true);
    world_write(world, "m.safetensors", "x", 1);
    world_write(world, "m.npy", "x", 1);
    world_write(world, "m.txt", "x", 1);
    world_write(world, "mm.zt", "x", 1);
    assert_deletes(world);
    assert_exists(world, "m.safetensors", false);
    assert_exists(world, "m.npy", false);
    assert_exists(world, "m.txt", true);
    assert_exists(world, "mm.zt", true);
}

static void corrupt_models_can_be_removed(void **state)
{
    struct world *world = *state;

    world_write(world, "m.zt", "x", 1);
    assert_deletes(world);
    assert_exists(world, "m.zt", false);
}

static void read_only_comes_before_the_name(void **state)
{
    struct world *world = *state;

    world_model(world, "m.zt", true);
    world->config.writable = false;
    assert_refused(world, to_ask("DELETE", "/v1/models/.m"), 403, "read-only");
    assert_refused(world, to_ask("DELETE", TARGET), 403, "read-only");
    world->config.writable = true;
    assert_refused(world, to_ask("DELETE", "/v1/models/.m"), 400, "invalid-name");
    assert_exists(world, "m.zt", true);
}

static void preconditions_protect_the_model(void **state)
{
    struct world *world = *state;
    struct generation *current;

    world_model(world, "m.zt", true);
    current = world_find(world, "m");
    assert_fails_after_body(world, with_field(to_ask("DELETE", TARGET), "If-Match", "\"another\""),
                            412, "precondition-failed");
    assert_fails_after_body(world,
                            with_field(to_ask("DELETE", TARGET), "If-None-Match", current->etag),
                            412, "precondition-failed");
    assert_fails_after_body(world,
                            with_field(to_ask("DELETE", TARGET), "If-Unmodified-Since",
                                       "Sat, 08 Sep 2001 00:00:00 GMT"),
                            412, "precondition-failed");
    assert_exists(world, "m.zt", true);
    assert_status(world, with_field(to_ask("DELETE", TARGET), "If-Match", current->etag), 204);
    generation_release(current);
}

/* A precondition says nothing about a model that does not exist: 404 tells more. */
static void absent_model_is_404_whatever_the_precondition(void **state)
{
    assert_fails_after_body(*state, with_field(to_ask("DELETE", TARGET), "If-Match", "*"), 404,
                            "model-not-found");
}

static void open_readers_keep_their_bytes(void **state)
{
    struct world *world = *state;
    struct generation *reader;
    struct zt_error error;
    char first[16];

    world_model(world, "m.zt", true);
    reader = world_find(world, "m");
    assert_deletes(world);
    assert_int_equal(zt_source_read_at(reader->source, 64, first, sizeof(first), &error), ZT_OK);
    assert_int_equal(first[1], 1);
    generation_release(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UPLOAD_TEST(model_is_gone_from_disk_and_catalog),
        UPLOAD_TEST(hidden_files_of_the_name_go_too),
        UPLOAD_TEST(corrupt_models_can_be_removed),
        UPLOAD_TEST(read_only_comes_before_the_name),
        UPLOAD_TEST(preconditions_protect_the_model),
        UPLOAD_TEST(absent_model_is_404_whatever_the_precondition),
        UPLOAD_TEST(open_readers_keep_their_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
