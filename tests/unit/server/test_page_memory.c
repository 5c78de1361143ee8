/* Which pages are in memory: asked once a second for each block. */
#include "tests.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "http/body/page_memory.h"

#define PAGE  4096u
#define BLOCK (16u * PAGE)
#define BYTES (4u * BLOCK + 100u)
#define BEGIN 5000u

static struct page_memory *memory;
static uint8_t *mapping;

/* A private mapping without a file: pages are in memory once they were written to. */
static uint8_t *map(size_t bytes)
{
    uint8_t *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(mapped != MAP_FAILED);
    return mapped;
}

static int set_up(void **state)
{
    (void)state;
    memory = calloc(1, sizeof(*memory));
    assert_non_null(memory);
    mapping = map(BYTES);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    munmap(mapping, BYTES);
    free(memory);
    return 0;
}

AROUND_EACH_TEST(set_up, tear_down)

static bool holds(size_t offset, size_t length)
{
    return page_memory_holds(memory, BEGIN, mapping, BYTES, offset, length);
}

static void touch(uint8_t *bytes, size_t offset, size_t length)
{
    for (size_t i = 0; i < length; i++)
        bytes[offset + i] = 1;
}

TEST(every_page_counts)
{
    touch(mapping, PAGE, 3 * PAGE);
    assert_true(holds(PAGE, 3 * PAGE));
    assert_true(holds(PAGE + 1, 1));
    assert_true(holds(4 * PAGE - 1, 1));
    assert_false(holds(PAGE - 1, 2));
    assert_false(holds(4 * PAGE - 1, 2));
    assert_false(holds(0, 1));
}

TEST(a_range_over_blocks_needs_all_of_them)
{
    touch(mapping, BLOCK - PAGE, BLOCK + 2 * PAGE);
    assert_true(holds(BLOCK - PAGE, BLOCK + 2 * PAGE));
    assert_false(holds(BLOCK - PAGE, BLOCK + 3 * PAGE));
    touch(mapping, 4 * BLOCK, 100);
    assert_true(holds(4 * BLOCK, 100));
}

/* The kernel is asked about 16 blocks at a time. */
TEST(a_range_is_asked_about_in_several_questions)
{
    const size_t bytes = (size_t)40 * BLOCK;
    const size_t missing = (size_t)33 * BLOCK + 5 * PAGE;
    uint8_t *large = map(bytes);

    touch(large, 0, missing);
    touch(large, missing + PAGE, bytes - missing - PAGE);
    assert_true(page_memory_holds(memory, BEGIN, large, bytes, 100, missing - 100));
    assert_false(page_memory_holds(memory, BEGIN, large, bytes, 100, missing + 1 - 100));
    assert_true(
        page_memory_holds(memory, BEGIN, large, bytes, missing + PAGE, bytes - missing - PAGE));
    munmap(large, bytes);
}

TEST(the_kernel_is_asked_once_a_second)
{
    touch(mapping, 0, PAGE);
    assert_true(holds(0, PAGE));
    assert_false(holds(BLOCK, PAGE));
    assert_int_equal(madvise(mapping, PAGE, MADV_DONTNEED), 0);
    touch(mapping, BLOCK, PAGE);
    assert_true(page_memory_holds(memory, BEGIN + 999, mapping, BYTES, 0, PAGE));
    assert_false(page_memory_holds(memory, BEGIN + 999, mapping, BYTES, BLOCK, PAGE));
    assert_false(page_memory_holds(memory, BEGIN + 1000, mapping, BYTES, 0, PAGE));
    assert_true(page_memory_holds(memory, BEGIN + 1000, mapping, BYTES, BLOCK, PAGE));
}

TEST(what_is_not_mapped_is_not_in_memory)
{
    munmap(mapping, BYTES);
    assert_false(holds(0, PAGE));
}
