/* Which pages are in memory: asked once a second for each block. */
#include "support.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/resident.h"

#define PAGE  4096u
#define BLOCK (16u * PAGE)
#define BYTES (4u * BLOCK + 100u)
#define BEGIN 5000u

/* A private mapping without a file: pages are in memory once they were written to. */
static uint8_t *map(void)
{
    uint8_t *mapping =
        mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(mapping != MAP_FAILED);
    return mapping;
}

static struct resident *new_resident(void)
{
    struct resident *resident = calloc(1, sizeof(*resident));

    assert_non_null(resident);
    return resident;
}

static void touch(uint8_t *mapping, size_t offset, size_t length)
{
    for (size_t i = 0; i < length; i++)
        mapping[offset + i] = 1;
}

static void test_every_page_counts(void **state)
{
    struct resident *resident = new_resident();
    uint8_t *mapping = map();

    (void)state;
    touch(mapping, PAGE, 3 * PAGE);
    assert_true(resident_holds(resident, BEGIN, mapping, BYTES, PAGE, 3 * PAGE));
    assert_true(resident_holds(resident, BEGIN, mapping, BYTES, PAGE + 1, 1));
    assert_true(resident_holds(resident, BEGIN, mapping, BYTES, 4 * PAGE - 1, 1));
    assert_false(resident_holds(resident, BEGIN, mapping, BYTES, PAGE - 1, 2));
    assert_false(resident_holds(resident, BEGIN, mapping, BYTES, 4 * PAGE - 1, 2));
    assert_false(resident_holds(resident, BEGIN, mapping, BYTES, 0, 1));
    munmap(mapping, BYTES);
    free(resident);
}

static void test_a_range_over_blocks(void **state)
{
    struct resident *resident = new_resident();
    uint8_t *mapping = map();

    (void)state;
    touch(mapping, BLOCK - PAGE, BLOCK + 2 * PAGE);
    assert_true(resident_holds(resident, BEGIN, mapping, BYTES, BLOCK - PAGE, BLOCK + 2 * PAGE));
    assert_false(resident_holds(resident, BEGIN, mapping, BYTES, BLOCK - PAGE, BLOCK + 3 * PAGE));
    touch(mapping, 4 * BLOCK, 100);
    assert_true(resident_holds(resident, BEGIN, mapping, BYTES, 4 * BLOCK, 100));
    munmap(mapping, BYTES);
    free(resident);
}

static void test_the_kernel_is_asked_once_a_second(void **state)
{
    struct resident *resident = new_resident();
    uint8_t *mapping = map();

    (void)state;
    touch(mapping, 0, PAGE);
    assert_true(resident_holds(resident, BEGIN, mapping, BYTES, 0, PAGE));
    assert_false(resident_holds(resident, BEGIN, mapping, BYTES, BLOCK, PAGE));
    assert_int_equal(madvise(mapping, PAGE, MADV_DONTNEED), 0);
    touch(mapping, BLOCK, PAGE);
    assert_true(resident_holds(resident, BEGIN + 999, mapping, BYTES, 0, PAGE));
    assert_false(resident_holds(resident, BEGIN + 999, mapping, BYTES, BLOCK, PAGE));
    assert_false(resident_holds(resident, BEGIN + 1000, mapping, BYTES, 0, PAGE));
    assert_true(resident_holds(resident, BEGIN + 1000, mapping, BYTES, BLOCK, PAGE));
    munmap(mapping, BYTES);
    free(resident);
}

static void test_what_is_not_mapped_is_not_in_memory(void **state)
{
    struct resident *resident = new_resident();
    uint8_t *mapping = map();

    (void)state;
    munmap(mapping, BYTES);
    assert_false(resident_holds(resident, BEGIN, mapping, BYTES, 0, PAGE));
    free(resident);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_page_counts),
        cmocka_unit_test(test_a_range_over_blocks),
        cmocka_unit_test(test_the_kernel_is_asked_once_a_second),
        cmocka_unit_test(test_what_is_not_mapped_is_not_in_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
