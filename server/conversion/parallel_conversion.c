/* Converts with several threads: first content checks and fingerprints, then the components. One
 * thread reads each component and writes it at its position in the file plan.
 *
 * zTensor 1.2 stores digests after the data, so they are computed while the data is written:
 * positions are planned with digests of zeros, and the end of the file is written last. */
#include "conversion/parallel_conversion.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/parallel.h"
#include "base/processors.h"

#define THREADS_MAX 8

struct parallel {
    struct zt_conversion conversion; /* with the fingerprints */
    const struct zt_progress *progress;
    struct output_file *output;
    struct zt_fingerprint *fingerprints; /* NULL if the target needs none */
    struct zt_file_plan *plan;
    const struct zt_piece **places; /* for each component; NULL: it is not written */
    uint32_t *order;                /* components in the order of zt_model_convert */
    uint32_t order_count;
    pthread_mutex_t lock; /* of the caller's progress */
};

/* --- threads --- */

struct task;

/* Tasks with the same work, one for each number below a count. */
struct step {
    struct parallel *parallel;
    enum zt_status (*work)(struct task *task, uint32_t number);
    /* The first task that failed. It stops later tasks; earlier ones finish. */
    atomic_uint_least32_t failed;
    pthread_mutex_t lock; /* guards the rest, and changes of failed */
    struct zt_error error;
    bool output_failed;
};

struct task {
    struct step *step;
    struct parallel *parallel;
    struct zt_conversion conversion; /* its progress function stops if an earlier task failed */
    uint32_t number;
    bool output_failed;
    struct zt_error error;
};

static bool advance(void *context, uint64_t bytes)
{
    const struct task *task = context;
    struct parallel *parallel = task->parallel;
    bool goes_on;

    assert(task->parallel == task->step->parallel);
    if (atomic_load(&task->step->failed) < task->number)
        return false;
    if (parallel->progress == NULL)
        return true;
    pthread_mutex_lock(&parallel->lock);
    goes_on = parallel->progress->advance(parallel->progress->context, bytes);
    pthread_mutex_unlock(&parallel->lock);
    return goes_on;
}

static bool run_task(void *context, uint32_t number)
{
    struct step *step = context;
    struct task task = {.step = step,
                        .parallel = step->parallel,
                        .conversion = step->parallel->conversion,
                        .number = number};
    const struct zt_progress progress = {advance, &task};

    task.conversion.progress = &progress;
    zt_error_clear(&task.error);
    if (step->work(&task, number) == ZT_OK)
        return true;
    pthread_mutex_lock(&step->lock);
    if (number < atomic_load(&step->failed)) {
        step->error = task.error;
        step->output_failed = task.output_failed;
        atomic_store(&step->failed, number);
    }
    pthread_mutex_unlock(&step->lock);
    return false;
}

static unsigned wanted_jobs; /* 0: one for each processor */

void parallel_conversion_set_jobs(unsigned jobs)
{
    wanted_jobs = jobs;
}

static unsigned thread_count(void)
{
    const unsigned wanted = wanted_jobs > 0 ? wanted_jobs : processors_count();

    return wanted < THREADS_MAX ? wanted : THREADS_MAX;
}

/* Runs work(task, 0) to work(task, count - 1). If several tasks fail, fails with the lowest
 * number's failure. */
static enum zt_status run(struct parallel *parallel,
                          enum zt_status (*work)(struct task *task, uint32_t number),
                          uint32_t count, struct zt_error *error)
{
    struct step step = {.parallel = parallel,
                        .work = work,
                        .failed = UINT32_MAX,
                        .lock = PTHREAD_MUTEX_INITIALIZER};
    const struct parallel_work loop = {count, run_task, &step};
    const uint32_t done = parallel_for_threads("convert", thread_count(), &loop);

    pthread_mutex_destroy(&step.lock);
    if (done == count)
        return ZT_OK;
    assert(atomic_load(&step.failed) == done && step.error.status != ZT_OK);
    *error = step.error;
    parallel->output->failed = step.output_failed;
    return error->status;
}

/* --- before anything is written --- */

static enum zt_status check_object(struct task *task, uint32_t number)
{
    return zt_conversion_check_object(&task->conversion, number, &task->error);
}

static enum zt_status take_fingerprint(struct task *task, uint32_t number)
{
    assert(task->parallel->fingerprints != NULL);
    return zt_fingerprint_take(&task->conversion, number, &task->parallel->fingerprints[number],
                               &task->error);
}

static bool digests_come_last(const struct parallel *parallel)
{
    return parallel->conversion.projection->target == ZT_TARGET_ZT1;
}

/* For zTensor 1.2, only takes the lengths. */
static enum zt_status take_fingerprints(struct parallel *parallel, struct zt_error *error)
{
    const struct zt_model *outline = parallel->conversion.projection->model;
    enum zt_digest_algorithm algorithm;
    enum zt_status status;

    assert(parallel->fingerprints == NULL);
    if (!zt_target_fingerprint(parallel->conversion.projection->target, &algorithm))
        return ZT_OK;
    parallel->fingerprints =
        calloc(outline->component_count + (size_t)1, sizeof(*parallel->fingerprints));
    if (parallel->fingerprints == NULL)
        return zt_fail_memory(error, "fingerprints");
    if (digests_come_last(parallel)) {
        for (uint32_t i = 0; i < outline->component_count; i++)
            parallel->fingerprints[i] =
                (struct zt_fingerprint){.length = outline->components[i].decoded_length,
                                        .same_as = i,
                                        .digest = {.algorithm = algorithm, .length_bytes = 32}};
        return ZT_OK;
    }
    status = run(parallel, take_fingerprint, outline->component_count, error);
    if (status == ZT_OK)
        status = zt_fingerprints_match(&parallel->conversion, parallel->fingerprints, error);
    parallel->conversion.options.fingerprints = parallel->fingerprints;
    return status;
}

/* Empty components come first: they have no position in the file, but may be damaged too. If there
 * are checked fingerprints, they have already been read. */
static enum zt_status plan_places(struct parallel *parallel, struct zt_error *error)
{
    const struct zt_projection *projection = parallel->conversion.projection;
    const struct zt_model *outline = projection->model;
    const size_t count = outline->component_count + (size_t)1;
    struct zt_file_plan *plan = NULL;
    enum zt_status status = zt_file_plan_make(projection, parallel->fingerprints, &plan, error);

    if (status != ZT_OK)
        return status;
    parallel->plan = plan;
    parallel->places = calloc(count, sizeof(*parallel->places));
    parallel->order = calloc(count, sizeof(*parallel->order));
    if (parallel->places == NULL || parallel->order == NULL)
        return zt_fail_memory(error, "a file plan");
    for (uint32_t i = 0; i < outline->component_count; i++)
        if (parallel->conversion.options.fingerprints == NULL &&
            outline->components[i].decoded_length == 0)
            parallel->order[parallel->order_count++] = i;
    for (size_t i = 0; i < plan->piece_count; i++) {
        const struct zt_piece *piece = &plan->pieces[i];

        if (piece->is_component) {
            parallel->places[piece->component] = piece;
            parallel->order[parallel->order_count++] = piece->component;
        }
    }
    assert(parallel->order_count <= outline->component_count);
    return ZT_OK;
}

/* --- components --- */

/* The bytes of one component that is being written at its position. */
struct placing {
    struct task *task;
    uint64_t offset;
    uint64_t left;
    struct zt_hasher *hasher; /* NULL if the digest is known or not stored */
};

static enum zt_status fail_length(struct zt_error *error)
{
    return zt_fail(error, ZT_CORRUPT, NULL, ZT_NO_OFFSET, "the file changed while it was read");
}

static enum zt_status place(void *context, const void *bytes, size_t length, struct zt_error *error)
{
    struct placing *placing = context;
    enum zt_status status;

    if (length > placing->left)
        return fail_length(error);
    if (placing->hasher != NULL)
        zt_hasher_update(placing->hasher, bytes, length);
    status = output_file_write_at(placing->task->parallel->output, placing->offset, bytes, length,
                                  error);
    placing->task->output_failed = status != ZT_OK;
    placing->offset += length;
    placing->left -= length;
    return status;
}

static enum zt_status write_component(struct task *task, uint32_t number)
{
    struct parallel *parallel = task->parallel;
    const struct zt_piece *piece;
    uint32_t component;
    struct placing placing = {.task = task};
    const struct zt_sink sink = {place, &placing};
    enum zt_status status = ZT_OK;

    assert(number < parallel->order_count);
    component = parallel->order[number];
    piece = parallel->places[component];
    assert(piece == NULL || piece->component == component);
    if (piece != NULL) {
        placing.offset = piece->offset;
        placing.left = piece->length;
    }
    if (digests_come_last(parallel) && zt_hasher_new(ZT_DIGEST_SHA256, &placing.hasher) != ZT_OK)
        status = zt_fail_memory(&task->error, "converting");
    if (status == ZT_OK)
        status = zt_component_convert(&task->conversion, component, &sink, &task->error);
    if (status == ZT_OK && placing.left > 0)
        status = fail_length(&task->error);
    if (status == ZT_OK && placing.hasher != NULL)
        zt_hasher_finish(placing.hasher, &parallel->fingerprints[component].digest);
    zt_hasher_free(placing.hasher);
    return status;
}

/* --- the conversion --- */

static enum zt_status plan_again(struct parallel *parallel, struct zt_error *error)
{
    const uint64_t length = parallel->plan->length;

    zt_file_plan_free(parallel->plan);
    parallel->plan = NULL;
    if (zt_file_plan_make(parallel->conversion.projection, parallel->fingerprints, &parallel->plan,
                          error) != ZT_OK)
        return error->status;
    assert(parallel->plan->length == length); /* digests of one algorithm have the same length */
    return ZT_OK;
}

static enum zt_status write_added(const struct parallel *parallel, struct zt_error *error)
{
    const struct zt_file_plan *plan = parallel->plan;
    enum zt_status status = ZT_OK;

    for (size_t i = 0; i < plan->piece_count && status == ZT_OK; i++)
        if (!plan->pieces[i].is_component)
            status = output_file_write_at(parallel->output, plan->pieces[i].offset,
                                          plan->added + plan->pieces[i].added_at,
                                          (size_t)plan->pieces[i].length, error);
    parallel->output->failed = status != ZT_OK;
    return status;
}

static enum zt_status convert(struct parallel *parallel, struct zt_error *error)
{
    enum zt_status status =
        run(parallel, check_object, parallel->conversion.source->object_count, error);

    if (status == ZT_OK)
        status = zt_conversion_check_layouts(&parallel->conversion, error);
    if (status == ZT_OK)
        status = take_fingerprints(parallel, error);
    if (status == ZT_OK)
        status = plan_places(parallel, error);
    if (status == ZT_OK)
        status = run(parallel, write_component, parallel->order_count, error);
    if (status == ZT_OK && digests_come_last(parallel))
        status = plan_again(parallel, error);
    return status == ZT_OK ? write_added(parallel, error) : status;
}

/* Compressed data, and anything after data of unknown length, has no known position before it is
 * written. */
static bool knows_places(const struct zt_conversion *conversion)
{
    const struct zt_model *outline = conversion->projection->model;

    if (conversion->options.zstd || conversion->projection->target == ZT_TARGET_ZT2)
        return false;
    for (uint32_t i = 0; i < outline->component_count; i++)
        if (conversion->projection->target == ZT_TARGET_ZT1 &&
            outline->components[i].decoded_length == ZT_LENGTH_UNKNOWN)
            return false;
    return true;
}

enum zt_status parallel_conversion_write(const struct zt_conversion *conversion,
                                         struct output_file *output, struct zt_error *error)
{
    struct parallel parallel = {.conversion = *conversion,
                                .progress = conversion->progress,
                                .output = output,
                                .lock = PTHREAD_MUTEX_INITIALIZER};
    const struct zt_sink sink = {output_file_write, output};
    enum zt_status status;

    if (thread_count() < 2 || !knows_places(conversion)) {
        parallel.conversion.options.zstd_threads = thread_count();
        status = zt_model_convert(&parallel.conversion, &sink, error);
        return status == ZT_OK ? output_file_flush(output, error) : status;
    }
    status = convert(&parallel, error);
    zt_file_plan_free(parallel.plan);
    free(parallel.places);
    free(parallel.order);
    free(parallel.fingerprints);
    pthread_mutex_destroy(&parallel.lock);
    return status;
}
