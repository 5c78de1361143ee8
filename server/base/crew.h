/* Work in many parts, done by the calling worker and by others that have nothing else to do. */
#ifndef BASE_CREW_H
#define BASE_CREW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/workers.h"

struct crew_work {
    uint32_t count;
    /* Called by several threads at once. False: parts after this index need not be done. */
    bool (*run)(void *context, uint32_t index);
    void *context;
};

/* On a worker. Runs all parts, begun in rising order. Returns the least index whose run returned
 * false, or count. Never waits for a worker to become free; workers may be NULL: then there are no
 * helpers. */
uint32_t crew_run(struct workers *workers, const struct crew_work *work);

#endif
