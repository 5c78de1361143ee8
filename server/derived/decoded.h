/* Decoded components: a bounded cache, so that a client that reads a compressed component in many
 * ranges pays for one decoding. Small ones are kept in memory, others in an unnamed file; several
 * requests share one decoding. */
#ifndef DERIVED_DECODED_H
#define DERIVED_DECODED_H

#include "base/server.h"
#include "catalog/generation.h"

struct decoded_cache;

/* One decoded component: read it through source. */
struct decoded {
    struct zt_source *source;
    uint64_t length;
};

struct decoded_cache *decoded_cache_new(struct server *server);
/* Nothing may be held or under way. Takes NULL. */
void decoded_cache_free(struct decoded_cache *cache);

/* Makes decodings under way fail soon, and wakes who waits for them; none is begun any more. For
 * the end of the program: before loops and workers are stopped. */
void decoded_cache_stop(struct decoded_cache *cache);

enum decoded_answer { DECODED_READY, DECODED_PENDING, DECODED_FAILED };

/* READY: *out_decoded is held by the caller (decoded_release). PENDING: it is being decoded, waiter
 * will be woken; ask again then. FAILED: error says why (ZT_CORRUPT, ZT_LIMIT above
 * limits.decoded_bytes, ZT_UNSUPPORTED, ZT_IO). */
enum decoded_answer decoded_ask(struct decoded_cache *cache, struct generation *generation,
                                uint32_t component, struct waiter *waiter,
                                struct decoded **out_decoded, struct zt_error *error);

/* The same for workers: decodes on this thread, unless another is at it, which is then waited for.
 * Never waits for a job that is queued. error must not be NULL. */
enum zt_status decoded_get(struct decoded_cache *cache, struct generation *generation,
                           uint32_t component, struct decoded **out_decoded,
                           struct zt_error *error);

void decoded_release(void *decoded);

#endif
