/* Tests that register themselves, and the main() that runs them. */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>

#define TESTS_MAX 128

static struct CMUnitTest tests[TESTS_MAX];
static size_t count;
static struct test_surroundings each;
static struct test_surroundings all;

void tests_add(const char *name, CMUnitTestFunction test, struct test_surroundings around)
{
    if (count == TESTS_MAX) {
        fprintf(stderr, "more than %d tests in one file\n", TESTS_MAX);
        abort();
    }
    tests[count++] = (struct CMUnitTest){
        .name = name,
        .test_func = test,
        .setup_func = around.set_up,
        .teardown_func = around.tear_down,
    };
}

void tests_surround_each(struct test_surroundings around)
{
    each = around;
}

void tests_surround_all(struct test_surroundings around)
{
    all = around;
}

int main(void)
{
    for (size_t i = 0; i < count; i++)
        if (tests[i].setup_func == NULL && tests[i].teardown_func == NULL) {
            tests[i].setup_func = each.set_up;
            tests[i].teardown_func = each.tear_down;
        }
    return _cmocka_run_group_tests("tests", tests, count, all.set_up, all.tear_down);
}
