/* Differences between two components, as the coding xor-zstd (docs/api.md): made once for all
 * requests, and kept in the cache of decoded components. A difference is identified by the digests
 * of both, so it stays valid whichever models they are in. */
#ifndef DERIVED_DIFFERENCE_H
#define DERIVED_DIFFERENCE_H

#include "derived/decoded.h"
#include "zt/verify.h"

#define DIFFERENCE_DIGEST_BYTES 32

struct difference_side {
    struct generation *generation;
    uint32_t component;
    uint8_t sha256[DIFFERENCE_DIGEST_BYTES]; /* of the decoded bytes */
};

/* Returns a difference, made or not, which the caller must release with memo_release. Returns NULL
 * if out of memory. */
struct decoded *difference_hold(struct decoded_cache *cache,
                                const struct difference_side *component,
                                const struct difference_side *base);

/* Requests a held difference. Returns READY, PENDING or FAILED as decoded_ask does; ZT_ARGUMENT:
 * the components do not have the same length. Both have been verified. */
enum memo_answer difference_ask(struct server *server, struct decoded *difference,
                                const struct difference_side *component,
                                const struct difference_side *base, struct waiter *waiter,
                                struct zt_error *error);

/* Hashes the decoded bytes of a component, on a worker. progress may be NULL. Fails as
 * zt_decoder_open and zt_decoder_read do; ZT_STALE: the file was changed meanwhile; ZT_IO: the
 * server stops; ZT_ARGUMENT: progress stopped the work. */
enum zt_status difference_hash(const struct server *server, const struct generation *generation,
                               uint32_t component, const struct zt_progress *progress,
                               uint8_t out_sha256[DIFFERENCE_DIGEST_BYTES], struct zt_error *error);

#endif
