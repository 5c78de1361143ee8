/* Which digests are remembered, and which are forgotten first. */
#include "support.h"

#include <stdio.h>
#include <string.h>

#include "http/exchange/digest_memory.h"

static void fill(uint8_t out_sha256[32], unsigned number)
{
    memset(out_sha256, 0, 32);
    memcpy(out_sha256, &number, sizeof(number));
}

static void keep(struct digest_memory *memory, const char *target, unsigned number)
{
    uint8_t sha256[32];

    fill(sha256, number);
    digest_memory_keep(memory, target, "\"tag\"", sha256);
}

static bool has(struct digest_memory *memory, const char *target, unsigned number)
{
    uint8_t expected[32];
    uint8_t found[32];

    fill(expected, number);
    return digest_memory_find(memory, target, "\"tag\"", found) && memcmp(expected, found, 32) == 0;
}

static void what_is_kept_is_found(void **state)
{
    struct digest_memory *memory = digest_memory_new();
    uint8_t found[32] = "untouched";

    (void)state;
    assert_false(has(memory, "/a", 1));
    keep(memory, "/a", 1);
    keep(memory, "/b", 2);
    assert_true(has(memory, "/a", 1));
    assert_true(has(memory, "/b", 2));
    keep(memory, "/a", 3);
    assert_true(has(memory, "/a", 3));
    assert_false(digest_memory_find(memory, "/a", "\"tag2\"", found));
    assert_false(digest_memory_find(memory, "/", "\"tag\"", found));
    assert_string_equal((const char *)found, "untouched");
    digest_memory_free(memory);
}

static void the_least_recently_used_is_evicted_first(void **state)
{
    struct digest_memory *memory = digest_memory_new();
    char target[32];

    (void)state;
    for (unsigned i = 0; i < DIGEST_MEMORY_ENTRIES; i++) {
        snprintf(target, sizeof(target), "/%u", i);
        keep(memory, target, i);
    }
    assert_true(has(memory, "/0", 0));
    keep(memory, "/new", 9);
    assert_true(has(memory, "/0", 0));
    assert_false(has(memory, "/1", 1));
    assert_true(has(memory, "/2", 2));
    assert_true(has(memory, "/new", 9));
    digest_memory_free(memory);
}

static void very_long_targets_are_not_kept(void **state)
{
    struct digest_memory *memory = digest_memory_new();
    char target[1025];

    (void)state;
    memset(target, 'a', sizeof(target));
    target[1024 - strlen("\"tag\"\n")] = '\0';
    keep(memory, target, 1);
    assert_true(has(memory, target, 1));
    target[1024 - strlen("\"tag\"\n")] = 'a';
    target[1024] = '\0';
    keep(memory, target, 2);
    assert_false(has(memory, target, 2));
    digest_memory_free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_is_found),
        cmocka_unit_test(the_least_recently_used_is_evicted_first),
        cmocka_unit_test(very_long_targets_are_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
