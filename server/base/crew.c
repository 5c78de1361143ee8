/* Crews: one worker shares its task with threads that have nothing else to do.
 *
 * Helpers are idle jobs that do one part at a time, so that other jobs do not wait for them. A
 * helper that first runs when all parts are done only drops its reference to the crew. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/processors.h"
#include "base/workers.h"

#define HELPERS_MOST 15

struct crew;

struct helper {
    struct job job; /* first: the job is the structure */
    struct crew *crew;
};

struct crew {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct workers *workers;
    struct crew_work work;
    uint32_t next;
    uint32_t end; /* the count, or the least index that returned false */
    unsigned active;
    unsigned references;
    struct helper helpers[HELPERS_MOST];
};

static bool take_part(struct crew *crew, uint32_t *out_index)
{
    bool taken;

    pthread_mutex_lock(&crew->lock);
    taken = crew->next < crew->end;
    if (taken) {
        *out_index = crew->next++;
        crew->active++;
    }
    pthread_mutex_unlock(&crew->lock);
    return taken;
}

static void end_part(struct crew *crew, uint32_t index, bool proceed)
{
    pthread_mutex_lock(&crew->lock);
    assert(crew->active > 0);
    if (!proceed && index < crew->end)
        crew->end = index;
    if (--crew->active == 0)
        pthread_cond_signal(&crew->idle);
    pthread_mutex_unlock(&crew->lock);
}

static bool do_part(struct crew *crew)
{
    uint32_t index;

    if (!take_part(crew, &index))
        return false;
    end_part(crew, index, crew->work.run(crew->work.context, index));
    return true;
}

static void release(struct crew *crew)
{
    bool is_last;

    pthread_mutex_lock(&crew->lock);
    assert(crew->references > 0);
    is_last = --crew->references == 0;
    pthread_mutex_unlock(&crew->lock);
    if (is_last) {
        pthread_cond_destroy(&crew->idle);
        pthread_mutex_destroy(&crew->lock);
        free(crew);
    }
}

static void run_helper(struct job *job)
{
    struct crew *crew = ((struct helper *)job)->crew;

    if (do_part(crew))
        workers_submit_idle(crew->workers, job);
    else
        release(crew);
}

static unsigned helpers_wanted(uint32_t parts)
{
    const unsigned others = processors_count() - 1;
    const unsigned most = others < HELPERS_MOST ? others : HELPERS_MOST;

    return parts > most ? most : parts - 1;
}

static struct crew *crew_new(struct workers *workers, const struct crew_work *work)
{
    struct crew *crew = calloc(1, sizeof(*crew));

    if (crew == NULL)
        return NULL;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->idle, NULL);
    crew->workers = workers;
    crew->work = *work;
    crew->end = work->count;
    crew->references = 1;
    return crew;
}

static void queue_helpers(struct crew *crew)
{
    unsigned count = helpers_wanted(crew->work.count);

    crew->references += count;
    for (unsigned i = 0; i < count; i++) {
        crew->helpers[i].crew = crew;
        crew->helpers[i].job.run = run_helper;
        workers_submit_idle(crew->workers, &crew->helpers[i].job);
    }
}

static uint32_t run_alone(const struct crew_work *work)
{
    uint32_t at = 0;

    while (at < work->count && work->run(work->context, at))
        at++;
    return at;
}

uint32_t crew_run(struct workers *workers, const struct crew_work *work)
{
    struct crew *crew = workers != NULL && work->count > 1 ? crew_new(workers, work) : NULL;
    uint32_t end;

    if (crew == NULL)
        return run_alone(work);
    queue_helpers(crew);
    while (do_part(crew))
        continue;
    pthread_mutex_lock(&crew->lock);
    while (crew->active > 0)
        pthread_cond_wait(&crew->idle, &crew->lock);
    end = crew->end;
    pthread_mutex_unlock(&crew->lock);
    release(crew);
    return end;
}
