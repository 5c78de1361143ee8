/* Small files of state: whole or not at all. */
#include "tests.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "disk/whole_file.h"

struct world {
    char path[64];
    int folder;
};

static unsigned writes_left; /* 0: all succeed; else the last one fails */
static int other = -1;       /* another thread's descriptor, which appends before the failure */

/* Writes at most three bytes at a time, and fails when it is told to. */
ssize_t write(int descriptor, const void *bytes, size_t length)
{
    if (writes_left == 1) {
        if (other >= 0)
            assert_int_equal(syscall(SYS_write, other, " other", 6), 6);
        errno = ENOSPC;
        return -1;
    }
    writes_left -= writes_left > 1;
    return syscall(SYS_write, descriptor, bytes, length < 3 ? length : 3);
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    writes_left = 0;
    strcpy(world->path, "/tmp/zt-test-whole-XXXXXX");
    assert_non_null(mkdtemp(world->path));
    world->folder = open(world->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(world->folder >= 0);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    (void)unlinkat(world->folder, "state", 0);
    (void)unlinkat(world->folder, "state.new", 0);
    close(world->folder);
    assert_int_equal(rmdir(world->path), 0);
    free(world);
    return 0;
}

static void assert_holds(const struct world *world, const char *expected)
{
    size_t length = 0;
    uint8_t *bytes = whole_file_read(world->folder, "state", 100, &length);

    assert_non_null(bytes);
    assert_int_equal(length, strlen(expected));
    assert_string_equal((const char *)bytes, expected);
    assert_int_equal(faccessat(world->folder, "state.new", F_OK, 0), -1);
    free(bytes);
}

#define PREPARED(name) TEST_IN_WORLD(name, set_up, tear_down)

PREPARED(replaced_file_is_read_whole)
{
    assert_true(whole_file_replace(world->folder, "state", "first text", 10));
    assert_holds(world, "first text");
    assert_true(whole_file_replace(world->folder, "state", "next", 4));
    assert_holds(world, "next");
}

PREPARED(failed_replacement_leaves_the_old_file)
{
    assert_true(whole_file_replace(world->folder, "state", "first text", 10));
    writes_left = 2;
    assert_false(whole_file_replace(world->folder, "state", "next text", 9));
    assert_int_equal(errno, ENOSPC);
    writes_left = 0;
    assert_holds(world, "first text");
}

PREPARED(appending_needs_the_length_that_is_expected)
{
    assert_false(whole_file_append(world->folder, "state", 0, "a", 1));
    assert_true(whole_file_replace(world->folder, "state", "first", 5));
    assert_true(whole_file_append(world->folder, "state", 5, " and", 4));
    assert_false(whole_file_append(world->folder, "state", 5, " more", 5));
    assert_true(whole_file_append(world->folder, "state", WHOLE_FILE_ANY_LENGTH, " last", 5));
    assert_holds(world, "first and last");
}

PREPARED(failed_append_leaves_no_part_of_a_record)
{
    assert_true(whole_file_replace(world->folder, "state", "first", 5));
    writes_left = 2;
    assert_false(whole_file_append(world->folder, "state", 5, " second", 7));
    assert_int_equal(errno, ENOSPC);
    writes_left = 0;
    assert_holds(world, "first");
}

PREPARED(failed_append_keeps_what_another_thread_appended)
{
    assert_true(whole_file_replace(world->folder, "state", "first", 5));
    other = openat(world->folder, "state", O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(other >= 0);
    writes_left = 1;
    assert_false(whole_file_append(world->folder, "state", WHOLE_FILE_ANY_LENGTH, " second", 7));
    writes_left = 0;
    close(other);
    other = -1;
    assert_holds(world, "first other");
}

PREPARED(links_folders_and_long_files_are_not_read)
{
    size_t length;

    assert_null(whole_file_read(world->folder, "state", 100, &length));
    assert_null(whole_file_read(world->folder, ".", 100, &length));
    assert_true(whole_file_replace(world->folder, "state", "first", 5));
    assert_null(whole_file_read(world->folder, "state", 4, &length));
    assert_int_equal(errno, EFBIG);
    assert_int_equal(symlinkat("state", world->folder, "link"), 0);
    assert_null(whole_file_read(world->folder, "link", 100, &length));
    assert_false(whole_file_append(world->folder, "link", 5, "x", 1));
    assert_int_equal(unlinkat(world->folder, "link", 0), 0);
    assert_holds(world, "first");
}
