/* The follower: every byte reaches the sink once and in order, whichever way it comes, and the
 * digests of a body are those of its bytes. */
#include "model_world.h"

#include "upload/shared/body_follower.h"

#define BODY_BYTES ((size_t)5 << 20)

struct body {
    struct body_follower follower;
    struct stored_upload *stored;
    uint8_t *bytes;
    size_t taken;
    size_t fails_at; /* the sink fails when it has taken so many; SIZE_MAX: never */
    atomic_uint works;
    atomic_bool is_freed;
};

static enum zt_status take(void *context, const void *bytes, size_t length, struct zt_error *error)
{
    struct body *body = context;

    assert_memory_equal(bytes, body->bytes + body->taken, length);
    body->taken += length;
    return body->taken > body->fails_at ? zt_fail(error, ZT_CORRUPT, NULL, ZT_NO_OFFSET, "enough")
                                        : ZT_OK;
}

static void note_freed(void *owner)
{
    struct body *body = owner;

    body_follower_destroy(&body->follower);
    atomic_store(&body->is_freed, true);
}

/* The body begins at 100 in its file. */
static struct body *begin(struct world *world)
{
    struct body *body = calloc(1, sizeof(*body));

    assert_non_null(body);
    body->bytes = malloc(BODY_BYTES);
    assert_non_null(body->bytes);
    for (size_t i = 0; i < BODY_BYTES; i++)
        body->bytes[i] = (uint8_t)(i * 31 >> 3);
    body->fails_at = SIZE_MAX;
    assert_int_equal(
        world->server.store->ops->create(world->server.store, UINT64_MAX, &body->stored, NULL),
        ZT_OK);
    body_follower_init(&body->follower, body, note_freed);
    body->follower.workers = world->server.workers;
    body->follower.store = world->server.store;
    body->follower.stored = body->stored;
    body->follower.base = 100;
    body->follower.sink = (struct zt_sink){take, body};
    return body;
}

static void end(struct world *world, struct body *body)
{
    body_follower_release(&body->follower);
    for (unsigned i = 0; i < 5000 && !atomic_load(&body->is_freed); i++)
        pause_ms(1);
    assert_true(atomic_load(&body->is_freed));
    world->server.store->ops->abandon(body->stored);
    free(body->bytes);
    free(body);
}

static void write_piece(const struct world *world, struct body *body, size_t at, size_t length)
{
    assert_int_equal(
        world->server.store->ops->write_at(body->stored, 100 + at, body->bytes + at, length, NULL),
        ZT_OK);
}

static void written_bytes_reach_the_sink_once_and_in_order(void **state)
{
    struct world *world = *state;
    struct body *body = begin(world);
    struct zt_error error;

    for (size_t at = 0; at < BODY_BYTES; at += 1 << 16) {
        write_piece(world, body, at, 1 << 16);
        body_follower_advance(&body->follower, 1 << 16);
    }
    assert_int_equal(body_follower_finish(&body->follower, &error), ZT_OK);
    assert_int_equal(body->taken, BODY_BYTES);
    assert_int_equal(body_follower_finish(&body->follower, &error), ZT_OK);
    assert_int_equal(body->taken, BODY_BYTES);
    end(world, body);
}

static void given_bytes_follow_those_that_are_read_back(void **state)
{
    struct world *world = *state;
    struct body *body = begin(world);
    struct zt_error error;

    write_piece(world, body, 0, 1000);
    body_follower_advance(&body->follower, 1000);
    body_follower_take(&body->follower, 1000, body->bytes + 1000, 500);
    assert_int_equal(body->taken, 1500);
    body_follower_take(&body->follower, 1500, body->bytes + 1500, 500);
    body_follower_count(&body->follower, 1000);
    assert_int_equal(body_follower_finish(&body->follower, &error), ZT_OK);
    assert_int_equal(body->taken, 2000);
    end(world, body);
}

static void given_bytes_that_were_read_back_are_not_taken_twice(void **state)
{
    struct world *world = *state;
    struct body *body = begin(world);
    struct zt_error error;

    write_piece(world, body, 0, 1000);
    body_follower_count(&body->follower, 1000);
    assert_int_equal(body_follower_finish(&body->follower, &error), ZT_OK);
    body_follower_take(&body->follower, 0, body->bytes, 1000);
    assert_int_equal(body->taken, 1000);
    end(world, body);
}

static void failed_sink_gets_nothing_more(void **state)
{
    struct world *world = *state;
    struct body *body = begin(world);
    struct zt_error error;

    body->fails_at = 1000;
    write_piece(world, body, 0, 2000);
    body_follower_advance(&body->follower, 2000);
    assert_int_equal(body_follower_finish(&body->follower, &error), ZT_CORRUPT);
    assert_int_equal(body_follower_finish(&body->follower, &error), ZT_CORRUPT);
    assert_string_equal(error.message, "enough");
    assert_int_equal(body->taken, 2000);
    end(world, body);
}

static void failure_to_read_can_be_repeated(void **state)
{
    struct world *world = *state;
    struct body *body = begin(world);
    struct zt_error error;

    body_follower_advance(&body->follower, 2000);
    assert_int_not_equal(body_follower_finish(&body->follower, &error), ZT_OK);
    assert_int_equal(body->taken, 0);
    write_piece(world, body, 0, 2000);
    assert_int_equal(body_follower_finish(&body->follower, &error), ZT_OK);
    assert_int_equal(body->taken, 2000);
    end(world, body);
}

static void stopped_follower_reads_nothing(void **state)
{
    struct world *world = *state;
    struct body *body = begin(world);
    struct zt_error error;

    write_piece(world, body, 0, 2000);
    body_follower_advance(&body->follower, 2000);
    body_follower_stop(&body->follower);
    assert_int_equal(body_follower_finish(&body->follower, &error), ZT_IO);
    assert_int_equal(body->taken, 0);
    end(world, body);
}

static void count_work(void *context)
{
    struct body *body = context;

    pause_ms(20);
    atomic_fetch_add(&body->works, 1);
}

static void one_job_runs_at_a_time_and_keeps_the_owner(void **state)
{
    struct world *world = *state;
    struct body *body = begin(world);

    assert_true(body_follower_run(&body->follower, count_work, body));
    assert_false(body_follower_run(&body->follower, count_work, body));
    body_follower_release_on_worker(&body->follower);
    for (unsigned i = 0; i < 5000 && !atomic_load(&body->is_freed); i++)
        pause_ms(1);
    assert_true(atomic_load(&body->is_freed));
    assert_int_equal(atomic_load(&body->works), 1);
    world->server.store->ops->abandon(body->stored);
    free(body->bytes);
    free(body);
}

/* --- digests --- */

static void digests_agree_with_fields_that_state_them(void **state)
{
    struct byte_digests digests = {.hashers = {NULL}};
    struct digest_field field = {.has_sha256 = true, .has_sha512 = true};

    (void)state;
    assert_true(byte_digests_init(&digests, true, true));
    assert_int_equal(byte_digests_take(&digests, "ab", 2, NULL), ZT_OK);
    byte_digests_update(&digests, "c", 1);
    byte_digests_finish(&digests);
    assert_int_equal(digests.sha256.bytes[0], 0xba);
    assert_int_equal(digests.sha512.bytes[0], 0xdd);
    memcpy(field.sha256, digests.sha256.bytes, sizeof(field.sha256));
    memcpy(field.sha512, digests.sha512.bytes, sizeof(field.sha512));
    assert_true(byte_digests_agree(&digests, &field));
    field.sha512[63] ^= 1;
    assert_false(byte_digests_agree(&digests, &field));
    field.has_sha512 = false;
    assert_true(byte_digests_agree(&digests, &field));
    field.sha256[31] ^= 1;
    assert_false(byte_digests_agree(&digests, &field));
    field.has_sha256 = false;
    assert_true(byte_digests_agree(&digests, &field));
    byte_digests_free(&digests);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(written_bytes_reach_the_sink_once_and_in_order,
                                        world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(given_bytes_follow_those_that_are_read_back, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(given_bytes_that_were_read_back_are_not_taken_twice,
                                        world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(failed_sink_gets_nothing_more, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(failure_to_read_can_be_repeated, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(stopped_follower_reads_nothing, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(one_job_runs_at_a_time_and_keeps_the_owner, world_set_up,
                                        world_tear_down),
        cmocka_unit_test(digests_agree_with_fields_that_state_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
