/* Digests of components that the server has computed itself, kept with the generation.
 *
 * Stored bytes: the SHA-256 of each component and of its pieces of limits.digest_piece_bytes (0
 * disables this). Components that were verified, or read by a run over all components, are read
 * once more in the background, after all work that requests wait for. The results are saved in the
 * state folder. They identify blobs, and provide the Content-Digest of a range that is exactly one
 * piece without reading it.
 *
 * Decoded bytes: lengths and digests that an export or an upload had to compute, so that the next
 * request for the same version of a file need not read it again. They are kept in memory only. */
#ifndef VERIFY_COMPONENT_DIGESTS_H
#define VERIFY_COMPONENT_DIGESTS_H

#include "base/server.h"
#include "catalog/generation.h"
#include "digests/hash_queue.h"
#include "zt/file_plan.h"

/* --- stored bytes --- */

/* Queues a component's stored bytes to be read in the background, unless that has been done, or the
 * component is not known to be intact. May be called on any thread. */
void stored_digest_want(struct server *server, struct generation *generation, uint32_t component);

/* Records the SHA-256 of stored bytes that the caller has just hashed. If digests of pieces are
 * missing, the bytes are read anyway. Ignored if the component is not known to be intact. May be
 * called on any thread. */
void stored_digest_learn(struct server *server, struct generation *generation, uint32_t component,
                         const uint8_t sha256[SHA256_BYTES]);

/* Counts the components that are queued, or read just now. */
uint32_t stored_digest_pending(const struct generation *generation);

/* Finds the SHA-256 of the whole component. Returns false if it is not known yet, or if the
 * component is corrupt. Never waits. */
bool stored_digest_whole(const struct generation *generation, uint32_t component,
                         uint8_t out_sha256[SHA256_BYTES]);

/* Finds the SHA-256 that the file states for exactly the stored bytes, correct or not. */
bool stored_digest_stated(const struct generation *generation, uint32_t component,
                          uint8_t out_sha256[SHA256_BYTES]);

/* Finds the SHA-256 of exactly one piece of the stored bytes: first must be a multiple of the piece
 * size, and length the piece size or the remainder. Otherwise behaves like stored_digest_whole. */
bool stored_digest_piece(const struct generation *generation, uint32_t component, uint64_t first,
                         uint64_t length, uint8_t out_sha256[SHA256_BYTES]);

/* --- decoded bytes --- */

/* Finds a kept digest. Returns false if there is none for this algorithm. Never waits. The caller
 * sets same_as. */
bool decoded_digest_find(const struct generation *generation, uint32_t component,
                         enum zt_digest_algorithm algorithm,
                         struct zt_fingerprint *out_fingerprint);

/* Keeps a fingerprint, unless memory is short or the component is small, since reading a small
 * component again is cheaper. May be called on any thread. */
void decoded_digest_add(struct generation *generation, uint32_t component,
                        const struct zt_fingerprint *fingerprint);

/* Keeps the SHA-256 of decoded bytes that an upload has computed, even for a small component. */
void decoded_digest_learn(struct generation *generation, uint32_t component,
                          const uint8_t sha256[SHA256_BYTES]);

#endif
