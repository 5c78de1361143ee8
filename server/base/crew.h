/* Work in many parts: done by the worker that has it, and by others that have nothing else to do.
 */
#ifndef BASE_CREW_H
#define BASE_CREW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/workers.h"

struct crew_work {
    uint32_t count;
    /* From several threads at once. False: nothing behind this index needs to be done any more. */
    bool (*run)(void *context, uint32_t index);
    void *context;
};

/* On a worker. Runs every part, in rising order as they are begun. Returns the least index that
 * said false, whatever others said; count when none did. Never waits for a worker to become free;
 * workers NULL: nobody helps. */
uint32_t crew_run(struct workers *workers, const struct crew_work *work);

#endif
