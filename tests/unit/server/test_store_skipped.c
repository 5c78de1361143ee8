/* What a walk leaves out: each path gets one line, and memory and lines are bounded. */
#include "tests.h"

#include <stdio.h>

#include "base/log.h"
#include "store/store_skipped.h"

static int quiet(void **state)
{
    (void)state;
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
    return 0;
}

/* Notes the paths numbered first to end - 1 in one walk. */
static void walk(struct skipped *skipped, unsigned first, unsigned end, bool whole)
{
    char path[32];

    skipped_begin(skipped);
    for (unsigned i = first; i < end; i++) {
        snprintf(path, sizeof(path), "path %u.zt", i);
        skipped_note(skipped, path, SKIP_NAME, 0);
    }
    skipped_end(skipped, whole);
}

TEST(a_path_gets_a_line_once)
{
    struct skipped skipped = {0};

    walk(&skipped, 0, 3, true);
    assert_int_equal(skipped.named, 3);
    walk(&skipped, 0, 4, true);
    assert_int_equal(skipped.named, 1);
    walk(&skipped, 2, 4, true);
    assert_int_equal(skipped.named, 0);
    skipped_free(&skipped);
}

TEST(a_path_that_was_gone_gets_a_line_again)
{
    struct skipped skipped = {0};

    walk(&skipped, 0, 2, true);
    walk(&skipped, 0, 1, true);
    walk(&skipped, 0, 2, true);
    assert_int_equal(skipped.named, 1);
    skipped_free(&skipped);
}

TEST(a_walk_that_is_cut_short_forgets_nothing)
{
    struct skipped skipped = {0};

    walk(&skipped, 0, 2, true);
    walk(&skipped, 0, 0, false);
    walk(&skipped, 0, 1, false);
    walk(&skipped, 0, 2, true);
    assert_int_equal(skipped.named, 0);
    assert_int_equal(skipped.known_count, 2);
    skipped_free(&skipped);
}

TEST(another_reason_gets_a_line_of_its_own)
{
    struct skipped skipped = {0};

    walk(&skipped, 0, 1, true);
    skipped_begin(&skipped);
    skipped_note(&skipped, "path 0.zt", SKIP_BROKEN, 0);
    assert_int_equal(skipped.named, 1);
    skipped_end(&skipped, true);
    skipped_free(&skipped);
}

TEST(lines_and_memory_are_bounded)
{
    struct skipped skipped = {0};

    walk(&skipped, 0, 100000, true);
    assert_int_equal(skipped.named, 100);
    assert_true(skipped.known_count < 100000);
    assert_int_equal(skipped.known_count + skipped.beyond, 100000);
    assert_int_equal(skipped.unnamed, skipped.known_count - 100);
    walk(&skipped, 0, 100000, true);
    assert_int_equal(skipped.named + skipped.unnamed, 0);
    skipped_free(&skipped);
}

AROUND_ALL_TESTS(quiet, NULL)
