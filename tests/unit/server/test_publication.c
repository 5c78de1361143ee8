/* From a stored file to a visible model: what is refused changes nothing, and of two writers of one
 * name one wins. */
#include "upload_world.h"

#include "store/staging.h"
#include "upload/shared/current_model.h"
#include "upload/shared/publication.h"
#include "zt2_file.h"

#define FILE_MAX 4096

/* A stored upload with these bytes. */
static struct staged_file *store_bytes(struct world *world, const void *bytes, size_t length)
{
    struct staged_file *stored;

    assert_ok(staging_create(world->server.store->staging, length, &stored, NULL));
    assert_ok(staged_file_write_at(stored, 0, bytes, length, NULL));
    return stored;
}

/* One with a model; sound: all its digests are right. */
static struct staged_file *store_model(struct world *world, bool sound)
{
    uint8_t bytes[FILE_MAX];
    size_t length = world_model_bytes(world, sound, bytes, sizeof(bytes));

    return store_bytes(world, bytes, length);
}

static struct publication publication_of(struct world *world, struct staged_file *stored)
{
    return (struct publication){
        .server = &world->server, .stored = stored, .name = "m", .published = {.sha256 = {9}}};
}

static void write_safetensors(const struct world *world)
{
    static const char head[] = "{\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}";
    uint8_t bytes[8 + sizeof(head) + 2] = {sizeof(head) - 1};

    memcpy(bytes + 8, head, sizeof(head) - 1);
    world_write(world, "m.safetensors", bytes, 8 + sizeof(head) - 1 + 2);
}

static void assert_refused(struct publication *publication, enum problem problem)
{
    struct staged_file *stored = publication->stored;
    struct failure failure = {.is_set = false};

    assert_false(publication_run(publication, &failure));
    assert_true(failure.is_set);
    assert_int_equal(failure.problem, problem);
    assert_ptr_equal(publication->stored, stored);
    staged_file_close(stored);
}

WITH_UPLOADS(published_model_is_visible_at_once)
{
    struct publication publication = publication_of(world, store_model(world, true));
    struct failure failure = {.is_set = false};
    struct generation *current;
    uint8_t sha256[SHA256_BYTES];

    assert_true(publication_run(&publication, &failure));
    assert_false(failure.is_set);
    assert_null(publication.stored);
    assert_false(publication.published.replaced);
    current = model_find_current(&world->server, "m");
    assert_non_null(current);
    assert_string_equal(current->path, "m.zt");
    assert_string_equal(current->etag, publication.published.etag);
    assert_true(file_hashes_find(world->server.hashes, "m.zt", &current->identity, sha256));
    assert_int_equal(sha256[0], 9);
    generation_release(current);
}

static struct world *replaced_in;
static enum zt_status (*real_publish)(struct store *store, struct staged_file *upload,
                                      const char *path, const struct store_expected *expected,
                                      struct zt_error *error);

/* Another program writes another model over the one that was just published. */
static enum zt_status publish_and_replace(struct store *store, struct staged_file *upload,
                                          const char *path, const struct store_expected *expected,
                                          struct zt_error *error)
{
    enum zt_status status = real_publish(store, upload, path, expected, error);

    pause_ms(30);
    world_model(replaced_in, path, false);
    return status;
}

WITH_UPLOADS(what_was_found_is_not_believed_of_another_file)
{
    struct publication publication = publication_of(world, store_model(world, true));
    struct store *store = world->server.store;
    const struct store_ops *ops = store->ops;
    struct store_ops replacing = *ops;
    struct failure failure = {.is_set = false};
    struct generation *current;
    uint8_t sha256[SHA256_BYTES];

    replaced_in = world;
    real_publish = ops->publish;
    replacing.publish = publish_and_replace;
    store->ops = &replacing;
    assert_true(publication_run(&publication, &failure));
    store->ops = ops;
    current = model_find_current(&world->server, "m");
    assert_non_null(current);
    assert_false(file_hashes_find(world->server.hashes, "m.zt", &current->identity, sha256));
    for (uint32_t i = 0; i < current->model->component_count; i++)
        assert_int_not_equal(atomic_load(&current->states[i]), COMPONENT_VERIFIED);
    generation_release(current);
}

WITH_UPLOADS(replacing_removes_the_file_of_another_format)
{
    struct publication publication = publication_of(world, store_model(world, true));
    struct failure failure = {.is_set = false};

    write_safetensors(world);
    assert_true(publication_run(&publication, &failure));
    assert_true(publication.published.replaced);
    world_command(world, "test -f m.zt && test ! -e m.safetensors");
}

WITH_UPLOADS(failed_preconditions_change_nothing)
{
    struct publication publication = publication_of(world, store_model(world, true));

    write_safetensors(world);
    publication.preconditions.if_none_match = "*";
    assert_refused(&publication, PROBLEM_PRECONDITION_FAILED);
    publication = publication_of(world, store_model(world, true));
    publication.preconditions.if_match = "\"another\"";
    assert_refused(&publication, PROBLEM_PRECONDITION_FAILED);
    world_command(world, "test ! -e m.zt && test -f m.safetensors");
}

WITH_UPLOADS(wrong_digest_and_broken_file_are_refused)
{
    struct publication publication = publication_of(world, store_model(world, false));

    assert_refused(&publication, PROBLEM_DIGEST_MISMATCH);
    publication = publication_of(world, store_bytes(world, "ZTEN not a model", 16));
    assert_refused(&publication, PROBLEM_INVALID_MODEL);
    world_command(world, "test ! -e m.zt");
}

/* --- shards --- */

/* A model whose table of shards has "w", of an unknown kind of digest. */
static struct staged_file *store_sharded(struct world *world)
{
    static const char manifest[] =
        "{\"shards\":{\"w\":{\"size\":4152,\"digest\":\"blake3:00\"}},\"objects\":{}}";
    struct zt2_file file = {0};
    struct staged_file *stored;

    zt2_file_make(&file, ZT2_MANIFEST_AT, manifest);
    stored = store_bytes(world, file.bytes, file.length);
    zt2_file_free(&file);
    return stored;
}

static bool is_the_context(const void *context, struct zt_text name)
{
    return zt_text_is(name, context);
}

WITH_UPLOADS(shards_that_the_client_may_not_use_are_refused)
{
    struct publication publication = publication_of(world, store_sharded(world));
    struct failure failure = {.is_set = false};
    uint64_t counted = access_failures(ACCESS_MODEL);

    publication.covers = (struct name_filter){is_the_context, "m"};
    assert_refused(&publication, PROBLEM_FORBIDDEN);
    assert_int_equal(access_failures(ACCESS_MODEL), counted + 1);
    world_command(world, "test ! -e m.zt");
    publication = publication_of(world, store_sharded(world));
    publication.covers = (struct name_filter){is_the_context, "m-w"};
    assert_true(publication_run(&publication, &failure));
    publication = publication_of(world, store_sharded(world));
    assert_true(publication_run(&publication, &failure));
}

WITH_UPLOADS(shards_are_those_beside_a_name_with_dots_and_folders)
{
    struct publication publication = publication_of(world, store_sharded(world));
    struct failure failure = {.is_set = false};

    publication.name = "a.b/m-1.5";
    publication.covers = (struct name_filter){is_the_context, "a.b/m-1-w"};
    assert_refused(&publication, PROBLEM_FORBIDDEN);
    publication = publication_of(world, store_sharded(world));
    publication.name = "a.b/m-1.5";
    publication.covers = (struct name_filter){is_the_context, "a.b/m-1.5-w"};
    assert_true(publication_run(&publication, &failure));
}

WITH_UPLOADS(nothing_is_said_about_the_file_of_a_refused_shard)
{
    static const char *const expected = "shard w: this client may not use a file of this name";

    for (unsigned exists = 0; exists < 2; exists++) {
        struct publication publication = publication_of(world, store_sharded(world));
        struct failure failure = {.is_set = false};

        if (exists)
            world_model(world, "m-w.zt", true);
        publication.covers = (struct name_filter){is_the_context, "m"};
        assert_false(publication_run(&publication, &failure));
        assert_string_equal(failure.error.message, expected);
        staged_file_close(publication.stored);
    }
}

WITH_UPLOADS(folder_of_the_files_name_is_a_conflict)
{
    struct publication publication = publication_of(world, store_model(world, true));

    world_command(world, "mkdir m.zt");
    assert_refused(&publication, PROBLEM_CONFLICT);
}

/* --- two at once --- */

struct creator {
    struct world *world;
    struct publication publication;
    struct failure failure;
    bool published;
};

static void *create(void *context)
{
    struct creator *creator = context;

    creator->published = publication_run(&creator->publication, &creator->failure);
    return NULL;
}

WITH_UPLOADS(of_two_that_only_create_exactly_one_wins)
{
    for (unsigned round = 0; round < 20; round++) {
        struct creator creators[2];
        pthread_t threads[2];

        for (unsigned i = 0; i < 2; i++) {
            creators[i] = (struct creator){
                .world = world, .publication = publication_of(world, store_model(world, true))};
            creators[i].publication.preconditions.if_none_match = "*";
        }
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, create, &creators[i]), 0);
        for (unsigned i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(creators[0].published + creators[1].published, 1);
        for (unsigned i = 0; i < 2; i++) {
            if (!creators[i].published)
                assert_int_equal(creators[i].failure.problem, PROBLEM_PRECONDITION_FAILED);
            staged_file_close(creators[i].publication.stored);
        }
        world_command(world, "rm m.zt");
        generation_release(model_find_current(&world->server, "m"));
    }
}

struct locked {
    struct world *world;
    const char *name;
    atomic_bool is_taken;
};

static void hold_name(struct publish_lock *lock, struct world *world, const char *name)
{
    struct failure failure = {.is_set = false};

    assert_true(publish_lock_take(lock, &world->server, name, &failure));
}

static void *take_and_release(void *context)
{
    struct locked *locked = context;
    struct publish_lock lock;

    hold_name(&lock, locked->world, locked->name);
    atomic_store(&locked->is_taken, true);
    publish_lock_release(&lock);
    return NULL;
}

WITH_UPLOADS(hold_of_a_name_holds_back_that_name_only)
{
    struct publish_lock lock;
    struct publish_lock other;
    struct locked locked = {.world = world, .name = "m"};
    pthread_t thread;

    hold_name(&lock, world, "m");
    hold_name(&other, world, "n");
    assert_int_equal(pthread_create(&thread, NULL, take_and_release, &locked), 0);
    pause_ms(30);
    assert_false(atomic_load(&locked.is_taken));
    publish_lock_release(&other);
    pause_ms(10);
    assert_false(atomic_load(&locked.is_taken));
    publish_lock_release(&lock);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&locked.is_taken));
}

WITH_UPLOADS(waiting_for_another_name_misses_no_release)
{
    struct publish_lock m;
    struct publish_lock n;
    struct locked locked[] = {{.world = world, .name = "m"},
                              {.world = world, .name = "m"},
                              {.world = world, .name = "m"},
                              {.world = world, .name = "n"}};
    pthread_t threads[4];

    hold_name(&m, world, "m");
    hold_name(&n, world, "n");
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_release, &locked[i]), 0);
        pause_ms(10);
    }
    publish_lock_release(&n);
    AWAIT(atomic_load(&locked[3].is_taken));
    publish_lock_release(&m);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

/* --- failures --- */

TEST(first_failure_is_kept)
{
    struct failure failure = {.is_set = false};
    struct zt_error error = {.status = ZT_LIMIT};

    assert_false(failure_of_store(&failure, &error));
    assert_int_equal(failure.problem, PROBLEM_INSUFFICIENT_STORAGE);
    assert_false(failure_refuse(&failure, PROBLEM_CONFLICT, "%d", 5));
    assert_false(failure_no_memory(&failure, "more"));
    assert_int_equal(failure.problem, PROBLEM_INSUFFICIENT_STORAGE);
    failure = (struct failure){.is_set = false};
    assert_false(failure_refuse(&failure, PROBLEM_CONFLICT, "%d of %s", 5, "them"));
    assert_string_equal(failure.error.message, "5 of them");
    failure = (struct failure){.is_set = false};
    assert_false(failure_no_memory(&failure, "a test"));
    assert_int_equal(failure.problem, PROBLEM_INTERNAL);
    assert_string_equal(failure.error.message, "no memory for a test");
}
