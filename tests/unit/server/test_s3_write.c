/* Publishing to a bucket: what a service honours is found out, one writer at a time, and doubt is
 * settled. */
#include "writable_remote.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/workers.h"
#include "store/s3/s3_listing.h"
#include "store/s3_write/s3_multipart.h"

/* For all that is done under a claim. */
#define CLAIM_MS    25000
#define SMALL_BYTES 1000
#define LARGE_BYTES 150000
#define PART_BYTES  65536
/* Of a request under a claim. */
#define TRIES 5

struct world {
    struct s3_store store;
    struct s3_writing writing;
    struct config config;
    char folder[64];
};

static const struct store_ops ops = {.list = s3_list};
static uint8_t content[LARGE_BYTES];

static void open_staging(struct world *world)
{
    char path[96];
    struct zt_error error;

    snprintf(path, sizeof(path), "%s/uploads", world->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(store_local_open(path, 0, &world->writing.staging, &error), ZT_OK);
    world->writing.journal = open(world->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(world->writing.journal >= 0);
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    struct s3_store *store = &world->store;
    struct zt_error error;

    memset(&shelf, 0, sizeof(shelf));
    shelf.now_s = 1800000000;
    for (size_t i = 0; i < sizeof(content); i++)
        content[i] = (uint8_t)(i * 7 + i / 4096);
    strcpy(world->folder, "/tmp/zt-test-s3w-XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    config_defaults(&world->config);
    world->config.s3.part_bytes = PART_BYTES;
    store->base.ops = &ops;
    store->config = &world->config;
    store->folder = world->folder;
    store->writing = &world->writing;
    store->listing = s3_listing_new();
    strcpy(store->bucket.origin, "http://store.test");
    strcpy(store->bucket.name, "b");
    store->bucket.path_style = true;
    store->claims = store->bucket;
    pthread_mutex_init(&world->writing.lock, NULL);
    pthread_cond_init(&world->writing.changed, NULL);
    open_staging(world);
    assert_int_equal(
        cache_open(&(struct cache_options){.folder = world->folder}, &store->cache, &error), ZT_OK);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    char command[128];

    s3_keeper_stop(&world->store);
    cache_close(world->store.cache);
    s3_listing_free(world->store.listing);
    world->writing.staging->ops->close(world->writing.staging);
    close(world->writing.journal);
    for (size_t i = 0; i < SHELF_OBJECTS; i++)
        free(shelf.objects[i].bytes);
    free(shelf.upload.bytes);
    snprintf(command, sizeof(command), "rm -rf %s", world->folder);
    assert_int_equal(system(command), 0);
    free(world);
    return 0;
}

static void probe(struct world *world)
{
    struct zt_error error;

    assert_int_equal(s3_probe(&world->store, &error), ZT_OK);
}

static struct store_claim *claim_ok(struct world *world)
{
    struct store_claim *claim = NULL;
    struct zt_error error;

    assert_int_equal(
        s3_claim(&world->store.base, zt_text_from("m"), clock_ms() + CLAIM_MS, &claim, &error),
        ZT_OK);
    return claim;
}

static struct stored_upload *received(struct world *world, size_t length, uint8_t digest[32])
{
    struct stored_upload *upload = NULL;
    struct zt_error error;
    char sha256[S3_SHA256_SIZE];

    assert_int_equal(s3_create(&world->store.base, length, &upload, &error), ZT_OK);
    assert_int_equal(s3_write_at(upload, 0, content, length, &error), ZT_OK);
    assert_int_equal(s3_hash_bytes(content, length, sha256, &error), ZT_OK);
    for (size_t i = 0; i < 32; i++)
        assert_int_equal(sscanf(sha256 + 2 * i, "%2hhx", &digest[i]), 1);
    return upload;
}

static struct stored_upload *upload_of(struct world *world, size_t length)
{
    uint8_t digest[32];
    struct stored_upload *upload = received(world, length, digest);
    struct zt_error error;

    assert_int_equal(s3_prepare(upload, "m.zt", digest, &error), ZT_OK);
    return upload;
}

/* Publishes under a claim of its own. */
static enum zt_status publish(struct world *world, size_t length,
                              const struct store_expected *expected)
{
    struct stored_upload *upload = upload_of(world, length);
    struct store_claim *claim = claim_ok(world);
    struct zt_error error;
    const enum zt_status status = s3_publish(upload, "m.zt", expected, &error);

    assert_true(claim->has_published == (status == ZT_OK));
    s3_release(claim);
    if (status != ZT_OK)
        s3_abandon(upload);
    assert_int_equal(shelf_count(S3_CLAIMS_PREFIX), 0);
    return status;
}

static bool is_published(size_t length)
{
    const struct shelf_object *object = shelf_find("m.zt");

    return object != NULL && object->length == length &&
           memcmp(object->bytes, content, length) == 0;
}

static struct store_expected expect_shelf(void)
{
    const struct shelf_object *object = shelf_find("m.zt");

    return (struct store_expected){
        STORE_EXPECTS_VERSION, bucket_identity(object->etag, object->length, object->modified_s)};
}

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

/* --- claims --- */

static const char *key_of_m(struct world *world)
{
    static struct s3_claim claim;
    struct zt_error error;

    claim = (struct s3_claim){.store = &world->store, .name = "m"};
    assert_int_equal(s3_claim_set_key(&claim, &error), ZT_OK);
    return claim.key;
}

static void claim_whose_answer_was_lost_is_ours(void **state)
{
    struct world *world = *state;

    probe(world);
    shelf.fails = S3_CLAIMS_PREFIX;
    shelf.fail_times = 1;
    shelf.does_them = true;
    assert_int_equal(publish(world, SMALL_BYTES, &store_expects_nothing), ZT_OK);
}

static void claim_of_a_dead_writer_is_taken_over(void **state)
{
    struct world *world = *state;

    probe(world);
    shelf_put(key_of_m(world), "another's", 9)->modified_s = shelf.now_s - S3_CLAIM_DEAD_S - 1;
    assert_int_equal(publish(world, SMALL_BYTES, &store_expects_nothing), ZT_OK);
}

static void claim_that_another_took_over_is_not_removed(void **state)
{
    struct world *world = *state;
    struct store_claim *claim;

    probe(world);
    claim = claim_ok(world);
    shelf_put(key_of_m(world), "another's", 9);
    ((struct s3_claim *)claim)->since_ms = clock_ms() - S3_CLAIM_GOOD_MS - 1;
    s3_release(claim);
    assert_int_equal(shelf_count(S3_CLAIMS_PREFIX), 1);
}

static void nothing_is_published_under_a_claim_that_was_lost(void **state)
{
    struct world *world = *state;
    struct stored_upload *upload;
    struct store_claim *claim;
    struct zt_error error;

    probe(world);
    upload = upload_of(world, SMALL_BYTES);
    claim = claim_ok(world);
    shelf_put(key_of_m(world), "another's", 9);
    ((struct s3_claim *)claim)->since_ms = clock_ms() - S3_CLAIM_FRESH_MS - 1;
    assert_int_equal(s3_publish(upload, "m.zt", &store_expects_nothing, &error), ZT_UNAVAILABLE);
    assert_null(shelf_find("m.zt"));
    ((struct s3_claim *)claim)->since_ms = 0;
    s3_release(claim);
    s3_abandon(upload);
}

/* Of which each write makes a claim seem as old as it may be. */
static struct s3_claim *aging;

static void grow_old(struct remote_exchange *exchange)
{
    (void)exchange;
    aging->since_ms -= S3_CLAIM_GOOD_MS;
}

static void nothing_is_begun_under_a_claim_that_grew_old(void **state)
{
    struct world *world = *state;
    struct stored_upload *upload;
    struct store_claim *claim;
    struct store_expected seen;
    struct zt_error error;

    probe(world);
    shelf_put("m.zt", "first", 5);
    seen = expect_shelf();
    upload = upload_of(world, SMALL_BYTES);
    claim = claim_ok(world);
    aging = (struct s3_claim *)claim;
    aging->since_ms -= S3_CLAIM_FRESH_MS;
    shelf.before = grow_old;
    assert_int_equal(s3_publish(upload, "m.zt", &seen, &error), ZT_UNAVAILABLE);
    assert_int_equal(s3_remove(&world->store.base, "m.zt", &seen, &error), ZT_UNAVAILABLE);
    assert_int_equal(shelf_find("m.zt")->length, 5);
    /* Nor is it removed: it could be another's when that arrives. */
    s3_release(claim);
    assert_int_equal(shelf_count(S3_CLAIMS_PREFIX), 1);
    s3_abandon(upload);
}

static void writing_is_repeated_under_a_claim_that_is_ours(void **state)
{
    static const size_t lengths[] = {SMALL_BYTES, LARGE_BYTES};
    struct world *world = *state;
    struct store_claim *claim;

    probe(world);
    shelf.fails = "m.zt";
    for (size_t i = 0; i < 2; i++) {
        shelf_remove("m.zt");
        shelf.fail_times = TRIES - 1;
        assert_int_equal(publish(world, lengths[i], &store_expects_nothing), ZT_OK);
        assert_int_equal(shelf.fail_times, 0);
        assert_true(is_published(lengths[i]));
    }
    claim = claim_ok(world);
    shelf.fail_times = TRIES - 1;
    assert_int_equal(s3_remove(&world->store.base, "m.zt", &store_expects_anything, NULL), ZT_OK);
    assert_int_equal(shelf.fail_times, 0);
    assert_null(shelf_find("m.zt"));
    s3_release(claim);
}

static unsigned writes_of_m;

/* Another writer takes the claim over while the model is written. */
static void lose_claim(struct remote_exchange *exchange)
{
    if (strstr(exchange->path, "m.zt") == NULL ||
        (exchange->query != NULL && strncmp(exchange->query, "uploadId", 8) != 0))
        return;
    writes_of_m++;
    aging->since_ms = clock_ms() - S3_CLAIM_FRESH_MS - 1;
    shelf_put(aging->key, "another's", 9);
}

static void nothing_is_repeated_under_a_claim_that_was_lost(void **state)
{
    static const size_t lengths[] = {SMALL_BYTES, LARGE_BYTES};
    struct world *world = *state;

    probe(world);
    shelf.fails = "m.zt";
    for (size_t i = 0; i < 3; i++) {
        struct stored_upload *upload = i < 2 ? upload_of(world, lengths[i]) : NULL;
        struct store_claim *claim;
        enum zt_status status;

        if (i == 2)
            shelf_put("m.zt", "first", 5);
        claim = claim_ok(world);
        aging = (struct s3_claim *)claim;
        writes_of_m = 0;
        shelf.fail_times = 1;
        shelf.before = lose_claim;
        status = i < 2 ? s3_publish(upload, "m.zt", &store_expects_anything, NULL)
                       : s3_remove(&world->store.base, "m.zt", &store_expects_anything, NULL);
        assert_int_equal(status, ZT_UNAVAILABLE);
        assert_int_equal(writes_of_m, 1);
        assert_int_equal(shelf_count("m.zt"), i < 2 ? 0 : 1);
        shelf.before = NULL;
        aging->since_ms = 0;
        s3_release(claim);
        shelf_remove(key_of_m(world));
        if (upload != NULL)
            s3_abandon(upload);
    }
}

static void sweep_removes_claims_of_dead_writers_only(void **state)
{
    struct world *world = *state;
    char dead[] = S3_CLAIMS_PREFIX "00000000000000000000000000000000";
    char living[] = S3_CLAIMS_PREFIX "11111111111111111111111111111111";

    probe(world);
    shelf_put(dead, "x", 1)->modified_s = shelf.now_s - S3_CLAIM_DEAD_S - 1;
    shelf_put(living, "x", 1)->modified_s = shelf.now_s - S3_CLAIM_DEAD_S;
    s3_claims_sweep(&world->store);
    assert_null(shelf_find(dead));
    assert_non_null(shelf_find(living));
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
        TEST(claim_whose_answer_was_lost_is_ours),
        TEST(claim_of_a_dead_writer_is_taken_over),
        TEST(claim_that_another_took_over_is_not_removed),
        TEST(nothing_is_published_under_a_claim_that_was_lost),
        TEST(nothing_is_begun_under_a_claim_that_grew_old),
        TEST(writing_is_repeated_under_a_claim_that_is_ours),
        TEST(nothing_is_repeated_under_a_claim_that_was_lost),
        TEST(sweep_removes_claims_of_dead_writers_only),
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
