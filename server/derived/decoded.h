/* A bounded cache of decoded components, so that a compressed component that is read in many ranges
 * is decoded once. Small components are kept in memory, larger ones in unnamed files. Concurrent
 * requests share one decoding. */
#ifndef DERIVED_DECODED_H
#define DERIVED_DECODED_H

#include "base/memo.h"
#include "base/server.h"
#include "catalog/generation.h"

struct decoded_cache;

/* A decoded component: read it through source. */
struct decoded {
    struct zt_source *source;
    uint64_t length;
    uint8_t *bytes; /* the memory that source reads; NULL for a file */
};

struct decoded_cache *decoded_cache_new(struct server *server);
/* No component may still be held. Accepts NULL. */
void decoded_cache_free(struct decoded_cache *cache);

/* Makes running decodings fail soon, which wakes the requests that wait for them; new decodings
 * fail at once. Call it before loops and workers are stopped. */
void decoded_cache_stop(struct decoded_cache *cache);

/* Returns a component, decoded or not, which the caller must release with memo_release. Returns
 * NULL if out of memory. */
struct decoded *decoded_hold(struct decoded_cache *cache, const struct generation *generation,
                             uint32_t component);

/* Requests a held component. READY: it can be read. PENDING: waiter is woken when decoding has
 * ended; then call again. FAILED: error has the reason (ZT_CORRUPT, ZT_LIMIT above
 * limits.decoded_bytes, ZT_UNSUPPORTED, ZT_IO, ZT_NO_MEMORY). Never returns MAKE. */
enum memo_answer decoded_ask(struct decoded_cache *cache, struct decoded *decoded,
                             struct generation *generation, uint32_t component,
                             struct waiter *waiter, struct zt_error *error);

/* Does the same on a worker: decodes on this thread, or waits for the thread that is already
 * decoding. Never waits for a queued job. The caller must release *out_decoded with memo_release.
 * error must not be NULL. */
enum zt_status decoded_get(struct decoded_cache *cache, struct generation *generation,
                           uint32_t component, struct decoded **out_decoded,
                           struct zt_error *error);

/* --- for other derived bytes (derived/difference.h) --- */

/* Returns the memo of struct decoded, whose limits they share. Keys of other bytes than decoded
 * components must not have DECODED_KEY_BYTES. */
#define DECODED_KEY_BYTES 24
struct memo *decoded_cache_memo(struct decoded_cache *cache);

/* For a value's maker: done, with source, length and bytes set, or failed for a while. */
void decoded_finish(struct decoded *decoded, enum zt_status status, const struct zt_error *error,
                    int64_t failure_lasts_ms);

#endif
