/* The block cache when there is little room, or the disk fails: blocks are fetched again, and never
 * is a byte wrong. The calls to the disk are made to fail here. */
#include "cache_world.h"
#include "tests.h"

#include <errno.h>
#include <sys/syscall.h>

#include "cache/extents.h"
#include "disk/disk_space.h"

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
    AWAIT(!atomic_load(&hangs));
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
static void settle(uint64_t most_bytes)
{
    AWAIT(world_figures().used_bytes <= most_bytes);
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

static void keep_version(uint64_t version, uint64_t size)
{
    struct zt_source *source = world_open(version, size);

    keep(source);
    world_close(source);
}

/* Reads all of a version. Returns how many fetches it took. */
static unsigned fetches_of(uint64_t version, uint64_t size)
{
    struct zt_source *source = world_open(version, size);

    atomic_store(&world.fetches, 0);
    assert_int_equal(world_read(source, version, 0, size), ZT_OK);
    world_close(source);
    return atomic_load(&world.fetches);
}

/* Three versions, of which the cache holds two; the first is used again before the third comes.
 * Returns whether all of the first was kept then, and not all of the second. */
static bool the_second_makes_room(void)
{
    unsigned fetches_of_first;

    cache_set_limit(world.cache, 150 * MIB);
    keep_version(1, 64 * MIB);
    pause_ms(10);
    keep_version(2, 64 * MIB);
    pause_ms(10);
    keep_version(1, 64 * MIB);
    keep_version(3, 60 * MIB);
    settle(150 * MIB);
    fetches_of_first = fetches_of(1, 64 * MIB);
    return fetches_of_first == 0 && fetches_of(2, 64 * MIB) > 0;
}

static int end(void **state)
{
    atomic_store(&hangs, false);
    writing.left = reading.left = punching.left = syncing.left = 0;
    return world_end(state);
}

AROUND_EACH_TEST(world_begin, end)

/* What another thread is about to remove is passed over, so that on a busy machine newer extents
 * may go in its place now and then. */
TEST(the_oldest_extents_make_room)
{
    for (int i = 0; i < 4; i++) {
        if (the_second_makes_room())
            return;
        world_end(NULL);
        world_begin(NULL);
    }
    fail_msg("the second was kept, or the first was not");
}

TEST(what_is_pinned_stays)
{
    struct zt_source *first;
    struct zt_source *second;
    struct zt_pin pin = {0};

    cache_set_limit(world.cache, 100 * MIB);
    first = world_open(1, 40 * MIB);
    second = world_open(2, 45 * MIB);
    assert_int_equal(zt_source_pin(first, MIB, 30 * MIB, true, &pin, NULL), ZT_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(world_read(second, 2, 0, 45 * MIB), ZT_OK);
        cache_set_limit(world.cache, MIB);
        pause_ms(20);
        assert_true(world_pin_is(&pin, 1, MIB, 30 * MIB));
        cache_set_limit(world.cache, 100 * MIB);
    }
    zt_pin_release(&pin);
    cache_set_limit(world.cache, MIB);
    settle(MIB);
    assert_int_equal(world_pin(first, MIB, 30 * MIB, false), ZT_UNAVAILABLE);
    assert_int_equal(world_read(first, 1, 0, 40 * MIB), ZT_OK);
}

static uint64_t could_free(void)
{
    const int descriptor = atomic_load(&world.cache->folder.descriptor);

    return extents_could_free(world.cache, disk_space_of(descriptor));
}

TEST(pinned_blocks_are_not_counted_as_space_that_can_be_freed)
{
    const uint64_t size = 2 * CACHE_EXTENT_BYTES + MIB;
    struct zt_source *source;
    struct zt_pin pin = {0};

    cache_set_limit(world.cache, 4 * size);
    source = world_open(1, size);
    assert_int_equal(zt_source_pin(source, 0, (size_t)size, true, &pin, NULL), ZT_OK);
    assert_int_equal(could_free(), 0);
    zt_pin_release(&pin);
    for (int i = 0; i < 120000 && could_free() < size; i++)
        usleep(1000);
    assert_true(could_free() >= size);
    /* The first extent only. */
    assert_int_equal(zt_source_pin(source, 0, 1, true, &pin, NULL), ZT_OK);
    assert_int_equal(could_free(), 2 * CACHE_EXTENT_BYTES);
    zt_pin_release(&pin);
}

TEST(a_cache_smaller_than_an_answer_serves_it)
{
    struct zt_source *source;

    cache_set_limit(world.cache, 10 * MIB);
    source = world_open(1, BIG);
    assert_int_equal(world_pin(source, 0, 20 * MIB, true), ZT_LIMIT);
    for (uint64_t at = 0; at + 4 * MIB <= BIG; at += 4 * MIB) {
        zt_source_advise(source, at, 32 * MIB);
        assert_int_equal(world_read(source, 1, at, 4 * MIB), ZT_OK);
    }
    /* What could not be written came once all the same, and was read from memory. */
    assert_in_range(atomic_load(&world.fetched_blocks), 200, 202);
    settle(10 * MIB + 65536);
}

TEST(a_limit_of_one_byte)
{
    struct zt_source *source;

    cache_set_limit(world.cache, 1);
    source = world_open(1, BIG);
    assert_int_equal(world_read(source, 1, 0, 20 * MIB), ZT_OK);
    assert_int_equal(world_pin(source, 30 * MIB, 1, true), ZT_LIMIT);
    assert_int_equal(world_read(source, 1, 30 * MIB, 1), ZT_OK);
}

TEST(a_model_over_half_the_cache_evicts_nobody)
{
    struct zt_source *small;
    struct zt_source *big;

    cache_set_limit(world.cache, 100 * MIB);
    small = world_open(1, 40 * MIB);
    keep(small);
    big = world_open(2, BIG);
    assert_int_equal(world_read(big, 2, 0, BIG), ZT_OK);
    atomic_store(&world.fetches, 0);
    assert_int_equal(world_read(small, 1, 0, 40 * MIB), ZT_OK);
    assert_int_equal(atomic_load(&world.fetches), 0);
}

/* --- a disk that fails --- */

TEST(a_full_disk_is_harmless)
{
    struct zt_source *source = world_open(1, BIG);

    let_fail(&writing, -1, ENOSPC);
    assert_int_equal(world_read(source, 1, 0, 30 * MIB), ZT_OK);
    assert_int_equal(world_pin(source, 50 * MIB, 100, true), ZT_LIMIT);
    assert_int_equal(world_read(source, 1, 50 * MIB, 100), ZT_OK);
    let_fail(&writing, 0, 0);
    assert_int_equal(world_read(source, 1, 0, 60 * MIB), ZT_OK);
    assert_int_equal(world_pin(source, 100 * MIB, 100, true), ZT_OK);
}

TEST(one_write_that_finds_no_room_evicts_once)
{
    struct zt_source *old = world_open(1, 20 * MIB);
    struct zt_source *source;

    assert_int_equal(world_pin(old, 0, 20 * MIB, true), ZT_OK);
    source = world_open(2, 20 * MIB);
    let_fail(&writing, 1, ENOSPC);
    assert_int_equal(world_pin(source, 0, MIB, true), ZT_OK);
    assert_int_equal(world_pin(old, 0, 1, false), ZT_UNAVAILABLE);
}

TEST(a_disk_that_cannot_be_written_is_left_alone)
{
    struct zt_source *source = world_open(1, BIG);

    let_fail(&writing, 1, EIO);
    assert_int_equal(world_pin(source, 0, 100, true), ZT_LIMIT);
    /* For half a minute nothing is tried. */
    assert_int_equal(world_pin(source, 9 * MIB, 100, true), ZT_LIMIT);
    assert_int_equal(world_read(source, 1, 0, 30 * MIB), ZT_OK);
}

TEST(a_disk_that_hangs_holds_up_no_reader)
{
    struct zt_source *source = world_open(1, BIG);

    atomic_store(&hangs, true);
    /* More than may be on the way. */
    for (uint64_t at = 0; at < 160 * MIB; at += 4 * MIB)
        assert_int_equal(world_read(source, 1, at, 4 * MIB), ZT_OK);
    assert_int_equal(world_pin(source, 160 * MIB, 1, true), ZT_LIMIT);
    assert_int_equal(world_read(source, 1, 160 * MIB, 1), ZT_OK);
}

struct called {
    struct zt_source_waiter waiter;
    atomic_bool is_woken;
};

static void note_woken(struct zt_source_waiter *waiter)
{
    atomic_store(&((struct called *)waiter)->is_woken, true);
}

/* Reads 4 MiB as a sender does that is called back. */
static void read_called(struct zt_source *source, uint64_t offset)
{
    const uint64_t end = offset + 4 * MIB;
    uint8_t *bytes = malloc(4 * MIB);
    struct called called = {.waiter = {.wake = note_woken}};

    assert_non_null(bytes);
    while (offset < end) {
        const size_t taken = zt_source_take_arrived(source, offset, bytes, end - offset);

        assert_true(world_is(1, offset, bytes, taken));
        offset += taken;
        if (taken > 0)
            continue;
        atomic_store(&called.is_woken, false);
        zt_source_await(source, offset, end - offset, 1, &called.waiter);
        AWAIT(atomic_load(&called.is_woken));
        assert_int_equal(called.waiter.error.status, ZT_OK);
    }
    free(bytes);
}

TEST(a_disk_that_hangs_holds_up_nobody_who_is_called_back)
{
    struct zt_source *source = world_open(1, BIG);

    atomic_store(&hangs, true);
    for (uint64_t at = 0; at < 160 * MIB; at += 4 * MIB)
        read_called(source, at);
}

TEST(blocks_that_cannot_be_read_are_fetched_again)
{
    struct zt_source *source = world_open(1, BIG);

    assert_int_equal(world_pin(source, 0, 4 * MIB, true), ZT_OK);
    atomic_store(&world.fetched_blocks, 0);
    let_fail(&reading, 1, EIO);
    assert_int_equal(world_read(source, 1, MIB, 2 * MIB), ZT_OK);
    assert_int_equal(atomic_load(&world.fetched_blocks), 2);
}

TEST(without_holes_only_whole_files_go)
{
    struct zt_source *source;

    cache_set_limit(world.cache, 100 * MIB);
    let_fail(&punching, -1, EOPNOTSUPP);
    for (uint64_t version = 1; version < 6; version++) {
        source = world_open(version, 40 * MIB);
        assert_int_equal(world_read(source, version, 0, 40 * MIB), ZT_OK);
        assert_int_equal(world_read(source, version, 0, 40 * MIB), ZT_OK);
        world_close(source);
    }
    settle(101 * MIB);
}

/* --- a folder that is not what it should be --- */

TEST(a_folder_that_cannot_be_made_is_harmless)
{
    struct cache_options options = {.folder = "/proc/no/such/folder"};
    struct zt_source *source;

    world_stop();
    assert_int_equal(cache_open(&options, &world.cache, NULL), ZT_OK);
    source = world_open(1, BIG);
    zt_source_advise(source, 0, 16 * MIB);
    assert_int_equal(world_read(source, 1, 0, 20 * MIB), ZT_OK);
    assert_int_equal(world_pin(source, 0, 1, false), ZT_UNAVAILABLE);
    assert_int_equal(world_pin(source, 0, 1, true), ZT_LIMIT);
}

TEST(a_deleted_folder_is_made_again)
{
    struct zt_source *old = world_open(1, BIG);
    struct zt_source *source;
    struct zt_pin pin = {0};
    struct zt_pin second = {0};

    assert_int_equal(zt_source_pin(old, 0, 10 * MIB, true, &pin, NULL), ZT_OK);
    world_remove_folder();
    assert_true(world_pin_is(&pin, 1, 0, 10 * MIB));
    assert_int_equal(world_read(old, 1, 0, 20 * MIB), ZT_OK);
    source = world_open(2, BIG);
    assert_int_equal(zt_source_pin(source, 0, 10 * MIB, true, &second, NULL), ZT_OK);
    assert_true(world_pin_is(&second, 2, 0, 10 * MIB));
    zt_pin_release(&second);
    world_close(source);
    zt_pin_release(&pin);
    world_close(old);
    world_stop();
    /* What was made again is found by the next process. */
    world_start(0);
    atomic_store(&world.fetches, 0);
    source = world_open(2, BIG);
    assert_int_equal(world_read(source, 2, 0, 10 * MIB), ZT_OK);
    assert_int_equal(atomic_load(&world.fetches), 0);
}
