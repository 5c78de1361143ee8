/* Digests of components that the server computed itself, kept with the generation.
 *
 * Of stored bytes: the SHA-256 of each component and of its pieces of limits.digest_piece_bytes (0
 * turns this off). A component that was verified, or that a run over all components has read, is
 * read once more in the background, after all work that requests wait for. The results are saved in
 * the state folder. They name blobs, and give a range that is exactly one piece its Content-Digest
 * without reading it.
 *
 * Of decoded bytes: lengths and digests that an export or an upload had to compute, so that the
 * next request for the same version of a file need not read it again. Kept in memory only. */
#ifndef VERIFY_COMPONENT_DIGESTS_H
#define VERIFY_COMPONENT_DIGESTS_H

#include "base/server.h"
#include "catalog/generation.h"
#include "zt/file_plan.h"

#define SHA256_BYTES 32

/* --- of stored bytes --- */

/* Queues a component's stored bytes to be read in the background, unless that was done already.
 * From any thread. */
void stored_digest_want(struct server *server, struct generation *generation, uint32_t component);

/* Takes over the SHA-256 of the stored bytes from a caller that has just hashed them. If digests of
 * pieces are missing, the bytes are still read. Ignored if the component is not known to be sound.
 * From any thread. */
void stored_digest_learn(struct server *server, struct generation *generation, uint32_t component,
                         const uint8_t sha256[SHA256_BYTES]);

/* The SHA-256 of the whole component; false if it is not known yet, or if the component is corrupt.
 * Never waits. */
bool stored_digest_whole(const struct generation *generation, uint32_t component,
                         uint8_t out_sha256[SHA256_BYTES]);

/* The SHA-256 that the file states for exactly the stored bytes, right or wrong. */
bool stored_digest_stated(const struct generation *generation, uint32_t component,
                          uint8_t out_sha256[SHA256_BYTES]);

/* The SHA-256 of exactly one piece of the stored bytes: first is a multiple of the piece's size,
 * length that size or what is left. Otherwise as stored_digest_whole. */
bool stored_digest_piece(const struct generation *generation, uint32_t component, uint64_t first,
                         uint64_t length, uint8_t out_sha256[SHA256_BYTES]);

/* --- of decoded bytes --- */

/* False if no digest of that algorithm is kept. Never waits. The caller sets same_as. */
bool decoded_digest_find(const struct generation *generation, uint32_t component,
                         enum zt_digest_algorithm algorithm,
                         struct zt_fingerprint *out_fingerprint);

/* Keeps a fingerprint, unless memory is short or the component is small, since reading small
 * components again is cheaper. From any thread. */
void decoded_digest_add(struct generation *generation, uint32_t component,
                        const struct zt_fingerprint *fingerprint);

/* Keeps the SHA-256 of the decoded bytes that an upload computed, however small the component. */
void decoded_digest_learn(struct generation *generation, uint32_t component,
                          const uint8_t sha256[SHA256_BYTES]);

#endif
