/* The block cache after a start: what an earlier process, a crash or anybody else left in the
 * folder. */
#include "cache_world.h"
#include "tests.h"

#include <sys/wait.h>

#include "base/workers.h"

#define BIG (30 * MIB + 777)

/* Fills a cache with one version, and closes it. */
static void fill(uint64_t version, uint64_t size)
{
    struct zt_source *source = world_open(version, size);

    assert_int_equal(world_pin(source, 0, size, true), ZT_OK);
    world_close(source);
}

/* Reads all of a version in a cache that was opened again. Returns the blocks that were fetched. */
static unsigned read_again(uint64_t version, uint64_t size)
{
    struct zt_source *source;

    atomic_store(&world.fetched_blocks, 0);
    if (world.cache == NULL)
        world_start(0);
    source = world_open(version, size);
    for (uint64_t at = 0; at < size; at += 3 * MIB) {
        size_t length = (size_t)(size - at < 3 * MIB ? size - at : 3 * MIB);

        assert_int_equal(world_read(source, version, at, length), ZT_OK);
    }
    world_close(source);
    world_stop();
    return atomic_load(&world.fetched_blocks);
}

static void write_into(const char *path, uint64_t offset, const void *bytes, size_t length)
{
    int file = open(path, O_RDWR);

    assert_true(file >= 0);
    assert_int_equal(pwrite(file, bytes, length, (off_t)offset), length);
    close(file);
}

static void flip(const char *path, uint64_t offset, uint8_t bit)
{
    int file = open(path, O_RDWR);
    uint8_t byte;

    assert_true(file >= 0);
    assert_int_equal(pread(file, &byte, 1, (off_t)offset), 1);
    byte ^= bit;
    assert_int_equal(pwrite(file, &byte, 1, (off_t)offset), 1);
    close(file);
}

/* Waits until no more bytes than these are used. */
static void await_used(uint64_t most_bytes)
{
    AWAIT(world_figures().used_bytes <= most_bytes);
}

static uint64_t length_of(const char *path)
{
    struct stat facts;

    assert_int_equal(stat(path, &facts), 0);
    return (uint64_t)facts.st_size;
}

AROUND_EACH_TEST(world_begin, world_end)

TEST(blocks_outlive_the_process)
{
    struct zt_source *source;
    struct zt_pin pin = {0};

    fill(1, BIG);
    world_stop();
    world_start(0);
    assert_true(world_figures().used_bytes >= BIG);
    source = world_open(1, BIG);
    atomic_store(&world.fetches, 0);
    /* Only claimed: to compare it would take reading it. */
    assert_int_equal(world_pin(source, 0, 100, false), ZT_UNAVAILABLE);
    assert_int_equal(world_pin(source, 0, 3 * MIB, true), ZT_OK);
    assert_int_equal(world_pin(source, 0, 100, false), ZT_OK);
    zt_source_advise(source, 10 * MIB, 5 * MIB);
    AWAIT(zt_source_pin(source, 10 * MIB, 5 * MIB, false, &pin, NULL) == ZT_OK);
    assert_non_null(pin.view);
    zt_pin_release(&pin);
    assert_int_equal(atomic_load(&world.fetches), 0);
    world_close(source);
    assert_int_equal(read_again(1, BIG), 0);
}

TEST(zeroed_and_flipped_blocks_are_fetched_again)
{
    uint8_t *zeros = calloc(1, 2 * MIB);
    char path[160];

    fill(1, BIG);
    world_stop();
    world_path(1, "blocks", path);
    write_into(path, 4 * MIB, zeros, 2 * MIB);
    flip(path, 9 * MIB, 1);
    flip(path, 20 * MIB - 1, 128);
    flip(path, BIG - 1, 4);
    assert_int_equal(read_again(1, BIG), 5);
    assert_int_equal(read_again(1, BIG), 0);
    /* Whatever a pin shows was compared as well. */
    write_into(path, 0, zeros, 100);
    world_start(0);
    fill(1, BIG);
    assert_int_equal(read_again(1, BIG), 0);
    free(zeros);
}

/* Every byte of the index, each with another bit. */
TEST(any_flipped_byte_of_the_index_is_harmless)
{
    char path[160];
    char kept[170];
    char command[400];
    uint64_t length;

    fill(1, 3 * MIB + 5);
    world_stop();
    world_path(1, "index", path);
    snprintf(kept, sizeof(kept), "%s.kept", path);
    snprintf(command, sizeof(command), "cp %s %s", path, kept);
    assert_int_equal(system(command), 0);
    length = length_of(path);
    assert_int_equal(length, 48 + 4 * 16);
    snprintf(command, sizeof(command), "cp %s %s", kept, path);
    for (uint64_t at = 0; at < length; at++) {
        unsigned fetched;

        assert_int_equal(system(command), 0);
        flip(path, at, (uint8_t)(1u << at % 8));
        fetched = read_again(1, 3 * MIB + 5);
        assert_int_equal(fetched, at < 48 ? 4 : 1);
    }
}

TEST(a_cut_or_cleared_index_is_harmless)
{
    static const uint8_t zeros[200];
    char path[160];

    world_path(1, "index", path);
    fill(1, BIG);
    world_stop();
    /* Within the last record: what is appended then must be found again. */
    assert_int_equal(truncate(path, (off_t)length_of(path) - 5), 0);
    assert_int_equal(read_again(1, BIG), 1);
    assert_int_equal(read_again(1, BIG), 0);
    write_into(path, 64, zeros, 64);
    assert_int_equal(read_again(1, BIG), 4);
    assert_int_equal(truncate(path, 20), 0);
    assert_int_equal(read_again(1, BIG), 31);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(read_again(1, BIG), 31);
    /* Far too long. */
    assert_int_equal(truncate(path, (off_t)1 << 32), 0);
    assert_int_equal(read_again(1, BIG), 31);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(read_again(1, BIG), 31);
    assert_int_equal(read_again(1, BIG), 0);
}

TEST(a_cut_file_of_blocks_is_begun_anew)
{
    char path[160];

    world_path(1, "blocks", path);
    fill(1, BIG);
    world_stop();
    assert_int_equal(truncate(path, BIG / 2), 0);
    assert_int_equal(read_again(1, BIG), 31);
    assert_int_equal(truncate(path, BIG + 1), 0);
    assert_int_equal(read_again(1, BIG), 31);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(read_again(1, BIG), 31);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(read_again(1, BIG), 31);
    assert_int_equal(read_again(1, BIG), 0);
}

/* --- cut while it is open --- */

static void cut(uint64_t version, uint64_t length)
{
    char path[160];

    world_path(version, "blocks", path);
    assert_int_equal(truncate(path, (off_t)length), 0);
}

static void assert_pin_brings(struct zt_source *source, uint64_t offset, size_t length)
{
    struct zt_pin pin = {0};

    assert_int_equal(zt_source_pin(source, offset, length, true, &pin, NULL), ZT_OK);
    assert_true(world_pin_is(&pin, 1, offset, length));
    zt_pin_release(&pin);
}

TEST(a_file_cut_while_it_is_served_is_fetched_again)
{
    static const uint64_t lengths[] = {0, 9 * MIB + 5, BIG - 1};
    struct zt_source *source;

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        fill(1, BIG);
        source = world_open(1, BIG);
        assert_pin_brings(source, 0, BIG);
        cut(1, lengths[i]);
        assert_int_equal(world_pin(source, 0, BIG, false), ZT_UNAVAILABLE);
        assert_pin_brings(source, 0, BIG);
        atomic_store(&world.fetches, 0);
        assert_pin_brings(source, 0, BIG);
        assert_int_equal(world_read(source, 1, 0, BIG), ZT_OK);
        assert_int_equal(atomic_load(&world.fetches), 0);
        world_close(source);
        assert_int_equal(read_again(1, BIG), 0);
        world_end(NULL);
        world_begin(NULL);
    }
}

/* Whoever sends would send zeros. */
TEST(a_cut_file_is_not_lengthened_under_a_pin)
{
    struct zt_source *source = world_open(1, BIG);
    struct zt_pin held = {0};
    struct zt_pin pin = {0};
    char path[160];

    assert_int_equal(zt_source_pin(source, 3 * MIB, 5 * MIB, true, &held, NULL), ZT_OK);
    world_path(1, "blocks", path);
    cut(1, 4 * MIB);
    assert_int_equal(world_pin(source, 0, 8 * MIB, true), ZT_LIMIT);
    assert_int_equal(world_read(source, 1, 0, BIG), ZT_OK);
    assert_int_equal(length_of(path), 4 * MIB);
    zt_pin_release(&held);
    /* The threads that write pin what they write. */
    for (int i = 0; i < 2000 && length_of(path) != BIG; i++) {
        pause_ms(1);
        if (zt_source_pin(source, 0, BIG, true, &pin, NULL) == ZT_OK)
            zt_pin_release(&pin);
    }
    assert_pin_brings(source, 0, BIG);
    assert_int_equal(length_of(path), BIG);
}

/* The block at the end would make the file whole, with a hole before it. */
TEST(a_write_does_not_hide_a_cut)
{
    struct zt_source *source = world_open(1, BIG);
    struct zt_pin pin = {0};

    assert_pin_brings(source, 0, 10 * MIB);
    cut(1, 5 * MIB);
    assert_int_equal(world_read(source, 1, BIG - 5, 5), ZT_OK);
    /* Time to write it, wrongly. */
    for (int i = 0; i < 50 && zt_source_pin(source, BIG - 5, 5, false, &pin, NULL) != ZT_OK; i++)
        pause_ms(1);
    if (pin.view != NULL)
        zt_pin_release(&pin);
    assert_pin_brings(source, 0, 10 * MIB);
    assert_pin_brings(source, BIG - 5, 5);
}

TEST(a_file_of_another_version_is_not_believed)
{
    static const char *const kinds[] = {"index", "blocks"};
    char path[160];
    char other[160];

    for (unsigned i = 0; i < 2; i++) {
        print_message("%s\n", kinds[i]);
        fill(1, BIG);
        fill(2, BIG);
        world_stop();
        world_path(1, kinds[i], path);
        world_path(2, kinds[i], other);
        assert_int_equal(rename(other, path), 0);
        assert_int_equal(read_again(1, BIG), 31);
        assert_int_equal(read_again(2, BIG), 31);
        world_start(0);
    }
}

TEST(what_was_evicted_is_not_claimed)
{
    struct zt_source *source;
    uint64_t before;

    fill(1, 70 * MIB);
    /* The older of two extents goes. */
    source = world_open(1, 70 * MIB);
    cache_set_limit(world.cache, 20 * MIB);
    await_used(20 * MIB);
    world_close(source);
    world_stop();
    before = metric_value(METRIC_CACHE_MISMATCHES);
    assert_in_range(read_again(1, 70 * MIB), 64, 70);
    assert_int_equal(metric_value(METRIC_CACHE_MISMATCHES), before);
}

TEST(what_is_left_of_files_is_counted_and_evicted)
{
    struct cache_figures figures;

    for (uint64_t version = 1; version < 6; version++)
        fill(version, BIG);
    fill(6, 100 * MIB);
    world_stop();
    world_start(0);
    figures = world_figures();
    assert_int_equal(figures.files, 6);
    assert_true(figures.used_bytes >= 5 * BIG + 100 * MIB);
    world_stop();
    /* The oldest go, down to the limit, before anything is read; of a long file a part. */
    world_start(70 * MIB);
    figures = world_figures();
    assert_true(figures.used_bytes <= 70 * MIB);
    assert_int_equal(figures.files, 1);
}

TEST(one_process_owns_the_folder)
{
    struct cache_options options = {0};
    struct cache *second = NULL;
    struct zt_error error;

    options.folder = world.folder;
    assert_int_equal(cache_open(&options, &second, &error), ZT_IO);
    assert_null(second);
    assert_non_null(strstr(error.message, "another process"));
    world_stop();
    assert_int_equal(cache_open(&options, &second, &error), ZT_OK);
    cache_close(second);
}

/* --- bytes that are not those from before --- */

TEST(a_second_fetch_must_bring_the_same)
{
    struct zt_source *source = world_open(1, BIG);
    struct zt_source *second;

    assert_int_equal(world_read(source, 1, 0, 4 * MIB), ZT_OK);
    /* Written by now. */
    assert_int_equal(world_pin(source, 0, 4 * MIB, true), ZT_OK);
    cache_set_limit(world.cache, 1);
    await_used(0);
    cache_set_limit(world.cache, 0);
    /* Wrong once: it is fetched again. */
    atomic_store(&world.fetches, 0);
    atomic_store(&world.spoil, 1);
    assert_int_equal(world_read(source, 1, 0, MIB), ZT_OK);
    assert_int_equal(atomic_load(&world.fetches), 2);
    /* Wrong twice: the store has other bytes now. */
    atomic_store(&world.spoil, 2);
    assert_int_equal(world_read(source, 1, 2 * MIB, MIB), ZT_STALE);
    assert_int_equal(world_read(source, 1, 0, MIB), ZT_STALE);
    assert_int_equal(world_pin(source, 0, 1, true), ZT_STALE);
    /* Whoever opens it anew knows nothing of what was. */
    second = world_open(1, BIG);
    assert_int_equal(world_read(second, 1, 0, BIG), ZT_OK);
    assert_int_equal(world_read(source, 1, 0, MIB), ZT_STALE);
    world_close(source);
    assert_int_equal(world_read(second, 1, 0, BIG), ZT_OK);
    world_close(second);
    assert_int_equal(read_again(1, BIG), 0);
}

/* --- files that are here already --- */

static int make_file(uint64_t version, uint64_t size)
{
    int file = open(world.folder, O_TMPFILE | O_RDWR, 0600);
    uint8_t *bytes = malloc(size);

    assert_true(file >= 0);
    world_fill(version, 0, bytes, size);
    assert_int_equal(pwrite(file, bytes, size, 0), size);
    free(bytes);
    return file;
}

TEST(an_adopted_file_is_not_fetched)
{
    struct cache_options options = {0};
    struct zt_source *source;
    struct zt_pin pin = {0};
    uint8_t key[CACHE_KEY_BYTES];

    world_stop();
    options.folder = world.folder;
    options.workers = workers_start(4);
    assert_int_equal(cache_open(&options, &world.cache, NULL), ZT_OK);
    world_key(1, key);
    cache_adopt(world.cache, key, make_file(1, BIG), BIG);
    assert_true(cache_knows(world.cache, key));
    source = world_open(1, BIG);
    assert_int_equal(zt_source_pin(source, 0, BIG, false, &pin, NULL), ZT_OK);
    assert_true(world_pin_is(&pin, 1, 0, BIG));
    zt_pin_release(&pin);
    assert_int_equal(world_read(source, 1, 0, BIG), ZT_OK);
    world_close(source);
    /* Of another length: not believed. Known already: left alone. */
    cache_adopt(world.cache, key, make_file(2, BIG), BIG);
    world_key(3, key);
    cache_adopt(world.cache, key, make_file(3, BIG), BIG + 1);
    assert_false(cache_knows(world.cache, key));
    workers_stop(options.workers);
    assert_int_equal(atomic_load(&world.fetches), 0);
    assert_int_equal(read_again(1, BIG), 0);
}
