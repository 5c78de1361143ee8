/* Work in many parts, by all workers that are free. */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/workers.h"
#include "support.h"

#define PARTS 500

struct parts {
    atomic_uint runs[PARTS];
    uint32_t bad_from;
    uint32_t bad_step; /* 0: none */
};

static bool run_part(void *context, uint32_t index)
{
    struct parts *parts = context;

    atomic_fetch_add(&parts->runs[index], 1);
    /* So that others get a turn. */
    usleep(20);
    return parts->bad_step == 0 || index < parts->bad_from ||
           (index - parts->bad_from) % parts->bad_step != 0;
}

static void crew_runs_every_part_once(void **state)
{
    struct workers *workers = workers_start(4);
    struct parts parts;

    (void)state;
    for (int round = 0; round < 20; round++) {
        memset(&parts, 0, sizeof(parts));
        assert_int_equal(crew_run(workers, &(struct crew_work){PARTS, run_part, &parts}), PARTS);
        for (int i = 0; i < PARTS; i++)
            assert_int_equal(parts.runs[i], 1);
    }
    workers_stop(workers);
}

static void crew_tells_the_least_part_that_failed(void **state)
{
    struct workers *workers = workers_start(4);
    struct parts parts;

    (void)state;
    for (uint32_t bad = 0; bad < 40; bad++) {
        memset(&parts, 0, sizeof(parts));
        parts.bad_from = bad;
        parts.bad_step = 3;
        assert_int_equal(crew_run(workers, &(struct crew_work){PARTS, run_part, &parts}), bad);
        for (uint32_t i = 0; i <= bad; i++)
            assert_int_equal(parts.runs[i], 1);
        assert_int_equal(parts.runs[PARTS - 1], 0);
    }
    workers_stop(workers);
}

static void crew_works_without_helpers(void **state)
{
    struct parts parts;

    (void)state;
    memset(&parts, 0, sizeof(parts));
    assert_int_equal(crew_run(NULL, &(struct crew_work){PARTS, run_part, &parts}), PARTS);
    assert_int_equal(crew_run(NULL, &(struct crew_work){0, run_part, &parts}), 0);
    assert_int_equal(parts.runs[0], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crew_runs_every_part_once),
        cmocka_unit_test(crew_tells_the_least_part_that_failed),
        cmocka_unit_test(crew_works_without_helpers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
