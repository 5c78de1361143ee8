/* What tells that a file was written to (http/wire/file_changes.h). */
#include "tests.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/wire/file_changes.h"

static char path[] = "/tmp/zt-test-stamp-XXXXXX";
static struct zt_source *file;
static int descriptor;

static int make_file(void **state)
{
    (void)state;
    descriptor = mkstemp(path);
    return descriptor >= 0 && write(descriptor, "0123456789", 10) == 10 &&
                   zt_source_open_file(path, &file, NULL) == ZT_OK
               ? 0
               : -1;
}

static int remove_file(void **state)
{
    (void)state;
    zt_source_close(file);
    close(descriptor);
    return 0;
}

static uint64_t stamp_of_time(time_t seconds, long nanoseconds)
{
    const struct timespec time = {seconds, nanoseconds};

    assert_int_equal(futimens(descriptor, (const struct timespec[]){time, time}), 0);
    return file_stamp(file, NULL);
}

/* Its time of change becomes one of long ago, so that each change after that is seen. */
static uint64_t stamp_of_old(void)
{
    return stamp_of_time(1000, 0);
}

TEST(a_file_that_is_written_to_has_another_stamp)
{
    const uint64_t before = stamp_of_old();
    uint64_t length;

    assert_true(file_stamp(file, &length) == before);
    assert_int_equal(length, 10);
    assert_int_equal(pwrite(descriptor, "x", 1, 5), 1);
    assert_true(file_stamp(file, &length) != before);
    assert_int_equal(length, 10);
    assert_true(stamp_of_time(1001, 0) != before);
    assert_true(stamp_of_time(1000, 1) != before);
    assert_true(stamp_of_time(1000, 0) == before);
}

TEST(a_length_alone_makes_another_stamp)
{
    const uint64_t before = stamp_of_old();
    uint64_t length;

    assert_int_equal(ftruncate(descriptor, 9), 0);
    assert_true(stamp_of_old() != before);
    assert_int_equal(ftruncate(descriptor, 10), 0);
    assert_true(stamp_of_old() == before);
    (void)file_stamp(file, &length);
    assert_int_equal(length, 10);
}

TEST(other_names_and_rights_leave_the_stamp)
{
    const uint64_t before = stamp_of_old();
    char other[sizeof(path) + 2];

    snprintf(other, sizeof(other), "%s-2", path);
    assert_int_equal(rename(path, other), 0);
    assert_true(file_stamp(file, NULL) == before);
    assert_int_equal(fchmod(descriptor, 0640), 0);
    assert_true(file_stamp(file, NULL) == before);
    assert_int_equal(unlink(other), 0);
    assert_true(file_stamp(file, NULL) == before);
}

TEST(memory_has_its_length_and_never_changes)
{
    static char bytes[] = "0123";
    struct zt_source *memory;
    struct segment segment;
    uint64_t length;
    uint64_t before;

    assert_ok(zt_source_from_memory(bytes, 4, &memory, NULL));
    before = file_stamp(memory, &length);
    assert_int_equal(length, 4);
    bytes[0] = 'x';
    assert_true(file_stamp(memory, NULL) == before);
    segment = (struct segment){.kind = SEGMENT_SOURCE, .length = 4, .source = memory};
    assert_true(segment_stamp(&segment, &length) == before);
    assert_int_equal(length, 4);
    zt_source_close(memory);
}

AROUND_ALL_TESTS(make_file, remove_file)
