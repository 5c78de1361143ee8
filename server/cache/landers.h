/* The cache's threads. */
#ifndef CACHE_LANDERS_H
#define CACHE_LANDERS_H

#include "cache/cache_state.h"

/* Returns an error number, or 0. */
int landers_start(struct cache *cache);
/* Waits for all runs and jobs. */
void landers_stop(struct cache *cache);

#endif
