/* Which pages are in memory: asked once a second for each block. */
#include "support.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/page_memory.h"

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

static struct page_memory *new_memory(void)
{
    struct page_memory *memory = calloc(1, sizeof(*memory));

    assert_non_null(memory);
    return memory;
}

static void touch(uint8_t *mapping, size_t offset, size_t length)
{
    for (size_t i = 0; i < length; i++)
        mapping[offset + i] = 1;
}

static void test_every_page_counts(void **state)
{
    struct page_memory *memory = new_memory();
    uint8_t *mapping = map();

    (void)state;
    touch(mapping, PAGE, 3 * PAGE);
    assert_true(page_memory_holds(memory, BEGIN, mapping, BYTES, PAGE, 3 * PAGE));
    assert_true(page_memory_holds(memory, BEGIN, mapping, BYTES, PAGE + 1, 1));
    assert_true(page_memory_holds(memory, BEGIN, mapping, BYTES, 4 * PAGE - 1, 1));
    assert_false(page_memory_holds(memory, BEGIN, mapping, BYTES, PAGE - 1, 2));
    assert_false(page_memory_holds(memory, BEGIN, mapping, BYTES, 4 * PAGE - 1, 2));
    assert_false(page_memory_holds(memory, BEGIN, mapping, BYTES, 0, 1));
    munmap(mapping, BYTES);
    free(memory);
}

static void test_a_range_over_blocks(void **state)
{
    struct page_memory *memory = new_memory();
    uint8_t *mapping = map();

    (void)state;
    touch(mapping, BLOCK - PAGE, BLOCK + 2 * PAGE);
    assert_true(page_memory_holds(memory, BEGIN, mapping, BYTES, BLOCK - PAGE, BLOCK + 2 * PAGE));
    assert_false(page_memory_holds(memory, BEGIN, mapping, BYTES, BLOCK - PAGE, BLOCK + 3 * PAGE));
    touch(mapping, 4 * BLOCK, 100);
    assert_true(page_memory_holds(memory, BEGIN, mapping, BYTES, 4 * BLOCK, 100));
    munmap(mapping, BYTES);
    free(memory);
}

/* The kernel is asked about 16 blocks at a time. */
static void test_a_range_of_several_questions(void **state)
{
    const size_t bytes = (size_t)40 * BLOCK;
    const size_t missing = (size_t)33 * BLOCK + 5 * PAGE;
    struct page_memory *memory = new_memory();
    uint8_t *mapping =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_true(mapping != MAP_FAILED);
    touch(mapping, 0, missing);
    touch(mapping, missing + PAGE, bytes - missing - PAGE);
    assert_true(page_memory_holds(memory, BEGIN, mapping, bytes, 100, missing - 100));
    assert_false(page_memory_holds(memory, BEGIN, mapping, bytes, 100, missing + 1 - 100));
    assert_true(
        page_memory_holds(memory, BEGIN, mapping, bytes, missing + PAGE, bytes - missing - PAGE));
    munmap(mapping, bytes);
    free(memory);
}

static void test_the_kernel_is_asked_once_a_second(void **state)
{
    struct page_memory *memory = new_memory();
    uint8_t *mapping = map();

    (void)state;
    touch(mapping, 0, PAGE);
    assert_true(page_memory_holds(memory, BEGIN, mapping, BYTES, 0, PAGE));
    assert_false(page_memory_holds(memory, BEGIN, mapping, BYTES, BLOCK, PAGE));
    assert_int_equal(madvise(mapping, PAGE, MADV_DONTNEED), 0);
    touch(mapping, BLOCK, PAGE);
    assert_true(page_memory_holds(memory, BEGIN + 999, mapping, BYTES, 0, PAGE));
    assert_false(page_memory_holds(memory, BEGIN + 999, mapping, BYTES, BLOCK, PAGE));
    assert_false(page_memory_holds(memory, BEGIN + 1000, mapping, BYTES, 0, PAGE));
    assert_true(page_memory_holds(memory, BEGIN + 1000, mapping, BYTES, BLOCK, PAGE));
    munmap(mapping, BYTES);
    free(memory);
}

static void test_what_is_not_mapped_is_not_in_memory(void **state)
{
    struct page_memory *memory = new_memory();
    uint8_t *mapping = map();

    (void)state;
    munmap(mapping, BYTES);
    assert_false(page_memory_holds(memory, BEGIN, mapping, BYTES, 0, PAGE));
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_page_counts),
        cmocka_unit_test(test_a_range_over_blocks),
        cmocka_unit_test(test_a_range_of_several_questions),
        cmocka_unit_test(test_the_kernel_is_asked_once_a_second),
        cmocka_unit_test(test_what_is_not_mapped_is_not_in_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
