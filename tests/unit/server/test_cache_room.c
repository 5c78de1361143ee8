/* The block cache when there is little room, or the disk fails: blocks are fetched again, and never
 * is a byte wrong. The calls to the disk are made to fail here. */
#include "cache_world.h"

#include <errno.h>
#include <sys/syscall.h>

#define BIG (200 * MIB + 12345)

/* So many calls fail with the number; -1: all. */
struct failing {
    atomic_int left;
    atomic_int reason;
};

static struct failing writing;
static struct failing reading;
static struct failing punching;
static struct failing syncing;
static atomic_bool hangs; /* so does writing */

ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off64_t offset);
ssize_t pread64(int descriptor, void *bytes, size_t length, off64_t offset);
int fallocate64(int descriptor, int mode, off64_t offset, off64_t length);

static bool is_due(struct failing *failing)
{
    if (atomic_load(&failing->left) == 0)
        return false;
    if (atomic_load(&failing->left) > 0)
        atomic_fetch_sub(&failing->left, 1);
    errno = atomic_load(&failing->reason);
    return true;
}

static void let_fail(struct failing *failing, int count, int reason)
{
    atomic_store(&failing->reason, reason);
    atomic_store(&failing->left, count);
}

/* Instead of the C library's. */
ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off64_t offset)
{
    while (atomic_load(&hangs))
        usleep(1000);
    if (is_due(&writing))
        return -1;
    return syscall(SYS_pwrite64, descriptor, bytes, length, offset);
}

ssize_t pread64(int descriptor, void *bytes, size_t length, off64_t offset)
{
    if (is_due(&reading))
        return -1;
    return syscall(SYS_pread64, descriptor, bytes, length, offset);
}

int fallocate64(int descriptor, int mode, off64_t offset, off64_t length)
{
    if (is_due(&punching))
        return -1;
    return (int)syscall(SYS_fallocate, descriptor, mode, offset, length);
}

int sync_file_range(int descriptor, off64_t offset, off64_t length, unsigned flags)
{
    (void)descriptor;
    (void)offset;
    (void)length;
    (void)flags;
    return is_due(&syncing) ? -1 : 0;
}

/* Waits until what was fetched was written or given up. */
static void settle(struct world *world, uint64_t most_bytes)
{
    for (int i = 0; i < 2000 && world_figures(world).used_bytes > most_bytes; i++)
        usleep(1000);
    assert_true(world_figures(world).used_bytes <= most_bytes);
}

/* Brings all of a file, and waits until it is on the disk. */
static void keep(struct zt_source *source)
{
    struct zt_pin pin = {0};
    enum zt_status status = ZT_LIMIT;

    /* On a busy machine the disk may take longer than a pin waits. */
    for (int i = 0; i < 10 && status == ZT_LIMIT; i++)
        status = zt_source_pin(source, 0, zt_source_size(source), true, &pin, NULL);
    assert_int_equal(status, ZT_OK);
    zt_pin_release(&pin);
}

/* --- limits --- */

/* Three versions, of which the cache holds two; the first is used again before the third comes.
 * Returns whether all of the first was kept then, and not all of the second. */
static bool the_second_makes_room(void)
{
    struct world world;
    struct zt_source *source;
    unsigned fetches_of_first;
    unsigned fetches_of_second;

    world_begin(&world, 150 * MIB);
    source = world_open(&world, 1, 64 * MIB);
    keep(source);
    zt_source_close(source);
    usleep(10000);
    source = world_open(&world, 2, 64 * MIB);
    keep(source);
    zt_source_close(source);
    source = world_open(&world, 1, 64 * MIB);
    usleep(10000);
    keep(source);
    zt_source_close(source);
    source = world_open(&world, 3, 60 * MIB);
    keep(source);
    zt_source_close(source);
    settle(&world, 150 * MIB);
    atomic_store(&world.fetches, 0);
    source = world_open(&world, 1, 64 * MIB);
    assert_int_equal(world_read(source, 1, 0, 64 * MIB), ZT_OK);
    zt_source_close(source);
    fetches_of_first = atomic_exchange(&world.fetches, 0);
    source = world_open(&world, 2, 64 * MIB);
    assert_int_equal(world_read(source, 2, 0, 64 * MIB), ZT_OK);
    zt_source_close(source);
    fetches_of_second = atomic_load(&world.fetches);
    world_end(&world);
    return fetches_of_first == 0 && fetches_of_second > 0;
}

/* What another thread is about to remove is passed over, so that on a busy machine newer extents
 * may go in its place now and then. */
static void test_the_oldest_extents_make_room(void **state)
{
    bool have_made_room = false;

    (void)state;
    for (int i = 0; i < 4 && !have_made_room; i++)
        have_made_room = the_second_makes_room();
    assert_true(have_made_room);
}

static void test_what_is_pinned_stays(void **state)
{
    struct world world;
    struct zt_source *first;
    struct zt_source *second;
    struct zt_pin pin = {0};
    uint8_t key[CACHE_KEY_BYTES];

    (void)state;
    world_begin(&world, 100 * MIB);
    first = world_open(&world, 1, 40 * MIB);
    second = world_open(&world, 2, 45 * MIB);
    assert_int_equal(zt_source_pin(first, MIB, 30 * MIB, true, &pin, NULL), ZT_OK);
    world_key(1, key);
    cache_retire(world.cache, key);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(world_read(second, 2, 0, 45 * MIB), ZT_OK);
        cache_set_limit(world.cache, MIB);
        usleep(20000);
        assert_true(world_pin_is(&pin, 1, MIB, 30 * MIB));
        cache_set_limit(world.cache, 100 * MIB);
    }
    zt_pin_release(&pin);
    cache_set_limit(world.cache, MIB);
    settle(&world, MIB);
    assert_int_equal(zt_source_pin(first, MIB, 30 * MIB, false, &pin, NULL), ZT_UNAVAILABLE);
    assert_int_equal(world_read(first, 1, 0, 40 * MIB), ZT_OK);
    zt_source_close(first);
    zt_source_close(second);
    world_end(&world);
}

static void test_retired_versions_go_first(void **state)
{
    struct world world;
    struct zt_source *old;
    struct zt_source *source;
    uint8_t key[CACHE_KEY_BYTES];

    (void)state;
    world_begin(&world, 130 * MIB);
    source = world_open(&world, 2, 60 * MIB);
    keep(source);
    old = world_open(&world, 1, 60 * MIB);
    keep(old);
    world_key(1, key);
    cache_retire(world.cache, key);
    zt_source_close(source);
    source = world_open(&world, 3, 60 * MIB);
    keep(source);
    zt_source_close(source);
    settle(&world, 130 * MIB);
    atomic_store(&world.fetches, 0);
    source = world_open(&world, 2, 60 * MIB);
    assert_int_equal(world_read(source, 2, 0, 60 * MIB), ZT_OK);
    assert_int_equal(atomic_load(&world.fetches), 0);
    zt_source_close(source);
    /* When nobody reads it any more, the rest of it goes at once. */
    zt_source_close(old);
    for (int i = 0; i < 1000 && cache_knows(world.cache, key); i++)
        usleep(1000);
    assert_false(cache_knows(world.cache, key));
    /* One that is closed already, too. */
    world_key(2, key);
    cache_retire(world.cache, key);
    for (int i = 0; i < 1000 && cache_knows(world.cache, key); i++)
        usleep(1000);
    assert_false(cache_knows(world.cache, key));
    world_end(&world);
}

static void test_a_cache_smaller_than_an_answer_serves_it(void **state)
{
    struct world world;
    struct zt_source *source;
    struct zt_pin pin = {0};

    (void)state;
    world_begin(&world, 10 * MIB);
    source = world_open(&world, 1, BIG);
    assert_int_equal(zt_source_pin(source, 0, 20 * MIB, true, &pin, NULL), ZT_LIMIT);
    for (uint64_t at = 0; at + 4 * MIB <= BIG; at += 4 * MIB) {
        zt_source_advise(source, at, 32 * MIB);
        assert_int_equal(world_read(source, 1, at, 4 * MIB), ZT_OK);
    }
    /* What could not be written came once all the same, and was read from memory. */
    assert_in_range(atomic_load(&world.fetched_blocks), 200, 202);
    settle(&world, 10 * MIB + 65536);
    zt_source_close(source);
    world_end(&world);
}

static void test_a_limit_of_one_byte(void **state)
{
    struct world world;
    struct zt_source *source;
    struct zt_pin pin = {0};

    (void)state;
    world_begin(&world, 1);
    source = world_open(&world, 1, BIG);
    assert_int_equal(world_read(source, 1, 0, 20 * MIB), ZT_OK);
    assert_int_equal(zt_source_pin(source, 30 * MIB, 1, true, &pin, NULL), ZT_LIMIT);
    assert_int_equal(world_read(source, 1, 30 * MIB, 1), ZT_OK);
    zt_source_close(source);
    world_end(&world);
}

static void test_a_model_over_half_the_cache_evicts_nobody(void **state)
{
    struct world world;
    struct zt_source *small;
    struct zt_source *big;

    (void)state;
    world_begin(&world, 100 * MIB);
    small = world_open(&world, 1, 40 * MIB);
    keep(small);
    big = world_open(&world, 2, BIG);
    assert_int_equal(world_read(big, 2, 0, BIG), ZT_OK);
    atomic_store(&world.fetches, 0);
    assert_int_equal(world_read(small, 1, 0, 40 * MIB), ZT_OK);
    assert_int_equal(atomic_load(&world.fetches), 0);
    zt_source_close(small);
    zt_source_close(big);
    world_end(&world);
}

/* --- a disk that fails --- */

static void test_a_full_disk_is_harmless(void **state)
{
    struct world world;
    struct zt_source *source;
    struct zt_pin pin = {0};

    (void)state;
    world_begin(&world, 0);
    let_fail(&writing, 0, 0);
    source = world_open(&world, 1, BIG);
    let_fail(&writing, -1, ENOSPC);
    assert_int_equal(world_read(source, 1, 0, 30 * MIB), ZT_OK);
    assert_int_equal(zt_source_pin(source, 50 * MIB, 100, true, &pin, NULL), ZT_LIMIT);
    assert_int_equal(world_read(source, 1, 50 * MIB, 100), ZT_OK);
    let_fail(&writing, 0, 0);
    assert_int_equal(world_read(source, 1, 0, 60 * MIB), ZT_OK);
    assert_int_equal(zt_source_pin(source, 100 * MIB, 100, true, &pin, NULL), ZT_OK);
    zt_pin_release(&pin);
    zt_source_close(source);
    world_end(&world);
}

static void test_one_write_that_finds_no_room_evicts_once(void **state)
{
    struct world world;
    struct zt_source *old;
    struct zt_source *source;
    struct zt_pin pin = {0};

    (void)state;
    world_begin(&world, 0);
    old = world_open(&world, 1, 20 * MIB);
    assert_int_equal(zt_source_pin(old, 0, 20 * MIB, true, &pin, NULL), ZT_OK);
    zt_pin_release(&pin);
    source = world_open(&world, 2, 20 * MIB);
    let_fail(&writing, 1, ENOSPC);
    assert_int_equal(zt_source_pin(source, 0, MIB, true, &pin, NULL), ZT_OK);
    zt_pin_release(&pin);
    assert_int_equal(zt_source_pin(old, 0, 1, false, &pin, NULL), ZT_UNAVAILABLE);
    zt_source_close(source);
    zt_source_close(old);
    world_end(&world);
}

static void test_a_disk_that_cannot_be_written_is_left_alone(void **state)
{
    struct world world;
    struct zt_source *source;
    struct zt_pin pin = {0};

    (void)state;
    world_begin(&world, 0);
    source = world_open(&world, 1, BIG);
    let_fail(&writing, 1, EIO);
    assert_int_equal(zt_source_pin(source, 0, 100, true, &pin, NULL), ZT_LIMIT);
    /* For half a minute nothing is tried. */
    assert_int_equal(zt_source_pin(source, 9 * MIB, 100, true, &pin, NULL), ZT_LIMIT);
    assert_int_equal(world_read(source, 1, 0, 30 * MIB), ZT_OK);
    zt_source_close(source);
    world_end(&world);
}

static void test_a_disk_that_hangs_holds_up_no_reader(void **state)
{
    struct world world;
    struct zt_source *source;
    struct zt_pin pin = {0};

    (void)state;
    world_begin(&world, 0);
    source = world_open(&world, 1, BIG);
    atomic_store(&hangs, true);
    /* More than may be on the way. */
    for (uint64_t at = 0; at < 160 * MIB; at += 4 * MIB)
        assert_int_equal(world_read(source, 1, at, 4 * MIB), ZT_OK);
    assert_int_equal(zt_source_pin(source, 160 * MIB, 1, true, &pin, NULL), ZT_LIMIT);
    assert_int_equal(world_read(source, 1, 160 * MIB, 1), ZT_OK);
    atomic_store(&hangs, false);
    zt_source_close(source);
    world_end(&world);
}

static void test_blocks_that_cannot_be_read_are_fetched_again(void **state)
{
    struct world world;
    struct zt_source *source;
    struct zt_pin pin = {0};

    (void)state;
    world_begin(&world, 0);
    source = world_open(&world, 1, BIG);
    assert_int_equal(zt_source_pin(source, 0, 4 * MIB, true, &pin, NULL), ZT_OK);
    zt_pin_release(&pin);
    atomic_store(&world.fetched_blocks, 0);
    let_fail(&reading, 1, EIO);
    assert_int_equal(world_read(source, 1, MIB, 2 * MIB), ZT_OK);
    assert_int_equal(atomic_load(&world.fetched_blocks), 2);
    zt_source_close(source);
    world_end(&world);
}

static void test_without_holes_only_whole_files_go(void **state)
{
    struct world world;
    struct zt_source *source;

    (void)state;
    world_begin(&world, 100 * MIB);
    let_fail(&punching, -1, EOPNOTSUPP);
    for (uint64_t version = 1; version < 6; version++) {
        source = world_open(&world, version, 40 * MIB);
        assert_int_equal(world_read(source, version, 0, 40 * MIB), ZT_OK);
        assert_int_equal(world_read(source, version, 0, 40 * MIB), ZT_OK);
        zt_source_close(source);
    }
    settle(&world, 101 * MIB);
    let_fail(&punching, 0, 0);
    world_end(&world);
}

/* --- a folder that is not what it should be --- */

static void test_a_folder_that_cannot_be_made_is_harmless(void **state)
{
    struct world world;
    struct cache_options options = {.folder = "/proc/no/such/folder"};
    struct zt_source *source;
    struct zt_pin pin = {0};

    (void)state;
    world_begin(&world, 0);
    world_stop(&world);
    assert_int_equal(cache_open(&options, &world.cache, NULL), ZT_OK);
    source = world_open(&world, 1, BIG);
    zt_source_advise(source, 0, 16 * MIB);
    assert_int_equal(world_read(source, 1, 0, 20 * MIB), ZT_OK);
    assert_int_equal(zt_source_pin(source, 0, 1, false, &pin, NULL), ZT_UNAVAILABLE);
    assert_int_equal(zt_source_pin(source, 0, 1, true, &pin, NULL), ZT_LIMIT);
    zt_source_close(source);
    world_end(&world);
}

static void test_a_deleted_folder_is_made_again(void **state)
{
    struct world world;
    struct zt_source *old;
    struct zt_source *source;
    struct zt_pin pin = {0};
    struct zt_pin second = {0};

    (void)state;
    world_begin(&world, 0);
    old = world_open(&world, 1, BIG);
    assert_int_equal(zt_source_pin(old, 0, 10 * MIB, true, &pin, NULL), ZT_OK);
    nftw(world.folder, world_remove, 8, FTW_DEPTH | FTW_PHYS);
    assert_true(world_pin_is(&pin, 1, 0, 10 * MIB));
    assert_int_equal(world_read(old, 1, 0, 20 * MIB), ZT_OK);
    source = world_open(&world, 2, BIG);
    assert_int_equal(zt_source_pin(source, 0, 10 * MIB, true, &second, NULL), ZT_OK);
    assert_true(world_pin_is(&second, 2, 0, 10 * MIB));
    zt_pin_release(&second);
    zt_source_close(source);
    zt_pin_release(&pin);
    zt_source_close(old);
    world_stop(&world);
    /* What was made again is found by the next process. */
    world_start(&world, 0);
    atomic_store(&world.fetches, 0);
    source = world_open(&world, 2, BIG);
    assert_int_equal(world_read(source, 2, 0, 10 * MIB), ZT_OK);
    assert_int_equal(atomic_load(&world.fetches), 0);
    zt_source_close(source);
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_oldest_extents_make_room),
        cmocka_unit_test(test_what_is_pinned_stays),
        cmocka_unit_test(test_retired_versions_go_first),
        cmocka_unit_test(test_a_cache_smaller_than_an_answer_serves_it),
        cmocka_unit_test(test_a_limit_of_one_byte),
        cmocka_unit_test(test_a_model_over_half_the_cache_evicts_nobody),
        cmocka_unit_test(test_a_full_disk_is_harmless),
        cmocka_unit_test(test_one_write_that_finds_no_room_evicts_once),
        cmocka_unit_test(test_a_disk_that_cannot_be_written_is_left_alone),
        cmocka_unit_test(test_a_disk_that_hangs_holds_up_no_reader),
        cmocka_unit_test(test_blocks_that_cannot_be_read_are_fetched_again),
        cmocka_unit_test(test_without_holes_only_whole_files_go),
        cmocka_unit_test(test_a_folder_that_cannot_be_made_is_harmless),
        cmocka_unit_test(test_a_deleted_folder_is_made_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
