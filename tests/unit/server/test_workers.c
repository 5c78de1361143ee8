/* The pool of workers. */
#include "tests.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/workers.h"

#define JOBS 2000

struct counted {
    struct job job;
    atomic_uint *runs;
    atomic_uint *dones;
};

static void count_run(struct job *job)
{
    atomic_fetch_add(((struct counted *)job)->runs, 1);
}

static void count_done(struct job *job)
{
    atomic_fetch_add(((struct counted *)job)->dones, 1);
}

TEST(every_job_runs_once_and_is_done_once)
{
    static struct counted jobs[JOBS];
    atomic_uint runs = 0;
    atomic_uint dones = 0;
    struct workers *workers = workers_start(4);

    assert_non_null(workers);
    for (unsigned i = 0; i < JOBS; i++) {
        jobs[i] = (struct counted){
            .job = {.run = count_run, .done = count_done}, .runs = &runs, .dones = &dones};
        if (i % 3 == 0)
            workers_submit_idle(workers, &jobs[i].job);
        else
            workers_submit(workers, &jobs[i].job);
    }
    workers_stop(workers);
    assert_int_equal(atomic_load(&runs), JOBS);
    assert_int_equal(atomic_load(&dones), JOBS);
}

struct blocking {
    struct job job;
    pthread_mutex_t *gate;
    atomic_uint *order;
    unsigned place;
};

static atomic_uint entered;

static void wait_a_millisecond(void)
{
    pause_ms(1);
}

static void wait_at_gate(struct job *job)
{
    struct blocking *blocking = (struct blocking *)job;

    atomic_fetch_add(&entered, 1);
    pthread_mutex_lock(blocking->gate);
    pthread_mutex_unlock(blocking->gate);
    blocking->place = atomic_fetch_add(blocking->order, 1);
}

TEST(ordinary_jobs_pass_idle_ones)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    atomic_uint order = 0;
    struct workers *workers = workers_start(2);
    struct blocking idle[8];
    struct blocking ordinary = {.job = {.run = wait_at_gate}, .gate = &gate, .order = &order};
    pthread_mutex_t open = PTHREAD_MUTEX_INITIALIZER;

    assert_non_null(workers);
    pthread_mutex_lock(&gate);
    for (unsigned i = 0; i < 8; i++) {
        idle[i] = (struct blocking){.job = {.run = wait_at_gate}, .gate = &gate, .order = &order};
        workers_submit_idle(workers, &idle[i].job);
    }
    /* Time for every thread that would take one. */
    for (unsigned i = 0; i < 50 || atomic_load(&entered) == 0; i++)
        wait_a_millisecond();
    /* One thread is kept from idle jobs, so this one is done while the first of them still
     * blocks. */
    ordinary.gate = &open;
    workers_submit(workers, &ordinary.job);
    for (unsigned i = 0; i < 2000 && atomic_load(&order) == 0; i++)
        wait_a_millisecond();
    assert_int_equal(atomic_load(&order), 1);
    pthread_mutex_unlock(&gate);
    workers_stop(workers);
    assert_int_equal(ordinary.place, 0);
    assert_int_equal(atomic_load(&order), 9);
}

#define LONG_JOBS 16
/* Of both kinds: with the fewest threads there are, three may be taken by one kind or the other. */
TEST(short_jobs_pass_long_ones_that_fill_the_queue)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_t open = PTHREAD_MUTEX_INITIALIZER;
    atomic_uint order = 0;
    struct workers *workers = workers_start(1);
    struct blocking jobs[LONG_JOBS];
    struct blocking brief = {.job = {.run = wait_at_gate}, .gate = &open, .order = &order};

    assert_non_null(workers);
    atomic_store(&entered, 0);
    pthread_mutex_lock(&gate);
    for (unsigned i = 0; i < LONG_JOBS; i++) {
        jobs[i] = (struct blocking){.job = {.run = wait_at_gate}, .gate = &gate, .order = &order};
        if (i % 2 == 0)
            workers_submit_idle(workers, &jobs[i].job);
        else
            workers_submit_long(workers, &jobs[i].job);
    }
    for (unsigned i = 0; i < 50 || atomic_load(&entered) < 3; i++)
        wait_a_millisecond();
    assert_int_equal(atomic_load(&entered), 3);
    workers_submit(workers, &brief.job);
    for (unsigned i = 0; i < 2000 && atomic_load(&order) == 0; i++)
        wait_a_millisecond();
    assert_int_equal(atomic_load(&order), 1);
    pthread_mutex_unlock(&gate);
    workers_stop(workers);
    assert_int_equal(brief.place, 0);
    assert_int_equal(atomic_load(&order), LONG_JOBS + 1);
}

TEST(long_jobs_have_a_thread_whatever_runs_in_the_background)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_t open = PTHREAD_MUTEX_INITIALIZER;
    atomic_uint order = 0;
    struct workers *workers = workers_start(4);
    struct blocking idle[8];
    struct blocking lengthy = {.job = {.run = wait_at_gate}, .gate = &open, .order = &order};

    assert_non_null(workers);
    atomic_store(&entered, 0);
    pthread_mutex_lock(&gate);
    for (unsigned i = 0; i < 8; i++) {
        idle[i] = (struct blocking){.job = {.run = wait_at_gate}, .gate = &gate, .order = &order};
        workers_submit_idle(workers, &idle[i].job);
    }
    for (unsigned i = 0; i < 50 || atomic_load(&entered) < 2; i++)
        wait_a_millisecond();
    workers_submit_long(workers, &lengthy.job);
    for (unsigned i = 0; i < 2000 && atomic_load(&order) == 0; i++)
        wait_a_millisecond();
    assert_int_equal(atomic_load(&order), 1);
    pthread_mutex_unlock(&gate);
    workers_stop(workers);
    assert_int_equal(atomic_load(&order), 9);
}

/* With all threads at the gate, so that nothing is taken from the queues. */
TEST(a_pool_is_overloaded_until_its_queue_is_short_again)
{
    static struct counted jobs[JOBS];
    static struct blocking blockers[4];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    atomic_uint order = 0;
    atomic_uint runs = 0;
    atomic_uint dones = 0;
    struct workers *workers = workers_start(4);

    assert_non_null(workers);
    atomic_store(&entered, 0);
    pthread_mutex_lock(&gate);
    for (unsigned i = 0; i < 4; i++) {
        blockers[i] =
            (struct blocking){.job = {.run = wait_at_gate}, .gate = &gate, .order = &order};
        workers_submit(workers, &blockers[i].job);
    }
    while (atomic_load(&entered) < 4)
        wait_a_millisecond();
    for (unsigned i = 0; i < JOBS; i++)
        jobs[i] = (struct counted){
            .job = {.run = count_run, .done = count_done}, .runs = &runs, .dones = &dones};
    for (unsigned i = 0; i < 900; i++)
        workers_submit_idle(workers, &jobs[i].job);
    for (unsigned i = 900; i < 900 + 1023; i++)
        workers_submit(workers, &jobs[i].job);
    assert_false(workers_are_overloaded(workers));
    workers_submit_long(workers, &jobs[JOBS - 1].job);
    assert_true(workers_are_overloaded(workers));
    pthread_mutex_unlock(&gate);
    while (atomic_load(&dones) < 900 + 1024)
        wait_a_millisecond();
    assert_false(workers_are_overloaded(workers));
    workers_stop(workers);
}

#define POOL   64
#define PASSED 50

struct passing {
    struct job job;
    struct workers *workers;
    struct passing *next;
    sem_t *end;
};

/* Ends as soon as the next job is queued, so that it is often still queued then. The pause lets all
 * threads come to rest first. */
static void pass_on(struct job *job)
{
    struct passing *passing = (struct passing *)job;

    wait_a_millisecond();
    if (passing->next != NULL)
        workers_submit(passing->workers, &passing->next->job);
    else
        sem_post(passing->end);
}

static long switches_count(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_nvcsw;
}

TEST(the_end_of_a_job_does_not_wake_all_threads)
{
    static struct passing jobs[PASSED];
    struct workers *workers = workers_start(POOL);
    sem_t end;
    long before;

    assert_non_null(workers);
    assert_int_equal(sem_init(&end, 0, 0), 0);
    for (unsigned i = 0; i < PASSED; i++)
        jobs[i] = (struct passing){.job = {.run = pass_on},
                                   .workers = workers,
                                   .next = i + 1 < PASSED ? &jobs[i + 1] : NULL,
                                   .end = &end};
    before = switches_count();
    workers_submit(workers, &jobs[0].job);
    while (sem_wait(&end) != 0)
        ;
    assert_in_range(switches_count() - before, 0, PASSED * 16);
    workers_stop(workers);
    sem_destroy(&end);
}

TEST(stop_takes_nothing)
{
    workers_stop(NULL);
}
