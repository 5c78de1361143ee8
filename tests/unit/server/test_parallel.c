/* Loops on idle workers and on threads. */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/parallel.h"
#include "base/workers.h"
#include "tests.h"

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

/* On workers, or on so many threads; bad: the least index of those that fail, or PARTS. */
static void assert_loop(struct workers *workers, unsigned threads, uint32_t bad)
{
    struct parts parts = {.bad_from = bad, .bad_step = bad < PARTS ? 3 : 0};
    const struct parallel_work work = {PARTS, run_part, &parts};
    const uint32_t end =
        threads > 0 ? parallel_for_threads("part", threads, &work) : parallel_for(workers, &work);

    assert_int_equal(end, bad);
    for (uint32_t i = 0; i < PARTS && i <= bad; i++)
        assert_int_equal(parts.runs[i], 1);
    if (bad < PARTS)
        assert_int_equal(parts.runs[PARTS - 1], 0);
}

TEST(a_loop_runs_every_index_once_on_workers_and_on_threads)
{
    struct workers *workers = workers_start(4);

    for (int round = 0; round < 20; round++)
        assert_loop(workers, 0, PARTS);
    workers_stop(workers);
    for (unsigned threads = 1; threads <= 8; threads++)
        assert_loop(NULL, threads, PARTS);
}

TEST(a_loop_returns_the_least_index_that_failed)
{
    struct workers *workers = workers_start(4);

    for (uint32_t bad = 0; bad < 40; bad++) {
        assert_loop(workers, 0, bad);
        assert_loop(NULL, 4, bad);
    }
    workers_stop(workers);
}

TEST(parallel_for_runs_without_workers)
{
    struct parts parts;

    memset(&parts, 0, sizeof(parts));
    assert_int_equal(parallel_for(NULL, &(struct parallel_work){PARTS, run_part, &parts}), PARTS);
    assert_int_equal(parallel_for(NULL, &(struct parallel_work){0, run_part, &parts}), 0);
    assert_int_equal(parts.runs[0], 1);
}
