/* Which bytes of an answer are in memory: those that can be sent or read without waiting for a
 * disk. */
#ifndef HTTP_WIRE_PAGE_CACHE_H
#define HTTP_WIRE_PAGE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "http/exchange/exchange.h"

struct mhd;

/* Of a larger answer, samples are queried. */
#define PAGE_CACHE_SMALL_BYTES (64u * 1024)

/* A segment's bytes in memory, or NULL if they cannot be mapped. */
const uint8_t *segment_bytes(const struct segment *segment);

/* Whether all segments are in memory or mapped. */
bool answer_is_mappable(const struct answer *answer);

/* Looks at every page of a small answer and at samples of a larger one, so that the work is
 * bounded. The answer is in memory or mapped. */
bool page_cache_holds(struct mhd *mhd, const struct answer *answer);

#endif
