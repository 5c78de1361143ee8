/* Claims in a bucket: one writer at a time publishes under a name. */
#include "s3_write_world.h"

static const char *key_of_m(struct world *world)
{
    static struct s3_claim claim;
    struct zt_error error;

    claim = (struct s3_claim){.store = &world->store, .name = "m"};
    assert_ok(s3_claim_set_key(&claim, &error));
    return claim.key;
}

WITH_S3(claim_whose_answer_was_lost_is_ours)
{
    probe(world);
    shelf.fails = S3_CLAIMS_PREFIX;
    shelf.fail_times = 1;
    shelf.does_them = true;
    assert_ok(publish(world, SMALL_BYTES, &store_expects_nothing));
}

WITH_S3(claim_of_a_dead_writer_is_taken_over)
{
    probe(world);
    shelf_put(key_of_m(world), "another's", 9)->modified_s = shelf.now_s - S3_CLAIM_DEAD_S - 1;
    assert_ok(publish(world, SMALL_BYTES, &store_expects_nothing));
}

WITH_S3(claim_that_another_took_over_is_not_removed)
{
    struct store_claim *claim;

    probe(world);
    claim = claim_ok(world);
    shelf_put(key_of_m(world), "another's", 9);
    ((struct s3_claim *)claim)->since_ms = clock_ms() - S3_CLAIM_GOOD_MS - 1;
    s3_release(claim);
    assert_int_equal(shelf_count(S3_CLAIMS_PREFIX), 1);
}

WITH_S3(nothing_is_published_under_a_claim_that_was_lost)
{
    struct staged_file *upload;
    struct store_claim *claim;
    struct zt_error error;

    probe(world);
    upload = upload_of(world, SMALL_BYTES);
    claim = claim_ok(world);
    shelf_put(key_of_m(world), "another's", 9);
    ((struct s3_claim *)claim)->since_ms = clock_ms() - S3_CLAIM_FRESH_MS - 1;
    assert_int_equal(s3_publish(&world->store.base, upload, "m.zt", &store_expects_nothing, &error),
                     ZT_UNAVAILABLE);
    assert_null(shelf_find("m.zt"));
    ((struct s3_claim *)claim)->since_ms = 0;
    s3_release(claim);
    staged_file_close(upload);
}

/* Of which each write makes a claim seem as old as it may be. */
static struct s3_claim *aging;

static void grow_old(struct remote_exchange *exchange)
{
    (void)exchange;
    aging->since_ms -= S3_CLAIM_GOOD_MS;
}

WITH_S3(nothing_is_begun_under_a_claim_that_grew_old)
{
    struct staged_file *upload;
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
    assert_int_equal(s3_publish(&world->store.base, upload, "m.zt", &seen, &error), ZT_UNAVAILABLE);
    assert_int_equal(s3_remove(&world->store.base, "m.zt", &seen, &error), ZT_UNAVAILABLE);
    assert_int_equal(shelf_find("m.zt")->length, 5);
    /* Nor is it removed: it could be another's when that arrives. */
    s3_release(claim);
    assert_int_equal(shelf_count(S3_CLAIMS_PREFIX), 1);
    staged_file_close(upload);
}

WITH_S3(writing_is_repeated_under_a_claim_that_is_ours)
{
    static const size_t lengths[] = {SMALL_BYTES, LARGE_BYTES};
    struct store_claim *claim;

    probe(world);
    shelf.fails = "m.zt";
    for (size_t i = 0; i < 2; i++) {
        shelf_remove("m.zt");
        shelf.fail_times = TRIES - 1;
        assert_ok(publish(world, lengths[i], &store_expects_nothing));
        assert_int_equal(shelf.fail_times, 0);
        assert_true(is_published(lengths[i]));
    }
    claim = claim_ok(world);
    shelf.fail_times = TRIES - 1;
    assert_ok(s3_remove(&world->store.base, "m.zt", &store_expects_anything, NULL));
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

WITH_S3(nothing_is_repeated_under_a_claim_that_was_lost)
{
    static const size_t lengths[] = {SMALL_BYTES, LARGE_BYTES};

    probe(world);
    shelf.fails = "m.zt";
    for (size_t i = 0; i < 3; i++) {
        struct staged_file *upload = i < 2 ? upload_of(world, lengths[i]) : NULL;
        struct store_claim *claim;
        enum zt_status status;

        if (i == 2)
            shelf_put("m.zt", "first", 5);
        claim = claim_ok(world);
        aging = (struct s3_claim *)claim;
        writes_of_m = 0;
        shelf.fail_times = 1;
        shelf.before = lose_claim;
        status = i < 2
                     ? s3_publish(&world->store.base, upload, "m.zt", &store_expects_anything, NULL)
                     : s3_remove(&world->store.base, "m.zt", &store_expects_anything, NULL);
        assert_int_equal(status, ZT_UNAVAILABLE);
        assert_int_equal(writes_of_m, 1);
        assert_int_equal(shelf_count("m.zt"), i < 2 ? 0 : 1);
        shelf.before = NULL;
        aging->since_ms = 0;
        s3_release(claim);
        shelf_remove(key_of_m(world));
        if (upload != NULL)
            staged_file_close(upload);
    }
}

WITH_S3(sweep_removes_claims_of_dead_writers_only)
{
    char dead[] = S3_CLAIMS_PREFIX "00000000000000000000000000000000";
    char living[] = S3_CLAIMS_PREFIX "11111111111111111111111111111111";

    probe(world);
    shelf_put(dead, "x", 1)->modified_s = shelf.now_s - S3_CLAIM_DEAD_S - 1;
    shelf_put(living, "x", 1)->modified_s = shelf.now_s - S3_CLAIM_DEAD_S;
    s3_claims_sweep(&world->store);
    assert_null(shelf_find(dead));
    assert_non_null(shelf_find(living));
}
