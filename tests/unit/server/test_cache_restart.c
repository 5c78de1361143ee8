/* The block cache after a start: what an earlier process, a crash or anybody else left in the
 * folder. */
#include "cache_world.h"

#include <sys/wait.h>

#include "base/workers.h"

#define BIG (30 * MIB + 777)

/* Fills a cache with one version, and closes it. */
static void fill(struct world *world, uint64_t version, uint64_t size)
{
    struct zt_source *source = world_open(world, version, size);
    struct zt_pin pin = {0};

    assert_int_equal(zt_source_pin(source, 0, size, true, &pin, NULL), ZT_OK);
    zt_pin_release(&pin);
    zt_source_close(source);
}

/* Reads all of a version in a cache that was opened again. Returns the blocks that were fetched. */
static unsigned read_again(struct world *world, uint64_t version, uint64_t size)
{
    struct zt_source *source;

    atomic_store(&world->fetched_blocks, 0);
    if (world->cache == NULL)
        world_start(world, 0);
    source = world_open(world, version, size);
    for (uint64_t at = 0; at < size; at += 3 * MIB) {
        size_t length = (size_t)(size - at < 3 * MIB ? size - at : 3 * MIB);

        assert_int_equal(world_read(source, version, at, length), ZT_OK);
    }
    zt_source_close(source);
    world_stop(world);
    return atomic_load(&world->fetched_blocks);
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

static uint64_t length_of(const char *path)
{
    struct stat facts;

    assert_int_equal(stat(path, &facts), 0);
    return (uint64_t)facts.st_size;
}

static void test_blocks_outlive_the_process(void **state)
{
    struct world world;
    struct zt_source *source;
    struct zt_pin pin = {0};

    (void)state;
    world_begin(&world, 0);
    fill(&world, 1, BIG);
    world_stop(&world);
    world_start(&world, 0);
    assert_true(world_figures(&world).used_bytes >= BIG);
    source = world_open(&world, 1, BIG);
    atomic_store(&world.fetches, 0);
    /* Only claimed: to compare it would take reading it. */
    assert_int_equal(zt_source_pin(source, 0, 100, false, &pin, NULL), ZT_UNAVAILABLE);
    assert_int_equal(zt_source_pin(source, 0, 3 * MIB, true, &pin, NULL), ZT_OK);
    zt_pin_release(&pin);
    assert_int_equal(zt_source_pin(source, 0, 100, false, &pin, NULL), ZT_OK);
    zt_pin_release(&pin);
    zt_source_advise(source, 10 * MIB, 5 * MIB);
    for (int i = 0;
         i < 1000 && zt_source_pin(source, 10 * MIB, 5 * MIB, false, &pin, NULL) != ZT_OK; i++)
        usleep(1000);
    assert_non_null(pin.view);
    zt_pin_release(&pin);
    assert_int_equal(atomic_load(&world.fetches), 0);
    zt_source_close(source);
    assert_int_equal(read_again(&world, 1, BIG), 0);
    world_end(&world);
}

static void test_zeroed_and_flipped_blocks_are_fetched_again(void **state)
{
    uint8_t *zeros = calloc(1, 2 * MIB);
    struct world world;
    char path[160];

    (void)state;
    world_begin(&world, 0);
    fill(&world, 1, BIG);
    world_stop(&world);
    world_path(&world, 1, "blocks", path);
    write_into(path, 4 * MIB, zeros, 2 * MIB);
    flip(path, 9 * MIB, 1);
    flip(path, 20 * MIB - 1, 128);
    flip(path, BIG - 1, 4);
    assert_int_equal(read_again(&world, 1, BIG), 5);
    assert_int_equal(read_again(&world, 1, BIG), 0);
    /* Whatever a pin shows was compared as well. */
    write_into(path, 0, zeros, 100);
    world_start(&world, 0);
    fill(&world, 1, BIG);
    assert_int_equal(read_again(&world, 1, BIG), 0);
    free(zeros);
    world_end(&world);
}

/* Every byte of the index, each with another bit. */
static void test_any_flipped_byte_of_the_index_is_harmless(void **state)
{
    struct world world;
    char path[160];
    char kept[170];
    char command[400];
    uint64_t length;

    (void)state;
    world_begin(&world, 0);
    fill(&world, 1, 3 * MIB + 5);
    world_stop(&world);
    world_path(&world, 1, "index", path);
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
        fetched = read_again(&world, 1, 3 * MIB + 5);
        assert_int_equal(fetched, at < 48 ? 4 : 1);
    }
    world_end(&world);
}

static void test_a_cut_or_cleared_index_is_harmless(void **state)
{
    static const uint8_t zeros[200];
    struct world world;
    char path[160];

    (void)state;
    world_begin(&world, 0);
    world_path(&world, 1, "index", path);
    fill(&world, 1, BIG);
    world_stop(&world);
    /* Within the last record: what is appended then must be found again. */
    assert_int_equal(truncate(path, (off_t)length_of(path) - 5), 0);
    assert_int_equal(read_again(&world, 1, BIG), 1);
    assert_int_equal(read_again(&world, 1, BIG), 0);
    write_into(path, 64, zeros, 64);
    assert_int_equal(read_again(&world, 1, BIG), 4);
    assert_int_equal(truncate(path, 20), 0);
    assert_int_equal(read_again(&world, 1, BIG), 31);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(read_again(&world, 1, BIG), 31);
    /* Far too long. */
    assert_int_equal(truncate(path, (off_t)1 << 32), 0);
    assert_int_equal(read_again(&world, 1, BIG), 31);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(read_again(&world, 1, BIG), 31);
    assert_int_equal(read_again(&world, 1, BIG), 0);
    world_end(&world);
}

static void test_a_cut_file_of_blocks_is_begun_anew(void **state)
{
    struct world world;
    char path[160];

    (void)state;
    world_begin(&world, 0);
    world_path(&world, 1, "blocks", path);
    fill(&world, 1, BIG);
    world_stop(&world);
    assert_int_equal(truncate(path, BIG / 2), 0);
    assert_int_equal(read_again(&world, 1, BIG), 31);
    assert_int_equal(truncate(path, BIG + 1), 0);
    assert_int_equal(read_again(&world, 1, BIG), 31);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(read_again(&world, 1, BIG), 31);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(read_again(&world, 1, BIG), 31);
    assert_int_equal(read_again(&world, 1, BIG), 0);
    world_end(&world);
}

/* --- cut while it is open --- */

static void cut(const struct world *world, uint64_t version, uint64_t length)
{
    char path[160];

    world_path(world, version, "blocks", path);
    assert_int_equal(truncate(path, (off_t)length), 0);
}

static void assert_pin_brings(struct zt_source *source, uint64_t offset, size_t length)
{
    struct zt_pin pin = {0};

    assert_int_equal(zt_source_pin(source, offset, length, true, &pin, NULL), ZT_OK);
    assert_true(world_pin_is(&pin, 1, offset, length));
    zt_pin_release(&pin);
}

static void test_a_file_cut_while_it_is_served_is_fetched_again(void **state)
{
    static const uint64_t lengths[] = {0, 9 * MIB + 5, BIG - 1};
    struct world world;
    struct zt_source *source;
    struct zt_pin pin = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        world_begin(&world, 0);
        fill(&world, 1, BIG);
        source = world_open(&world, 1, BIG);
        assert_pin_brings(source, 0, BIG);
        cut(&world, 1, lengths[i]);
        assert_int_equal(zt_source_pin(source, 0, BIG, false, &pin, NULL), ZT_UNAVAILABLE);
        assert_pin_brings(source, 0, BIG);
        atomic_store(&world.fetches, 0);
        assert_pin_brings(source, 0, BIG);
        assert_int_equal(world_read(source, 1, 0, BIG), ZT_OK);
        assert_int_equal(atomic_load(&world.fetches), 0);
        zt_source_close(source);
        assert_int_equal(read_again(&world, 1, BIG), 0);
        world_end(&world);
    }
}

/* Whoever sends would send zeros. */
static void test_a_cut_file_is_not_lengthened_under_a_pin(void **state)
{
    struct world world;
    struct zt_source *source;
    struct zt_pin held = {0};
    struct zt_pin pin = {0};
    char path[160];

    (void)state;
    world_begin(&world, 0);
    source = world_open(&world, 1, BIG);
    assert_int_equal(zt_source_pin(source, 3 * MIB, 5 * MIB, true, &held, NULL), ZT_OK);
    world_path(&world, 1, "blocks", path);
    cut(&world, 1, 4 * MIB);
    assert_int_equal(zt_source_pin(source, 0, 8 * MIB, true, &pin, NULL), ZT_LIMIT);
    assert_int_equal(world_read(source, 1, 0, BIG), ZT_OK);
    assert_int_equal(length_of(path), 4 * MIB);
    zt_pin_release(&held);
    /* The threads that write pin what they write. */
    for (int i = 0; i < 2000 && length_of(path) != BIG; i++) {
        usleep(1000);
        if (zt_source_pin(source, 0, BIG, true, &pin, NULL) == ZT_OK)
            zt_pin_release(&pin);
    }
    assert_pin_brings(source, 0, BIG);
    assert_int_equal(length_of(path), BIG);
    zt_source_close(source);
    world_end(&world);
}

/* The block at the end would make the file whole, with a hole before it. */
static void test_a_write_does_not_hide_a_cut(void **state)
{
    struct world world;
    struct zt_source *source;
    struct zt_pin pin = {0};

    (void)state;
    world_begin(&world, 0);
    source = world_open(&world, 1, BIG);
    assert_pin_brings(source, 0, 10 * MIB);
    cut(&world, 1, 5 * MIB);
    assert_int_equal(world_read(source, 1, BIG - 5, 5), ZT_OK);
    /* Time to write it, wrongly. */
    for (int i = 0; i < 50 && zt_source_pin(source, BIG - 5, 5, false, &pin, NULL) != ZT_OK; i++)
        usleep(1000);
    if (pin.view != NULL)
        zt_pin_release(&pin);
    assert_pin_brings(source, 0, 10 * MIB);
    assert_pin_brings(source, BIG - 5, 5);
    zt_source_close(source);
    world_end(&world);
}

static void test_the_index_of_another_version_is_not_believed(void **state)
{
    struct world world;
    char path[160];
    char other[160];

    (void)state;
    world_begin(&world, 0);
    fill(&world, 1, BIG);
    fill(&world, 2, BIG);
    world_stop(&world);
    world_path(&world, 1, "index", path);
    world_path(&world, 2, "index", other);
    assert_int_equal(rename(other, path), 0);
    assert_int_equal(read_again(&world, 1, BIG), 31);
    assert_int_equal(read_again(&world, 2, BIG), 31);
    world_end(&world);
}

/* A file of blocks whose content is another version's, with a right index. */
static void test_the_blocks_of_another_version_are_not_believed(void **state)
{
    struct world world;
    char path[160];
    char other[160];

    (void)state;
    world_begin(&world, 0);
    fill(&world, 1, BIG);
    fill(&world, 2, BIG);
    world_stop(&world);
    world_path(&world, 1, "blocks", path);
    world_path(&world, 2, "blocks", other);
    assert_int_equal(rename(other, path), 0);
    assert_int_equal(read_again(&world, 1, BIG), 31);
    world_end(&world);
}

static void test_what_was_evicted_is_not_claimed(void **state)
{
    struct world world;
    struct zt_source *source;
    uint64_t before;

    (void)state;
    world_begin(&world, 0);
    fill(&world, 1, 70 * MIB);
    /* The older of two extents goes. */
    source = world_open(&world, 1, 70 * MIB);
    cache_set_limit(world.cache, 20 * MIB);
    for (int i = 0; i < 1000 && world_figures(&world).used_bytes > 20 * MIB; i++)
        usleep(1000);
    assert_true(world_figures(&world).used_bytes <= 20 * MIB);
    zt_source_close(source);
    world_stop(&world);
    before = metric_value(METRIC_CACHE_MISMATCHES);
    assert_in_range(read_again(&world, 1, 70 * MIB), 64, 70);
    assert_int_equal(metric_value(METRIC_CACHE_MISMATCHES), before);
    world_end(&world);
}

static void test_what_is_left_of_files_is_counted_and_evicted(void **state)
{
    struct world world;
    struct cache_figures figures;

    (void)state;
    world_begin(&world, 0);
    for (uint64_t version = 1; version < 6; version++)
        fill(&world, version, BIG);
    fill(&world, 6, 100 * MIB);
    world_stop(&world);
    world_start(&world, 0);
    figures = world_figures(&world);
    assert_int_equal(figures.files, 6);
    assert_true(figures.used_bytes >= 5 * BIG + 100 * MIB);
    world_stop(&world);
    /* The oldest go, down to the limit, before anything is read; of a long file a part. */
    world_start(&world, 70 * MIB);
    figures = world_figures(&world);
    assert_true(figures.used_bytes <= 70 * MIB);
    assert_int_equal(figures.files, 1);
    world_end(&world);
}

static void test_one_process_owns_the_folder(void **state)
{
    struct world world;
    struct cache_options options = {0};
    struct cache *second = NULL;
    struct zt_error error;

    (void)state;
    world_begin(&world, 0);
    options.folder = world.folder;
    assert_int_equal(cache_open(&options, &second, &error), ZT_IO);
    assert_null(second);
    assert_non_null(strstr(error.message, "another process"));
    world_stop(&world);
    assert_int_equal(cache_open(&options, &second, &error), ZT_OK);
    cache_close(second);
    world_end(&world);
}

/* --- bytes that are not those from before --- */

static void evict_all(struct world *world)
{
    cache_set_limit(world->cache, 1);
    for (int i = 0; i < 1000 && world_figures(world).used_bytes > 0; i++)
        usleep(1000);
    assert_int_equal(world_figures(world).used_bytes, 0);
    cache_set_limit(world->cache, 0);
}

static void test_a_second_fetch_must_bring_the_same(void **state)
{
    struct world world;
    struct zt_source *source;
    struct zt_source *second;
    struct zt_pin pin = {0};

    (void)state;
    world_begin(&world, 0);
    source = world_open(&world, 1, BIG);
    assert_int_equal(world_read(source, 1, 0, 4 * MIB), ZT_OK);
    /* Written by now. */
    assert_int_equal(zt_source_pin(source, 0, 4 * MIB, true, &pin, NULL), ZT_OK);
    zt_pin_release(&pin);
    evict_all(&world);
    /* Wrong once: it is fetched again. */
    atomic_store(&world.fetches, 0);
    atomic_store(&world.spoil, 1);
    assert_int_equal(world_read(source, 1, 0, MIB), ZT_OK);
    assert_int_equal(atomic_load(&world.fetches), 2);
    /* Wrong twice: the store has other bytes now. */
    atomic_store(&world.spoil, 2);
    assert_int_equal(world_read(source, 1, 2 * MIB, MIB), ZT_STALE);
    assert_int_equal(world_read(source, 1, 0, MIB), ZT_STALE);
    assert_int_equal(zt_source_pin(source, 0, 1, true, &pin, NULL), ZT_STALE);
    /* Whoever opens it anew knows nothing of what was. */
    second = world_open(&world, 1, BIG);
    assert_int_equal(world_read(second, 1, 0, BIG), ZT_OK);
    assert_int_equal(world_read(source, 1, 0, MIB), ZT_STALE);
    zt_source_close(source);
    assert_int_equal(world_read(second, 1, 0, BIG), ZT_OK);
    zt_source_close(second);
    assert_int_equal(read_again(&world, 1, BIG), 0);
    world_end(&world);
}

/* --- files that are here already --- */

static int make_file(const struct world *world, uint64_t version, uint64_t size)
{
    int file = open(world->folder, O_TMPFILE | O_RDWR, 0600);
    uint8_t *bytes = malloc(size);

    assert_true(file >= 0);
    world_fill(version, 0, bytes, size);
    assert_int_equal(pwrite(file, bytes, size, 0), size);
    free(bytes);
    return file;
}

static void test_an_adopted_file_is_not_fetched(void **state)
{
    struct world world;
    struct cache_options options = {0};
    struct zt_source *source;
    struct zt_pin pin = {0};
    uint8_t key[CACHE_KEY_BYTES];

    (void)state;
    world_begin(&world, 0);
    world_stop(&world);
    options.folder = world.folder;
    options.workers = workers_start(4);
    assert_int_equal(cache_open(&options, &world.cache, NULL), ZT_OK);
    world_key(1, key);
    cache_adopt(world.cache, key, make_file(&world, 1, BIG), BIG);
    assert_true(cache_knows(world.cache, key));
    source = world_open(&world, 1, BIG);
    assert_int_equal(zt_source_pin(source, 0, BIG, false, &pin, NULL), ZT_OK);
    assert_true(world_pin_is(&pin, 1, 0, BIG));
    zt_pin_release(&pin);
    assert_int_equal(world_read(source, 1, 0, BIG), ZT_OK);
    zt_source_close(source);
    /* Of another length: not believed. Known already: left alone. */
    cache_adopt(world.cache, key, make_file(&world, 2, BIG), BIG);
    world_key(3, key);
    cache_adopt(world.cache, key, make_file(&world, 3, BIG), BIG + 1);
    assert_false(cache_knows(world.cache, key));
    workers_stop(options.workers);
    assert_int_equal(atomic_load(&world.fetches), 0);
    assert_int_equal(read_again(&world, 1, BIG), 0);
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_outlive_the_process),
        cmocka_unit_test(test_zeroed_and_flipped_blocks_are_fetched_again),
        cmocka_unit_test(test_any_flipped_byte_of_the_index_is_harmless),
        cmocka_unit_test(test_a_cut_or_cleared_index_is_harmless),
        cmocka_unit_test(test_a_cut_file_of_blocks_is_begun_anew),
        cmocka_unit_test(test_a_file_cut_while_it_is_served_is_fetched_again),
        cmocka_unit_test(test_a_cut_file_is_not_lengthened_under_a_pin),
        cmocka_unit_test(test_a_write_does_not_hide_a_cut),
        cmocka_unit_test(test_the_index_of_another_version_is_not_believed),
        cmocka_unit_test(test_the_blocks_of_another_version_are_not_believed),
        cmocka_unit_test(test_what_was_evicted_is_not_claimed),
        cmocka_unit_test(test_what_is_left_of_files_is_counted_and_evicted),
        cmocka_unit_test(test_one_process_owns_the_folder),
        cmocka_unit_test(test_a_second_fetch_must_bring_the_same),
        cmocka_unit_test(test_an_adopted_file_is_not_fetched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
