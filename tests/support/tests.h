/* Tests that register themselves: a file that includes this needs neither main() nor a list of its
 * tests. They run in the order in which they stand.
 *
 *   TEST(a_name_that_states_what_is_expected)
 *   {
 *       …
 *   } */
#ifndef ZT_TESTS_H
#define ZT_TESTS_H

#include "support.h"

/* What runs before and after a test; NULL for what AROUND_EACH_TEST names, if anything. */
struct test_surroundings {
    CMFixtureFunction set_up;
    CMFixtureFunction tear_down;
};

void tests_add(const char *name, CMUnitTestFunction test, struct test_surroundings around);
void tests_surround_each(struct test_surroundings around);
void tests_surround_all(struct test_surroundings around);

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* A test with its own functions before and after. */
#define TEST_WITH(name, set_up, tear_down)                                     \
    static void name(void **state);                                            \
    __attribute__((constructor)) static void add_##name(void)                  \
    {                                                                          \
        tests_add(#name, name, (struct test_surroundings){set_up, tear_down}); \
    }                                                                          \
    static void name(__attribute__((unused)) void **state)

/* A test that is given what its set-up left in *state. */
#define TEST_ON(parameter, name)      \
    static void name##_on(parameter); \
    TEST(name)                        \
    {                                 \
        name##_on(*state);            \
    }                                 \
    static void name##_on(parameter)

/* One that is given the world that its set-up left in *state. */
struct world;
#define TEST_IN_WORLD(name, set_up, tear_down)  \
    static void name##_in(struct world *world); \
    TEST_WITH(name, set_up, tear_down)          \
    {                                           \
        name##_in(*state);                      \
    }                                           \
    static void name##_in(__attribute__((unused)) struct world *world)

/* Each test of this file that has none of its own runs between these. */
#define AROUND_EACH_TEST(set_up, tear_down)                                 \
    __attribute__((constructor)) static void surround_each_test(void)       \
    {                                                                       \
        tests_surround_each((struct test_surroundings){set_up, tear_down}); \
    }

/* They run once, before the first test and after the last. */
#define AROUND_ALL_TESTS(set_up, tear_down)                                \
    __attribute__((constructor)) static void surround_all_tests(void)      \
    {                                                                      \
        tests_surround_all((struct test_surroundings){set_up, tear_down}); \
    }

#endif
