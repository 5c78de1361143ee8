/* Processing of fetched bytes: they are compared with known checksums, then written to the file by
 * the cache's threads. */
#ifndef CACHE_LANDING_H
#define CACHE_LANDING_H

#include "cache/runs.h"

/* cache_fetch.done of every run. */
void landing_arrived(struct cache_fetch *fetch, enum zt_status status,
                     const struct zt_error *error);

/* cache_fetch.arrived of every run. */
void landing_progress(struct cache_fetch *fetch, uint64_t length);

/* With the lock, which it gives up meanwhile, of a run that has arrived and is in no queue: checks
 * its bytes. Afterwards it is ready, ended, or fetched again. The caller holds it. */
void landing_compare(struct run *run);

/* With the lock, which it gives up meanwhile, of a run that is ready and in no queue: writes it.
 * Afterwards it is kept or ended. */
void landing_write(struct run *run);

/* With the lock: one holder of a source less. */
void source_release(struct cache_source *source);

#endif
