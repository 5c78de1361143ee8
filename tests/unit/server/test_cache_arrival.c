/* Bytes of the cache while they arrive: readers have them at once, and they never change. */
#include "cache_world.h"
#include "tests.h"

#define VERSION 7u
#define SIZE    (20 * MIB)

AROUND_EACH_TEST(world_begin, world_end)

/* An origin whose fetches the test answers by hand. */
static struct cache_fetch *held[16];
static atomic_uint held_count;

static void hold_fetch(struct cache_origin *origin, struct cache_fetch *fetch)
{
    (void)origin;
    assert_true(atomic_load(&held_count) < 16);
    held[atomic_load(&held_count)] = fetch;
    atomic_fetch_add(&held_count, 1);
}

static void free_origin(struct cache_origin *origin)
{
    free(origin);
}

static struct zt_source *open_held(void)
{
    struct cache_origin *origin = calloc(1, sizeof(*origin));
    struct zt_source *source = NULL;
    uint8_t key[CACHE_KEY_BYTES];

    assert_non_null(origin);
    *origin = (struct cache_origin){.fetch = hold_fetch, .close = free_origin};
    world_key(VERSION, key);
    assert_ok(cache_file_open(world.cache, key, SIZE, origin, &source, NULL));
    atomic_store(&held_count, 0);
    return source;
}

/* Bytes up to so many of a fetch have arrived. */
static void arrive(struct cache_fetch *fetch, uint64_t from, uint64_t to)
{
    world_fill(VERSION, fetch->offset + from, fetch->bytes + from, (size_t)(to - from));
    fetch->arrived(fetch, to);
}

struct awaited {
    struct zt_source_waiter waiter;
    atomic_bool is_woken;
};

static void note_woken(struct zt_source_waiter *waiter)
{
    atomic_store(&((struct awaited *)waiter)->is_woken, true);
}

static void await_bytes(struct zt_source *source, uint64_t offset, uint64_t length, uint64_t least,
                        struct awaited *awaited)
{
    awaited->waiter.wake = note_woken;
    atomic_store(&awaited->is_woken, false);
    zt_source_await(source, offset, length, least, &awaited->waiter);
}

static bool is_taken(struct zt_source *source, uint64_t offset, size_t length, size_t expected)
{
    uint8_t *bytes = malloc(length);
    const size_t taken = zt_source_take_arrived(source, offset, bytes, length);
    const bool is_right = taken == expected && world_is(VERSION, offset, bytes, taken);

    free(bytes);
    return is_right;
}

/* Fetches the first block, so that the next runs are long. */
static void fetch_first(struct zt_source *source)
{
    struct awaited awaited;

    await_bytes(source, 0, 1, 1, &awaited);
    assert_int_equal(atomic_load(&held_count), 1);
    arrive(held[0], 0, MIB);
    held[0]->done(held[0], ZT_OK, NULL);
    AWAIT(world_pin(source, 0, MIB, false) == ZT_OK);
    atomic_store(&held_count, 0);
}

TEST(bytes_are_taken_as_they_arrive)
{
    struct zt_source *source = open_held();
    struct awaited soon;
    struct awaited later;
    struct awaited whole;

    fetch_first(source);
    await_bytes(source, 8 * MIB, 8 * MIB, 1, &soon);
    await_bytes(source, 8 * MIB + 100, MIB, 1000, &later);
    await_bytes(source, 15 * MIB, MIB, 1, &whole);
    assert_int_equal(atomic_load(&held_count), 1);
    assert_int_equal(held[0]->length, 8 * MIB);
    assert_true(is_taken(source, 8 * MIB, 100, 0));
    assert_false(atomic_load(&soon.is_woken));
    arrive(held[0], 0, 1000);
    assert_true(atomic_load(&soon.is_woken) && !atomic_load(&later.is_woken));
    assert_true(is_taken(source, 8 * MIB, 5000, 1000));
    assert_true(is_taken(source, 8 * MIB + 999, 5000, 1));
    assert_true(is_taken(source, 8 * MIB + 1000, 5000, 0));
    arrive(held[0], 1000, 1100);
    assert_true(atomic_load(&later.is_woken));
    arrive(held[0], 1100, 7 * MIB + 1);
    assert_true(atomic_load(&whole.is_woken));
    assert_true(is_taken(source, 15 * MIB, 5000, 1));
    arrive(held[0], 7 * MIB + 1, 8 * MIB);
    held[0]->done(held[0], ZT_OK, NULL);
    AWAIT(world_pin(source, 8 * MIB, 8 * MIB, false) == ZT_OK);
    assert_int_equal(world_read(source, VERSION, 8 * MIB, 8 * MIB), ZT_OK);
    zt_source_close(source);
}

static void *read_early(void *source)
{
    uint8_t bytes[100];

    assert_ok(zt_source_read_at(source, 8 * MIB, bytes, sizeof(bytes), NULL));
    assert_true(world_is(VERSION, 8 * MIB, bytes, sizeof(bytes)));
    return NULL;
}

TEST(a_thread_reads_bytes_as_they_arrive)
{
    struct zt_source *source = open_held();
    pthread_t thread;

    fetch_first(source);
    zt_source_advise(source, 8 * MIB, 8 * MIB);
    assert_int_equal(atomic_load(&held_count), 1);
    assert_int_equal(pthread_create(&thread, NULL, read_early, source), 0);
    arrive(held[0], 0, 50);
    arrive(held[0], 50, 100);
    pthread_join(thread, NULL);
    held[0]->done(held[0], ZT_UNAVAILABLE, NULL);
    zt_source_close(source);
}

/* After a fetch that failed halfway, the next one must begin with the bytes that readers had. */
TEST(bytes_that_readers_had_never_change)
{
    static const uint64_t passed[] = {500, MIB, 2 * MIB + 500};

    for (unsigned i = 0; i < 6; i++) {
        const uint64_t length = passed[i / 2];
        const bool is_other = i % 2 != 0;
        struct zt_source *source;
        struct awaited awaited;
        struct zt_error error;

        world_stop();
        world_remove_folder();
        world_start(0);
        source = open_held();
        fetch_first(source);
        await_bytes(source, 8 * MIB, 8 * MIB, 1, &awaited);
        arrive(held[0], 0, length);
        assert_true(is_taken(source, 8 * MIB, length, length));
        zt_fail(&error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the line was cut");
        held[0]->done(held[0], ZT_UNAVAILABLE, &error);
        AWAIT(is_taken(source, 8 * MIB, 1, 0));
        await_bytes(source, 8 * MIB, 8 * MIB, 1, &awaited);
        AWAIT(atomic_load(&held_count) == 2);
        arrive(held[1], 0, 8 * MIB);
        /* Not before they are compared. */
        assert_false(atomic_load(&awaited.is_woken));
        assert_true(is_taken(source, 8 * MIB, 1, 0));
        if (is_other)
            held[1]->bytes[length - 1] ^= 1;
        held[1]->done(held[1], ZT_OK, NULL);
        if (is_other) {
            AWAIT(atomic_load(&held_count) == 3);
            arrive(held[2], 0, 8 * MIB);
            held[2]->bytes[length - 1] ^= 1;
            held[2]->done(held[2], ZT_OK, NULL);
        }
        AWAIT(atomic_load(&awaited.is_woken));
        assert_int_equal(awaited.waiter.error.status, is_other ? ZT_STALE : ZT_OK);
        assert_int_equal(cache_has_lost(source), is_other);
        if (!is_other)
            assert_int_equal(world_read(source, VERSION, 8 * MIB, 8 * MIB), ZT_OK);
        zt_source_close(source);
    }
}

TEST(waiters_learn_why_a_fetch_failed)
{
    struct zt_source *source = open_held();
    struct awaited awaited[3];
    struct zt_error error;

    for (unsigned i = 0; i < 3; i++)
        await_bytes(source, i * 100, 1, 1, &awaited[i]);
    assert_int_equal(atomic_load(&held_count), 1);
    zt_fail(&error, ZT_UNAVAILABLE, "a rule", ZT_NO_OFFSET, "the line was cut");
    held[0]->done(held[0], ZT_UNAVAILABLE, &error);
    for (unsigned i = 0; i < 3; i++) {
        AWAIT(atomic_load(&awaited[i].is_woken));
        assert_string_equal(awaited[i].waiter.error.message, "the line was cut");
        assert_string_equal(awaited[i].waiter.error.rule, "a rule");
    }
    zt_source_close(source);
}

/* A reader finds bytes wrong that are still arriving: their run is given up, and fetched again. */
TEST(bytes_that_were_found_wrong_while_they_arrive_are_fetched_again)
{
    for (unsigned i = 0; i < 3; i++) {
        struct zt_source *source;
        struct awaited awaited;
        uint8_t wrong;

        world_stop();
        world_remove_folder();
        world_start(0);
        source = open_held();
        fetch_first(source);
        await_bytes(source, 8 * MIB, 8 * MIB, 1, &awaited);
        arrive(held[0], 0, 1000);
        held[0]->bytes[7] ^= 1;
        assert_int_equal(zt_source_take_arrived(source, 8 * MIB + 7, &wrong, 1), 1);
        assert_true(zt_source_invalidate(source, 8 * MIB, 1000));
        assert_true(is_taken(source, 8 * MIB, 100, 0));
        await_bytes(source, 8 * MIB, 8 * MIB, 1, &awaited);
        if (i > 0)
            arrive(held[0], 1000, 8 * MIB);
        assert_false(atomic_load(&awaited.is_woken));
        held[0]->done(held[0], i == 1 ? ZT_UNAVAILABLE : ZT_OK, NULL);
        AWAIT(atomic_load(&awaited.is_woken));
        assert_int_equal(awaited.waiter.error.status, ZT_OK);
        await_bytes(source, 8 * MIB, 8 * MIB, 1, &awaited);
        AWAIT(atomic_load(&held_count) == 2);
        arrive(held[1], 0, 8 * MIB);
        assert_true(is_taken(source, 8 * MIB, 1000, 1000));
        held[1]->done(held[1], ZT_OK, NULL);
        AWAIT(world_pin(source, 8 * MIB, 8 * MIB, false) == ZT_OK);
        assert_int_equal(world_read(source, VERSION, 8 * MIB, 8 * MIB), ZT_OK);
        zt_source_close(source);
    }
}
