/* Whether bytes can be sent from where they lie without waiting for a disk. */
#ifndef HTTP_WIRE_PAGE_CACHE_H
#define HTTP_WIRE_PAGE_CACHE_H

#include "http/exchange/exchange.h"

/* Up to this every page is asked about; of more, samples. */
#define PAGE_CACHE_EXACT_BYTES (64u * 1024)

/* A segment's bytes in memory, or NULL where they cannot be mapped. */
const uint8_t *segment_bytes(const struct segment *segment);

/* Of an answer that is in memory or mapped; its work is bounded by the number of segments and the
 * samples. */
bool page_cache_holds(const struct answer *answer);

#endif
