/* Caches make room for a write, on the thread that writes. The file system's free space is made up
 * here. */
#include "tests.h"

#include <pthread.h>
#include <sys/statvfs.h>

#include "disk/disk_space.h"

#define MIB     ((uint64_t)1 << 20)
#define RESERVE (4 * MIB)

int fstatvfs64(int descriptor, struct statvfs64 *out_facts);

static uint64_t free_bytes;

/* Instead of the C library's. */
int fstatvfs64(int descriptor, struct statvfs64 *out_facts)
{
    (void)descriptor;
    *out_facts = (struct statvfs64){.f_blocks = 1 << 20, .f_frsize = 4096};
    out_facts->f_bavail = free_bytes / 4096;
    return 0;
}

/* What another thread does once while a saver is called. */
static void (*meanwhile)(void);
static void (*while_freeing)(void);

static void *run_meanwhile(void *function)
{
    (*(void (**)(void))function)();
    return NULL;
}

static void let_others_run(void)
{
    void (*function)(void) = meanwhile;
    pthread_t thread;

    meanwhile = NULL;
    if (function == NULL)
        return;
    assert_int_equal(pthread_create(&thread, NULL, run_meanwhile, &function), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* As a cache of so many bytes. */
struct room {
    uint64_t bytes;
    unsigned asked;
};

static uint64_t could_free(void *context, const struct disk_space *space)
{
    const uint64_t bytes = ((const struct room *)context)->bytes;

    (void)space;
    let_others_run();
    return bytes;
}

static bool free_some(void *context, const struct disk_space *space, uint64_t bytes)
{
    struct room *room = context;
    const uint64_t freed = bytes < room->bytes ? bytes : room->bytes;

    assert_non_null(space);
    meanwhile = while_freeing;
    while_freeing = NULL;
    let_others_run();
    room->asked++;
    room->bytes -= freed;
    free_bytes += freed;
    return freed > 0;
}

static struct room room;
static struct disk_saver saver = {
    .could_free = could_free, .free_some = free_some, .context = &room};
static struct disk_claim claim;

static int begin(void **state)
{
    (void)state;
    free_bytes = RESERVE + 2 * MIB;
    room = (struct room){.bytes = 8 * MIB};
    disk_saver_add(&saver);
    disk_claim_init(&claim, 1, 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    disk_claim_end(&claim);
    disk_saver_remove(&saver);
    return 0;
}

AROUND_EACH_TEST(begin, end)

static enum zt_status write_at(uint64_t offset, uint64_t length)
{
    const enum zt_status status = disk_claim_cover(&claim, offset, length, RESERVE, NULL);

    if (status != ZT_OK)
        return status;
    free_bytes -= length;
    disk_claim_spend(&claim, offset, length);
    return ZT_OK;
}

TEST(claim_leaves_room_to_be_made_to_its_writes)
{
    assert_ok(disk_claim_ahead(&claim, 10 * MIB, RESERVE, NULL));
    assert_int_equal(room.asked, 0);
    assert_ok(write_at(0, 2 * MIB));
    assert_int_equal(room.asked, 0);
    assert_ok(write_at(2 * MIB, MIB));
    assert_int_equal(room.asked, 1);
    assert_int_equal(room.bytes, 7 * MIB);
    assert_ok(write_at(3 * MIB, 7 * MIB));
    assert_int_equal(room.bytes, 0);
    assert_int_equal(free_bytes, RESERVE);
    assert_int_equal(write_at(10 * MIB, 4096), ZT_LIMIT);
}

TEST(room_is_promised_once)
{
    struct disk_claim second;

    disk_claim_init(&second, 1, 0);
    assert_ok(disk_claim_ahead(&claim, 9 * MIB, RESERVE, NULL));
    assert_int_equal(disk_claim_ahead(&second, 2 * MIB, RESERVE, NULL), ZT_LIMIT);
    assert_ok(disk_claim_ahead(&second, MIB, RESERVE, NULL));
    assert_int_equal(room.asked, 0);
    disk_claim_end(&second);
}

TEST(claim_that_does_not_fit_frees_nothing)
{
    assert_int_equal(disk_claim_ahead(&claim, 11 * MIB, RESERVE, NULL), ZT_LIMIT);
    assert_int_equal(write_at(0, 11 * MIB), ZT_LIMIT);
    assert_int_equal(room.asked, 0);
    assert_int_equal(disk_space_savable(1), 8 * MIB);
}

TEST(claim_fails_if_the_promised_room_is_gone)
{
    assert_ok(disk_claim_ahead(&claim, 10 * MIB, RESERVE, NULL));
    room.bytes = 0;
    assert_ok(write_at(0, 2 * MIB));
    assert_int_equal(write_at(2 * MIB, MIB), ZT_LIMIT);
}

static struct disk_claim second;
static enum zt_status second_status[2];

static void claim_much_then_little(void)
{
    second_status[0] = disk_claim_ahead(&second, MIB << 20, RESERVE, NULL);
    second_status[1] = disk_claim_ahead(&second, MIB, RESERVE, NULL);
}

TEST(claim_while_room_is_made_is_limited_by_what_could_be_freed)
{
    disk_claim_init(&second, 1, 0);
    assert_ok(disk_claim_ahead(&claim, 4 * MIB, RESERVE, NULL));
    while_freeing = claim_much_then_little;
    assert_ok(write_at(0, 4 * MIB));
    assert_int_equal(room.asked, 1);
    assert_int_equal(second_status[0], ZT_LIMIT);
    assert_int_equal(second_status[1], ZT_OK);
    assert_int_equal(second.ahead_bytes, MIB);
    disk_claim_end(&second);
}

static void claim_most(void)
{
    second_status[0] = disk_claim_ahead(&second, 9 * MIB, RESERVE, NULL);
}

TEST(room_is_promised_once_to_claims_at_the_same_time)
{
    disk_claim_init(&second, 1, 0);
    meanwhile = claim_most;
    assert_int_equal(disk_claim_ahead(&claim, 9 * MIB, RESERVE, NULL), ZT_LIMIT);
    assert_int_equal(second_status[0], ZT_OK);
    assert_int_equal(claim.ahead_bytes, 0);
    disk_claim_end(&second);
}
