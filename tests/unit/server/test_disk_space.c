/* The account of a disk: claims of one writer count for all others until they are written, given
 * back or ended. With a reserve that leaves ROOM beside what is free, or, where the bytes matter
 * that others write at the same time, none of it. */
#include "tests.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "disk/disk_space.h"

#define GIB  ((uint64_t)1 << 30)
#define ROOM (64 * GIB)

/* The file system may change by much while a test runs, but not by half of this. */
static uint64_t reserve_for(int descriptor)
{
    uint64_t left;

    assert_true(disk_space_left(descriptor, &left));
    if (left < 4 * GIB)
        skip();
    return left - 4 * GIB;
}

static int open_here(void)
{
    const int descriptor = open(".", O_RDONLY | O_DIRECTORY);

    assert_true(descriptor >= 0);
    return descriptor;
}

TEST(claims_of_all_writers_count_together)
{
    const int descriptor = open_here();
    const uint64_t reserve = reserve_for(descriptor);
    struct disk_claim one;
    struct disk_claim other;
    struct zt_error error;

    disk_claim_init(&one, descriptor, 0);
    disk_claim_init(&other, descriptor, 0);
    assert_int_equal(disk_claim_ahead(&one, 2 * GIB, reserve, &error), ZT_OK);
    assert_int_equal(disk_claim_ahead(&other, 3 * GIB, reserve, &error), ZT_LIMIT);
    assert_true(disk_space_is_short(&error));
    assert_int_equal(disk_claim_cover(&other, 0, 3 * GIB, reserve, &error), ZT_LIMIT);
    disk_claim_give_back(&one, GIB);
    disk_claim_give_back(&one, 5 * GIB);
    assert_int_equal(disk_claim_ahead(&other, 3 * GIB, reserve, &error), ZT_OK);
    disk_claim_end(&one);
    assert_int_equal(disk_claim_ahead(&one, 2 * GIB, reserve, &error), ZT_LIMIT);
    disk_claim_end(&other);
    assert_int_equal(disk_claim_ahead(&one, 2 * GIB, reserve, &error), ZT_OK);
    disk_claim_end(&one);
    close(descriptor);
}

TEST(what_is_left_is_free_and_not_claimed)
{
    const int descriptor = open_here();
    const uint64_t reserve = reserve_for(descriptor);
    struct disk_claim claim;
    uint64_t left;

    disk_claim_init(&claim, descriptor, 0);
    assert_int_equal(disk_claim_ahead(&claim, 3 * GIB, reserve, NULL), ZT_OK);
    assert_true(disk_space_left(descriptor, &left));
    assert_true(left < reserve + 2 * GIB);
    disk_claim_end(&claim);
    assert_true(disk_space_left(descriptor, &left));
    assert_true(left > reserve + 2 * GIB);
    close(descriptor);
}

/* Nothing is really written here, so what is spent is free again at the next look. */
TEST(a_write_uses_up_what_was_claimed)
{
    const int descriptor = open_here();
    const uint64_t reserve = reserve_for(descriptor);
    struct disk_claim claim;

    disk_claim_init(&claim, descriptor, 0);
    assert_int_equal(disk_claim_ahead(&claim, 3 * GIB, reserve, NULL), ZT_OK);
    assert_int_equal(disk_claim_cover(&claim, 0, 3 * GIB, reserve, NULL), ZT_OK);
    assert_int_equal(claim.ahead_bytes, 3 * GIB);
    disk_claim_spend(&claim, 0, 2 * GIB);
    assert_int_equal(claim.ahead_bytes, GIB);
    disk_claim_spend(&claim, 2 * GIB, 2 * GIB);
    assert_int_equal(claim.ahead_bytes, 0);
    disk_claim_end(&claim);
    close(descriptor);
}

TEST(a_rewrite_needs_nothing_and_growth_whole_blocks)
{
    const int descriptor = open_here();
    struct disk_claim claim;

    disk_claim_init(&claim, descriptor, 100);
    assert_int_equal(disk_claim_cover(&claim, 0, 4096, UINT64_MAX - 1, NULL), ZT_OK);
    assert_int_equal(claim.ahead_bytes, 0);
    assert_int_equal(disk_claim_cover(&claim, 4000, 97, UINT64_MAX - 1, NULL), ZT_LIMIT);
    assert_int_equal(disk_claim_cover(&claim, 4000, 97, 0, NULL), ZT_OK);
    assert_int_equal(claim.ahead_bytes, 4096);
    disk_claim_spend(&claim, 4000, 97);
    assert_int_equal(disk_claim_cover(&claim, 4097, 4095, UINT64_MAX - 1, NULL), ZT_LIMIT);
    disk_claim_end(&claim);
    assert_int_equal(disk_claim_cover(&claim, 4097, 4095, UINT64_MAX - 1, NULL), ZT_OK);
    close(descriptor);
}

/* No sum of lengths that clients state runs over. */
TEST(lengths_beyond_any_disk_do_not_fit)
{
    static const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 2};
    const int descriptor = open_here();
    struct disk_claim claim;

    disk_claim_init(&claim, descriptor, 0);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        assert_int_equal(disk_claim_ahead(&claim, lengths[i], 0, NULL), ZT_LIMIT);
        assert_int_equal(disk_claim_ahead(&claim, 1, lengths[i], NULL), ZT_LIMIT);
        assert_int_equal(disk_claim_cover(&claim, 1, lengths[i], 0, NULL), ZT_LIMIT);
    }
    assert_int_equal(claim.ahead_bytes, 0);
    close(descriptor);
}

TEST(the_reserve_is_what_was_set_or_a_share_of_the_disk)
{
    const int descriptor = open_here();
    struct statvfs facts;
    uint64_t size;

    assert_int_equal(fstatvfs(descriptor, &facts), 0);
    size = (uint64_t)facts.f_blocks * facts.f_frsize;
    assert_true(disk_space_reserve(descriptor, DISK_RESERVE_AUTOMATIC) <= GIB);
    assert_true(disk_space_reserve(descriptor, DISK_RESERVE_AUTOMATIC) <= size / 20);
    assert_int_equal(disk_space_reserve(descriptor, 5), 5);
    assert_int_equal(disk_space_reserve(descriptor, UINT64_MAX - 1), size / 4);
    disk_space_set_reserve(descriptor, 7);
    assert_int_equal(disk_space_reserve(descriptor, 5), 7);
    assert_int_equal(disk_space_reserve(descriptor, DISK_RESERVE_AUTOMATIC), 7);
    close(descriptor);
}

TEST(a_closed_descriptor_refuses_nothing)
{
    struct disk_claim claim;
    uint64_t left;

    assert_null(disk_space_of(-1));
    assert_false(disk_space_left(-1, &left));
    disk_claim_init(&claim, -1, 0);
    assert_int_equal(disk_claim_ahead(&claim, GIB, UINT64_MAX, NULL), ZT_OK);
    assert_int_equal(disk_claim_cover(&claim, 0, GIB, UINT64_MAX, NULL), ZT_OK);
    disk_claim_spend(&claim, 0, GIB);
    disk_claim_end(&claim);
}

TEST(errors_of_a_full_disk_are_told_from_other_limits)
{
    struct zt_error error;

    assert_int_equal(disk_space_fail(&error), ZT_LIMIT);
    assert_true(disk_space_is_short(&error));
    zt_fail(&error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "too long");
    assert_false(disk_space_is_short(&error));
    zt_fail(&error, ZT_IO, NULL, ZT_NO_OFFSET, "broken");
    error.os_error = ENOSPC;
    assert_false(disk_space_is_short(&error));
}
