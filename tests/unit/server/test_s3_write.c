/* Publishing to a bucket: what a service honours is found out, what is expected is replaced and
 * nothing else, and doubt is settled. */
#include "cache_inside.h"
#include "s3_write_world.h"

#include <sys/resource.h>

static struct zt_error error;

/* --- probing --- */

WITH_S3(probe_finds_what_is_honoured_and_leaves_nothing)
{
    const struct s3_abilities *abilities = &world->writing.abilities;

    probe(world);
    assert_int_equal(world->writing.mode, S3_MODE_CLAIMS);
    assert_true(abilities->put && abilities->complete_if_absent && abilities->complete_if_version);
    assert_int_equal(shelf_count(""), 0);
}

WITH_S3(probe_sees_completions_that_ignore_conditions)
{
    const struct s3_abilities *abilities = &world->writing.abilities;

    shelf.ignores_complete_conditions = true;
    probe(world);
    assert_int_equal(world->writing.mode, S3_MODE_CLAIMS);
    assert_true(abilities->put);
    assert_false(abilities->complete_if_absent || abilities->complete_if_version);
    assert_int_equal(shelf_count(""), 0);
}

WITH_S3(without_conditions_only_a_single_writer_publishes)
{
    struct store_claim *claim;

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
    assert_ok(publish(world, SMALL_BYTES, &store_expects_nothing));
    assert_int_equal(publish(world, SMALL_BYTES, &store_expects_nothing), ZT_ARGUMENT);
}

WITH_S3(store_that_is_away_is_not_judged)
{
    struct store_claim *claim;

    shelf.is_unreachable = true;
    assert_int_equal(s3_probe(&world->store, &error), ZT_UNAVAILABLE);
    assert_int_equal(world->writing.mode, S3_MODE_UNKNOWN);
    assert_int_equal(
        s3_claim(&world->store.base, zt_text_from("m"), clock_ms() + CLAIM_MS, &claim, &error),
        ZT_UNAVAILABLE);
}

/* --- publishing --- */

WITH_S3(publishes_what_is_small_and_what_is_large)
{
    struct store_expected seen;

    probe(world);
    assert_ok(publish(world, SMALL_BYTES, &store_expects_nothing));
    assert_true(is_published(SMALL_BYTES));
    seen = expect_shelf();
    shelf.parts = 0;
    assert_ok(publish(world, LARGE_BYTES, &seen));
    assert_true(is_published(LARGE_BYTES));
    assert_int_equal(shelf.parts, 3);
    assert_null(s3_journal_read(&world->store));
}

WITH_S3(staged_file_that_rotted_is_not_published)
{
    uint8_t digest[32];
    struct staged_file *upload;
    struct store_claim *claim;

    probe(world);
    /* One PUT hashes it under the claim. */
    upload = upload_of(world, SMALL_BYTES);
    assert_ok(staged_file_write_at(upload, SMALL_BYTES / 2, "rot", 3, &error));
    claim = claim_ok(world);
    assert_int_equal(s3_publish(&world->store.base, upload, "m.zt", &store_expects_nothing, &error),
                     ZT_IO);
    s3_release(claim);
    staged_file_close(upload);
    /* Parts are hashed while they are sent. */
    upload = received(world, LARGE_BYTES, digest);
    assert_ok(staged_file_write_at(upload, PART_BYTES + 1, "rot", 3, &error));
    assert_int_equal(s3_prepare(&world->store.base, upload, "m.zt", digest, &error), ZT_IO);
    staged_file_close(upload);
    assert_non_null(world->writing.unwanted);
    assert_null(shelf_find("m.zt"));
}

static void hide_the_rest(struct remote_exchange *exchange)
{
    shelf.cannot_tell = strcmp(exchange->method, "PUT") == 0;
}

WITH_S3(what_was_replaced_is_forgotten_though_the_new_version_is_not_known)
{
    struct staged_file *upload;
    struct store_claim *claim;
    struct store_expected seen;
    struct object_version version;

    probe(world);
    shelf_put("m.zt", "first", 5);
    seen = expect_shelf();
    upload = upload_of(world, SMALL_BYTES);
    claim = claim_ok(world);
    assert_true(s3_known_version(&world->store, "m.zt", &version));
    shelf.before = hide_the_rest;
    assert_ok(s3_publish(&world->store.base, upload, "m.zt", &seen, &error));
    assert_true(is_published(SMALL_BYTES));
    assert_false(claim->has_published);
    assert_false(s3_known_version(&world->store, "m.zt", &version));
    s3_release(claim);
}

WITH_S3(published_file_is_in_the_cache)
{
    struct file_identity identity;
    struct object_version version;
    uint8_t key[CACHE_KEY_BYTES];

    probe(world);
    assert_ok(publish(world, LARGE_BYTES, &store_expects_nothing));
    assert_true(s3_known_version(&world->store, "m.zt", &version));
    identity = bucket_identity(version.etag, version.size_bytes, version.modified_s);
    s3_cache_key(&world->store, "m.zt", &identity, key);
    assert_true(cache_knows(world->store.cache, key));
}

WITH_S3(only_what_is_expected_is_replaced)
{
    static const size_t lengths[] = {SMALL_BYTES, LARGE_BYTES};
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

WITH_S3(object_that_was_written_meanwhile_is_not_overwritten)
{
    static const size_t lengths[] = {SMALL_BYTES, LARGE_BYTES};

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

WITH_S3(write_whose_answer_was_lost_counts_as_what_it_did)
{
    static const size_t lengths[] = {SMALL_BYTES, LARGE_BYTES};

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
        assert_ok(publish(world, lengths[i], &store_expects_nothing));
        assert_true(is_published(lengths[i]));
    }
}

/* A service that does both may remove the bytes of the object that the completion made. */
WITH_S3(upload_that_may_be_completing_is_not_aborted)
{
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
    assert_ok(publish(world, LARGE_BYTES, &store_expects_nothing));
    assert_true(is_published(LARGE_BYTES));
    assert_int_equal(shelf.aborted, 0);
}

WITH_S3(upload_under_way_is_in_the_journal)
{
    struct staged_file *upload;
    struct s3_multipart *left;

    probe(world);
    upload = upload_of(world, LARGE_BYTES);
    left = s3_journal_read(&world->store);
    assert_non_null(left);
    assert_string_equal(left->key, "m.zt");
    assert_string_equal(left->id, "up/1");
    assert_null(left->next);
    s3_multipart_free(left);
    staged_file_close(upload);
}

/* The server could not start while there was such a record. */
WITH_S3(journal_without_a_key_or_an_id_is_removed)
{
    static const char name[] = "0123456789abcdef0123456789abcdef";
    static const char *const keys[] = {"", "m.zt"}; /* the second one without an id */
    struct bucket *bucket = &world->store.bucket;

    probe(world);
    for (size_t i = 0; i < 2; i++) {
        const int file = openat(world->writing.journal, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        assert_true(file >= 0);
        assert_true(dprintf(file, "%s%c%s%c", bucket->name, 0, bucket->prefix, 0) > 0);
        assert_true(dprintf(file, "%s%c", keys[i], 0) > 0);
        assert_true(i == 0 || dprintf(file, "%c", 0) == 1);
        close(file);
        assert_null(s3_journal_read(&world->store));
        assert_int_equal(faccessat(world->writing.journal, name, F_OK, 0), -1);
    }
}

WITH_S3(journal_that_cannot_be_read_now_is_kept)
{
    struct staged_file *upload;
    struct s3_multipart *left;
    struct rlimit usual;
    struct rlimit tight;
    int next;

    probe(world);
    upload = upload_of(world, LARGE_BYTES);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    next = dup(world->writing.journal);
    close(next);
    /* The folder can be opened, but no file in it. */
    tight = (struct rlimit){(rlim_t)next + 1, usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    left = s3_journal_read(&world->store);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_null(left);
    left = s3_journal_read(&world->store);
    assert_non_null(left);
    s3_multipart_free(left);
    staged_file_close(upload);
}

WITH_S3(only_what_is_expected_is_removed)
{
    struct store_claim *claim;
    struct store_expected seen;

    probe(world);
    shelf_put("m.zt", "first", 5);
    seen = expect_shelf();
    shelf_put("m.zt", "second", 6);
    claim = claim_ok(world);
    assert_int_equal(s3_remove(&world->store.base, "m.zt", &seen, &error), ZT_ARGUMENT);
    assert_int_equal(s3_remove(&world->store.base, "m.gguf", &store_expects_anything, &error),
                     ZT_NOT_FOUND);
    seen = expect_shelf();
    assert_ok(s3_remove(&world->store.base, "m.zt", &seen, &error));
    assert_null(shelf_find("m.zt"));
    s3_release(claim);
}
