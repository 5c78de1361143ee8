/* Jobs: at most as many at once as allowed, each run once, in the order in which they came. */
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "http/exchange/digest_queue.h"

#define TURNS 200

static atomic_uint running;
static atomic_uint most;
static atomic_uint ended;
static unsigned order[TURNS];
static struct digest_job jobs[TURNS];

static void run(struct digest_job *job)
{
    const unsigned now = atomic_fetch_add(&running, 1) + 1;

    if (now > atomic_load(&most))
        atomic_store(&most, now);
    usleep(200);
    atomic_fetch_sub(&running, 1);
    order[atomic_fetch_add(&ended, 1)] = (unsigned)(job - jobs);
}

static void run_all(unsigned at_once)
{
    struct workers *workers = workers_start(4);
    struct digest_queue *queue = digest_queue_new(workers, at_once);

    atomic_store(&most, 0);
    atomic_store(&ended, 0);
    for (unsigned i = 0; i < TURNS; i++) {
        jobs[i].run = run;
        digest_queue_submit(queue, &jobs[i]);
    }
    while (atomic_load(&ended) < TURNS)
        usleep(1000);
    workers_stop(workers);
    digest_queue_free(queue);
}

static void one_at_a_time_they_keep_their_order(void **state)
{
    (void)state;
    run_all(1);
    assert_int_equal(atomic_load(&most), 1);
    for (unsigned i = 0; i < TURNS; i++)
        assert_int_equal(order[i], i);
}

static void only_so_many_run_at_once(void **state)
{
    (void)state;
    run_all(2);
    assert_in_range(atomic_load(&most), 1, 2);
    run_all(0);
    assert_int_equal(atomic_load(&most), 1);
}

static void stopping_is_visible(void **state)
{
    struct digest_queue *queue = digest_queue_new(NULL, 1);

    (void)state;
    assert_false(digest_queue_is_stopped(queue));
    digest_queue_stop(queue);
    assert_true(digest_queue_is_stopped(queue));
    digest_queue_free(queue);
    digest_queue_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_at_a_time_they_keep_their_order),
        cmocka_unit_test(only_so_many_run_at_once),
        cmocka_unit_test(stopping_is_visible),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
