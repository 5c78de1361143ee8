/* How clients share the workers: they take turns, and none occupies all threads. */
#include "tests.h"

#include <pthread.h>
#include <semaphore.h>

#include "base/job_queue.h"
#include "base/workers.h"

#define HOSTILE ((uint64_t)7)
#define OTHER   ((uint64_t)8)
#define THIRD   ((uint64_t)9)

/* --- the queue --- */

static bool any(const void *context, uint64_t client)
{
    (void)context;
    (void)client;
    return true;
}

static bool all_but(const void *context, uint64_t client)
{
    return client != *(const uint64_t *)context;
}

static struct job job_for(uint64_t client)
{
    return (struct job){.client = client};
}

TEST(clients_take_turns_however_many_jobs_one_has)
{
    struct job_queue queue;
    struct job hostile[100];
    struct job other[2];

    job_queue_init(&queue);
    for (unsigned i = 0; i < 100; i++) {
        hostile[i] = job_for(HOSTILE);
        job_queue_put(&queue, &hostile[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        other[i] = job_for(OTHER);
        job_queue_put(&queue, &other[i]);
    }
    assert_ptr_equal(job_queue_take(&queue, any, NULL), &hostile[0]);
    assert_ptr_equal(job_queue_take(&queue, any, NULL), &other[0]);
    assert_ptr_equal(job_queue_take(&queue, any, NULL), &hostile[1]);
    assert_ptr_equal(job_queue_take(&queue, any, NULL), &other[1]);
    for (unsigned i = 2; i < 100; i++)
        assert_ptr_equal(job_queue_take(&queue, any, NULL), &hostile[i]);
    assert_null(job_queue_take(&queue, any, NULL));
    assert_int_equal(queue.length, 0);
}

TEST(a_client_that_may_not_run_is_passed_over)
{
    struct job_queue queue;
    struct job first = job_for(HOSTILE);
    struct job second = job_for(OTHER);

    job_queue_init(&queue);
    job_queue_put(&queue, &first);
    job_queue_put(&queue, &second);
    assert_ptr_equal(job_queue_take(&queue, all_but, &(uint64_t){HOSTILE}), &second);
    assert_null(job_queue_take(&queue, all_but, &(uint64_t){HOSTILE}));
    assert_ptr_equal(job_queue_take(&queue, any, NULL), &first);
}

TEST(more_clients_than_lines_lose_no_job)
{
    static struct job jobs[3 * JOB_LINES];
    struct job_queue queue;
    unsigned taken = 0;

    job_queue_init(&queue);
    for (unsigned i = 0; i < 3 * JOB_LINES; i++) {
        jobs[i] = job_for(i + 1);
        job_queue_put(&queue, &jobs[i]);
    }
    for (struct job *job; (job = job_queue_take(&queue, any, NULL)) != NULL; taken++) {
        assert_true(job->client > 0);
        job->client = 0;
    }
    assert_int_equal(taken, 3 * JOB_LINES);
}

TEST(what_is_put_back_comes_before_its_clients_others)
{
    struct job_queue queue;
    struct job first = job_for(OTHER);
    struct job second = job_for(OTHER);

    job_queue_init(&queue);
    job_queue_put(&queue, &first);
    job_queue_put(&queue, &second);
    assert_ptr_equal(job_queue_take(&queue, any, NULL), &first);
    job_queue_put_back(&queue, &first);
    assert_ptr_equal(job_queue_take(&queue, any, NULL), &first);
    assert_ptr_equal(job_queue_take(&queue, any, NULL), &second);
    job_queue_put_back(&queue, &second);
    job_queue_put(&queue, &first);
    assert_ptr_equal(job_queue_take(&queue, any, NULL), &second);
    assert_ptr_equal(job_queue_take(&queue, any, NULL), &first);
}

TEST(a_job_moves_only_where_its_turn_comes_sooner)
{
    struct job_queue queue;
    struct job hostile[4];
    struct job other[2];

    job_queue_init(&queue);
    for (unsigned i = 0; i < 4; i++) {
        hostile[i] = job_for(HOSTILE);
        job_queue_put(&queue, &hostile[i]);
    }
    other[0] = job_for(OTHER);
    job_queue_put(&queue, &other[0]);
    /* A client cannot delay what another waits for. */
    job_queue_move(&queue, &other[0], HOSTILE, any, NULL);
    assert_int_equal(other[0].client, OTHER);
    job_queue_move(&queue, &hostile[3], THIRD, all_but, &(uint64_t){THIRD});
    assert_int_equal(hostile[3].client, HOSTILE);
    job_queue_move(&queue, &hostile[3], OTHER, any, NULL);
    assert_int_equal(hostile[3].client, OTHER);
    /* Its own client may have nothing run. */
    job_queue_move(&queue, &hostile[0], THIRD, all_but, &(uint64_t){HOSTILE});
    assert_int_equal(hostile[0].client, THIRD);
    assert_ptr_equal(job_queue_take(&queue, any, NULL), &hostile[1]);
    assert_ptr_equal(job_queue_take(&queue, any, NULL), &other[0]);
    assert_ptr_equal(job_queue_take(&queue, any, NULL), &hostile[0]);
    assert_ptr_equal(job_queue_take(&queue, any, NULL), &hostile[2]);
    assert_ptr_equal(job_queue_take(&queue, any, NULL), &hostile[3]);
    assert_null(job_queue_take(&queue, any, NULL));
}

/* --- the pool --- */

/* Reports that it has begun, and ends when it is let through. */
struct gated {
    struct job job; /* first: the job is the structure */
    sem_t *begun;
    sem_t *gate;
};

static void run_gated(struct job *job)
{
    const struct gated *gated = (struct gated *)job;

    sem_post(gated->begun);
    while (sem_wait(gated->gate) != 0)
        continue;
}

struct scene {
    sem_t begun; /* of the hostile client's jobs */
    sem_t gate;
    sem_t other; /* of the others' */
    sem_t open;
    struct workers *workers;
    struct gated hostile[32];
};

static void scene_begin(struct scene *scene, unsigned threads)
{
    sem_init(&scene->begun, 0, 0);
    sem_init(&scene->gate, 0, 0);
    sem_init(&scene->other, 0, 0);
    sem_init(&scene->open, 0, 1000);
    scene->workers = workers_start(threads);
    assert_non_null(scene->workers);
    for (unsigned i = 0; i < 32; i++)
        scene->hostile[i] =
            (struct gated){{.run = run_gated, .client = HOSTILE}, &scene->begun, &scene->gate};
}

static void scene_end(struct scene *scene)
{
    for (unsigned i = 0; i < 32; i++)
        sem_post(&scene->gate);
    workers_stop(scene->workers);
}

static void await(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        continue;
}

/* The test ends only if every kind of job of another client runs while the gate is closed. */
TEST(one_client_cannot_occupy_all_threads)
{
    struct scene scene;
    struct gated ordinary, lengthy;

    scene_begin(&scene, 5);
    for (unsigned i = 0; i < 16; i++)
        workers_submit_long(scene.workers, &scene.hostile[i].job);
    for (unsigned i = 16; i < 32; i++)
        workers_submit(scene.workers, &scene.hostile[i].job);
    for (unsigned i = 0; i < 4; i++)
        await(&scene.begun);
    ordinary = (struct gated){{.run = run_gated, .client = OTHER}, &scene.other, &scene.open};
    lengthy = ordinary;
    workers_submit_long(scene.workers, &lengthy.job);
    await(&scene.other);
    workers_submit(scene.workers, &ordinary.job);
    await(&scene.other);
    scene_end(&scene);
}

/* The test ends only if the other client's jobs run while the gate is closed. */
TEST(even_of_the_fewest_threads_one_is_left_to_others_for_each_kind)
{
    static void (*const submit[])(struct workers *, struct job *) = {
        workers_submit_idle, workers_submit_long, workers_submit};
    struct gated others[3];
    struct scene scene;

    for (unsigned kind = 0; kind < 3; kind++) {
        scene_begin(&scene, 1);
        for (unsigned i = 0; i < 32; i++)
            submit[kind](scene.workers, &scene.hostile[i].job);
        await(&scene.begun);
        others[kind] =
            (struct gated){{.run = run_gated, .client = OTHER}, &scene.other, &scene.open};
        submit[kind](scene.workers, &others[kind].job);
        await(&scene.other);
        scene_end(&scene);
    }
}

TEST(whoever_joins_a_queued_job_does_not_wait_for_its_clients_others)
{
    struct scene scene;
    struct gated wanted;

    scene_begin(&scene, 5);
    for (unsigned i = 0; i < 31; i++)
        workers_submit_long(scene.workers, &scene.hostile[i].job);
    for (unsigned i = 0; i < 3; i++)
        await(&scene.begun);
    wanted = (struct gated){{.run = run_gated, .client = HOSTILE}, &scene.other, &scene.open};
    workers_submit_long(scene.workers, &wanted.job);
    workers_share(scene.workers, &wanted.job, OTHER);
    await(&scene.other);
    scene_end(&scene);
}

TEST(one_client_cannot_fill_the_queue)
{
    static struct gated jobs[600];
    struct scene scene;

    scene_begin(&scene, 4);
    for (unsigned i = 0; i < 3; i++)
        workers_submit(scene.workers, &scene.hostile[i].job);
    for (unsigned i = 0; i < 3; i++)
        await(&scene.begun);
    for (unsigned i = 0; i < 512; i++) {
        assert_false(workers_refuse(scene.workers, HOSTILE));
        jobs[i] = (struct gated){{.run = run_gated, .client = HOSTILE}, &scene.begun, &scene.open};
        workers_submit(scene.workers, &jobs[i].job);
    }
    assert_true(workers_are_crowded(scene.workers));
    assert_true(workers_refuse(scene.workers, HOSTILE));
    assert_false(workers_refuse(scene.workers, OTHER));
    assert_false(workers_are_overloaded(scene.workers));
    scene_end(&scene);
}
