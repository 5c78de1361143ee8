/* Which bytes of an answer are in memory: those that can be sent or read without waiting for a
 * disk. */
#ifndef HTTP_WIRE_PAGE_CACHE_H
#define HTTP_WIRE_PAGE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "http/exchange/exchange.h"

struct mhd;

/* Every page is looked at of an answer up to this, and of one piece of a file up to the other. */
#define PAGE_CACHE_SMALL_BYTES (64u * 1024)
#define PAGE_CACHE_PIECE_BYTES (4u * 1024 * 1024)

/* A segment's bytes in memory, or NULL if they cannot be mapped. */
const uint8_t *segment_bytes(const struct segment *segment);

/* Whether all segments are in memory. */
bool answer_is_memory(const struct answer *answer);

/* Whether all segments are in memory or mapped. */
bool answer_is_mappable(const struct answer *answer);

/* Looks at every page of an answer, or at samples of a larger one, so that the work is bounded. The
 * answer is in memory or mapped. */
bool page_cache_holds(struct mhd *mhd, const struct answer *answer);

#endif
