/* Writes past the page cache: this program replaces pwrite, counts what is written directly, and
 * can refuse it as file systems do that have no direct writes. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "store/store_local.h"

#define BLOCK  STORE_ALIGNMENT
#define LENGTH (64 * BLOCK + 777)

static size_t direct_bytes;
static bool refuses_direct;
static size_t most_at_once;

ssize_t pwrite(int descriptor, const void *bytes, size_t length, off_t offset)
{
    const bool is_direct = (fcntl(descriptor, F_GETFL) & O_DIRECT) != 0;
    ssize_t put;

    if (is_direct && refuses_direct) {
        errno = EINVAL;
        return -1;
    }
    if (length > most_at_once)
        length = most_at_once;
    put = (ssize_t)syscall(SYS_pwrite64, descriptor, bytes, length, offset);
    if (is_direct && put > 0)
        direct_bytes += (size_t)put;
    return put;
}

struct world {
    char root[64];
    struct store *store;
    struct stored_upload *upload;
    uint8_t *bytes; /* LENGTH, aligned */
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    struct zt_error error;

    direct_bytes = 0;
    refuses_direct = false;
    most_at_once = SIZE_MAX;
    strcpy(world->root, "/tmp/zt-test-direct-XXXXXX");
    assert_non_null(mkdtemp(world->root));
    assert_int_equal(store_local_open(world->root, 0, &world->store, &error), ZT_OK);
    assert_int_equal(world->store->ops->create(world->store, LENGTH, &world->upload, &error),
                     ZT_OK);
    world->bytes = aligned_alloc(BLOCK, 65 * BLOCK);
    assert_non_null(world->bytes);
    for (size_t i = 0; i < LENGTH; i++)
        world->bytes[i] = (uint8_t)(i * 31 + i / 257);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    char path[128];

    world->store->ops->abandon(world->upload);
    world->store->ops->close(world->store);
    snprintf(path, sizeof(path), "%s/m.zt", world->root);
    unlink(path);
    rmdir(world->root);
    free(world->bytes);
    free(world);
    return 0;
}

/* Every byte at the address that has the remainder of its position, as an intake has it. */
static void write_piece(struct world *world, size_t from, size_t to)
{
    struct zt_error error;

    assert_int_equal(
        world->store->ops->write_at(world->upload, from, world->bytes + from, to - from, &error),
        ZT_OK);
}

static void assert_published_whole(struct world *world)
{
    const struct store_ops *ops = world->store->ops;
    struct zt_source *source;
    struct file_identity identity;
    struct zt_error error;
    uint8_t *read = malloc(LENGTH);

    assert_int_equal(ops->read_back(world->upload, &source, &error), ZT_OK);
    assert_int_equal(zt_source_size(source), LENGTH);
    assert_int_equal(zt_source_read_at(source, 0, read, LENGTH, &error), ZT_OK);
    assert_memory_equal(read, world->bytes, LENGTH);
    assert_int_equal(ops->publish(world->upload, "m.zt", false, &error), ZT_OK);
    world->upload = NULL;
    assert_int_equal(ops->open(world->store, "m.zt", &source, &identity, &error), ZT_OK);
    memset(read, 0, LENGTH);
    assert_int_equal(zt_source_read_at(source, 0, read, LENGTH, &error), ZT_OK);
    assert_memory_equal(read, world->bytes, LENGTH);
    zt_source_close(source);
    free(read);
}

static void write_in_odd_pieces(struct world *world)
{
    write_piece(world, 0, 9123);
    write_piece(world, 9123, 16 * BLOCK);
    write_piece(world, 16 * BLOCK, 40 * BLOCK);
    write_piece(world, 40 * BLOCK, 40 * BLOCK + 100);
    write_piece(world, 40 * BLOCK + 100, LENGTH);
}

static bool has_direct_writes(const struct world *world)
{
    const int descriptor = open(world->root, O_TMPFILE | O_RDWR | O_DIRECT, 0600);

    if (descriptor >= 0)
        close(descriptor);
    return descriptor >= 0;
}

static void whole_blocks_go_past_the_page_cache_and_the_rest_through_it(void **state)
{
    struct world *world = *state;

    if (!has_direct_writes(world))
        skip();
    world->store->ops->write_directly(world->upload);
    write_in_odd_pieces(world);
    /* All blocks except the third and the one that begins with 100 bytes. */
    assert_int_equal(direct_bytes, (64 - 2) * BLOCK);
    assert_published_whole(world);
}

static void without_being_asked_nothing_is_written_directly(void **state)
{
    struct world *world = *state;

    write_in_odd_pieces(world);
    assert_int_equal(direct_bytes, 0);
    assert_published_whole(world);
}

static void a_file_system_that_refuses_direct_writes_gets_others(void **state)
{
    struct world *world = *state;

    world->store->ops->write_directly(world->upload);
    refuses_direct = true;
    write_in_odd_pieces(world);
    assert_int_equal(direct_bytes, 0);
    assert_int_equal(world->upload->direct, -1);
    assert_published_whole(world);
}

static void writes_that_end_early_are_continued_wherever_they_end(void **state)
{
    struct world *world = *state;

    world->store->ops->write_directly(world->upload);
    most_at_once = 3 * BLOCK;
    write_in_odd_pieces(world);
    assert_published_whole(world);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(whole_blocks_go_past_the_page_cache_and_the_rest_through_it),
        TEST(without_being_asked_nothing_is_written_directly),
        TEST(a_file_system_that_refuses_direct_writes_gets_others),
        TEST(writes_that_end_early_are_continued_wherever_they_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
