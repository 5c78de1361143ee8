/* DELETE of a model: its files, its shards, and what is left alone. */
#include "tests.h"
#include "upload_request.h"

#include "zt2_file.h"

#define TARGET "/v1/models/m"

static void assert_deletes(struct world *world)
{
    assert_status(world, to_ask("DELETE", TARGET), 204);
}

AROUND_EACH_TEST(uploads_set_up, uploads_tear_down)

TEST_ON(struct world *world, model_is_gone_from_disk_and_catalog)
{
    world_model(world, "m.zt", true);
    assert_deletes(world);
    assert_exists(world, "m.zt", false);
    assert_null(world_find(world, "m"));
    assert_fails_after_body(world, to_ask("DELETE", TARGET), 404, "model-not-found");
}

/* The one whose extension comes later would appear as soon as the other is gone. */
TEST_ON(struct world *world, other_files_of_the_name_stay)
{
    world_model(world, "m.zt", true);
    world_write(world, "m.safetensors", "x", 1);
    world_write(world, "m.npy", "x", 1);
    world_write(world, "m.txt", "x", 1);
    world_write(world, "mm.zt", "x", 1);
    assert_deletes(world);
    assert_exists(world, "m.zt", false);
    assert_exists(world, "m.safetensors", true);
    assert_exists(world, "m.npy", true);
    assert_exists(world, "m.txt", true);
    assert_exists(world, "mm.zt", true);
}

TEST_ON(struct world *world, corrupt_models_can_be_removed)
{
    world_write(world, "m.zt", "x", 1);
    assert_deletes(world);
    assert_exists(world, "m.zt", false);
}

TEST_ON(struct world *world, read_only_comes_before_the_name)
{
    world_model(world, "m.zt", true);
    world->config.writable = false;
    assert_refused(world, to_ask("DELETE", "/v1/models/.m"), 403, "read-only");
    assert_refused(world, to_ask("DELETE", TARGET), 403, "read-only");
    world->config.writable = true;
    assert_refused(world, to_ask("DELETE", "/v1/models/.m"), 400, "invalid-name");
    assert_exists(world, "m.zt", true);
}

TEST_ON(struct world *world, preconditions_protect_the_model)
{
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
TEST(absent_model_is_404_whatever_the_precondition)
{
    assert_fails_after_body(*state, with_field(to_ask("DELETE", TARGET), "If-Match", "*"), 404,
                            "model-not-found");
}

TEST_ON(struct world *world, open_readers_keep_their_bytes)
{
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

/* --- shards --- */

/* A data shard of 16 bytes at 4096. */
static void make_shard(struct zt2_file *out_file)
{
    zt2_file_make(out_file, 4096 + 16, "");
    memset(out_file->bytes + out_file->length - ZT2_FILE_FOOTER, 0, 24);
}

/* "<name>.zt", whose one object is in the shard "w"; "m-w.zt" holds it. */
static void write_sharded(const struct world *world, const char *name)
{
    struct zt2_file shard = {0};
    struct zt2_file file = {0};
    char digest[ZT_DIGEST_TEXT_SIZE];
    char manifest[512];
    char path[64];

    make_shard(&shard);
    world_digest(shard.bytes, shard.length, digest);
    snprintf(manifest, sizeof(manifest),
             "{\"shards\":{\"w\":{\"size\":%zu,\"digest\":\"%s\"}},\"objects\":{\"a\":{\"parts\":"
             "{\"data\":{\"blob\":[4096,16],\"dtype\":\"u8\",\"shard\":\"w\"}},"
             "\"shape\":[16],\"layout\":\"dense\"}}}",
             shard.length, digest);
    zt2_file_make(&file, ZT2_MANIFEST_AT, manifest);
    snprintf(path, sizeof(path), "%s.zt", name);
    world_write(world, path, file.bytes, file.length);
    world_write(world, "m-w.zt", shard.bytes, shard.length);
    zt2_file_free(&file);
    zt2_file_free(&shard);
}

TEST_ON(struct world *world, shards_go_with_their_model)
{
    write_sharded(world, "m");
    world_wait_loaded(world);
    assert_deletes(world);
    assert_exists(world, "m.zt", false);
    assert_exists(world, "m-w.zt", false);
}

TEST_ON(struct world *world, shard_that_a_model_uses_is_not_removed_by_its_own_name)
{
    write_sharded(world, "m");
    world_wait_loaded(world);
    assert_fails_after_body(world, to_ask("DELETE", "/v1/models/m-w"), 409, "conflict");
    assert_exists(world, "m-w.zt", true);
    world_command(world, "rm m.zt");
    generation_release(catalog_update(world->server.catalog, "m.zt"));
    assert_status(world, to_ask("DELETE", "/v1/models/m-w"), 204);
    assert_exists(world, "m-w.zt", false);
}

/* It is a model of its own, to be removed by its own name. */
TEST_ON(struct world *world, model_named_like_a_shard_stays)
{
    write_sharded(world, "m");
    world_model(world, "m-w.zt", true);
    world_wait_loaded(world);
    assert_deletes(world);
    assert_exists(world, "m-w.zt", true);
}

/* Something else took the shard's name: it has the right length at most by chance. */
TEST_ON(struct world *world, data_shard_of_another_length_stays)
{
    struct zt2_file longer = {0};

    write_sharded(world, "m");
    zt2_file_make(&longer, 4096 + 64, "");
    memset(longer.bytes + longer.length - ZT2_FILE_FOOTER, 0, 24);
    world_write(world, "m-w.zt", longer.bytes, longer.length);
    zt2_file_free(&longer);
    world_wait_loaded(world);
    assert_deletes(world);
    assert_exists(world, "m-w.zt", true);
}
