/* Repositories that are remembered until something is committed to them. */
#include "tests.h"

#include "hub/created_repos.h"
#include "hub/hub_names.h"

#define LONG_MS INT64_C(1000000)
#define MANY    1001

static void add_numbered(struct created_repos *created, unsigned number)
{
    char name[HUB_REPO_SIZE];
    struct zt_error error;

    snprintf(name, sizeof(name), "org/r%u", number);
    assert_int_equal(created_repos_add(created, name, &error), ZT_OK);
}

TEST(the_oldest_is_forgotten_first)
{
    struct created_repos *created = created_repos_new();

    assert_non_null(created);
    for (unsigned i = 0; i < MANY; i++) {
        add_numbered(created, i);
        /* Created again: now it is the youngest. */
        if (i == 10)
            add_numbered(created, 0);
    }
    assert_true(created_repos_has(created, "org/r0", LONG_MS));
    assert_false(created_repos_has(created, "org/r1", LONG_MS));
    assert_true(created_repos_has(created, "org/r2", LONG_MS));
    assert_true(created_repos_has(created, "org/r1000", LONG_MS));
    created_repos_free(created);
}

TEST(one_that_is_too_old_is_forgotten)
{
    struct created_repos *created = created_repos_new();

    assert_non_null(created);
    assert_false(created_repos_has(created, "org/r1", LONG_MS));
    add_numbered(created, 1);
    assert_true(created_repos_has(created, "org/r1", LONG_MS));
    assert_false(created_repos_has(created, "org/r1", 0));
    assert_false(created_repos_has(created, "org/r", LONG_MS));
    created_repos_free(created);
}
