/* Shards of a generation: found, compared, parked, and searched for by content. */
#include "model_world.h"

#include <sys/resource.h>

#include "catalog/catalog_index.h"
#include "catalog/store_folder.h"
#include "zt/verify.h"
#include "zt2_file.h"

#define SHARD_DATA "0123456789abcdef"

static void digest_of(const struct zt2_file *file, char out_text[ZT_DIGEST_TEXT_SIZE])
{
    world_digest(file->bytes, file->length, out_text);
}

/* A data shard of 16 bytes at 4096. */
static struct zt2_file make_shard(const char *data)
{
    struct zt2_file file = {0};

    zt2_file_make(&file, 4096 + 16, "");
    memcpy(file.bytes + 4096, data, 16);
    memset(file.bytes + file.length - ZT2_FILE_FOOTER, 0, 24);
    return file;
}

/* Writes a model whose one object is in the shard "w", which is the given file. */
static void write_model(const struct world *world, const char *path, const struct zt2_file *shard)
{
    struct zt2_file file = {0};
    char digest[ZT_DIGEST_TEXT_SIZE];
    char manifest[512];

    digest_of(shard, digest);
    snprintf(manifest, sizeof(manifest),
             "{\"shards\":{\"w\":{\"size\":%zu,\"digest\":\"%s\"}},\"objects\":{\"a\":{\"parts\":{"
             "\"data\":"
             "{\"blob\":[4096,16],\"dtype\":\"u8\",\"shard\":\"w\"}},\"shape\":[16],\"layout\":"
             "\"dense\"}}}",
             shard->length, digest);
    zt2_file_make(&file, ZT2_MANIFEST_AT, manifest);
    world_write(world, path, file.bytes, file.length);
    zt2_file_free(&file);
}

/* A model "<name>.zt" of so many shards, which are files of the same bytes, and no objects. */
static void write_many(const struct world *world, const char *name, unsigned count)
{
    struct zt2_file shard = make_shard(SHARD_DATA);
    struct zt2_file file = {0};
    char digest[ZT_DIGEST_TEXT_SIZE];
    char manifest[4096];
    char path[64];
    size_t used;

    digest_of(&shard, digest);
    used = (size_t)snprintf(manifest, sizeof(manifest), "{\"shards\":{");
    for (unsigned i = 0; i < count; i++) {
        used += (size_t)snprintf(manifest + used, sizeof(manifest) - used,
                                 "%s\"%02u\":{\"size\":%zu,\"digest\":\"%s\"}", i > 0 ? "," : "", i,
                                 shard.length, digest);
        snprintf(path, sizeof(path), "%s-%02u.zt", name, i);
        world_write(world, path, shard.bytes, shard.length);
    }
    snprintf(manifest + used, sizeof(manifest) - used, "},\"objects\":{}}");
    zt2_file_make(&file, ZT2_MANIFEST_AT, manifest);
    snprintf(path, sizeof(path), "%s.zt", name);
    world_write(world, path, file.bytes, file.length);
    zt2_file_free(&file);
    zt2_file_free(&shard);
}

static void write_pair(const struct world *world, const char *model_path, const char *shard_path)
{
    struct zt2_file shard = make_shard(SHARD_DATA);

    write_model(world, model_path, &shard);
    world_write(world, shard_path, shard.bytes, shard.length);
    zt2_file_free(&shard);
}

static void assert_reads(const struct generation *generation)
{
    const struct zt_files files = generation_files(generation);
    char data[16];

    assert_non_null(generation->model);
    assert_ok(zt_source_read_at(zt_files_source(&files, generation->model->components), 4096, data,
                                16, NULL));
    assert_memory_equal(data, SHARD_DATA, 16);
}

WITH_MODELS(generations_hold_their_shards_open)
{
    struct generation *generation;

    write_pair(world, "m.zt", "m-w.zt");
    generation = generation_open(&world->server, "m.zt", NULL);
    assert_int_equal(generation_open_files(generation), 2);
    assert_string_equal(generation->shards.items[0].path, "m-w.zt");
    assert_true(generation_is_same(generation));
    world_command(world, "rm m-w.zt");
    assert_false(generation_is_same(generation));
    assert_reads(generation);
    generation_release(generation);
}

WITH_MODELS(tags_follow_the_shards)
{
    struct generation *first;
    struct generation *second;

    write_pair(world, "m.zt", "m-w.zt");
    first = generation_open(&world->server, "m.zt", NULL);
    world_command(world, "cp -p m-w.zt n && mv n m-w.zt");
    second = generation_open(&world->server, "m.zt", NULL);
    assert_string_not_equal(first->etag, second->etag);
    generation_release(first);
    generation_release(second);
}

WITH_MODELS(a_missing_shard_leaves_an_error_and_nothing_open)
{
    struct generation *generation;

    write_pair(world, "m.zt", "elsewhere.zt");
    generation = generation_open(&world->server, "m.zt", NULL);
    assert_null(generation->model);
    assert_int_equal(generation->error->status, ZT_NOT_FOUND);
    assert_string_equal(generation->error->message, "shard w is missing");
    assert_int_equal(generation_open_files(generation), 1);
    generation_release(generation);
}

WITH_MODELS(changes_concern_models_that_have_or_miss_the_file)
{
    struct generation *found;
    struct generation *missing;
    struct file_identity identity;
    struct file_identity other;

    write_pair(world, "m.zt", "m-w.zt");
    world_command(world, "cp m.zt n.zt");
    found = generation_open(&world->server, "m.zt", NULL);
    missing = generation_open(&world->server, "n.zt", NULL);
    identity = found->shards.items[0].identity;
    other = identity;
    other.size_bytes++;
    assert_false(shard_files_concern(&found->shards, "m-w.zt", &identity));
    assert_true(shard_files_concern(&found->shards, "m-w.zt", &other));
    assert_true(shard_files_concern(&found->shards, "m-w.zt", NULL));
    assert_false(shard_files_concern(&found->shards, "x.zt", &identity));
    assert_true(shard_files_concern(&missing->shards, "x.zt", &identity));
    assert_false(shard_files_concern(&missing->shards, "x.zt", &other));
    assert_false(shard_files_concern(&missing->shards, "x.zt", NULL));
    assert_true(shard_files_concern(&missing->shards, "n-w.zt", &other));
    generation_release(found);
    generation_release(missing);
}

WITH_MODELS(content_is_searched_by_size_first_and_hashed_once)
{
    struct zt2_file decoy = make_shard("0123456789abcdeF");
    const struct catalog_index empty = {0};
    struct catalog_index index;
    struct shard_search search = {.store = world->server.store, .index = &index};
    struct catalog_change changes[] = {
        {.path = strdup("d/a.zt")}, {.path = strdup("d/b.zt")}, {.path = strdup("x.zt")}};
    struct generation *dropped[3];
    size_t dropped_count;
    struct generation *generation;

    world_command(world, "mkdir d");
    write_pair(world, "d/m.zt", "d/b.zt");
    world_write(world, "d/a.zt", decoy.bytes, decoy.length);
    world_model(world, "x.zt", true);
    for (size_t i = 0; i < 3; i++)
        changes[i].generation = generation_open(&world->server, changes[i].path, NULL);
    assert_true(catalog_index_merge(&empty, changes, 3, &index, dropped, &dropped_count));
    for (int i = 0; i < 3; i++) {
        generation = generation_open(&world->server, "d/m.zt", &search);
        assert_string_equal(generation->shards.items[0].path, "d/b.zt");
        assert_reads(generation);
        generation_release(generation);
        assert_int_equal(search.known_count, 2);
    }
    world_write(world, "d/b.zt", decoy.bytes, decoy.length);
    generation = generation_open(&world->server, "d/m.zt", &search);
    assert_null(generation->model);
    assert_int_equal(search.known_count, 3);
    generation_release(generation);
    for (size_t i = 0; i < 3; i++)
        free(changes[i].path);
    catalog_index_clear(&index);
    shard_search_clear(&search);
    zt2_file_free(&decoy);
}

/* Also a model that the catalog has, as soon as it scans again. */
WITH_MODELS(content_is_not_searched_while_shards_are_found_by_name)
{
    struct generation *found;

    world_command(world, "mkdir d");
    write_pair(world, "d/m.zt", "d/elsewhere.zt");
    for (unsigned round = 0; round < 4; round++) {
        const bool by_name = round % 2 == 1;

        atomic_store(&world->server.shards_by_name, by_name);
        catalog_refresh(world->server.catalog);
        for (unsigned i = 0; i < 5000; i++) {
            found = world_find(world, "d/m");
            if (found != NULL && (found->model == NULL) == by_name)
                break;
            generation_release(found);
            pause_ms(1);
        }
        assert_non_null(found);
        assert_string_equal(found->error->message, by_name ? "shard w is missing" : "");
        generation_release(found);
    }
}

WITH_MODELS(models_with_shards_are_parked_and_opened_again)
{
    struct rlimit before;
    struct rlimit few;
    char command[128];

    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    world_stop(world);
    write_pair(world, "m0.zt", "m0-w.zt");
    snprintf(command, sizeof(command),
             "for i in $(seq 1 60); do cp m0.zt m$i.zt; cp m0-w.zt m$i-w.zt; done");
    world_command(world, command);
    world_start(world);
    world_wait_loaded(world);
    for (int i = 0; i < 200; i++) {
        char name[16];
        struct generation *found;

        snprintf(name, sizeof(name), "m%d", i * 7 % 61);
        found = world_find(world, name);
        assert_non_null(found);
        assert_reads(found);
        generation_release(found);
    }
    setrlimit(RLIMIT_NOFILE, &before);
}

WITH_MODELS(models_of_many_shards_do_not_use_up_the_descriptors)
{
    struct rlimit before;
    struct rlimit few;

    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = 100;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    world_stop(world);
    write_many(world, "m0", 20);
    world_command(world, "for i in $(seq 1 30); do for f in m0*; do cp $f m$i${f#m0}; done; done");
    world_start(world);
    world_wait_loaded(world);
    for (int i = 0; i <= 30; i++) {
        char name[16];
        struct generation *found;

        snprintf(name, sizeof(name), "m%d", i);
        found = world_find(world, name);
        assert_non_null(found);
        assert_string_equal(found->error->message, "");
        assert_int_equal(generation_open_files(found), 21);
        generation_release(found);
    }
    setrlimit(RLIMIT_NOFILE, &before);
}

WITH_MODELS(a_parked_model_whose_shard_changed_is_opened_again)
{
    struct shard_files *shards;
    struct generation *generation;

    write_pair(world, "m.zt", "m-w.zt");
    generation = generation_open(&world->server, "m.zt", NULL);
    shards = &generation->shards;
    shard_files_park(shards);
    assert_null(shards->sources[0]);
    assert_true(shard_files_unpark(shards, world->server.store, NULL));
    assert_reads(generation);
    shard_files_park(shards);
    world_command(world, "cp m-w.zt n && mv n m-w.zt");
    assert_false(shard_files_unpark(shards, world->server.store, NULL));
    assert_null(shards->sources[0]);
    generation_release(generation);
}
