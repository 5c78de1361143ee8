/* Publishing to a bucket: what a service honours is found out, what is expected is replaced and
 * nothing else, and doubt is settled. */
#include "s3_write_world.h"

/* --- probing --- */

static void probe_finds_what_is_honoured_and_leaves_nothing(void **state)
{
    struct world *world = *state;
    const struct s3_abilities *abilities = &world->writing.abilities;

    probe(world);
    assert_int_equal(world->writing.mode, S3_MODE_CLAIMS);
    assert_true(abilities->put && abilities->complete_if_absent && abilities->complete_if_version);
    assert_int_equal(shelf_count(""), 0);
}

static void probe_sees_completions_that_ignore_conditions(void **state)
{
    struct world *world = *state;
    const struct s3_abilities *abilities = &world->writing.abilities;

    shelf.ignores_complete_conditions = true;
    probe(world);
    assert_int_equal(world->writing.mode, S3_MODE_CLAIMS);
    assert_true(abilities->put);
    assert_false(abilities->complete_if_absent || abilities->complete_if_version);
    assert_int_equal(shelf_count(""), 0);
}

static void without_conditions_only_a_single_writer_publishes(void **state)
{
    struct world *world = *state;
    struct store_claim *claim;
    struct zt_error error;

    shelf.ignores_put_conditions = true;
    probe(world);
    assert_int_equal(world->writing.mode, S3_MODE_REFUSED);
    assert_int_equal(
        s3_claim(&world->store.base, zt_text_from("m"), clock_ms() + CLAIM_MS, &claim, &error),
        ZT_UNSUPPORTED);
    atomic_store(&world->writing.mode, S3_MODE_UNKNOWN);
    world->config.s3.single_writer = true;
    probe(world);
    assert_int_equal(world->writing.mode, S3_MODE_ALONE);
    assert_int_equal(publish(world, SMALL_BYTES, &store_expects_nothing), ZT_OK);
    assert_int_equal(publish(world, SMALL_BYTES, &store_expects_nothing), ZT_ARGUMENT);
}

static void store_that_is_away_is_not_judged(void **state)
{
    struct world *world = *state;
    struct store_claim *claim;
    struct zt_error error;

    shelf.is_away = true;
    assert_int_equal(s3_probe(&world->store, &error), ZT_UNAVAILABLE);
    assert_int_equal(world->writing.mode, S3_MODE_UNKNOWN);
    assert_int_equal(
        s3_claim(&world->store.base, zt_text_from("m"), clock_ms() + CLAIM_MS, &claim, &error),
        ZT_UNAVAILABLE);
}

/* --- publishing --- */

static void publishes_what_is_small_and_what_is_large(void **state)
{
    struct world *world = *state;
    struct store_expected seen;

    probe(world);
    assert_int_equal(publish(world, SMALL_BYTES, &store_expects_nothing), ZT_OK);
    assert_true(is_published(SMALL_BYTES));
    seen = expect_shelf();
    shelf.parts = 0;
    assert_int_equal(publish(world, LARGE_BYTES, &seen), ZT_OK);
    assert_true(is_published(LARGE_BYTES));
    assert_int_equal(shelf.parts, 3);
    assert_null(s3_journal_read(&world->store));
}

static void staged_file_that_rotted_is_not_published(void **state)
{
    struct world *world = *state;
    struct zt_error error;
    uint8_t digest[32];
    struct stored_upload *upload;
    struct store_claim *claim;

    probe(world);
    /* One PUT hashes it under the claim. */
    upload = upload_of(world, SMALL_BYTES);
    assert_int_equal(s3_write_at(upload, SMALL_BYTES / 2, "rot", 3, &error), ZT_OK);
    claim = claim_ok(world);
    assert_int_equal(s3_publish(upload, "m.zt", &store_expects_nothing, &error), ZT_IO);
    s3_release(claim);
    s3_abandon(upload);
    /* Parts are hashed while they are sent. */
    upload = received(world, LARGE_BYTES, digest);
    assert_int_equal(s3_write_at(upload, PART_BYTES + 1, "rot", 3, &error), ZT_OK);
    assert_int_equal(s3_prepare(upload, "m.zt", digest, &error), ZT_IO);
    s3_abandon(upload);
    assert_non_null(world->writing.unwanted);
    assert_null(shelf_find("m.zt"));
}

static void hide_the_rest(struct remote_exchange *exchange)
{
    shelf.cannot_tell = strcmp(exchange->method, "PUT") == 0;
}

static void what_was_replaced_is_forgotten_though_the_new_version_is_not_known(void **state)
{
    struct world *world = *state;
    struct stored_upload *upload;
    struct store_claim *claim;
    struct store_expected seen;
    struct object_version version;
    struct zt_error error;

    probe(world);
    shelf_put("m.zt", "first", 5);
    seen = expect_shelf();
    upload = upload_of(world, SMALL_BYTES);
    claim = claim_ok(world);
    assert_true(s3_known_version(&world->store, "m.zt", &version));
    shelf.before = hide_the_rest;
    assert_int_equal(s3_publish(upload, "m.zt", &seen, &error), ZT_OK);
    assert_true(is_published(SMALL_BYTES));
    assert_false(claim->has_published);
    assert_false(s3_known_version(&world->store, "m.zt", &version));
    s3_release(claim);
}

static void published_file_is_in_the_cache(void **state)
{
    struct world *world = *state;
    struct file_identity identity;
    struct object_version version;
    uint8_t key[CACHE_KEY_BYTES];

    probe(world);
    assert_int_equal(publish(world, LARGE_BYTES, &store_expects_nothing), ZT_OK);
    assert_true(s3_known_version(&world->store, "m.zt", &version));
    identity = bucket_identity(version.etag, version.size_bytes, version.modified_s);
    s3_cache_key(&world->store, "m.zt", &identity, key);
    assert_true(cache_knows(world->store.cache, key));
}

static void only_what_is_expected_is_replaced(void **state)
{
    static const size_t lengths[] = {SMALL_BYTES, LARGE_BYTES};
    struct world *world = *state;
    struct store_expected seen;

    shelf.ignores_complete_conditions = true;
    probe(world);
    shelf_put("m.zt", "first", 5);
    seen = expect_shelf();
    shelf_put("m.zt", "second", 6);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(publish(world, lengths[i], &store_expects_nothing), ZT_ARGUMENT);
        assert_int_equal(publish(world, lengths[i], &seen), ZT_ARGUMENT);
        assert_int_equal(shelf_find("m.zt")->length, 6);
    }
}

/* Another program, which asks for no claim, writes while the request is on its way. */
static void overtake(struct remote_exchange *exchange)
{
    const bool is_whole = strcmp(exchange->method, "PUT") == 0 && exchange->query == NULL;
    const bool is_completion =
        strcmp(exchange->method, "POST") == 0 && strncmp(exchange->query, "uploadId", 8) == 0;

    if (strstr(exchange->path, "m.zt") != NULL && (is_whole || is_completion))
        shelf_put("m.zt", "third!!", 7);
}

static void object_that_was_written_meanwhile_is_not_overwritten(void **state)
{
    static const size_t lengths[] = {SMALL_BYTES, LARGE_BYTES};
    struct world *world = *state;

    probe(world);
    for (size_t i = 0; i < 4; i++) {
        struct store_expected expected = store_expects_nothing;

        if (i < 2) {
            shelf_put("m.zt", "first", 5);
            expected = expect_shelf();
        } else
            shelf_remove("m.zt");
        shelf.before = overtake;
        assert_int_equal(publish(world, lengths[i % 2], &expected), ZT_ARGUMENT);
        shelf.before = NULL;
        assert_int_equal(shelf_find("m.zt")->length, 7);
    }
}

static void write_whose_answer_was_lost_counts_as_what_it_did(void **state)
{
    static const size_t lengths[] = {SMALL_BYTES, LARGE_BYTES};
    struct world *world = *state;

    probe(world);
    shelf.fails = "m.zt";
    for (size_t i = 0; i < 2; i++) {
        shelf_remove("m.zt");
        shelf.does_them = false;
        shelf.fail_times = TRIES;
        assert_int_equal(publish(world, lengths[i], &store_expects_nothing), ZT_UNAVAILABLE);
        assert_null(shelf_find("m.zt"));
        shelf.does_them = true;
        shelf.fail_times = 1;
        assert_int_equal(publish(world, lengths[i], &store_expects_nothing), ZT_OK);
        assert_true(is_published(lengths[i]));
    }
}

/* A service that does both may remove the bytes of the object that the completion made. */
static void upload_that_may_be_completing_is_not_aborted(void **state)
{
    struct world *world = *state;
    struct s3_multipart *left;

    probe(world);
    shelf.aborted = 0;
    shelf.fails = "m.zt";
    shelf.fail_times = TRIES;
    assert_int_equal(publish(world, LARGE_BYTES, &store_expects_nothing), ZT_UNAVAILABLE);
    assert_int_equal(shelf.aborted, 0);
    assert_true(shelf.has_upload);
    left = s3_journal_read(&world->store);
    assert_non_null(left);
    assert_true(left->is_completing);
    assert_true(left->abort_after_ms > clock_ms() + S3_COMPLETING_MS - 60000);
    s3_multipart_free(left);
    /* A repetition begins anew. */
    assert_int_equal(publish(world, LARGE_BYTES, &store_expects_nothing), ZT_OK);
    assert_true(is_published(LARGE_BYTES));
    assert_int_equal(shelf.aborted, 0);
}

static void upload_under_way_is_in_the_journal(void **state)
{
    struct world *world = *state;
    struct stored_upload *upload;
    struct s3_multipart *left;

    probe(world);
    upload = upload_of(world, LARGE_BYTES);
    left = s3_journal_read(&world->store);
    assert_non_null(left);
    assert_string_equal(left->key, "m.zt");
    assert_string_equal(left->id, "up/1");
    assert_null(left->next);
    s3_multipart_free(left);
    s3_abandon(upload);
}

static void only_what_is_expected_is_removed(void **state)
{
    struct world *world = *state;
    struct store_claim *claim;
    struct store_expected seen;
    struct zt_error error;

    probe(world);
    shelf_put("m.zt", "first", 5);
    seen = expect_shelf();
    shelf_put("m.zt", "second", 6);
    claim = claim_ok(world);
    assert_int_equal(s3_remove(&world->store.base, "m.zt", &seen, &error), ZT_ARGUMENT);
    assert_int_equal(s3_remove(&world->store.base, "m.gguf", &store_expects_anything, &error),
                     ZT_NOT_FOUND);
    seen = expect_shelf();
    assert_int_equal(s3_remove(&world->store.base, "m.zt", &seen, &error), ZT_OK);
    assert_null(shelf_find("m.zt"));
    s3_release(claim);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(probe_finds_what_is_honoured_and_leaves_nothing),
        TEST(probe_sees_completions_that_ignore_conditions),
        TEST(without_conditions_only_a_single_writer_publishes),
        TEST(store_that_is_away_is_not_judged),
        TEST(publishes_what_is_small_and_what_is_large),
        TEST(staged_file_that_rotted_is_not_published),
        TEST(what_was_replaced_is_forgotten_though_the_new_version_is_not_known),
        TEST(published_file_is_in_the_cache),
        TEST(only_what_is_expected_is_replaced),
        TEST(object_that_was_written_meanwhile_is_not_overwritten),
        TEST(write_whose_answer_was_lost_counts_as_what_it_did),
        TEST(upload_that_may_be_completing_is_not_aborted),
        TEST(upload_under_way_is_in_the_journal),
        TEST(only_what_is_expected_is_removed),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
