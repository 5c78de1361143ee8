/* The block cache: what is fetched, how often, and what a source of it promises. */
#include "cache_world.h"
#include "tests.h"

#include "base/clock.h"

#define BIG (200 * MIB + 12345)

AROUND_EACH_TEST(world_begin, world_end)

TEST(a_read_fetches_its_block_once)
{
    struct zt_source *source = world_open(1, BIG);

    assert_int_equal(zt_source_size(source), BIG);
    assert_null(zt_source_map(source));
    assert_int_equal(zt_source_descriptor(source), -1);
    assert_true(zt_source_is_remote(source));
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(world_read(source, 1, 5 * MIB + i * 1000, 4096), ZT_OK);
    assert_int_equal(atomic_load(&world.fetches), 1);
    assert_int_equal(atomic_load(&world.fetched_blocks), 1);
}

TEST(sizes_at_the_edges)
{
    static const uint64_t sizes[] = {0,       1,       4095,     MIB - 1,     MIB,
                                     MIB + 1, 8 * MIB, 64 * MIB, 64 * MIB + 1};

    for (uint64_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int round = 0; round < 2; round++) {
            struct zt_source *source = world_open(100 + i, sizes[i]);
            uint8_t byte;

            assert_int_equal(zt_source_size(source), sizes[i]);
            assert_int_equal(world_read(source, 100 + i, 0, (size_t)sizes[i]), ZT_OK);
            assert_int_equal(world_read(source, 100 + i, sizes[i], 0), ZT_OK);
            assert_int_equal(zt_source_read_at(source, sizes[i], &byte, 1, NULL), ZT_IO);
            assert_int_equal(zt_source_read_at(source, UINT64_MAX, &byte, 1, NULL), ZT_IO);
            zt_source_advise(source, sizes[i], 1);
            zt_source_advise(source, 0, UINT64_MAX);
            if (sizes[i] > 0)
                assert_int_equal(world_read(source, 100 + i, sizes[i] - 1, 1), ZT_OK);
            world_close(source);
        }
    assert_int_equal(atomic_load(&world.fetched_blocks), 1 + 1 + 1 + 1 + 2 + 8 + 64 + 65);
}

TEST(absent_blocks_come_in_few_fetches)
{
    struct zt_source *source = world_open(1, BIG);

    assert_int_equal(world_read(source, 1, 0, 64 * MIB), ZT_OK);
    /* The first has one block; runs end where multiples of 8 blocks do. */
    assert_int_equal(atomic_load(&world.fetches), 9);
    assert_int_equal(atomic_load(&world.fetched_blocks), 64);
    assert_int_equal(atomic_load(&world.longest), 8);
    /* One that is here divides a run. */
    assert_int_equal(world_read(source, 1, 100 * MIB, 1), ZT_OK);
    atomic_store(&world.fetches, 0);
    assert_int_equal(world_read(source, 1, 96 * MIB, 8 * MIB), ZT_OK);
    assert_int_equal(atomic_load(&world.fetches), 2);
}

static void free_origin(struct cache_origin *origin)
{
    free(origin);
}

TEST(what_is_longer_than_any_file_is_not_opened)
{
    const uint8_t key[CACHE_KEY_BYTES] = {1};
    struct cache_origin *origin;
    struct zt_source *source = NULL;
    struct zt_error error;

    for (unsigned i = 46; i < 64; i++) {
        origin = calloc(1, sizeof(*origin));
        assert_non_null(origin);
        origin->close = free_origin;
        assert_int_equal(
            cache_file_open(world.cache, key, (UINT64_C(1) << i) + 1, origin, &source, &error),
            ZT_LIMIT);
    }
    assert_int_equal(world_figures().files, 0);
}

/* --- pins --- */

TEST(a_pin_without_wait_brings_nothing)
{
    struct zt_source *source = world_open(1, BIG);
    struct zt_pin pin = {0};

    assert_int_equal(zt_source_pin(source, MIB - 10, 20, false, &pin, NULL), ZT_UNAVAILABLE);
    assert_null(pin.view);
    assert_int_equal(world_read(source, 1, 0, 1), ZT_OK);
    /* The second block is still missing. */
    assert_int_equal(world_pin(source, MIB - 10, 20, false), ZT_UNAVAILABLE);
    world_becomes_unpinned();
    assert_int_equal(atomic_load(&world.fetches), 1);
}

TEST(a_pin_with_wait_brings_its_range)
{
    struct zt_source *source = world_open(1, BIG);
    struct zt_pin pin = {0};
    struct zt_pin second = {0};

    assert_int_equal(zt_source_pin(source, 60 * MIB + 5, 70 * MIB, true, &pin, NULL), ZT_OK);
    assert_int_equal(zt_source_size(pin.view), BIG);
    assert_non_null(zt_source_map(pin.view));
    assert_true(zt_source_descriptor(pin.view) >= 0);
    assert_true(world_pin_is(&pin, 1, 60 * MIB + 5, 70 * MIB));
    assert_true(world_is(1, 60 * MIB + 5, zt_source_map(pin.view) + 60 * MIB + 5, MIB));
    assert_int_equal(zt_source_pin(source, 60 * MIB + 5, 70 * MIB, false, &second, NULL), ZT_OK);
    assert_ptr_equal(second.view, pin.view);
    assert_int_equal(world_figures().pinned_bytes, 3 * 64 * MIB);
    zt_pin_release(&pin);
    assert_int_equal(world_figures().pinned_bytes, 3 * 64 * MIB);
    zt_pin_release(&second);
    world_becomes_unpinned();
    assert_int_equal(zt_source_pin(source, BIG - 1, 2, true, &pin, NULL), ZT_IO);
}

/* --- two who want the same --- */

struct reader {
    pthread_t thread;
    struct zt_source *source;
    uint64_t offset;
    size_t length;
    enum zt_status status;
    atomic_int tid; /* 0: not running yet */
};

static void *read_one(void *argument)
{
    struct reader *reader = argument;

    atomic_store(&reader->tid, gettid());
    reader->status = world_read(reader->source, 1, reader->offset, reader->length);
    return NULL;
}

/* Whether a thread waits for something. */
static bool is_asleep(int tid)
{
    char path[64];
    char text[256];
    FILE *file;
    size_t length;

    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
    file = fopen(path, "r");
    assert_non_null(file);
    length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    return strstr(text, ") S ") != NULL;
}

static void begin_reading(struct reader *readers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_one, &readers[i]), 0);
}

static void await_waiting(struct reader *readers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        AWAIT(atomic_load(&readers[i].tid) != 0 && is_asleep(atomic_load(&readers[i].tid)));
}

TEST(many_readers_share_a_fetch)
{
    struct zt_source *sources[2];
    struct reader readers[40];

    sources[0] = world_open(1, BIG);
    sources[1] = world_open(1, BIG);
    world_hold(true);
    for (size_t i = 0; i < 40; i++)
        readers[i] =
            (struct reader){.source = sources[i % 2], .offset = 7 * MIB + i * 100, .length = 5000};
    begin_reading(readers, 40);
    await_waiting(readers, 40);
    world_hold(false);
    for (size_t i = 0; i < 40; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_int_equal(readers[i].status, ZT_OK);
    }
    assert_int_equal(atomic_load(&world.fetches), 1);
    world_close(sources[0]);
    assert_int_equal(world_read(sources[1], 1, 9 * MIB, 100), ZT_OK);
}

TEST(leaving_stops_no_fetch)
{
    struct zt_source *source;
    uint8_t key[CACHE_KEY_BYTES];

    world_key(1, key);
    assert_false(cache_knows(world.cache, key));
    source = world_open(1, BIG);
    world_hold(true);
    zt_source_advise(source, 0, 4 * MIB);
    world_close(source);
    assert_int_equal(atomic_load(&world.origins), 1);
    world_hold(false);
    AWAIT(atomic_load(&world.origins) == 0);
    assert_true(cache_knows(world.cache, key));
    source = world_open(1, BIG);
    assert_int_equal(world_read(source, 1, 0, 4 * MIB), ZT_OK);
    /* One block, because it was the first, and the next three. */
    assert_int_equal(atomic_load(&world.fetched_blocks), 4);
}

/* --- reading ahead --- */

TEST(advice_is_bounded)
{
    const int64_t begun_ms = clock_ms();
    struct zt_source *source = world_open(1, BIG);

    world_hold(true);
    zt_source_advise(source, 0, BIG);
    assert_int_equal(world_figures().fetches_running, 9);
    assert_int_equal(atomic_load(&world.running_mib), 64);
    zt_source_advise(source, 64 * MIB, BIG);
    /* What is left of 128 MiB is for those who wait. */
    assert_in_range(atomic_load(&world.running_mib), 80, 96);
    world_hold(false);
    assert_int_equal(world_read(source, 1, 0, BIG), ZT_OK);
    /* On a busy machine some may seem to hang, and others begin beside them. */
    assert_in_range(atomic_load(&world.most_running_mib), 80,
                    clock_ms() - begun_ms < 1000 ? 128 : 256);
}

TEST(who_waits_goes_before_advice_and_past_what_hangs)
{
    struct zt_source *source = world_open(1, 600 * MIB);
    struct reader readers[40];
    unsigned before;

    world_hold(true);
    for (size_t i = 0; i < 40; i++)
        readers[i] = (struct reader){.source = source, .offset = i * 8 * MIB, .length = 8 * MIB};
    begin_reading(readers, 40);
    /* 128 MiB at once, and as much again when those have hung for a second. */
    AWAIT(atomic_load(&world.running_mib) > 248);
    await_waiting(readers, 40);
    before = atomic_load(&world.fetches);
    zt_source_advise(source, 400 * MIB, 64 * MIB);
    assert_int_equal(atomic_load(&world.fetches), before);
    world_hold(false);
    for (size_t i = 0; i < 40; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_int_equal(readers[i].status, ZT_OK);
    }
    assert_in_range(atomic_load(&world.most_running_mib), 249, 256);
}

/* --- failures --- */

TEST(failures_of_the_store_reach_whoever_waits)
{
    struct zt_source *source = world_open(1, BIG);
    struct zt_pin pin = {0};
    struct zt_error error;

    atomic_store(&world.fail_status, ZT_UNAVAILABLE);
    atomic_store(&world.fail, 1);
    assert_int_equal(world_read(source, 1, 0, 100), ZT_UNAVAILABLE);
    assert_int_equal(world_read(source, 1, 0, 100), ZT_OK);
    atomic_store(&world.fail_status, ZT_STALE);
    atomic_store(&world.fail, 1);
    assert_int_equal(zt_source_pin(source, 3 * MIB, 100, true, &pin, &error), ZT_STALE);
    assert_int_equal(error.status, ZT_STALE);
    world_becomes_unpinned();
    assert_int_equal(world_read(source, 1, 3 * MIB, 100), ZT_OK);
}

TEST(what_is_forgotten_is_fetched_anew)
{
    struct zt_source *source = world_open(1, BIG);
    uint8_t byte;
    uint8_t wrong;
    struct zt_error error;

    assert_int_equal(world_read(source, 1, 2 * MIB, 4096), ZT_OK);
    atomic_store(&world.spoil, 1);
    assert_int_equal(zt_source_read_at(source, MIB / 2, &wrong, 1, &error), ZT_OK);
    world_fill(1, MIB / 2, &byte, 1);
    assert_int_not_equal(wrong, byte);
    assert_true(zt_source_invalidate(source, MIB / 2, 1));
    assert_int_equal(world_read(source, 1, 0, (size_t)MIB), ZT_OK);
    assert_int_equal(atomic_load(&world.fetches), 3);
    assert_int_equal(world_read(source, 1, 2 * MIB, (size_t)MIB), ZT_OK);
    assert_int_equal(atomic_load(&world.fetches), 3);
}
