/* From a stored file to a visible model: what is refused changes nothing, and of two writers of one
 * name one wins. */
#include "upload_world.h"

#include "upload/shared/publication.h"
#include "zt2_file.h"

#define FILE_MAX 4096

/* A stored upload with these bytes. */
static struct stored_upload *store_bytes(struct world *world, const void *bytes, size_t length)
{
    const struct store_ops *ops = world->server.store->ops;
    struct stored_upload *stored;

    assert_int_equal(ops->create(world->server.store, length, &stored, NULL), ZT_OK);
    assert_int_equal(ops->write_at(stored, 0, bytes, length, NULL), ZT_OK);
    return stored;
}

/* One with a model; sound: all its digests are right. */
static struct stored_upload *store_model(struct world *world, bool sound)
{
    uint8_t bytes[FILE_MAX];
    size_t length = world_model_bytes(world, sound, bytes, sizeof(bytes));

    return store_bytes(world, bytes, length);
}

static struct publication publication_of(struct world *world, struct stored_upload *stored)
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

static void assert_refused(struct world *world, struct publication *publication,
                           enum problem problem)
{
    struct stored_upload *stored = publication->stored;
    struct failure failure = {.is_set = false};

    assert_false(publication_run(publication, &failure));
    assert_true(failure.is_set);
    assert_int_equal(failure.problem, problem);
    assert_ptr_equal(publication->stored, stored);
    world->server.store->ops->abandon(stored);
}

static void published_model_is_visible_at_once(void **state)
{
    struct world *world = *state;
    struct publication publication = publication_of(world, store_model(world, true));
    struct failure failure = {.is_set = false};
    struct generation *current;

    assert_true(publication_run(&publication, &failure));
    assert_false(failure.is_set);
    assert_null(publication.stored);
    assert_false(publication.published.replaced);
    current = model_find_current(&world->server, "m");
    assert_non_null(current);
    assert_string_equal(current->path, "m.zt");
    assert_string_equal(current->etag, publication.published.etag);
    assert_true(atomic_load(&current->has_file_sha256));
    assert_int_equal(current->file_sha256[0], 9);
    generation_release(current);
}

static struct world *replaced_in;
static enum zt_status (*real_publish)(struct stored_upload *upload, const char *path,
                                      const struct store_expected *expected,
                                      struct zt_error *error);

/* Another program writes another model over the one that was just published. */
static enum zt_status publish_and_replace(struct stored_upload *upload, const char *path,
                                          const struct store_expected *expected,
                                          struct zt_error *error)
{
    enum zt_status status = real_publish(upload, path, expected, error);

    pause_ms(30);
    world_model(replaced_in, path, false);
    return status;
}

static void what_was_found_is_not_believed_of_another_file(void **state)
{
    struct world *world = *state;
    struct publication publication = publication_of(world, store_model(world, true));
    struct store *store = world->server.store;
    const struct store_ops *ops = store->ops;
    struct store_ops replacing = *ops;
    struct failure failure = {.is_set = false};
    struct generation *current;

    replaced_in = world;
    real_publish = ops->publish;
    replacing.publish = publish_and_replace;
    store->ops = &replacing;
    assert_true(publication_run(&publication, &failure));
    store->ops = ops;
    current = model_find_current(&world->server, "m");
    assert_non_null(current);
    assert_false(atomic_load(&current->has_file_sha256));
    for (uint32_t i = 0; i < current->model->component_count; i++)
        assert_int_not_equal(atomic_load(&current->states[i]), COMPONENT_VERIFIED);
    generation_release(current);
}

static void replacing_removes_the_file_of_another_format(void **state)
{
    struct world *world = *state;
    struct publication publication = publication_of(world, store_model(world, true));
    struct failure failure = {.is_set = false};

    write_safetensors(world);
    assert_true(publication_run(&publication, &failure));
    assert_true(publication.published.replaced);
    world_command(world, "test -f m.zt && test ! -e m.safetensors");
}

static void failed_preconditions_change_nothing(void **state)
{
    struct world *world = *state;
    struct publication publication = publication_of(world, store_model(world, true));

    write_safetensors(world);
    publication.preconditions.if_none_match = "*";
    assert_refused(world, &publication, PROBLEM_PRECONDITION_FAILED);
    publication = publication_of(world, store_model(world, true));
    publication.preconditions.if_match = "\"another\"";
    assert_refused(world, &publication, PROBLEM_PRECONDITION_FAILED);
    world_command(world, "test ! -e m.zt && test -f m.safetensors");
}

static void wrong_digest_and_broken_file_are_refused(void **state)
{
    struct world *world = *state;
    struct publication publication = publication_of(world, store_model(world, false));

    assert_refused(world, &publication, PROBLEM_DIGEST_MISMATCH);
    publication = publication_of(world, store_bytes(world, "ZTEN not a model", 16));
    assert_refused(world, &publication, PROBLEM_INVALID_MODEL);
    world_command(world, "test ! -e m.zt");
}

/* --- shards --- */

/* A model whose table of shards has "w", of an unknown kind of digest. */
static struct stored_upload *store_sharded(struct world *world)
{
    static const char manifest[] =
        "{\"shards\":{\"w\":{\"size\":4152,\"digest\":\"blake3:00\"}},\"objects\":{}}";
    struct zt2_file file = {0};
    struct stored_upload *stored;

    zt2_file_make(&file, ZT2_MANIFEST_AT, manifest);
    stored = store_bytes(world, file.bytes, file.length);
    zt2_file_free(&file);
    return stored;
}

static bool is_the_context(const void *context, struct zt_text name)
{
    return zt_text_is(name, context);
}

static void shards_that_the_client_may_not_use_are_refused(void **state)
{
    struct world *world = *state;
    struct publication publication = publication_of(world, store_sharded(world));
    struct failure failure = {.is_set = false};
    uint64_t counted = access_failures(ACCESS_MODEL);

    publication.covers = (struct name_filter){is_the_context, "m"};
    assert_refused(world, &publication, PROBLEM_FORBIDDEN);
    assert_int_equal(access_failures(ACCESS_MODEL), counted + 1);
    world_command(world, "test ! -e m.zt");
    publication = publication_of(world, store_sharded(world));
    publication.covers = (struct name_filter){is_the_context, "m-w"};
    assert_true(publication_run(&publication, &failure));
    publication = publication_of(world, store_sharded(world));
    assert_true(publication_run(&publication, &failure));
}

static void shards_are_those_beside_a_name_with_dots_and_folders(void **state)
{
    struct world *world = *state;
    struct publication publication = publication_of(world, store_sharded(world));
    struct failure failure = {.is_set = false};

    publication.name = "a.b/m-1.5";
    publication.covers = (struct name_filter){is_the_context, "a.b/m-1-w"};
    assert_refused(world, &publication, PROBLEM_FORBIDDEN);
    publication = publication_of(world, store_sharded(world));
    publication.name = "a.b/m-1.5";
    publication.covers = (struct name_filter){is_the_context, "a.b/m-1.5-w"};
    assert_true(publication_run(&publication, &failure));
}

static void nothing_is_said_about_the_file_of_a_refused_shard(void **state)
{
    static const char *const expected = "shard w: this client may not use a file of this name";
    struct world *world = *state;

    for (unsigned exists = 0; exists < 2; exists++) {
        struct publication publication = publication_of(world, store_sharded(world));
        struct failure failure = {.is_set = false};

        if (exists)
            world_model(world, "m-w.zt", true);
        publication.covers = (struct name_filter){is_the_context, "m"};
        assert_false(publication_run(&publication, &failure));
        assert_string_equal(failure.error.message, expected);
        world->server.store->ops->abandon(publication.stored);
    }
}

static void folder_of_the_files_name_is_a_conflict(void **state)
{
    struct world *world = *state;
    struct publication publication = publication_of(world, store_model(world, true));

    world_command(world, "mkdir m.zt");
    assert_refused(world, &publication, PROBLEM_CONFLICT);
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

static void of_two_that_only_create_exactly_one_wins(void **state)
{
    struct world *world = *state;

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
            world->server.store->ops->abandon(creators[i].publication.stored);
        }
        world_command(world, "rm m.zt");
        generation_release(model_find_current(&world->server, "m"));
    }
}

struct locked {
    const char *name;
    atomic_bool is_taken;
};

static void *take_and_release(void *context)
{
    struct locked *locked = context;
    struct name_lock lock = {.name = locked->name};

    name_lock_take(&lock);
    atomic_store(&locked->is_taken, true);
    name_lock_release(&lock);
    return NULL;
}

static void lock_of_a_name_holds_back_that_name_only(void **state)
{
    struct name_lock lock = {.name = "m"};
    struct name_lock other = {.name = "n"};
    struct locked locked = {.name = "m"};
    pthread_t thread;

    (void)state;
    name_lock_take(&lock);
    name_lock_take(&other);
    assert_int_equal(pthread_create(&thread, NULL, take_and_release, &locked), 0);
    pause_ms(30);
    assert_false(atomic_load(&locked.is_taken));
    name_lock_release(&other);
    pause_ms(10);
    assert_false(atomic_load(&locked.is_taken));
    name_lock_release(&lock);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&locked.is_taken));
}

static void waiting_for_another_name_misses_no_release(void **state)
{
    struct name_lock m = {.name = "m"};
    struct name_lock n = {.name = "n"};
    struct locked locked[] = {{.name = "m"}, {.name = "m"}, {.name = "m"}, {.name = "n"}};
    pthread_t threads[4];

    (void)state;
    name_lock_take(&m);
    name_lock_take(&n);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_release, &locked[i]), 0);
        pause_ms(10);
    }
    name_lock_release(&n);
    for (unsigned i = 0; i < 2000 && !atomic_load(&locked[3].is_taken); i++)
        pause_ms(1);
    assert_true(atomic_load(&locked[3].is_taken));
    name_lock_release(&m);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

/* --- failures --- */

static void first_failure_is_kept(void **state)
{
    struct failure failure = {.is_set = false};
    struct zt_error error = {.status = ZT_LIMIT};

    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(published_model_is_visible_at_once, uploads_set_up,
                                        uploads_tear_down),
        cmocka_unit_test_setup_teardown(what_was_found_is_not_believed_of_another_file,
                                        uploads_set_up, uploads_tear_down),
        cmocka_unit_test_setup_teardown(replacing_removes_the_file_of_another_format,
                                        uploads_set_up, uploads_tear_down),
        cmocka_unit_test_setup_teardown(failed_preconditions_change_nothing, uploads_set_up,
                                        uploads_tear_down),
        cmocka_unit_test_setup_teardown(wrong_digest_and_broken_file_are_refused, uploads_set_up,
                                        uploads_tear_down),
        cmocka_unit_test_setup_teardown(shards_that_the_client_may_not_use_are_refused,
                                        uploads_set_up, uploads_tear_down),
        cmocka_unit_test_setup_teardown(shards_are_those_beside_a_name_with_dots_and_folders,
                                        uploads_set_up, uploads_tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_said_about_the_file_of_a_refused_shard,
                                        uploads_set_up, uploads_tear_down),
        cmocka_unit_test_setup_teardown(folder_of_the_files_name_is_a_conflict, uploads_set_up,
                                        uploads_tear_down),
        cmocka_unit_test_setup_teardown(of_two_that_only_create_exactly_one_wins, uploads_set_up,
                                        uploads_tear_down),
        cmocka_unit_test(lock_of_a_name_holds_back_that_name_only),
        cmocka_unit_test(waiting_for_another_name_misses_no_release),
        cmocka_unit_test(first_failure_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
