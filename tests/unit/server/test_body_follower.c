/* The follower: every byte reaches the sink once and in order, whichever way it comes, and the
 * digests of a body are those of its bytes. */
#include "model_world.h"
#include "tests.h"

#include "store/staging.h"
#include "upload/shared/body_follower.h"

#define BODY_BYTES ((size_t)5 << 20)

struct body {
    struct body_follower follower;
    struct staged_file *stored;
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
    assert_int_equal(staging_create(world->server.store->staging, UINT64_MAX, &body->stored, NULL),
                     ZT_OK);
    body_follower_init(&body->follower, body, note_freed);
    body->follower.workers = world->server.workers;
    body->follower.stored = body->stored;
    body->follower.base = 100;
    body->follower.sink = (struct zt_sink){take, body};
    return body;
}

static void end(struct body *body)
{
    body_follower_release(&body->follower);
    AWAIT(atomic_load(&body->is_freed));
    staged_file_close(body->stored);
    free(body->bytes);
    free(body);
}

static void write_piece(struct body *body, size_t at, size_t length)
{
    assert_int_equal(staged_file_write_at(body->stored, 100 + at, body->bytes + at, length, NULL),
                     ZT_OK);
}

AROUND_EACH_TEST(world_set_up, world_tear_down)

TEST_ON(struct world *world, written_bytes_reach_the_sink_once_and_in_order)
{
    struct body *body = begin(world);
    struct zt_error error;

    for (size_t at = 0; at < BODY_BYTES; at += 1 << 16) {
        write_piece(body, at, 1 << 16);
        body_follower_advance(&body->follower, 1 << 16);
    }
    assert_int_equal(body_follower_finish(&body->follower, &error), ZT_OK);
    assert_int_equal(body->taken, BODY_BYTES);
    assert_int_equal(body_follower_finish(&body->follower, &error), ZT_OK);
    assert_int_equal(body->taken, BODY_BYTES);
    end(body);
}

/* As a worker does that writes a piece. */
static void take_piece(struct body *body, size_t at, size_t length)
{
    const struct body_piece piece = {body->bytes + at, length, at, false, NULL};

    write_piece(body, at, length);
    body_follower_take(&body->follower, &piece);
}

TEST_ON(struct world *world, given_bytes_follow_those_that_are_read_back)
{
    struct body *body = begin(world);
    const struct body_piece first = {body->bytes, 1000, 0, true, NULL};
    struct zt_error error;

    write_piece(body, 0, 1000);
    body_follower_take(&body->follower, &first);
    assert_int_equal(body->taken, 0);
    take_piece(body, 1000, 500);
    assert_int_equal(body->taken, 1500);
    take_piece(body, 1500, 500);
    assert_int_equal(body->taken, 2000);
    assert_int_equal(body_follower_finish(&body->follower, &error), ZT_OK);
    assert_int_equal(body->taken, 2000);
    end(body);
}

struct kept {
    struct piece_keeper keeper;
    uint8_t *bytes;
    size_t length;
    atomic_uint *returns;
};

/* From now on the memory is another's. */
static void note_returned(struct job *returned)
{
    struct kept *kept = (struct kept *)returned;

    memset(kept->bytes, 0xEE, kept->length);
    atomic_fetch_add(kept->returns, 1);
}

/* Pieces of all lengths, with a processor for the second worker or without. */
TEST_ON(struct world *world, kept_pieces_reach_the_sink_once_and_in_order_and_are_returned)
{
    static const size_t lengths[] = {1000, 1 << 18, 1 << 18, 1 << 18, 1 << 16, 100, 1 << 19};
    struct body *body = begin(world);
    struct kept pieces[64] = {0};
    atomic_uint returns = 0;
    unsigned keeps = 0;
    unsigned count = 0;
    struct zt_error error;

    for (size_t at = 0; at < BODY_BYTES; at += pieces[count++].length) {
        struct kept *kept = &pieces[count];
        const size_t length = lengths[count % (sizeof(lengths) / sizeof(lengths[0]))];

        *kept = (struct kept){.keeper.returned.done = note_returned,
                              .length = length < BODY_BYTES - at ? length : BODY_BYTES - at,
                              .returns = &returns};
        kept->bytes = malloc(kept->length);
        assert_non_null(kept->bytes);
        memcpy(kept->bytes, body->bytes + at, kept->length);
        write_piece(body, at, kept->length);
        body_follower_take(&body->follower, &(struct body_piece){kept->bytes, kept->length, at,
                                                                 false, &kept->keeper});
        keeps += kept->keeper.is_kept;
    }
    assert_int_equal(body_follower_finish(&body->follower, &error), ZT_OK);
    assert_int_equal(body->taken, BODY_BYTES);
    assert_int_equal(atomic_load(&returns), keeps);
    for (unsigned i = 0; i < count; i++)
        free(pieces[i].bytes);
    end(body);
}

/* As when an upload goes on after a restart: many bytes were written by an earlier process. */
TEST_ON(struct world *world, many_bytes_are_read_back_while_pieces_arrive)
{
    enum { EARLIER = 24 << 20, LENGTH = 1 << 18, PIECES = 8 };
    struct body *body = begin(world);
    struct byte_digests digests = {.hashers = {NULL}};
    struct kept pieces[PIECES] = {0};
    atomic_uint returns = 0;
    unsigned keeps = 0;

    assert_true(byte_digests_init(&digests, false, false));
    body->follower.sink = (struct zt_sink){byte_digests_take, &digests};
    /* What is not written reads as zeros. */
    assert_int_equal(staged_file_write_at(body->stored, 100 + EARLIER, body->bytes,
                                          (size_t)PIECES * LENGTH, NULL),
                     ZT_OK);
    body_follower_advance(&body->follower, EARLIER);
    for (size_t i = 0; i < PIECES; i++) {
        struct kept *kept = &pieces[i];

        AWAIT(!body_follower_is_busy(&body->follower));
        *kept = (struct kept){{{.done = note_returned}, false}, malloc(LENGTH), LENGTH, &returns};
        assert_non_null(kept->bytes);
        memcpy(kept->bytes, body->bytes + i * LENGTH, LENGTH);
        body_follower_take(&body->follower, &(struct body_piece){kept->bytes, LENGTH, i * LENGTH,
                                                                 false, &kept->keeper});
        keeps += kept->keeper.is_kept;
    }
    AWAIT(atomic_load(&returns) == keeps && !body_follower_is_busy(&body->follower));
    assert_int_equal(atomic_load(&body->follower.taken), body_follower_received(&body->follower));
    for (size_t i = 0; i < PIECES; i++)
        free(pieces[i].bytes);
    byte_digests_free(&digests);
    end(body);
}

/* --- two bodies side by side --- */

static atomic_bool is_held_up;
static atomic_uint held_up;

static void hold_up(struct job *job)
{
    (void)job;
    atomic_fetch_add(&held_up, 1);
    AWAIT(!atomic_load(&is_held_up));
    atomic_fetch_sub(&held_up, 1);
}

static void begin_hashing(struct body *body, struct byte_digests *digests)
{
    assert_true(byte_digests_init(digests, true, true));
    body->follower.sink = (struct zt_sink){byte_digests_take, digests};
}

static void assert_hashed(const struct byte_digests *digests, const uint8_t *bytes, size_t length)
{
    struct byte_digests alone = {.hashers = {NULL}};

    assert_true(byte_digests_init(&alone, true, true));
    byte_digests_update(&alone, bytes, length);
    byte_digests_finish(&alone);
    assert_memory_equal(digests->sha256.bytes, alone.sha256.bytes, alone.sha256.length_bytes);
    assert_memory_equal(digests->sha512.bytes, alone.sha512.bytes, alone.sha512.length_bytes);
    assert_memory_equal(digests->xxh3.bytes, alone.xxh3.bytes, alone.xxh3.length_bytes);
    byte_digests_free(&alone);
}

/* All workers are held up until the pieces of both bodies wait, so that one job takes both. */
TEST_ON(struct world *world, bodies_that_are_hashed_side_by_side_get_their_own_digests)
{
    static const size_t lengths[2] = {1 << 18, (1 << 16) + 77};
    struct body *bodies[2] = {begin(world), begin(world)};
    struct byte_digests digests[2] = {{.hashers = {NULL}}, {.hashers = {NULL}}};
    struct kept pieces[2][3] = {0};
    atomic_uint returns = 0;
    struct job holding[16] = {0};
    struct workers_load load;
    struct zt_error error;

    workers_load(world->server.workers, &load);
    assert_in_range(load.threads, 1, 16);
    atomic_store(&is_held_up, true);
    for (size_t i = 0; i < load.threads; i++) {
        holding[i].run = hold_up;
        workers_submit(world->server.workers, &holding[i]);
    }
    AWAIT(atomic_load(&held_up) == load.threads);
    for (size_t i = 0; i < 2; i++)
        begin_hashing(bodies[i], &digests[i]);
    memset(bodies[1]->bytes, 'x', lengths[1]);
    for (size_t at = 0; at < 6; at++) {
        struct body *body = bodies[at % 2];
        const size_t length = lengths[at % 2];
        struct kept *kept = &pieces[at % 2][at / 2];

        *kept = (struct kept){{{.done = note_returned}, false}, malloc(length), length, &returns};
        assert_non_null(kept->bytes);
        memcpy(kept->bytes, body->bytes + at / 2 * length, length);
        write_piece(body, at / 2 * length, length);
        body_follower_take(
            &body->follower,
            &(struct body_piece){kept->bytes, length, at / 2 * length, false, &kept->keeper});
        assert_true(kept->keeper.is_kept);
    }
    atomic_store(&is_held_up, false);
    AWAIT(atomic_load(&returns) == 6 && atomic_load(&held_up) == 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(body_follower_finish(&bodies[i]->follower, &error), ZT_OK);
        byte_digests_finish(&digests[i]);
        assert_hashed(&digests[i], bodies[i]->bytes, 3 * lengths[i]);
        byte_digests_free(&digests[i]);
        end(bodies[i]);
        for (size_t j = 0; j < 3; j++)
            free(pieces[i][j].bytes);
    }
}

TEST_ON(struct world *world, failed_sink_gets_nothing_more)
{
    struct body *body = begin(world);
    struct zt_error error;

    body->fails_at = 1000;
    write_piece(body, 0, 2000);
    body_follower_advance(&body->follower, 2000);
    assert_int_equal(body_follower_finish(&body->follower, &error), ZT_CORRUPT);
    assert_int_equal(body_follower_finish(&body->follower, &error), ZT_CORRUPT);
    assert_string_equal(error.message, "enough");
    assert_int_equal(body->taken, 2000);
    end(body);
}

TEST_ON(struct world *world, failure_to_read_can_be_repeated)
{
    struct body *body = begin(world);
    struct zt_error error;

    body_follower_advance(&body->follower, 2000);
    assert_int_not_equal(body_follower_finish(&body->follower, &error), ZT_OK);
    assert_int_equal(body->taken, 0);
    write_piece(body, 0, 2000);
    assert_int_equal(body_follower_finish(&body->follower, &error), ZT_OK);
    assert_int_equal(body->taken, 2000);
    end(body);
}

TEST_ON(struct world *world, stopped_follower_reads_nothing)
{
    struct body *body = begin(world);
    struct zt_error error;

    write_piece(body, 0, 2000);
    body_follower_advance(&body->follower, 2000);
    body_follower_stop(&body->follower);
    assert_int_equal(body_follower_finish(&body->follower, &error), ZT_IO);
    assert_int_equal(body->taken, 0);
    end(body);
}

static void count_work(void *context)
{
    struct body *body = context;

    pause_ms(20);
    atomic_fetch_add(&body->works, 1);
}

TEST_ON(struct world *world, one_job_runs_at_a_time_and_keeps_the_owner)
{
    struct body *body = begin(world);

    assert_true(body_follower_run(&body->follower, count_work, body));
    assert_false(body_follower_run(&body->follower, count_work, body));
    body_follower_release_on_worker(&body->follower);
    AWAIT(atomic_load(&body->is_freed));
    assert_int_equal(atomic_load(&body->works), 1);
    staged_file_close(body->stored);
    free(body->bytes);
    free(body);
}

/* --- digests --- */

TEST(digests_agree_with_fields_that_state_them)
{
    struct byte_digests digests = {.hashers = {NULL}};
    struct digest_field field = {.has_sha256 = true, .has_sha512 = true};

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
