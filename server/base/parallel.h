/* Loops whose iterations run in parallel, on idle workers or on threads of the loop. */
#ifndef BASE_PARALLEL_H
#define BASE_PARALLEL_H

#include <stdbool.h>
#include <stdint.h>

struct workers;

/* The maximum number of threads of a loop. */
#define PARALLEL_THREADS_MAX 192

struct parallel_work {
    uint32_t count;
    /* Called on several threads concurrently. If it returns false, higher indexes need not run. */
    bool (*run)(void *context, uint32_t index);
    void *context;
};

/* Calls run for each index below count. Calls begin in ascending order, so all indexes below the
 * first failure run. Returns the lowest index for which run returned false, or count. Call it on a
 * worker, which takes part; idle workers help. Never waits for a worker to become free. If workers
 * is NULL, the calling thread runs everything. */
uint32_t parallel_for(struct workers *workers, const struct parallel_work *work);

/* Does the same with up to this many threads, from 1 to PARALLEL_THREADS_MAX, including the calling
 * thread; the others get the name (base/thread.h). If a thread cannot be started, fewer run. */
uint32_t parallel_for_threads(const char *name, unsigned threads, const struct parallel_work *work);

#endif
