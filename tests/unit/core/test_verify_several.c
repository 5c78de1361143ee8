/* Several components checked at once: each has the result that a check of it alone gives, in any
 * order and beside any other. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handmade.h"
#include "zt/verify.h"

/* Longer than the steps in which files are hashed, and not a multiple of anything. */
#define LONG_SIZE  ((size_t)2500003)
#define SHORT_SIZE ((size_t)300007)
#define ITEMS      6u

static uint8_t plain[LONG_SIZE];
static const uint64_t shape[] = {LONG_SIZE};

static int fill_plain(void **state)
{
    (void)state;
    for (size_t i = 0; i < LONG_SIZE; i++)
        plain[i] = (uint8_t)(i * i >> 8 ^ i / 100);
    return 0;
}

/* A file with a long component, a short one, one whose digest is wrong, and one with a CRC-32C. */
struct several {
    struct handmade made;
    char texts[HANDMADE_PARTS][ZT_DIGEST_TEXT_SIZE];
};

static void add(struct several *several, unsigned index, enum zt_digest_algorithm algorithm,
                size_t length)
{
    static const char *const names[HANDMADE_PARTS] = {"a", "b", "c", "d"};
    struct zt_component *part = handmade_add(&several->made, names[index], ZT_U8, plain, length);
    struct zt_hasher *hasher = NULL;
    struct zt_digest digest;

    assert_ok(zt_hasher_new(algorithm, &hasher));
    zt_hasher_update(hasher, plain, length);
    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    zt_digest_format(&digest, several->texts[index]);
    part->digest = several->texts[index];
    part->digest_length = (uint32_t)strlen(several->texts[index]);
}

static void make(struct several *several)
{
    handmade_init(&several->made, ZT_FORMAT_ZT1, ZT_LAYOUT_DENSE, 1, shape);
    add(several, 0, ZT_DIGEST_SHA256, LONG_SIZE);
    add(several, 1, ZT_DIGEST_SHA256, SHORT_SIZE);
    add(several, 2, ZT_DIGEST_SHA256, SHORT_SIZE + 64);
    add(several, 3, ZT_DIGEST_CRC32C, SHORT_SIZE);
    several->texts[2][10] = several->texts[2][10] == '0' ? '1' : '0';
}

/* Opens the data as a file, whose pages are in memory, so that they are hashed where they are. */
static void open_as_file(struct several *several)
{
    char path[] = "/tmp/zt-several-XXXXXX";
    const int descriptor = mkstemp(path);

    assert_true(descriptor >= 0);
    unlink(path);
    assert_int_equal(write(descriptor, several->made.data.at, several->made.data.length),
                     (ssize_t)several->made.data.length);
    assert_ok(zt_source_from_descriptor(descriptor, &several->made.source, NULL));
    zt_source_allow_mapped();
}

static void check_items(struct several *several, struct zt_component_to_check *items, size_t count)
{
    zt_components_check(&several->made.model, several->made.source, items, count, NULL);
}

/* Checks the components of these numbers together, and each alone. */
static void assert_like_alone(struct several *several, const unsigned numbers[ITEMS])
{
    struct zt_component_to_check items[ITEMS];

    for (size_t i = 0; i < ITEMS; i++)
        items[i] = (struct zt_component_to_check){.component = &several->made.parts[numbers[i]]};
    check_items(several, items, ITEMS);
    for (size_t i = 0; i < ITEMS; i++) {
        struct zt_component_check alone;

        assert_ok(zt_component_check(&several->made.model, items[i].component, several->made.source,
                                     NULL, &alone, NULL));
        assert_ok(items[i].status);
        assert_int_equal(items[i].check.verdict, alone.verdict);
        assert_true(items[i].check.hashed_bytes == alone.hashed_bytes);
        assert_string_equal(items[i].check.expected, alone.expected);
        assert_string_equal(items[i].check.actual, alone.actual);
        assert_int_equal(alone.verdict, numbers[i] == 2 ? ZT_VERDICT_FAILED : ZT_VERDICT_VERIFIED);
    }
}

static const unsigned orders[][ITEMS] = {
    {0, 1, 2, 3, 0, 1}, {1, 0, 1, 0, 2, 3}, {3, 3, 0, 2, 2, 1},
    {2, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 2}, {0, 3, 1, 3, 2, 3},
};

TEST(results_from_memory_are_those_of_checks_alone)
{
    struct several several;

    make(&several);
    handmade_open(&several.made);
    for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++)
        assert_like_alone(&several, orders[i]);
    handmade_free(&several.made);
}

TEST(results_from_a_mapped_file_are_those_of_checks_alone)
{
    struct several several;

    make(&several);
    open_as_file(&several);
    for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++)
        assert_like_alone(&several, orders[i]);
    handmade_free(&several.made);
}

/* --- progress --- */

static bool add_bytes(void *context, uint64_t bytes)
{
    *(uint64_t *)context += bytes;
    return true;
}

static bool stop_after_first(void *context, uint64_t bytes)
{
    *(uint64_t *)context += bytes;
    return false;
}

TEST(each_component_reports_its_own_bytes)
{
    struct several several;
    uint64_t bytes[2] = {0, 0};
    const struct zt_progress progress[2] = {{add_bytes, &bytes[0]}, {add_bytes, &bytes[1]}};
    struct zt_component_to_check items[2];

    make(&several);
    open_as_file(&several);
    for (size_t i = 0; i < 2; i++)
        items[i] = (struct zt_component_to_check){.component = &several.made.parts[i],
                                                  .progress = &progress[i]};
    check_items(&several, items, 2);
    assert_true(bytes[0] == LONG_SIZE);
    assert_true(bytes[1] == SHORT_SIZE);
    handmade_free(&several.made);
}

TEST(a_component_that_is_stopped_does_not_stop_the_other)
{
    for (size_t stopped = 0; stopped < 2; stopped++) {
        struct several several;
        uint64_t bytes[2] = {0, 0};
        struct zt_progress progress[2] = {{add_bytes, &bytes[0]}, {add_bytes, &bytes[1]}};
        struct zt_component_to_check items[2];

        make(&several);
        open_as_file(&several);
        progress[stopped].advance = stop_after_first;
        for (size_t i = 0; i < 2; i++)
            items[i] = (struct zt_component_to_check){.component = &several.made.parts[0],
                                                      .progress = &progress[i]};
        check_items(&several, items, 2);
        assert_int_equal(items[stopped].status, ZT_ARGUMENT);
        assert_string_equal(items[stopped].error.message, "stopped");
        assert_true(bytes[stopped] < LONG_SIZE);
        assert_ok(items[1 - stopped].status);
        assert_int_equal(items[1 - stopped].check.verdict, ZT_VERDICT_VERIFIED);
        assert_true(bytes[1 - stopped] == LONG_SIZE);
        handmade_free(&several.made);
    }
}

/* --- results as soon as they are known --- */

struct taken {
    const struct zt_component *order[ITEMS];
    size_t count;
};

static void take(void *context, struct zt_component_to_check *item)
{
    struct taken *taken = context;

    assert_true(taken->count < ITEMS);
    assert_int_equal(item->check.verdict, ZT_VERDICT_VERIFIED);
    taken->order[taken->count++] = item->component;
}

TEST(a_short_component_does_not_wait_for_the_long_one_before_it)
{
    struct several several;
    struct taken taken = {.count = 0};
    const struct zt_checked_sink sink = {take, &taken};
    struct zt_component_to_check items[3];

    make(&several);
    open_as_file(&several);
    items[0] = (struct zt_component_to_check){.component = &several.made.parts[0]};
    items[1] = (struct zt_component_to_check){.component = &several.made.parts[1]};
    items[2] = (struct zt_component_to_check){.component = &several.made.parts[3]};
    zt_components_check(&several.made.model, several.made.source, items, 3, &sink);
    assert_int_equal(taken.count, 3);
    assert_ptr_equal(taken.order[0], &several.made.parts[1]);
    assert_ptr_equal(taken.order[2], &several.made.parts[0]);
    handmade_free(&several.made);
}

/* --- bytes that cannot be read --- */

TEST(only_the_component_that_cannot_be_read_has_no_verdict)
{
    for (unsigned first = 0; first < 2; first++) {
        struct several several;
        struct zt_component_to_check items[2];

        make(&several);
        several.made.parts[2].offset = several.made.data.length - SHORT_SIZE;
        handmade_open(&several.made);
        items[first] = (struct zt_component_to_check){.component = &several.made.parts[2]};
        items[1 - first] = (struct zt_component_to_check){.component = &several.made.parts[1]};
        check_items(&several, items, 2);
        assert_int_equal(items[first].status, ZT_IO);
        assert_ok(items[1 - first].status);
        assert_int_equal(items[1 - first].check.verdict, ZT_VERDICT_VERIFIED);
        handmade_free(&several.made);
    }
}

/* The pages are mapped when the file loses them. */
TEST(a_file_that_shrinks_gives_errors_and_no_verdict)
{
    struct several several;
    struct zt_component_to_check items[2];

    make(&several);
    open_as_file(&several);
    assert_non_null(zt_source_map(several.made.source));
    assert_int_equal(ftruncate(zt_source_descriptor(several.made.source), 4096), 0);
    for (size_t i = 0; i < 2; i++)
        items[i] = (struct zt_component_to_check){.component = &several.made.parts[i]};
    check_items(&several, items, 2);
    assert_int_equal(items[0].status, ZT_IO);
    assert_int_equal(items[1].status, ZT_IO);
    handmade_free(&several.made);
}

AROUND_ALL_TESTS(fill_plain, NULL)
