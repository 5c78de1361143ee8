/* A bounded cache of decoded components, so that a compressed component that is read in many ranges
 * is decoded once. Small ones are kept in memory, larger ones in unnamed files. Concurrent requests
 * share one decoding. */
#ifndef DERIVED_DECODED_H
#define DERIVED_DECODED_H

#include "base/server.h"
#include "catalog/generation.h"

struct decoded_cache;

/* A decoded component: read it through source. */
struct decoded {
    struct zt_source *source;
    uint64_t length;
};

struct decoded_cache *decoded_cache_new(struct server *server);
/* Nobody may hold an entry or wait for one. Takes NULL. */
void decoded_cache_free(struct decoded_cache *cache);

/* Makes running decodings fail soon, which wakes the requests that wait for them; new decodings
 * fail at once. Call it before loops and workers are stopped. */
void decoded_cache_stop(struct decoded_cache *cache);

enum decoded_answer { DECODED_READY, DECODED_PENDING, DECODED_FAILED };

/* READY: the caller holds *out_decoded (decoded_release). PENDING: waiter is woken when decoding
 * has ended; then ask again. FAILED: error says why (ZT_CORRUPT, ZT_LIMIT above
 * limits.decoded_bytes, ZT_UNSUPPORTED, ZT_IO, ZT_NO_MEMORY). */
enum decoded_answer decoded_ask(struct decoded_cache *cache, struct generation *generation,
                                uint32_t component, struct waiter *waiter,
                                struct decoded **out_decoded, struct zt_error *error);

/* The same for workers: decodes on this thread, or waits for the thread that already does. Never
 * waits for a queued job. error must not be NULL. */
enum zt_status decoded_get(struct decoded_cache *cache, struct generation *generation,
                           uint32_t component, struct decoded **out_decoded,
                           struct zt_error *error);

/* Takes NULL; void * for request_hold. */
void decoded_release(void *decoded);

#endif
